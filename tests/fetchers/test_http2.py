"""HTTP/2 with a real site over TLS: that it is spoken, shared, guarded, and left in order; and sites that break it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from nexi import urls
from nexi.errors import FetchError
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.http import HttpFetcher
from nexi.fetchers.transport import HAS_HTTP2, Transport, read_body
from nexi.net.trust import Trust
from nexi.testing import FakeClock
from nexi.types import FetchLimits
from tests.fetchers.leaks import no_leaks

if not HAS_HTTP2:
    pytest.skip("h2 is not installed", allow_module_level=True)

from tests.fetchers.secure_site import CERTIFICATE, SecureSite, Stream, secure_site

TRUST = Trust(str(CERTIFICATE))
LIMITS = FetchLimits(timeout_s=120.0)  # no test here waits for it
PAGE = b"<html><head><title>Over two</title></head><body><p>The page came by the newer protocol.</p></body></html>"


@asynccontextmanager
async def fetching(
    answers: dict[str, Any], *, protocols: Sequence[str] = ("h2", "http/1.1"), allow: str = "127.0.0.1:PORT", **options: Any
) -> AsyncIterator[tuple[HttpFetcher, SecureSite]]:
    """A fetcher that waits long for a cancellation to be taken, so that a busy machine changes nothing."""
    async with secure_site(answers, protocols=protocols) as site, no_leaks():
        guard = AddressGuard([allow.replace("PORT", str(site.port))])
        transport = Transport(guard, **{"trust": TRUST, "cancel_timeout_s": 120.0, **options})
        fetcher = HttpFetcher(guard=guard, clock=FakeClock(), respect_robots=False, transport=transport)
        try:
            yield fetcher, site
        finally:
            await fetcher.aclose()


async def failure(answer: Callable[[Stream], Awaitable[None]], limits: FetchLimits = LIMITS) -> FetchError:
    async with fetching({"/": answer}, protocols=("h2",)) as (fetcher, site):
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch(site.url(), limits)
        assert caught.value.cause
        return caught.value


async def first_cause(answer: Callable[[Stream], Awaitable[None]]) -> str:
    """Why one request failed, before a second one is tried by HTTP/1.1."""
    async with secure_site({"/": answer}) as site, no_leaks():
        transport = Transport(AddressGuard(["127.0.0.1"]), trust=TRUST)
        with pytest.raises(FetchError) as caught:
            async with transport.ask(urls.parse(site.url()), {}) as got:
                await read_body(got.chunks, "", 1_000)
        await transport.aclose()
        return caught.value.cause


async def test_a_page_is_asked_for_by_http_2_as_by_http_1() -> None:
    async with fetching({"/": PAGE}) as (fetcher, site):
        page = await fetcher.fetch(site.url(), LIMITS)
    assert (page.title, page.text, page.final_url) == ("Over two", "The page came by the newer protocol.", site.url())
    asked = site.requests[0]
    assert (asked[":authority"], asked[":scheme"]) == (f"127.0.0.1:{site.port}", "https")
    assert asked["user-agent"].startswith("nexi/")
    assert "host" not in asked


async def test_pages_of_one_site_share_one_connection() -> None:
    async with fetching({f"/{n}": PAGE for n in range(8)}) as (fetcher, site):
        await fetcher.fetch(site.url("/0"), LIMITS)
        pages = await asyncio.gather(*(fetcher.fetch(site.url(f"/{n}"), LIMITS) for n in range(8)))
    assert {page.title for page in pages} == {"Over two"}
    assert site.connections == 1


async def test_a_name_is_resolved_once_and_its_checked_address_is_connected_to_under_its_own_name() -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    async with fetching({"/": PAGE}, resolve=resolve, allow="site.test") as (fetcher, site):
        for _ in range(2):
            await fetcher.fetch(site.url(host="site.test"), LIMITS)
    assert (asked, site.connections) == (["site.test"], 1)
    assert site.requests[0][":authority"] == f"site.test:{site.port}"


async def test_a_private_address_is_refused_as_ever() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async with fetching({"/": PAGE}, resolve=resolve) as (fetcher, site):
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch(site.url(host="site.test"), LIMITS)
    assert (caught.value.reason, site.connections) == ("blocked", 0)


async def test_a_redirect_to_a_private_place_is_not_followed() -> None:
    async def away(stream: Stream) -> None:
        await stream.begin([(":status", "302"), ("location", "https://169.254.169.254/")], end=True)

    assert (await failure(away)).reason == "blocked"


async def test_a_page_that_is_left_early_is_cancelled_and_the_connection_goes_on() -> None:
    async def endless(stream: Stream) -> None:
        await stream.begin([(":status", "200"), ("content-type", "text/plain")])
        while not stream.cancelled.is_set():
            await stream.send(b"more " * 2_000)

    async with fetching({"/endless": endless, "/": PAGE}) as (fetcher, site):
        # More than the 16 MB that one connection may hold unread, were they not given back.
        for _ in range(9):
            page = await fetcher.fetch(site.url("/endless"), LIMITS)
            assert page.truncated
        assert (await fetcher.fetch(site.url(), LIMITS)).title == "Over two"
    assert (set(site.resets), site.connections) == ({"/endless"}, 1)


async def test_a_large_page_beside_others_does_not_break_them() -> None:
    big = b"<p>" + b"word " * 1_000_000
    async with fetching({"/big": big, **{f"/{n}": PAGE for n in range(6)}}) as (fetcher, site):
        paths = ["/0", "/big", "/1", "/2", "/big", "/3"]
        pages = await asyncio.gather(*(fetcher.fetch(site.url(path), LIMITS) for path in paths))
    assert [page.truncated for page in pages] == [path == "/big" for path in paths]


async def test_a_site_that_does_not_take_the_cancellation_loses_the_connection() -> None:
    async with fetching({"/": b"x" * 300_000}, cancel_timeout_s=0.0) as (fetcher, site):
        await fetcher.fetch(site.url(), FetchLimits(max_bytes=1_000))
        await fetcher.fetch(site.url(), FetchLimits(max_bytes=1_000))
    assert site.connections == 2


async def test_a_site_without_http_2_is_read_by_http_1() -> None:
    async with fetching({}, protocols=("http/1.1",)) as (fetcher, site):
        page = await fetcher.fetch(site.url(), LIMITS)
    assert (page.text, site.requests, site.older) == ("By the older protocol.", [], ["/"])


@pytest.mark.parametrize("code", [0x1, 0x2, 0x7, 0xB, 0xD])
async def test_a_site_that_breaks_http_2_is_asked_by_http_1_from_then_on(code: int) -> None:
    async def refuse(stream: Stream) -> None:
        stream.connection.state.reset_stream(stream.number, code)
        await stream.connection.flush()

    async with fetching({"/": refuse}) as (fetcher, site):
        pages = [await fetcher.fetch(site.url(), LIMITS) for _ in range(2)]
    assert {page.text for page in pages} == {"By the older protocol."}
    assert (site.paths, site.older) == (["/"], ["/", "/"])


async def test_a_page_broken_off_in_the_middle_is_an_error_that_says_so() -> None:
    async def half(stream: Stream) -> None:
        await stream.begin()
        await stream.send(b"<p>half")
        stream.connection.state.reset_stream(stream.number, 0x2)
        await stream.connection.flush()

    assert await first_cause(half) == "the site broke the answer off (HTTP/2 INTERNAL_ERROR)"


async def test_a_connection_ended_in_the_middle_is_an_error_that_says_so() -> None:
    async def go_away(stream: Stream) -> None:
        await stream.begin()
        stream.connection.state.close_connection(0xB)
        await stream.connection.flush()

    assert await first_cause(go_away) == "the site ended the connection (HTTP/2 ENHANCE_YOUR_CALM)"


async def raw(stream: Stream, data: bytes) -> None:
    stream.connection.writer.write(data)
    await stream.connection.writer.drain()
    stream.connection.writer.close()


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


BROKEN = {
    "nonsense": b"HTTP/1.1 200 OK\r\n\r\nno frames here",
    "a frame longer than it may be": (1_000_000).to_bytes(3, "big") + b"\0\0\0\0\0\1" + b"x" * 20_000,
    "data before headers": frame(0, 1, 1, b"<p>x"),
    "headers that cannot be unpacked": frame(1, 4, 1, b"\xff" * 50),
    "a push that was forbidden": frame(5, 4, 1, b"\0\0\0\2"),
    "headers for a stream nobody asked for": frame(1, 5, 99, b"\x88"),
    "a window that overflows": frame(8, 0, 1, b"\x7f\xff\xff\xff") * 3,
    "settings of an odd length": frame(4, 0, 0, b"abc"),
    "an end without an answer": b"",
    "headers that never end": frame(1, 0, 1, b"\x88") + frame(9, 0, 1, b"\0\1a\1b" * 3_000) * 100,
    "a small thing that unpacks to megabytes": frame(1, 4, 1, b"\x88\x40\1a\x7f\x81\x1e" + b"y" * 4_000 + b"\xbe" * 12_000),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_no_http_2_is_an_error_with_a_cause(name: str) -> None:
    error = await failure(lambda stream: raw(stream, BROKEN[name]))
    assert error.reason == "error"


@pytest.mark.parametrize("status", ["abc", "", "99999999999", "1e3", "-200"])
async def test_a_status_that_is_none_is_an_error(status: str) -> None:
    async def odd(stream: Stream) -> None:
        await stream.begin([(":status", status), ("content-type", "text/html")])
        await stream.send(PAGE, end=True)

    assert (await failure(odd)).reason == "error"


async def test_frames_at_random_end_in_a_typed_error() -> None:
    chance = random.Random(4)  # noqa: S311 - the same frames every time

    async def noise(stream: Stream) -> None:
        frames = [
            frame(
                chance.randrange(12), chance.randrange(64), chance.choice([0, 1, 3, 5]), chance.randbytes(chance.randrange(40))
            )
            for _ in range(chance.randrange(1, 12))
        ]
        if chance.random() < 0.5:
            await stream.begin()
        await raw(stream, b"".join(frames))

    async with fetching({f"/{n}": noise for n in range(150)}, protocols=("h2",)) as (fetcher, site):
        for n in range(150):
            with pytest.raises(FetchError):
                await fetcher.fetch(site.url(f"/{n}"), LIMITS)


async def drip(stream: Stream) -> None:
    await stream.begin()
    await stream.send(b"<p>")
    await stream.cancelled.wait()


async def silence(stream: Stream) -> None:
    await stream.cancelled.wait()


async def pings(stream: Stream) -> None:
    while True:
        stream.connection.state.ping(b"12345678")
        await stream.connection.flush()


async def empty_pieces(stream: Stream) -> None:
    await stream.begin()
    while not stream.cancelled.is_set():
        stream.connection.state.send_data(stream.number, b"")
        await stream.connection.flush()


async def early_hints(stream: Stream) -> None:
    while not stream.cancelled.is_set():
        await stream.begin([(":status", "103"), ("link", "</a.css>")])


@pytest.mark.parametrize("endless", [drip, silence, pings, empty_pieces, early_hints])
async def test_whatever_has_no_end_meets_the_deadline(endless: Callable[[Stream], Awaitable[None]]) -> None:
    error = await failure(endless, FetchLimits(timeout_s=0.3))
    assert (error.reason, error.cause) == ("timeout", "it was not read within 0.3 s")


async def test_a_page_given_up_does_not_harm_the_next_on_the_same_connection() -> None:
    async with secure_site({"/slow": drip, "/": PAGE}) as site, no_leaks():
        transport = Transport(AddressGuard(["127.0.0.1"]), trust=TRUST, cancel_timeout_s=120.0)
        async with transport.ask(urls.parse(site.url("/slow")), {}) as got:
            first = await anext(got.chunks)
        async with transport.ask(urls.parse(site.url()), {}) as got:
            body = (await read_body(got.chunks, "", 1_000)).data
        await transport.aclose()
    assert (first, body, site.resets, site.connections) == (b"<p>", PAGE, ["/slow"], 1)


async def test_without_the_library_everything_goes_by_http_1() -> None:
    async with fetching({}, speaks_http2=False) as (fetcher, site):
        await fetcher.fetch(site.url(), LIMITS)
    assert (site.requests, site.older) == ([], ["/"])
