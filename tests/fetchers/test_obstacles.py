"""A page that is blocked, needs a script or a login is named as such, with what would help."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nexi.app import Nexi
from nexi.config import Config
from nexi.fetchers.http import _find_plain_form
from nexi.testing import FakeWeb
from nexi.urls import parse
from tests.fetchers.site import page, response
from tests.fetchers.test_http import LIMITS, failure, fetching

SCRIPT = "a script would write its text (it needs JavaScript)"
LOGIN = "the page requires a login"
HUMAN = "the site asks its visitors to prove that they are human"


@pytest.mark.parametrize(
    ("html", "cause"),
    [
        ("<html><script>draw()</script></html>", SCRIPT),
        ("<body><div id=root>Loading</div><script src=a.js></script></body>", SCRIPT),
        ("<body><noscript>x</noscript><p>You need to enable JavaScript to run this app.</p></body>", SCRIPT),
        ("<title>Just a moment...</title><body><p>Checking.</p></body>", HUMAN),
        ("<body><p>Please verify you are a human</p></body>", HUMAN),
        ("<body><p>Wait</p><script src=/cdn-cgi/challenge-platform/x.js></script></body>", HUMAN),
        ("<body><p>Welcome</p><form><input type='password'></form></body>", LOGIN),
    ],
)
async def test_what_stands_in_the_place_of_a_page_is_named(html: str, cause: str) -> None:
    error = await failure({"/": response(html)})
    assert (error.reason, error.cause, bool(error.fix)) == ("blocked", cause, True)


async def test_a_page_that_needs_a_script_goes_on_to_a_fetcher_with_a_browser(make_config: Callable[..., Config]) -> None:
    html = "<html><div id=root></div><script>draw()</script></html>"
    async with fetching({"/": response(html)}) as (plain, site):
        browser = FakeWeb({site.url(): "# Drawn\n\nThe script drew this."})
        async with Nexi(make_config(), fetchers=[plain, browser]) as nexi:
            page = await nexi.fetch(site.url())
    assert (page.fetcher, page.title) == (browser.name, "Drawn")


async def test_a_redirect_to_a_login_is_named() -> None:
    error = await failure({"/": response(status=302, location="/login?next=/"), "/login?next=/": page("Hello there")})
    assert (error.reason, error.cause) == ("blocked", LOGIN)


async def test_a_short_page_and_a_long_page_about_javascript_are_pages() -> None:
    long = "How to enable JavaScript in a browser, step by step. " * 20
    async with fetching({"/a": page("Yes."), "/b": page(long + "<script>x</script>")}) as (fetcher, site):
        assert (await fetcher.fetch(site.url("/a"), LIMITS)).text == "Yes."
        assert "step by step" in (await fetcher.fetch(site.url("/b"), LIMITS)).text


@pytest.mark.parametrize(
    ("status", "headers", "cause"),
    [
        (403, {"cf_mitigated": "challenge"}, f"{HUMAN} (HTTP 403)"),
        (401, {"www_authenticate": "Basic"}, f"{LOGIN} (HTTP 401)"),
        (429, {}, "the site limits how often it may be asked (HTTP 429)"),
    ],
)
async def test_a_refusal_says_what_its_headers_say(status: int, headers: dict[str, str], cause: str) -> None:
    error = await failure({"/": response("no", status, **headers)})
    assert (error.reason, error.cause, bool(error.fix)) == ("blocked", cause, True)


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://github.com/a/b/blob/main/src/x.py#L3", "https://raw.githubusercontent.com/a/b/main/src/x.py"),
        ("https://github.com/a/b/raw/main/x.py", "https://raw.githubusercontent.com/a/b/main/x.py"),
        ("https://gist.github.com/ann/0123", "https://gist.githubusercontent.com/ann/0123/raw"),
        ("https://github.com/a/b/issues/3", ""),
        ("https://github.com/a/b/discussions/3", ""),
        ("https://github.com/a/b/blob/main", ""),
        ("https://example.com/a/b/blob/main/x.py", ""),
    ],
)
def test_a_file_on_github_has_a_plain_endpoint(url: str, plain: str) -> None:
    assert _find_plain_form(parse(url)) == plain
