"""The http fetcher over a loopback site: what it returns, what it refuses, and what it says then."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from nexi.errors import FetchError
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.http import DEFAULT_USER_AGENT, HttpFetcher
from nexi.fetchers.transport import accepted_encodings
from nexi.testing import FakeClock
from nexi.types import FetchLimits, Page
from tests.fetchers.site import Answer, Site, Writer, page, response, serving
from tests.raising import has_code

LIMITS = FetchLimits(timeout_s=300.0)  # no test waits for it, however busy the machine is


@asynccontextmanager
async def fetching(answers: dict[str, Answer], **options: Any) -> AsyncIterator[tuple[HttpFetcher, Site]]:
    async with serving(answers) as site:
        fetcher = HttpFetcher(**{"guard": AddressGuard([f"127.0.0.1:{site.port}"]), "clock": FakeClock(), **options})
        try:
            yield fetcher, site
        finally:
            await fetcher.aclose()


async def failure(answers: dict[str, Answer], path: str = "/", limits: FetchLimits = LIMITS, **options: Any) -> FetchError:
    async with fetching(answers, **options) as (fetcher, site):
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch(site.url(path), limits)
        assert caught.value.message
        return caught.value


async def text_of(answer: bytes, limits: FetchLimits = LIMITS) -> str:
    async with fetching({"/": answer}) as (fetcher, site):
        return (await fetcher.fetch(site.url(), limits)).text


async def test_a_page_comes_back_whole() -> None:
    html = (
        '<html lang="en"><head><title>Tea</title><meta name="author" content="A. Leaf">'
        '<meta name="description" content="On tea">'
        '<meta property="article:published_time" content="2026-01-02"></head><body><nav><a href="/nav">Home</a></nav>'
        '<main><h1>Tea</h1><p>Water first. <a href="more#x">More</a> <a href="mailto:a@b">write</a></p>'
        '<pre><code class="language-python">brew()</code></pre></main></body></html>'
    )
    async with fetching({"/a/tea": response(html, content_type="text/html; charset=utf-8")}) as (fetcher, site):
        got = await fetcher.fetch(site.url("/a/tea"), LIMITS)
        assert got == Page(
            url=site.url("/a/tea"),
            text=f"# Tea\n\nWater first. [More]({site.url('/a/more#x')}) [write](mailto:a@b)\n\n```python\nbrew()\n```",
            title="Tea",
            final_url=site.url("/a/tea"),
            content_type="text/html",
            language="en",
            author="A. Leaf",
            published="2026-01-02",
            description="On tea",
            links=(site.url("/a/more"), site.url("/nav")),
            headings=("Tea",),
            code_languages=("python",),
            downloaded_bytes=len(html),
            fetched_at="2026-01-02T03:04:05+00:00",
            fetcher="http",
        )


async def test_a_request_says_who_asks_and_what_can_be_read() -> None:
    async with fetching({"/": page("x")}) as (fetcher, site):
        await fetcher.fetch(site.url(), LIMITS)
        _, headers = site.requests[-1]
        assert headers["user-agent"] == DEFAULT_USER_AGENT
        assert headers["host"] == f"127.0.0.1:{site.port}"
        assert headers["accept-encoding"] == accepted_encodings()
        assert "cookie" not in headers


async def test_redirects_are_followed_and_the_last_url_is_named() -> None:
    answers: dict[str, Answer] = {
        "/": response(status=301, location="/two"),
        "/two": response(status=307, location="three?x=ä"),
        "/three?x=%C3%A4": page("arrived"),
    }
    async with fetching(answers) as (fetcher, site):
        got = await fetcher.fetch(site.url(), LIMITS)
        assert (got.url, got.final_url, got.text) == (site.url(), site.url("/three?x=%C3%A4"), "arrived")
        assert got.redirects == 2


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1:1/", "http://169.254.169.254/latest", "http://[::1]/", "file:///etc/passwd", "http://0x7f.1:1/"],
)
async def test_a_redirect_to_a_forbidden_place_is_not_followed(target: str) -> None:
    error = await failure({"/": response(status=302, location=target)})
    assert error.reason == "blocked"


async def test_a_redirect_to_a_name_that_is_private_is_not_followed() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["10.0.0.1"]

    error = await failure({"/": response(status=302, location="http://inside.test/")}, resolve=resolve, respect_robots=False)
    assert (error.reason, error.cause) == ("blocked", "10.0.0.1 is private")


async def test_a_circle_of_redirects_is_noticed() -> None:
    error = await failure({"/": response(status=302, location="/b"), "/b": response(status=302, location="/#again")})
    assert (error.reason, error.retryable) == ("error", False)


async def test_redirects_are_counted() -> None:
    answers: dict[str, Answer] = {f"/{n}": response(status=302, location=f"/{n + 1}") for n in range(20)}
    error = await failure(answers, "/0")
    assert (error.reason, error.cause) == ("error", "more than 5 times")


async def test_a_redirect_to_nonsense_is_an_error() -> None:
    error = await failure({"/": response(status=302, location="http://[")})
    assert "no URL" in error.message


@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, "blocked"), (403, "blocked"), (404, "error"), (410, "error"), (418, "error"), (429, "blocked"), (451, "blocked")],
)
async def test_a_status_that_is_no_success_is_named(status: int, reason: str) -> None:
    error = await failure({"/": response("body", status)})
    assert (error.reason, error.status) == (reason, status)
    assert str(status) in error.cause


async def test_an_empty_success_is_an_error() -> None:
    assert (await failure({"/": response(status=204)})).status == 204
    assert "no text" in (await failure({"/": response("<html></html>")})).message


async def test_a_server_fault_is_tried_once_more() -> None:
    async with fetching({"/": [response("oops", 500), page("better")]}) as (fetcher, site):
        assert (await fetcher.fetch(site.url(), LIMITS)).text == "better"


@pytest.mark.parametrize("status", [429, 503])
async def test_a_site_that_asks_for_a_little_patience_gets_it(status: int) -> None:
    async with fetching({"/": [response("later", status, retry_after="2"), page("now")]}) as (fetcher, site):
        assert (await fetcher.fetch(site.url(), LIMITS)).text == "now"


async def test_a_site_that_asks_for_much_patience_is_left() -> None:
    async with fetching({"/": response("later", 429, retry_after="60")}, respect_robots=False) as (fetcher, site):
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch(site.url(), LIMITS)
        assert (caught.value.retry_after, site.paths) == (60.0, ["/"])


async def test_a_lasting_server_fault_is_an_error_after_two_tries() -> None:
    async with fetching({"/": response("oops", 503)}, respect_robots=False) as (fetcher, site):
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch(site.url(), LIMITS)
        assert (caught.value.reason, caught.value.status, site.paths) == ("blocked", 503, ["/", "/"])


async def test_a_connection_that_breaks_is_tried_once_more() -> None:
    async def hang_up(writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        writer.close()

    async with fetching({"/": [hang_up, page("whole")]}) as (fetcher, site):
        assert (await fetcher.fetch(site.url(), LIMITS)).text == "whole"


async def test_nobody_listening_is_an_error() -> None:
    async with serving() as site:
        port = site.port
    fetcher = HttpFetcher(guard=AddressGuard(["127.0.0.1"]), clock=FakeClock(), respect_robots=False)
    with pytest.raises(FetchError, check=has_code("error", "127.0.0.1")):
        await fetcher.fetch(f"http://127.0.0.1:{port}/", LIMITS)
    await fetcher.aclose()


@pytest.mark.parametrize("kind", ["audio/ogg", "application/x-tar", "application/octet-stream", "image/svg+xml", "nonsense"])
async def test_what_is_no_text_page_is_refused_by_its_type(kind: str) -> None:
    error = await failure({"/": response(b"\x89PNG", content_type=kind)})
    assert (error.reason, kind in error.cause) == ("content_type", True)


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (b"plain <b>text</b>", "text/plain", "plain <b>text</b>"),
        (b"# Head\n\ntext", "text/markdown; charset=utf-8", "# Head\n\ntext"),
        (b'{"a":[1]}', "application/json", '{\n  "a": [\n    1\n  ]\n}'),
        (b'{"a":1}', "application/ld+json", '{\n  "a": 1\n}'),
        (b"<!doctype html><p>sniffed", "", "sniffed"),
        (b"just words", "", "just words"),
        ("<p>naïve</p>".encode("latin-1"), "text/html; charset=iso-8859-1", "naïve"),
    ],
)
async def test_kinds_of_text_are_read_as_what_they_are(body: bytes, kind: str, text: str) -> None:
    assert await text_of(response(body, content_type=kind)) == text


async def test_a_body_without_a_type_that_is_no_text_is_refused() -> None:
    assert (await failure({"/": response(b"\x00\x01\x02", content_type="")})).reason == "content_type"


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data)[2:-4]),
        ("gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
        ("identity", bytes),
    ],
)
async def test_compressed_pages_are_read(encoding: str, pack: Any) -> None:
    assert await text_of(response(pack(b"<p>packed words</p>"), content_encoding=encoding)) == "packed words"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", b"no gzip"), ("gzip", gzip.compress(b"x" * 999, mtime=0)[:-20]), ("br", b"x"), ("gzip, gzip", b"x")],
)
async def test_a_body_that_cannot_be_decoded_is_an_error(encoding: str, body: bytes) -> None:
    error = await failure({"/": response(body, content_encoding=encoding)})
    assert (error.reason, error.status, bool(error.cause)) == ("error", 0, True)


async def test_a_long_page_is_cut_at_the_limit_and_says_so() -> None:
    limits = FetchLimits(max_bytes=1_000, timeout_s=300.0)
    async with fetching({"/": response(b"word " * 1_000, content_type="text/plain")}) as (fetcher, site):
        got = await fetcher.fetch(site.url(), limits)
        assert (got.text, got.truncated) == (("word " * 200).strip(), True)


async def test_a_long_text_is_cut_at_a_line() -> None:
    limits = FetchLimits(max_chars=100, timeout_s=300.0)
    async with fetching({"/": response("line of ten\n" * 50, content_type="text/plain")}) as (fetcher, site):
        got = await fetcher.fetch(site.url(), limits)
        assert (got.text, got.truncated) == ("\n".join(["line of ten"] * 8), True)


async def test_a_page_announced_as_far_too_large_is_not_begun() -> None:
    huge = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 20000001\r\n\r\n"
    assert (await failure({"/": huge})).reason == "too_large"


async def test_a_bomb_is_cut_before_it_grows() -> None:
    bomb = gzip.compress(b"<p>" + b"a" * 50_000_000)
    async with fetching({"/": response(bomb, content_encoding="gzip")}) as (fetcher, site):
        got = await fetcher.fetch(site.url(), FetchLimits(max_bytes=10_000, timeout_s=300.0))
        assert (len(got.text), got.truncated) == (9_997, True)


async def test_an_endless_body_is_cut() -> None:
    async def pour(writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"more " * 1_000)
            await writer.drain()

    async with fetching({"/": pour}) as (fetcher, site):
        got = await fetcher.fetch(site.url(), FetchLimits(max_bytes=20_000, timeout_s=300.0))
        assert (len(got.text), got.truncated) == (19_999, True)


async def test_headers_without_end_are_an_error() -> None:
    async def pour(writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + b"X-Filler: " + b"y" * 300_000)
        await writer.drain()

    assert (await failure({"/": pour})).reason == "error"


async def test_a_page_that_drips_meets_the_deadline() -> None:
    never = asyncio.Event()

    async def drip(writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<p>")
        await never.wait()

    error = await failure({"/": drip}, limits=FetchLimits(timeout_s=0.05), respect_robots=False)
    assert (error.reason, "0.05 s" in error.cause) == ("timeout", True)


async def test_a_handshake_without_an_answer_meets_the_deadline_and_leaves_no_socket() -> None:
    async with serving() as site:
        fetcher = HttpFetcher(guard=AddressGuard(["127.0.0.1"]), clock=FakeClock(), respect_robots=False)
        with pytest.raises(FetchError, check=has_code("timeout")):
            await fetcher.fetch(site.url().replace("http:", "https:"), FetchLimits(timeout_s=0.3))
        await fetcher.aclose()


async def test_a_page_without_a_trusted_certificate_is_an_error() -> None:
    def answer_in_clear(reader: asyncio.StreamReader, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer_in_clear, "127.0.0.1", 0) as server:
        fetcher = HttpFetcher(guard=AddressGuard(["127.0.0.1"]), clock=FakeClock(), respect_robots=False)
        with pytest.raises(FetchError, check=has_code("error", "WRONG_VERSION_NUMBER")):
            await fetcher.fetch(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", LIMITS)
        await fetcher.aclose()


async def test_no_task_and_no_socket_outlives_the_fetcher() -> None:
    before = asyncio.all_tasks()
    async with serving({"/": page("x")}) as site:
        fetcher = HttpFetcher(guard=AddressGuard(["127.0.0.1"]), clock=FakeClock())
        await fetcher.fetch(site.url(), LIMITS)
        await fetcher.aclose()
    assert asyncio.all_tasks() == before


async def test_a_page_that_robots_forbid_is_not_asked_for() -> None:
    answers: dict[str, Answer] = {
        "/robots.txt": response("User-agent: nexi\nDisallow: /private", content_type="text/plain"),
        "/private": page("secret"),
        "/public": page("open"),
    }
    async with fetching(answers) as (fetcher, site):
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch(site.url("/private"), LIMITS)
        assert caught.value.reason == "robots"
        assert "respect_robots" in caught.value.fix
        assert (await fetcher.fetch(site.url("/public"), LIMITS)).text == "open"
        assert site.paths == ["/robots.txt", "/public"]


async def test_robots_are_checked_again_where_a_redirect_leads() -> None:
    answers: dict[str, Answer] = {
        "/robots.txt": response("User-agent: *\nDisallow: /private", content_type="text/plain"),
        "/": response(status=302, location="/private"),
        "/private": page("secret"),
    }
    assert (await failure(answers)).reason == "robots"


async def test_the_switch_turns_robots_off() -> None:
    answers: dict[str, Answer] = {"/robots.txt": response("User-agent: *\nDisallow: /"), "/": page("read")}
    async with fetching(answers, respect_robots=False) as (fetcher, site):
        await fetcher.fetch(site.url(), LIMITS)
        assert site.paths == ["/"]


async def test_robots_behind_a_redirect_count() -> None:
    answers: dict[str, Answer] = {
        "/robots.txt": response(status=301, location="/r.txt"),
        "/r.txt": response("User-agent: *\nDisallow: /"),
        "/": page("read"),
    }
    assert (await failure(answers)).reason == "robots"


async def test_eight_pages_of_one_site_are_asked_for_at_once_and_share_one_robots_file() -> None:
    all_here = asyncio.Barrier(8)

    async def together(writer: Writer) -> None:
        await all_here.wait()
        writer.write(page("x"))

    async with fetching({f"/{n}": together for n in range(8)}) as (fetcher, site):
        pages = await asyncio.gather(*(fetcher.fetch(site.url(f"/{n}"), LIMITS) for n in range(8)))
        assert ([p.text for p in pages], site.paths.count("/robots.txt"), site.most_at_once) == (["x"] * 8, 1, 8)


async def test_a_proxy_is_used_except_where_no_proxy_says() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14"]

    async with serving({"http://far.test/": page("through the proxy"), "/": page("direct")}) as site:
        fetcher = HttpFetcher(
            guard=AddressGuard(["127.0.0.1"]),
            clock=FakeClock(),
            proxy=site.url(),
            no_proxy=["127.0.0.1"],
            respect_robots=False,
            resolve=resolve,
        )
        assert (await fetcher.fetch("http://far.test/", LIMITS)).text == "through the proxy"
        assert (await fetcher.fetch(site.url(), LIMITS)).text == "direct"
        await fetcher.aclose()


async def test_behind_a_proxy_names_known_to_be_private_are_refused_and_unknown_ones_left_to_it() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        if host == "unknown.test":
            raise FetchError("not found")
        return ["93.184.215.14", "10.0.0.1"]

    async with serving({"http://unknown.test/": page("the proxy knows")}) as site:
        fetcher = HttpFetcher(guard=AddressGuard(), clock=FakeClock(), proxy=site.url(), respect_robots=False, resolve=resolve)
        with pytest.raises(FetchError, check=has_code("blocked", "10.0.0.1")):
            await fetcher.fetch("http://inside.test/", LIMITS)
        assert (await fetcher.fetch("http://unknown.test/", LIMITS)).text == "the proxy knows"
        assert site.paths == ["http://unknown.test/"]
        await fetcher.aclose()


async def test_a_fault_of_a_parser_costs_the_page_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("uninitialized collection")

    monkeypatch.setattr("nexi.extract.markup.read_html", broken)
    error = await failure({"/": page("<p>text</p>")})
    assert (error.reason, "uninitialized collection" in error.cause) == ("error", True)


async def test_the_wait_for_a_turn_at_a_host_is_not_counted_against_a_page() -> None:
    clock, asked = HeldClock(), ["/1", "/2"]
    limits = FetchLimits(timeout_s=3600.0)
    async with fetching({path: page(path) for path in asked}, clock=clock, per_host_burst=1, respect_robots=False) as (
        got,
        site,
    ):
        await got.fetch(site.url("/1"), limits)
        second = asyncio.create_task(got.fetch(site.url("/2"), limits))
        await clock.sleeping.wait()
        timers = [when - asyncio.get_running_loop().time() for when in scheduled_times()]
        assert [left for left in timers if 3000 < left <= 3600] == []
        clock.release.set()
        assert (await second).text == "/2"


class HeldClock(FakeClock):
    """Sleeps until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeping, self.release = asyncio.Event(), asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.sleeping.set()
        await self.release.wait()
        await super().sleep(seconds)


def scheduled_times() -> list[float]:
    loop: Any = asyncio.get_running_loop()
    return [handle.when() for handle in loop._scheduled if not handle.cancelled()]
