"""Fetching: eight pages at once, a cached page, and the memory that hostile bodies take.

    python -m bench.fetching [--save]

A server in a process of its own answers on 127.0.0.1 to 127.0.0.8, eight hosts with robots.txt, each page after 120 ms.
The slowest page is fetched and extracted alone in the same run. Large pages take turns
at one core: extraction is Python, and its threads share a lock. Hostile bodies are fetched by a fresh process each, which
reports how far its resident memory rose above what it had after an ordinary page.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import gzip
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nexi.app import SystemClock
from nexi.errors import FetchError
from nexi.fetchers.cache import CachedFetcher, PageCache
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.http import HttpFetcher
from nexi.types import FetchLimits, Page

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "fetching.md"
HOSTS = [f"127.0.0.{n}" for n in range(1, 9)]
PAGE_S = 0.12
LARGE = 60_000
ROUNDS = 7
LIMITS = FetchLimits(timeout_s=20.0)
MEGABYTE = 1_000_000


def filled(unit: str, before: str = "") -> bytes:
    return (before + unit * (2 * MEGABYTE // len(unit)))[: 2 * MEGABYTE].encode()


SHAPES: dict[str, Callable[[], tuple[bytes, str, str]]] = {
    "small tags": lambda: (filled("<p>x"), "text/html", ""),
    "open links": lambda: (filled("<a>"), "text/html", ""),
    "formatting in every paragraph": lambda: (filled("<i><p>"), "text/html", ""),
    "attributes": lambda: (filled("<p a=1 b=2 c=3 d=4>x"), "text/html", ""),
    "cells": lambda: (filled("<td>x", "<table>"), "text/html", ""),
    "cells that span": lambda: (filled("<tr><td colspan=1000>x", "<table>"), "text/html", ""),
    "deep tables": lambda: (filled("<table><tr><td>"), "text/html", ""),
    "quotes in quotes": lambda: (filled("<blockquote>"), "text/html", ""),
    "deep XML": lambda: (filled("<a>"), "application/xml", ""),
    "XML elements": lambda: (filled("<a b='c'/>", "<r>")[:-4] + b"</r>", "application/xml", ""),
    "JSON numbers": lambda: (b"[" + b"1," * 900_000 + b"1]", "application/json", ""),
    "JSON objects": lambda: (b"[" + b'{"":0},' * 280_000 + b"1]", "application/json", ""),
    "gzip bomb": lambda: (gzip.compress(bytes(500 * MEGABYTE), 6), "text/html", "gzip"),
    "deflate bomb of tags": lambda: (zlib.compress(b"<p>x" * 25 * MEGABYTE), "text/html", "deflate"),
    "a text without an end": lambda: (b"word " * 4 * MEGABYTE, "text/plain", ""),
    "PDF of nonsense": lambda: (b"%PDF-1.4\n" + bytes(15 * MEGABYTE), "application/pdf", ""),
}


# The server


def articles() -> dict[str, bytes]:
    """Eight pages of the handbook as HTML, one a host."""
    files = sorted((ROOT / "docs").glob("*.md"))[: len(HOSTS)]
    texts = [path.read_text(encoding="utf-8") for path in files]
    small = {f"/page/{n}": _html(text) for n, text in enumerate(texts)}
    return small | {f"/large/{n}": _html("\n\n".join(texts[n:] + texts[:n]) * 2)[:LARGE] for n in range(len(HOSTS))}


def _html(text: str) -> bytes:
    blocks = "".join(f"<h2>{b[2:]}</h2>" if b.startswith("#") else f"<p>{b}</p>" for b in text.split("\n\n"))
    return f"<html><head><title>Handbook</title></head><body><main>{blocks}</main></body></html>".encode()


async def serve(port: int) -> None:
    pages = articles()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                body, kind, encoding = await _body(path, pages)
                more = f"Content-Encoding: {encoding}\r\n" if encoding else ""
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode())
                writer.write(body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    servers = [await asyncio.start_server(answer, host, port) for host in HOSTS]
    print("ready", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def _body(path: str, pages: dict[str, bytes]) -> tuple[bytes, str, str]:
    if path == "/robots.txt":
        return b"User-agent: *\nAllow: /\n", "text/plain", ""
    if path.startswith("/shape/"):
        return SHAPES[list(SHAPES)[int(path[7:])]]()
    await asyncio.sleep(PAGE_S)
    return pages[path], "text/html", ""


@contextmanager
def server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    command = [sys.executable, "-m", "bench.fetching", "--serve", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            yield port
        finally:
            process.kill()


# Measuring


def fetcher() -> HttpFetcher:
    return HttpFetcher(guard=AddressGuard(["127.0.0.0/8"]), clock=SystemClock(), per_host_rate=1e6)


async def eight(port: int, kind: str = "page") -> tuple[float, float]:
    """(all at once, the slowest alone): medians, in seconds."""
    http = fetcher()
    urls = [f"http://{host}:{port}/{kind}/{n}" for n, host in enumerate(HOSTS)]

    async def timed(*some: str) -> float:
        start = time.perf_counter()
        await asyncio.gather(*(http.fetch(url, LIMITS) for url in some))
        return time.perf_counter() - start

    await timed(*urls)  # robots.txt and connections are there from now on
    together, slowest = [], []
    for _ in range(ROUNDS):
        together.append(await timed(*urls))
        slowest.append(max([await timed(url) for url in urls]))
    await http.aclose()
    return statistics.median(together), statistics.median(slowest)


async def cached(port: int) -> tuple[float, float]:
    """(a page of the handbook, the largest page there can be) out of the cache: medians, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        http = fetcher()
        cache = CachedFetcher(http, PageCache(Path(folder), clock=SystemClock()), check=AddressGuard(["127.0.0.0/8"]).check_url)
        url = f"http://127.0.0.1:{port}/page/0"
        usual = await _median_of(cache, url)
        largest = CachedFetcher(Largest(), PageCache(Path(folder), clock=SystemClock()))
        most = await _median_of(largest, "http://site.example/")
        await http.aclose()
    return usual, most


class Largest:
    name = "largest"

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
        return Page(url, (text * 50)[: limits.max_chars], links=tuple(f"http://site.example/{n}" for n in range(500)))


async def _median_of(cache: CachedFetcher, url: str) -> float:
    await cache.fetch(url, LIMITS)
    taken = []
    for _ in range(200):
        start = time.perf_counter()
        await cache.fetch(url, LIMITS)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def growth(port: int, shape: int) -> tuple[float, float, str]:
    """(megabytes, seconds, what came of it) of one hostile body."""
    command = [sys.executable, "-m", "bench.fetching", "--shape", str(shape), "--port", str(port)]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    grown, seconds, outcome = out.strip().split("\t")
    return float(grown), float(seconds), outcome


async def grow(port: int, shape: int) -> str:
    http = fetcher()
    await http.fetch(f"http://127.0.0.1:{port}/page/0", LIMITS)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before, start = _resident("VmRSS"), time.perf_counter()
    try:
        page = await http.fetch(f"http://127.0.0.1:{port}/shape/{shape}", LIMITS)
        outcome = f"{len(page.text):,} characters"
    except FetchError as error:
        outcome = f"{error.reason}: {error.cause}"
    seconds, grown = time.perf_counter() - start, _resident("VmHWM") - before
    await http.aclose()
    return f"{grown / MEGABYTE:.1f}\t{seconds:.2f}\t{outcome}"


def _resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


# The table


def report() -> str:
    with server() as port:
        together, slowest = asyncio.run(eight(port))
        many, one = asyncio.run(eight(port, "large"))
        usual, most = asyncio.run(cached(port))
        shapes = [(name, *growth(port, n)) for n, name in enumerate(SHAPES)]
    rows = [
        "| what | measured | as a ratio or detail | target |",
        "| --- | --- | --- | --- |",
        f"| eight pages of eight hosts at once | {together * 1000:.0f} ms | {together / slowest:.3f}x the slowest page"
        f" alone, {slowest * 1000:.0f} ms | 1.15x |",
        f"| eight large pages of {LARGE:,} bytes | {many * 1000:.0f} ms | {many / one:.3f}x the slowest page alone,"
        f" {one * 1000:.0f} ms | |",
        f"| a cached page | {usual * 1000:.2f} ms | {slowest / usual:.0f}x faster than the site | 1 ms |",
        f"| the largest page, cached | {most * 1000:.2f} ms | 300,000 characters | 1 ms |",
    ]
    rows += [f"| memory: {name} | {grown:.1f} MB | {seconds:.2f} s, {out} | 64 MB |" for name, grown, seconds, out in shapes]
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true")
    for name in ("--serve", "--shape", "--port"):
        parser.add_argument(name, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve))
    elif options.shape is not None:
        print(asyncio.run(grow(options.port, options.shape)))
    else:
        rows = report()
        print(rows)
        if options.save:
            machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
            RESULTS.write_text(f"# Fetching\n\n`python -m bench.fetching --save` on {machine}.\n\n{rows}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
