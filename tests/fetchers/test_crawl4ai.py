"""The fetcher over a fake browser, and the life of a browser over a stand-in for its driver."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nexi.errors import ConfigError, FetchError
from nexi.fetchers import Settings, browser, create_fetcher, obstacles
from nexi.fetchers.browser import Browser, Crawl4aiFetcher, RenderedPage
from nexi.fetchers.browser.worker import _chromium_arguments
from nexi.fetchers.guard import AddressGuard
from nexi.testing import FakeClock
from nexi.types import FetchLimits, Page
from nexi.urls import Url
from tests.fetchers.leaks import no_leaks
from tests.raising import has_code

URL = "http://app.example/page"
TEXT = "A script wrote these words. " * 30
LIMITS = FetchLimits(timeout_s=300.0)


class FakeBrowser:
    def __init__(self, rendered: RenderedPage | FetchError) -> None:
        self.rendered = rendered
        self.asked: list[str] = []
        self.closed = False

    async def render(self, url: str, timeout_s: float) -> RenderedPage:
        self.asked.append(url)
        if isinstance(self.rendered, FetchError):
            raise self.rendered
        return self.rendered

    async def aclose(self) -> None:
        self.closed = True


async def fetched(rendered: RenderedPage | FetchError, url: str = URL, forbidden: str = "") -> tuple[Page, list[str]]:
    admitted: list[str] = []

    async def admit(asked: Url) -> None:
        admitted.append(asked.href)
        if forbidden and forbidden in asked.href:
            raise FetchError("it is not read", reason="robots")

    page = await Crawl4aiFetcher(FakeBrowser(rendered), guard=AddressGuard(), clock=FakeClock(), admit=admit).fetch(url, LIMITS)
    return page, admitted


async def failure(rendered: RenderedPage | FetchError, url: str = URL, forbidden: str = "") -> FetchError:
    with pytest.raises(FetchError) as caught:
        await fetched(rendered, url, forbidden)
    return caught.value


async def test_a_rendered_page_is_extracted_like_any_other() -> None:
    html = f"<html lang=en><head><title>App</title></head><body><main><h1>Head</h1><p>{TEXT}</p></main></body></html>"
    page, admitted = await fetched(RenderedPage(f"{URL}?done", html=html))
    assert (page.url, page.final_url, page.title, page.fetcher) == (URL, f"{URL}?done", "App", "crawl4ai")
    assert TEXT.strip() in page.text
    assert admitted == [URL]


async def test_a_page_that_led_elsewhere_needs_the_leave_of_that_site_too() -> None:
    error = await failure(RenderedPage("http://other.example/", html=f"<p>{TEXT}</p>"), forbidden="other.example")
    assert error.reason == "robots"


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "file:///etc/passwd", "http://a:b@site.example/", "raw:<p>x</p>"])
async def test_a_url_the_guard_refuses_reaches_no_browser(url: str) -> None:
    assert (await failure(RenderedPage(url), url)).reason == "blocked"


@pytest.mark.parametrize("final", ["http://127.0.0.1/", "file:///etc/passwd", "about:blank", "chrome-error://chromewebdata/"])
async def test_a_page_that_ends_where_nobody_may_be_is_refused(final: str) -> None:
    assert (await failure(RenderedPage(final, html=f"<p>{TEXT}</p>"))).reason == "blocked"


@pytest.mark.parametrize(("status", "reason"), [(404, "error"), (403, "blocked"), (500, "error"), (0, "error")])
async def test_a_status_that_is_no_page_is_an_error_whatever_the_browser_shows(status: int, reason: str) -> None:
    error = await failure(RenderedPage(URL, status, html=f"<p>{TEXT}</p>"))
    assert (error.reason, error.status) == (reason, status)


async def test_what_a_browser_shows_of_other_types_is_refused_by_type() -> None:
    assert (await failure(RenderedPage(URL, content_type="application/pdf", html="<embed>"))).reason == "content_type"


async def test_a_page_without_text_even_in_a_browser_does_not_name_a_browser_as_the_fix() -> None:
    error = await failure(RenderedPage(URL, html="<div id=root></div><script>x()</script>"))
    assert (error.reason, error.cause) == ("error", "it is empty")
    challenge = await failure(RenderedPage(URL, html="<title>Just a moment...</title><p>Verifying you are human</p>"))
    assert (challenge.reason, challenge.fix) == ("blocked", obstacles.OTHER_FIX)


def test_a_page_that_needs_scripts_names_this_fetcher_as_the_fix() -> None:
    assert "crawl4ai" in obstacles.BROWSER_FIX


async def test_a_browser_that_says_nothing_meets_the_deadline() -> None:
    class Silent(FakeBrowser):
        async def render(self, url: str, timeout_s: float) -> RenderedPage:
            await asyncio.Event().wait()
            raise AssertionError

    async def admit(asked: Url) -> None: ...

    fetcher = Crawl4aiFetcher(Silent(RenderedPage(URL)), guard=AddressGuard(), clock=FakeClock(), admit=admit)
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(URL, FetchLimits(timeout_s=0.05))
    assert caught.value.reason == "timeout"


async def test_the_table_makes_one_and_refuses_a_proxy_that_is_none() -> None:
    for proxy in ("", "http://proxy.example:3128"):
        fetcher = create_fetcher("crawl4ai", Settings(clock=FakeClock(), proxy=proxy))
        assert isinstance(fetcher, Crawl4aiFetcher)
        await fetcher.aclose()
    with pytest.raises(ConfigError, check=has_code("config")):
        create_fetcher("crawl4ai", Settings(clock=FakeClock(), proxy="ftp://proxy.example"))


def test_chromium_gets_no_way_out_but_the_proxy() -> None:
    words = _chromium_arguments("chromium", "/folder", 4711, sandbox=True)
    assert {
        "--proxy-server=http://127.0.0.1:4711",
        "--proxy-bypass-list=<-loopback>",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--disable-quic",
    } < set(words)
    assert "--no-sandbox" not in words
    assert "--no-sandbox" in _chromium_arguments("chromium", "/folder", 4711, sandbox=False)


# The life of a browser

DRIVER = """
import json, os, sys, time
print("a library's banner", file=sys.stderr)
def say(message): sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()
say({"ready": True, "port": 1})
for line in sys.stdin:
    asked = json.loads(line)
    path = asked["url"].rpartition("/")[2]
    page = {"id": asked["id"], "url": asked["url"], "status": 200, "content_type": "text/html", "cut": False}
    page["html"] = str(os.getpid())
    if path == "die": os._exit(3)
    elif path == "hang": pass
    elif path == "nonsense": sys.stdout.write("[]\\nnot json\\n"); say(page)
    elif path == "slow": say({"id": asked["id"], "timeout": True})
    elif path == "error": say({"id": asked["id"], "error": "Failed\\n  net::ERR_NAME_NOT_RESOLVED at x\\n  Traceback"})
    elif path == "environment": say({**page, "html": json.dumps(sorted(os.environ))})
    else: say(page)
"""


@asynccontextmanager
async def driven(tmp_path: Path, driver: str = DRIVER, **options: Any) -> AsyncIterator[Browser]:
    path = tmp_path / "driver.py"
    path.write_text(driver)
    async with no_leaks():
        # Spelled unlike sys.executable: the driver is a stand-in, so the library need not be there.
        python = f"{Path(sys.executable).parent}/./{Path(sys.executable).name}"
        made = Browser(AddressGuard(), user_agent="nexi", python=python, program="x", worker=path, **options)
        try:
            yield made
        finally:
            await made.aclose()


async def html_of(made: Browser, path: str = "page") -> str:
    return (await made.render(f"http://site.example/{path}", 10)).html


async def failed(made: Browser, path: str) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await made.render(f"http://site.example/{path}", 10)
    return caught.value


async def test_one_process_serves_all_pages_and_ends_with_its_owner(tmp_path: Path) -> None:
    async with driven(tmp_path) as made:
        first, *others = await asyncio.gather(*(html_of(made) for _ in range(6)))
        assert set(others) == {first} == {await html_of(made, "nonsense")}
    assert not Path(f"/proc/{first}").exists()


async def test_the_process_sees_nothing_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    async with driven(tmp_path) as made:
        names = await html_of(made, "environment")
    assert "OPENAI_API_KEY" not in names
    assert "HOME" in names


async def test_a_process_that_dies_is_told_and_the_next_page_gets_another(tmp_path: Path) -> None:
    async with driven(tmp_path) as made:
        before = await html_of(made)
        assert (await failed(made, "die")).message == "the browser ended"
        assert await html_of(made) != before


async def test_a_page_that_hangs_retires_the_process_but_not_under_the_others(tmp_path: Path) -> None:
    async with driven(tmp_path) as made:
        before = await html_of(made)
        assert (await failed(made, "slow")).reason == "timeout"
        again = await html_of(made)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(html_of(made, "hang"), 0.1)
        assert len({before, again, await html_of(made)}) == 3


async def test_what_the_driver_says_is_shortened_to_its_cause(tmp_path: Path) -> None:
    async with driven(tmp_path) as made:
        assert (await failed(made, "error")).cause == "net::ERR_NAME_NOT_RESOLVED at x"


@pytest.mark.parametrize(
    ("driver", "cause"),
    [
        ("raise ImportError('crawl4ai')", "crawl4ai cannot be imported, or it ended at once"),
        ('print(\'{"ready": false, "error": "Chromium ended at once"}\')', "Chromium ended at once"),
        ("print('[]')", "crawl4ai cannot be imported, or it ended at once"),
    ],
)
async def test_a_browser_that_does_not_start_says_how_to_install_one(driver: str, cause: str, tmp_path: Path) -> None:
    async with driven(tmp_path, driver) as made:
        error = await failed(made, "page")
    assert (error.cause, error.fix) == (cause, browser.browser_install_fix())


async def test_a_machine_that_lacks_a_part_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = await failed(Browser(AddressGuard(), user_agent="nexi", python="/other/python"), "page")
    assert (error.cause, error.fix) == ("no Chromium is on the PATH", browser.browser_install_fix())
    assert browser.missing_parts(program="chromium", library="no_such_library") == "no_such_library is not installed"
    assert browser.missing_parts("/other/python", "chromium", library="no_such_library") == ""


async def test_a_start_that_takes_too_long_ends(tmp_path: Path) -> None:
    async with driven(tmp_path, "import time; time.sleep(60)", start_timeout_s=0.1) as made:
        assert (await failed(made, "page")).cause == "it was not ready within 0.1 s"
