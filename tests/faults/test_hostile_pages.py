"""Hostile answers: each ends in a page within its limits or a typed reason, before the deadline, and leaves nothing open."""

from __future__ import annotations

import asyncio
import gzip
import sys
import zlib
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias, get_args

import pytest
from msgspec.structs import replace

from bench import fetching as measured
from nexi.errors import FetchError, FetchReason
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.http import HttpFetcher
from nexi.testing import FakeClock
from nexi.types import FetchLimits
from tests.fetchers.leaks import no_leaks
from tests.fetchers.site import Answer, Writer, response, serving
from tests.formats.documents import encrypted_pdf, pdf, pdf_of

pytestmark = pytest.mark.long

DEADLINE_S = 1.0
LIMITS = FetchLimits(max_bytes=200_000, max_chars=50_000, timeout_s=DEADLINE_S)
PATIENT = FetchLimits(max_bytes=200_000, max_chars=50_000, timeout_s=120.0)  # none of these waits for it
READ = "read"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
Pour: TypeAlias = Callable[[Writer], Awaitable[None]]


async def outcome(answer: Answer, limits: FetchLimits = PATIENT, **more: Answer) -> str:
    """What came of the page: "read", or the reason why it was not."""
    others = {f"/{name}": value for name, value in more.items()}
    async with no_leaks(), serving({"/": answer, **others}) as site:
        fetcher = HttpFetcher(guard=AddressGuard([f"127.0.0.1:{site.port}"]), clock=FakeClock(), respect_robots=False)
        try:
            async with asyncio.timeout(limits.timeout_s + 60):  # a fetcher that forgot its deadline would wait for ever
                page = await fetcher.fetch(site.url(), limits)
        except FetchError as error:
            return error.reason if error.cause and error.reason in get_args(FetchReason) else repr(error)
        else:
            return READ if len(page.text) <= limits.max_chars else f"{len(page.text)} characters"
        finally:
            await fetcher.aclose()


def packed(body: bytes, encoding: str) -> bytes:
    return response(body, content_encoding=encoding)


def library(name: str) -> Any:
    return import_module(name) if find_spec(name) else None


ZEROS = bytes(20_000_000)
BOMB = gzip.compress(b"<p>" + b"a" * 20_000_000)
BOMBS = {
    "gzip": (packed(BOMB, "gzip"), READ),
    "gzip in gzip by two headers": (packed(gzip.compress(BOMB), "gzip, gzip"), "error"),
    "gzip in gzip by its bytes": (packed(gzip.compress(BOMB), "gzip"), "content_type"),
    "gzip of many members": (packed(gzip.compress(b"x") * 500, "gzip"), "error"),
    "deflate": (packed(zlib.compress(ZEROS), "deflate"), "error"),
    "deflate that never ends": (packed(zlib.compress(b"<p>" + ZEROS)[:-9], "deflate"), "error"),
    "a bomb that calls itself text": (response(BOMB), "content_type"),
    "a document of nested tags": (response(b"<div>" * 39_000), "error"),
    "a document of nested lists": (response(b"<ul><li>x" * 20_000), READ),
    "JSON of nested lists": (response(b"[" * 190_000, content_type="application/json"), READ),
    "XML of nested elements": (response(b"<a>" * 60_000, content_type="application/xml"), "error"),
    "XML of a billion laughs": (
        response(
            b'<!DOCTYPE x [<!ENTITY a "ha">'
            + b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 20) for n in range(20))
            + b"]><x>&u;</x>", content_type="application/xml",
        ),
        READ,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_is_cut_or_refused(name: str) -> None:
    answer, expected = BOMBS[name]
    assert await outcome(answer) == expected


@pytest.mark.parametrize("name", ["brotli", "zstandard"])
async def test_a_bomb_of_a_newer_kind_is_cut(name: str) -> None:
    if (module := library(name)) is None:
        pytest.skip(f"{name} is not installed")
    compress, encoding = (module.compress, "br") if name == "brotli" else (module.ZstdCompressor().compress, "zstd")
    assert await outcome(packed(compress(b"<p>" + b"a" * 20_000_000), encoding)) == READ


def repeated(first: bytes, piece: bytes) -> Pour:
    async def pour(writer: Writer) -> None:
        writer.write(first)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return pour


ENDLESS = {
    "a body": (repeated(OK + b"\r\n", b"<p>more</p>" * 500), READ),
    "a body in chunks": (repeated(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"400\r\n" + b"<p>x" * 256 + b"\r\n"), READ),
    "empty pieces": (repeated(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n<\r\n", b""), "timeout"),
    "an extension of a chunk": (repeated(OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * 1000), "error"),
    "headers": (repeated(OK, b"X-Header: value\r\n" * 100), "error"),
    "one header": (repeated(OK + b"X-Header: ", b"x" * 1000), "error"),
    "a first line": (repeated(b"HTTP/1.1 200 ", b"O" * 1000), "error"),
    "early answers": (repeated(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"), "timeout"),
    "trailers": (repeated(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Trailer: x\r\n" * 100), "error"),
    "nothing": (repeated(b"", b""), "timeout"),
}


@pytest.mark.parametrize("name", ENDLESS)
async def test_what_has_no_end_is_cut_or_meets_the_deadline(name: str) -> None:
    pour, expected = ENDLESS[name]
    assert await outcome(pour, LIMITS if expected == "timeout" else PATIENT) == expected


def dripping(data: bytes) -> Pour:
    async def drip(writer: Writer) -> None:
        for byte in data:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.02)

    return drip


@pytest.mark.parametrize("data", [OK * 20, OK + b"Content-Length: 9000\r\n\r\n" + b"<p>slowly " * 900], ids=["headers", "body"])
async def test_bytes_that_come_one_by_one_meet_the_deadline(data: bytes) -> None:
    assert await outcome(dripping(data), FetchLimits(timeout_s=0.4)) == "timeout"


def said(headers: bytes, body: bytes = b"<p>A page of some words.") -> Pour:
    return raw(OK + headers + b"\r\n" + body)


def raw(data: bytes) -> Pour:
    async def say(writer: Writer) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return say


LIES = {
    "more than comes": (said(b"Content-Length: 90000\r\n"), "error"),
    "less than comes": (said(b"Content-Length: 7\r\n"), READ),
    "far more than is read": (said(b"Content-Length: 99999999999\r\n"), "too_large"),
    "more digits than a number has": (said(b"Content-Length: " + b"9" * 5_000 + b"\r\n"), "error"),
    "negative": (said(b"Content-Length: -5\r\n"), "error"),
    "a word": (said(b"Content-Length: many\r\n"), "error"),
    "two lengths": (said(b"Content-Length: 5\r\nContent-Length: 9\r\n"), "error"),
    "a length and chunks": (said(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"3\r\n<p>\r\n0\r\n\r\n"), "error"),
    "a chunk that is no number": (said(b"Transfer-Encoding: chunked\r\n", b"zz\r\n<p>x\r\n0\r\n\r\n"), "error"),
    "a chunk longer than it is": (said(b"Transfer-Encoding: chunked\r\n", b"ffff\r\n<p>x\r\n"), "error"),
    "a chunk of more than there is memory": (said(b"Transfer-Encoding: chunked\r\n", b"ffffffffffff\r\n<p>x"), "error"),
    "packed and not": (said(b"Content-Encoding: gzip\r\n"), "error"),
    "packed and cut": (said(b"Content-Encoding: gzip\r\n", gzip.compress(b"<p>whole")[:-6]), "error"),
    "an encoding nobody knows": (said(b"Content-Encoding: rot13\r\n"), "error"),
    "no HTTP at all": (raw(b"220 smtp.example ESMTP\r\n"), "error"),
    "half of a first line": (raw(b"HTTP/1."), "error"),
    "nothing at all": (raw(b""), "error"),
}


@pytest.mark.parametrize("name", LIES)
async def test_an_answer_that_lies_about_itself_is_an_error(name: str) -> None:
    answer, expected = LIES[name]
    assert await outcome(answer) == expected


async def test_redirects_in_a_circle_or_without_end_are_an_error() -> None:
    to = {str(n): response(status=302, location=f"/{n + 1}") for n in range(9)}
    assert await outcome(response(status=302, location="/")) == "error"
    assert await outcome(response(status=302, location="/0"), **to) == "error"
    assert await outcome(response(status=302, location="/a"), a=response(status=302, location="/")) == "error"
    assert await outcome(response(status=302, location="/" + "x" * 60_000)) == "error"
    assert await outcome(response(status=302, location="javascript:alert(1)")) == "blocked"


@pytest.mark.parametrize(
    "headers", [b"Set-Cookie: a=b\r\n" * 3_000, b"X: " + b"y" * 90_000 + b"\r\n", b"ETag: " + b"e" * 60_000 + b"\r\n"]
)
async def test_headers_of_a_great_size_are_read_or_an_error(headers: bytes) -> None:
    assert await outcome(said(headers)) in (READ, "error")


PROSE = "Grüße aus dem Süden, wo die Bäume blühen. "
CHARSETS = {
    "another than it says": (response(PROSE.encode("latin-1") * 20, content_type="text/html; charset=utf-8"), READ),
    "one that does not exist": (response(PROSE * 20, content_type="text/html; charset=klingon"), READ),
    "one that is a codec and no charset": (response(PROSE * 20, content_type="text/html; charset=zlib"), READ),
    "one that would unpack": (response(BOMB, content_type="text/html; charset=bz2_codec"), "content_type"),
    "one of seven bits": (response("<p>+ADw-script+AD4-" + PROSE, content_type="text/html; charset=utf-7"), READ),
    "half of a wide one": (response(PROSE.encode("utf-16")[:-1], content_type="text/html; charset=utf-16"), READ),
    "a mark of another": (response(b"\xff\xfe" + PROSE.encode(), content_type="text/html; charset=utf-8"), READ),
    "bytes that are none": (response(bytes(range(128, 256)) * 200), READ),
    "zeros": (response(b"\0" * 50_000), "error"),
    "surrogates": (response(b"<p>\xed\xa0\x80\xed\xb0\x80 text"), READ),
    "a name of a great length": (response(PROSE * 20, content_type="text/html; charset=" + "x" * 30_000), READ),
}


@pytest.mark.parametrize("name", CHARSETS)
async def test_a_charset_that_is_wrong_still_gives_a_text_or_a_reason(name: str) -> None:
    answer, expected = CHARSETS[name]
    assert await outcome(answer) == expected


WHOLE = pdf(["A document of one page."])
PDFS = {
    "whole": (WHOLE, READ),
    "only a beginning": (WHOLE[:9], "error"),
    "cut in the middle": (WHOLE[: len(WHOLE) // 3], "error"),
    "encrypted": (encrypted_pdf(), "content_type"),
    "nonsense after the beginning": (b"%PDF-1.7\n" + bytes(range(256)) * 100, "error"),
    "a tree of pages that is its own child": (WHOLE.replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"), "content_type"),
    "pages that are not there": (WHOLE.replace(b"/Kids [4 0 R]", b"/Kids [99 0 R]"), "content_type"),
    "more pages than it has": (WHOLE.replace(b"/Count 1", b"/Count 2000000000"), READ),
    "a page that unpacks to 50 MB": (pdf_of([zlib.compress(bytes(50_000_000))], filters="/Filter /FlateDecode"), "too_large"),
    "a bomb in a bomb": (
        pdf_of([zlib.compress(zlib.compress(bytes(100_000_000)))], filters="/Filter [/FlateDecode /FlateDecode]"), "too_large",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PDFS)
async def test_a_broken_or_hostile_pdf_ends_in_a_reason(name: str) -> None:
    body, expected = PDFS[name]
    assert await outcome(response(body, content_type="application/pdf")) == expected


async def test_many_hostile_pages_at_once_do_not_hold_up_a_good_one() -> None:
    pours = {f"/bad/{n}": pour for n, (pour, _) in enumerate(ENDLESS.values())}
    async with no_leaks(), serving({**pours, "/good": response("<p>A good page.")}) as site:
        fetcher = HttpFetcher(guard=AddressGuard(["127.0.0.1"]), clock=FakeClock(), respect_robots=False, per_host_burst=99)
        bad = [asyncio.create_task(fetcher.fetch(site.url(path), LIMITS)) for path in pours]
        good = await fetcher.fetch(site.url("/good"), replace(LIMITS, timeout_s=120.0))
        ends = await asyncio.gather(*bad, return_exceptions=True)
        await fetcher.aclose()
    assert good.text == "A good page."
    assert [end for end in ends if isinstance(end, BaseException) and not isinstance(end, FetchError)] == []


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured by /proc")
@pytest.mark.parametrize("shape", ["open links", "deep XML", "PDF of nonsense"])
def test_no_body_takes_more_than_64_megabytes(shape: str, page_server: int) -> None:
    grown, _, what = measured.growth(page_server, list(measured.SHAPES).index(shape))
    assert grown <= 64, f"{grown} MB: {what}"


@pytest.fixture(scope="module")
def page_server() -> Any:
    with measured.server() as port:
        yield port
