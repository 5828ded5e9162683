"""The browser's only way out: what it connects to, what it refuses, and that it leaves nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from nexi.errors import FetchError
from nexi.fetchers.browser.gateway import Gateway
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.transport import proxy_of
from tests.fetchers.leaks import no_leaks
from tests.fetchers.site import Answer, Site, Writer, page, response, serving


async def to_loopback(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@asynccontextmanager
async def opened(*allow: str, **limits: Any) -> AsyncIterator[tuple[Gateway, Site]]:
    async with serving({"/": page("hello"), "/echo": response("seen")}) as site, no_leaks():
        guard = AddressGuard([entry.replace("PORT", str(site.port)) for entry in allow])
        async with Gateway(guard, to_loopback, **limits).open() as gateway:
            yield gateway, site


async def asked(gateway: Gateway, request: str) -> str:
    """Everything that comes back until the gateway closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(request.encode("latin-1"))
    try:
        return (await asyncio.wait_for(reader.read(), 300)).decode("latin-1")
    except ConnectionResetError:
        return ""
    finally:
        writer.close()
        with suppress(ConnectionResetError):
            await writer.wait_closed()


async def test_a_plain_request_is_passed_on_without_the_words_meant_for_a_proxy() -> None:
    async with opened("127.0.0.1:PORT") as (gateway, site):
        head = f"GET {site.url('/echo')} HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive\r\nAccept: */*\r\n\r\n"
        answer = await _first(gateway, head)
    assert answer.startswith("HTTP/1.1 200")
    assert answer.endswith("Connection: close\r\n\r\n")  # a second request on it could be meant for another host
    assert site.requests == [("/echo", {"host": "x", "accept": "*/*", "connection": "close"})]


async def _first(gateway: Gateway, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(request.encode())
    answer = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 300)).decode()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_a_tunnel_carries_bytes_both_ways() -> None:
    async with opened("site.test") as (gateway, site):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(f"CONNECT site.test:{site.port} HTTP/1.1\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /echo HTTP/1.1\r\nHost: site.test\r\n\r\n")
        assert (await reader.readuntil(b"seen")).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    "request_line",
    [
        "CONNECT 127.0.0.1:{port} HTTP/1.1",
        "CONNECT localhost:{port} HTTP/1.1",
        "CONNECT [::1]:{port} HTTP/1.1",
        "CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1",
        "CONNECT 2130706433:{port} HTTP/1.1",
        "CONNECT 0x7f.1:{port} HTTP/1.1",
        "CONNECT name.that.points.home:{port} HTTP/1.1",
        "CONNECT 169.254.169.254:80 HTTP/1.1",
        "CONNECT user:pass@public.example:443 HTTP/1.1",
        "CONNECT public.example:25 HTTP/1.1",
        "CONNECT public.example:443/../@127.0.0.1 HTTP/1.1",
        "GET http://127.0.0.1:{port}/ HTTP/1.1",
        "GET http://name.that.points.home:{port}/ HTTP/1.1",
        "GET http://[fe80::1]/ HTTP/1.1",
        "GET file:///etc/passwd HTTP/1.1",
        "GET ftp://public.example/ HTTP/1.1",
        "GET / HTTP/1.1",
        "POST http://127.1:{port}/ HTTP/1.1",
        "CONNECT",
        "\x16\x03\x01 \xff",
    ],
)
async def test_what_the_guard_forbids_is_refused_and_remembered(request_line: str) -> None:
    async with opened() as (gateway, site):
        answer = await asked(gateway, request_line.format(port=site.port) + "\r\nHost: public.example\r\n\r\n")
    assert answer.startswith("HTTP/1.1 403")
    assert ([error.reason for _, error in gateway.refusals], site.requests) == (["blocked"], [])


async def test_a_name_that_turns_private_is_refused_then() -> None:
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])

    async def turning(host: str, port: int) -> Sequence[str]:
        return next(answers)

    gateway = Gateway(AddressGuard(["127.0.0.0/8"]), turning)
    async with serving({"/": page("hello")}) as site, no_leaks(), gateway.open():
        request = f"GET http://turn.test:{site.port}/ HTTP/1.1\r\nHost: turn.test\r\n\r\n"
        assert (await _first(gateway, request)).startswith("HTTP/1.1 200")
        assert (await asked(gateway, request)).startswith("HTTP/1.1 403")
    assert site.paths == ["/"]


async def test_our_own_doors_stay_shut_whatever_is_allowed() -> None:
    async with opened("127.0.0.1", "127.0.0.0/8") as (gateway, site):
        gateway.closed_ports.add(site.port)
        for port in (gateway.port, site.port):
            assert (await asked(gateway, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 403")
    assert site.requests == []


async def test_nobody_at_home_is_no_refusal() -> None:
    async with opened("127.0.0.1") as (gateway, _):
        answer = await asked(gateway, "GET http://127.0.0.1:9/ HTTP/1.1\r\n\r\n".replace(":9/", ":40009/"))
    assert (answer[:12], gateway.refusals) == ("HTTP/1.1 502", [])


async def test_a_request_without_end_is_dropped() -> None:
    async with opened(head_timeout_s=0.05) as (gateway, _):
        assert await asked(gateway, "GET http://a.test/ HTTP/1.1\r\n") == ""
        assert await asked(gateway, "GET http://a.test/ HTTP/1.1\r\nX: " + "y" * 200_000) == ""


async def test_a_body_without_end_is_cut() -> None:
    async def pour(writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"more " * 1_000)
            await writer.drain()

    async with opened("127.0.0.1:PORT", max_bytes=100_000) as (gateway, site):
        site.answers["/"] = pour
        head, _, body = (await asked(gateway, f"GET {site.url()} HTTP/1.1\r\n\r\n")).partition("\r\n\r\n")
    assert (head, len(body)) == ("HTTP/1.1 200 OK\r\nConnection: close", 100_000)


async def test_closing_ends_what_is_under_way() -> None:
    never = asyncio.Event()

    async def hold(writer: Writer) -> None:
        await never.wait()

    async with no_leaks(), serving({"/": hold}) as site:
        async with Gateway(AddressGuard(["127.0.0.1"]), to_loopback).open() as gateway:
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(f"GET {site.url()} HTTP/1.1\r\n\r\n".encode())
            async with asyncio.timeout(120):
                while not site.requests:
                    await asyncio.sleep(0)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


# Behind the operator's proxy


async def unknown(host: str, port: int) -> Sequence[str]:
    if host == "home.test":
        return ["127.0.0.1"]
    raise FetchError("the host was not found")


@asynccontextmanager
async def behind(answers: dict[str, Answer], no_proxy: Sequence[str] = ()) -> AsyncIterator[tuple[Gateway, Site]]:
    """A gateway whose proxy is the site: it shows what a proxy would be asked."""
    async with no_leaks(), serving(answers) as site:
        proxy = proxy_of(f"http://me:pass@127.0.0.1:{site.port}")
        gateway = Gateway(AddressGuard(["127.0.0.1:1"]), unknown, proxy=proxy, no_proxy=no_proxy)
        async with gateway.open():
            yield gateway, site


async def test_behind_a_proxy_requests_and_tunnels_go_to_it_with_its_credentials() -> None:
    basic = "Basic bWU6cGFzcw=="
    answers: dict[str, Answer] = {"http://far.test/a": response("far"), "far.test:443": b"HTTP/1.1 200 OK\r\n\r\nbytes"}
    async with behind(answers) as (gateway, site):
        head = "GET http://far.test/a HTTP/1.1\r\nHost: far.test\r\nProxy-Authorization: Basic none\r\n\r\n"
        assert (await _first(gateway, head)).startswith("HTTP/1.1 200")
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"CONNECT far.test:443 HTTP/1.1\r\n\r\n")
        assert await reader.readuntil(b"bytes") == b"HTTP/1.1 200 OK\r\n\r\nbytes"
        writer.close()
        await writer.wait_closed()
    assert site.requests == [
        ("http://far.test/a", {"host": "far.test", "proxy-authorization": basic, "connection": "close"}),
        ("far.test:443", {"host": "far.test:443", "proxy-authorization": basic}),
    ]


@pytest.mark.parametrize("place", ["home.test:443", "10.0.0.1:443", "[::1]:443", "far.test:25"])
async def test_behind_a_proxy_what_is_known_to_be_private_is_refused(place: str) -> None:
    async with behind({}) as (gateway, site):
        assert (await asked(gateway, f"CONNECT {place} HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 403")
    assert site.requests == []


async def test_a_proxy_that_refuses_is_no_refusal_of_ours() -> None:
    async with behind({"far.test:443": b"HTTP/1.1 407 X\r\n\r\n"}) as (gateway, _):
        assert (await asked(gateway, "CONNECT far.test:443 HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 502")
    assert gateway.refusals == []


async def test_what_no_proxy_names_is_reached_without_it() -> None:
    async with behind({}, ["home.test"]) as (gateway, site):
        assert (await asked(gateway, "CONNECT home.test:443 HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 403")
    assert (site.requests, [error.cause for _, error in gateway.refusals]) == ([], ["127.0.0.1 is loopback"])
