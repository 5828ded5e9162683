"""What 120 hostile bodies cost: memory of the process that fetches them and of the processes it starts, and seconds.

    python -m evals.bodies [--save] [--only NAME] [--server]

Each body is small on the wire and large in some way once it is read. It is served over loopback and fetched in a process of
its own, whose memory, with that of its children, is read from /proc every few milliseconds. Then 20 of the archives are asked
for in one request to a server. More than 64 MB, its processes counted in, or more seconds than a fetch may take,
ends with exit code 1; so does a document that was run or fetched from: 60 of the bodies try to reach an address or to write a
file. With --only, --save replaces the rows that were measured and keeps the others.
"""

from __future__ import annotations

import argparse
import asyncio
import bz2
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evals import format_bodies
from nexi.app import SystemClock
from nexi.errors import FetchError
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.http import HttpFetcher
from nexi.types import FetchLimits

ROOT = Path(__file__).resolve().parent.parent
SAVED = ROOT / "evals" / "bodies.md"
MAX_GROWTH_MB = 64.0
MAX_SECONDS = 22.0  # the limit of a fetch, and the end of a process
TOGETHER = 20
EPUB, PDF = "application/epub+zip", "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="urn:r"'
CONTAINER = '<container><rootfiles><rootfile full-path="c.opf"/></rootfiles></container>'
LAUGHS = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY a{n} '{f'&a{n - 1};' * 10 if n else '&a;' * 10}'>" for n in range(9)
)
Body = tuple[str, bytes, Mapping[str, str]]


def _zipped(parts: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()


def _epub(opf: str = "", chapter: str | bytes = "<p>Tea</p>", **parts: str | bytes) -> Body:
    usual = '<package><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
    known: dict[str, str | bytes] = {
        "META-INF/container.xml": parts.pop("container", CONTAINER),
        "c.opf": opf or f'{usual}<spine><itemref idref="a"/></spine></package>',
        "a.xhtml": chapter,
    }
    return EPUB, _zipped({"mimetype": EPUB, **known, **{f"META-INF/{name}.xml": text for name, text in parts.items()}}), {}


def _book_of(count: int, chapter: str) -> Body:
    items = "".join(f'<item id="i{n}" href="{n}.x" media-type="application/xhtml+xml"/>' for n in range(count))
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(count))
    opf = f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"
    chapters = {f"{n}.x": chapter for n in range(count)}
    return EPUB, _zipped({"mimetype": EPUB, "META-INF/container.xml": CONTAINER, "c.opf": opf, **chapters}), {}


def _docx(body: str = "<w:p><w:r><w:t>Tea</w:t></w:r></w:p>", *, method: int = zipfile.ZIP_DEFLATED, **parts: str) -> Body:
    known = {"word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>"}
    places = {"rels": "word/_rels/document.xml.rels", "core": "docProps/core.xml", "numbering": "word/numbering.xml"}
    return DOCX, _zipped({**known, **{places[name]: text for name, text in parts.items()}}, method), {}


def _attributes(count: int) -> str:
    return " ".join(f'a{n}=""' for n in range(count))


def _raw_docx(document: str) -> Body:
    return DOCX, _zipped({"word/document.xml": document}), {}


def _pdf(*objects: bytes) -> Body:
    """Objects from number 1 on; the first is the catalogue."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(b"%010d 00000 n \n" % p for p in places)
    out += b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return PDF, bytes(out), {}


def _stream(data: bytes, about: bytes = b"") -> bytes:
    return b"<</Length %d%s>>\nstream\n%s\nendstream" % (len(data), about, data)


def _page(content: bytes, about: bytes = b"/Filter/FlateDecode", more: bytes = b"") -> Body:
    font = b"/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R%s%s>>" % (font, more)
    return _pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", page, _stream(content, about))


def _pages(count: int) -> Body:
    kids = b" ".join(b"%d 0 R" % (n + 4) for n in range(count))
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 3 0 R"
    page += b"/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
    words = _stream(b"BT /F 9 Tf 9 9 Td (Nine tonnes of barley) Tj ET")
    return _pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, count), words, *[page] * count)


def _twice(size: int) -> bytes:
    return zlib.compress(zlib.compress(b" " * size, 9), 9)


def _html(body: str) -> Body:
    return "text/html", f"<html><body>{body}</body></html>".encode(), {}


def _packed(name: str, data: bytes) -> Body:
    return "text/html", data, {"Content-Encoding": name}


def _brotli(size: int) -> Body:
    if not find_spec("brotli"):
        return _packed("br", b"no brotli here")
    import brotli

    return _packed("br", brotli.compress(b" " * size))


def _zstd(size: int) -> Body:
    if not find_spec("zstandard"):
        return _packed("zstd", b"no zstandard here")
    import zstandard

    return _packed("zstd", zstandard.compress(b" " * size))


M = 1_000_000
PARAGRAPH = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
BODIES: dict[str, Callable[[], Body]] = {
    "epub: 500,000 entries": lambda: _epub("<package>" + "<item/>" * 500_000 + "</package>"),
    "epub: 1,100,000 entries": lambda: _epub("<package>" + "<item/>" * 1_100_000 + "</package>"),
    "epub: 600,000 attributes": lambda: _epub("<package><item " + _attributes(600_000) + "/></package>"),
    "epub: 800,000 elements inside one another": lambda: _epub("<a>" * 800_000),
    "epub: a title of 7 MB": lambda: _epub(f"<package><title>{'t' * 7 * M}</title></package>"),
    "epub: a description of 7 MB": lambda: _epub(f"<package><description>{'&lt;b&gt;' * 700_000}</description></package>"),
    "epub: 200,000 chapters named": lambda: _epub("<package>" + '<itemref idref="a"/>' * 200_000 + "</package>"),
    "epub: 9,000 chapters": lambda: _book_of(9_000, "<p>x</p>"),
    "epub: 12,000 parts": lambda: _book_of(12_000, ""),
    "epub: 20 chapters of 7 MB": lambda: _book_of(20, "<p>" + "x " * 3_500_000),
    "epub: a chapter of 1,000,000 boxes": lambda: _epub(chapter="<div>" * 1_000_000),
    "epub: a chapter of 1,000,000 list items": lambda: _epub(chapter="<ul>" + "<li>x" * 1_000_000),
    "epub: a chapter of 300,000 links": lambda: _epub(chapter='<a href="x">y</a>' * 300_000),
    "epub: 100 MB in one part": lambda: _epub(chapter=b" " * 100 * M),
    "epub: entities of entities": lambda: _epub(f"{LAUGHS}]><x>&a8;</x>"),
    "epub: a file of the system as entity": lambda: _epub('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'),
    "epub: 100,000 locked parts": lambda: _epub(encryption="<e>" + '<CipherReference URI="a"/>' * 100_000 + "</e>"),
    "epub: 300,000 packages": lambda: _epub(container="<c>" + '<rootfile full-path="c.opf"/>' * 240_000 + "</c>"),
    "epub: sizes that are lies": lambda: format_bodies.lie_about_sizes(_epub(chapter=b" " * 100 * M)),
    "docx: 720,000 attributes": lambda: _docx("<w:p " + _attributes(720_000) + "/>"),
    "docx: 250 attributes, 3,000 times": lambda: _docx(
        ("<w:p " + _attributes(250) + "/>") * 3_000
    ),
    "docx: a title of 7 MB": lambda: _docx(core=f"<c><title>{'t' * 7 * M}</title></c>"),
    "docx: a title of 1,000,000 entities": lambda: _docx(core=f"<c><title>{'&amp;' * 1_500_000}</title></c>"),
    "docx: 90,000 links": lambda: _docx(
        rels="<r>" + "".join(f'<Relationship Id="r{n}" Target="http://a/{n}" TargetMode="External"/>' for n in range(90_000))
        + "</r>"
    ),
    "docx: 120,000 lists": lambda: _docx(
        numbering=f"<w:n {W}>" + "".join(f'<w:num w:numId="{n}"><w:abstractNumId w:val="{n}"/></w:num>' for n in range(120_000))
        + "</w:n>"
    ),
    "docx: 700,000 paragraphs inside one another": lambda: _docx("<w:p>" * 700_000),
    "docx: 200,000 paragraphs": lambda: _docx(PARAGRAPH * 200_000),
    "docx: 300,000 rows": lambda: _docx("<w:tbl>" + "<w:tr><w:tc/></w:tr>" * 300_000 + "</w:tbl>"),
    "docx: 200,000 tables": lambda: _docx("<w:tbl>" * 200_000),
    "docx: 150,000 hyperlinks": lambda: _docx("<w:p>" + '<w:hyperlink r:id="x"/>' * 300_000 + "</w:p>"),
    "docx: one word of 7 MB": lambda: _docx(f"<w:p><w:r><w:t>{'x' * 7 * M}</w:t></w:r></w:p>"),
    "docx: 800,000 tabs": lambda: _docx("<w:p>" + "<w:tab/>" * 800_000 + "</w:p>"),
    "docx: 100 MB in one part": lambda: _raw_docx(" " * 100 * M),
    "docx: packed with bzip2": lambda: _docx("x" * 40 * M, method=zipfile.ZIP_BZIP2),
    "docx: packed with LZMA": lambda: _docx("x" * 40 * M, method=zipfile.ZIP_LZMA),
    "docx: entities of entities": lambda: _raw_docx(f"{LAUGHS}]><x>&a8;</x>"),
    "docx: an attribute of 7 MB": lambda: _docx(f'<w:p><w:pStyle w:val="{"x" * 7 * M}"/></w:p>'),
    "docx: a name of 7 MB": lambda: _docx(f"<{'x' * 7 * M}/>"),
    "docx: sizes that are lies": lambda: format_bodies.lie_about_sizes(_docx("x" * 40 * M)),
    "pdf: 200 MB packed twice": lambda: _page(_twice(200 * M), b"/Filter[/FlateDecode/FlateDecode]"),
    "pdf: 100 MB of text": lambda: _page(zlib.compress(b"BT /F 1 Tf " + b"(x) Tj " * 6 * M + b"ET", 9)),
    "pdf: 500,000 arrays inside one another": lambda: _page(b"", more=b"/X " + b"[" * 500_000),
    "pdf: a tree of pages that holds itself": lambda: _pdf(
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2000>>"
    ),
    "pdf: 2,000,000,000 pages": lambda: _pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 2000000000>>"),
    "pdf: 5,000 pages": lambda: _pages(5_000),
    "pdf: a picture of 60,000 by 60,000": lambda: _page(
        zlib.compress(b"q BI /W 60000 /H 60000 /BPC 8 /CS /RGB ID x EI Q")
    ),
    "html: three charsets declared": lambda: _html(
        '<?xml version="1.0" encoding="iso-8859-1"?><meta charset="shift_jis"><meta content="text/html; charset=windows-1251">'
        + "<p>Ärger über 東京</p>" * 20_000
    ),
    "html: 500,000 boxes": lambda: _html("<div>" * 390_000),
    "html: 250,000 attributes": lambda: _html("<p " + " ".join(f"a{n}" for n in range(250_000)) + ">x"),
    "html: 2 MB of <": lambda: _html("<" * 2 * M),
    "html: 180,000 table cells": lambda: _html("<table>" + "<tr><td>x" * 180_000),
    "html: a formula of 100 kB": lambda: _html(f"<p>before <math alttext='{'x+' * 50_000}'><mi>x</mi></math> after</p>"),
    "html: a formula of 100,000 elements": lambda: _html(f"<p>before <math>{'<mi>x</mi>' * 100_000}</math> after</p>"),
    "html: 300,000 formatting tags left open": lambda: _html("<b><i>" * 300_000),
    "html: 80,000 links": lambda: _html('<a href="/x">yes</a> ' * 90_000),
    "html: 600,000 entities": lambda: _html("&amp;" * 390_000),
    "xml: entities of entities": lambda: ("application/xml", f"{LAUGHS}]><x>&a8;</x>".encode(), {}),
    "xml: a feed of 60,000 items": lambda: (
        "application/rss+xml", ("<rss><channel>" + "<item><title>x</title></item>" * 60_000 + "</channel></rss>").encode(), {}
    ),
    "json: 900,000 arrays inside one another": lambda: ("application/json", b"[" * 900_000, {}),
    "json: 900,000 numbers": lambda: ("application/json", b"[" + b"1," * 900_000 + b"1]", {}),
    "gzip: 200 MB": lambda: _packed("gzip", gzip.compress(b" " * 200 * M)),
    "gzip: 5,000 parts": lambda: _packed("gzip", gzip.compress(b"x") * 5_000),
    "brotli: 200 MB": lambda: _brotli(200 * M),
    "zstd: 200 MB": lambda: _zstd(200 * M),
    "bzip2 called text": lambda: ("text/plain", bz2.compress(b" " * 50 * M), {}),
}  # fmt: skip
BODIES |= format_bodies.BODIES
ARCHIVES = tuple(name for name in BODIES if name.startswith(("epub", "docx")))[::2][:TOGETHER]
TRACE = Path("/tmp/nexi-canary")  # what a program inside a document would write
reached: list[str] = []  # what was asked of the site without being one of its bodies


@cache
def _body(name: str) -> Body:
    return BODIES[name]()


@contextmanager
def serving() -> Iterator[str]:
    """A site on loopback with every body under its place in the list."""
    names = list(BODIES)

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = self.path.strip("/").partition(".")[0]
            if number == "canary":
                reached.append(self.path)
            kind, data, headers = _body(names[int(number)]) if number.isdecimal() else ("text/plain", b"", {})
            self.send_response(200 if number.isdecimal() else 404)
            for key, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            try:
                self.wfile.write(data)
            except OSError:
                return

        def log_message(self, *args: Any) -> None:
            return

    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    format_bodies.canary[0] = f"http://127.0.0.1:{site.server_address[1]}/canary"
    try:
        yield f"http://127.0.0.1:{site.server_address[1]}"
    finally:
        site.shutdown()


def memory_mb(pid: int) -> tuple[float, float]:
    """Megabytes of a process, and of it with all of its children."""
    own = _resident_mb(pid)
    return own, own + sum(_resident_mb(child) for child in _children(pid))


def _resident_mb(pid: int) -> float:
    """Without the files of libraries, which processes share."""
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_text("ascii").split()[1:3]
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE") / M
    except (OSError, ValueError):
        return 0.0


def _children(pid: int) -> Iterator[int]:
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (task / "children").read_text("ascii").split())
    except OSError:
        return


class MemoryWatch:
    """The most that a process took, alone and with its children, beyond what it had at the start."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._start = _resident_mb(pid)
        self.own = self.all = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            own, everything = memory_mb(self._pid)
            self.own, self.all = max(self.own, own - self._start), max(self.all, everything - self._start)


async def fetch_one(url: str) -> None:
    """In a process of its own: fetch once for a start, say so, then fetch the body and say what became of it."""
    guard = AddressGuard([url.split("/")[2]])
    fetcher = HttpFetcher(guard=guard, clock=SystemClock(), per_host_rate=1e6, respect_robots=False)
    try:
        await fetcher.fetch(url.rsplit("/", 1)[0] + "/none", FetchLimits())
    except FetchError:
        print("ready", flush=True)
    sys.stdin.readline()
    started = time.perf_counter()
    try:
        outcome = f"{len((await fetcher.fetch(url, FetchLimits())).text):,} characters"
    except FetchError as error:
        outcome = error.reason
    print(json.dumps([outcome, time.perf_counter() - started]), flush=True)
    sys.stdin.readline()
    await fetcher.aclose()


def measure_body(name: str, base: str) -> tuple[float, float, float, str]:
    """Megabytes of the process, of it with its children, seconds, and the outcome."""
    _body(name)
    command = [sys.executable, "-m", "evals.bodies", "--fetch", f"{base}/{list(BODIES).index(name)}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        with MemoryWatch(process.pid) as watch:
            print(file=process.stdin, flush=True)
            outcome, seconds = json.loads(process.stdout.readline() or '["the process ended", 0]')
        print(file=process.stdin, flush=True)
    return watch.own, watch.all, seconds, outcome


def measure_request(base: str) -> tuple[float, float, float, str]:
    """The same for one request to a server for 20 archives."""
    addresses = [f"{base}/{list(BODIES).index(name)}" for name in ARCHIVES]
    for name in ARCHIVES:
        _body(name)
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ, "NEXI_HOME": home, "NEXI_ALLOW_PRIVATE": base.removeprefix("http://"), "NEXI_RESPECT_ROBOTS": "false"
        }  # fmt: skip
        port = 18_000 + os.getpid() % 10_000
        command = [sys.executable, "-m", "nexi", "serve", "--port", str(port)]
        with subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server:
            try:
                return _ask_server(server, f"http://127.0.0.1:{port}", addresses)
            finally:
                server.terminate()


def _ask_server(server: subprocess.Popen[bytes], url: str, addresses: list[str]) -> tuple[float, float, float, str]:
    until = time.monotonic() + 60
    while not _get(f"{url}/healthz"):
        if time.monotonic() > until:
            raise SystemExit("the server did not start")
        time.sleep(0.2)
    for address in (f"{addresses[0]}0000000", addresses[0]):  # loads what is loaded once; the second is read as well
        _post(f"{url}/tavily/extract", {"urls": [address]})
    slowest = 0.0
    stop = threading.Event()

    def knock() -> None:
        nonlocal slowest
        while not stop.wait(0.1):
            began = time.perf_counter()
            _get(f"{url}/healthz")
            slowest = max(slowest, time.perf_counter() - began)

    knocking = threading.Thread(target=knock, daemon=True)
    with MemoryWatch(server.pid) as watch:
        knocking.start()
        started = time.perf_counter()
        got = _post(f"{url}/tavily/extract", {"urls": addresses})
        seconds = time.perf_counter() - started
        stop.set()
        knocking.join()
    read, failed = len(got.get("results", ())), len(got.get("failed_results", ()))
    return watch.own, watch.all, seconds, f"{read} read, {failed} refused; /healthz took at most {slowest:.2f} s"


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return bytes(answer.read()) or b"ok"
    except OSError:
        return b""


def _post(url: str, body: object) -> dict[str, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def _merge_rows(lines: list[str]) -> list[str]:
    """The rows that were measured, and those of the saved table that were not."""
    saved = SAVED.read_text("utf-8").splitlines() if SAVED.exists() else []
    known = {line.split(" | ")[0]: line for line in [*saved, *lines] if line.startswith("| ")}
    order = [f"| {name}" for name in BODIES] + [f"| {TOGETHER} archives in one request"]
    return [*lines[:2], *(known[name] for name in order if name in known)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="write the table to evals/bodies.md")
    parser.add_argument("--only", default="", help="bodies whose name holds one of these, with commas between")
    parser.add_argument("--server", action="store_true", help="only the request for 20 archives")
    parser.add_argument("--fetch", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fetch:
        asyncio.run(fetch_one(options.fetch))
        return 0
    kinds = tuple(options.only.split(","))
    names = [] if options.server else [name for name in BODIES if any(kind in name for kind in kinds)]
    lines = ["| body | bytes | MB here | MB with children | seconds | outcome |", "|---|---|---|---|---|---|"]
    print("\n".join(lines))
    bad = 0
    with serving() as base:
        rows: list[tuple[str, int, Callable[[], tuple[float, float, float, str]]]] = [
            (name, len(_body(name)[1]), partial(measure_body, name, base)) for name in names
        ]
        if not options.only:
            size = sum(len(_body(name)[1]) for name in ARCHIVES)
            rows.append((f"{TOGETHER} archives in one request", size, lambda: measure_request(base)))
        for name, size, measure in rows:
            own, everything, seconds, outcome = measure()
            bad += everything > MAX_GROWTH_MB or "ended" in outcome
            bad += seconds > MAX_SECONDS and "archives" not in name
            lines.append(f"| {name} | {size:,} | {own:.0f} | {everything:.0f} | {seconds:.1f} | {outcome} |")
            print(lines[-1], flush=True)
    if options.save:
        head = "# What hostile bodies cost\n\nMade by `python -m evals.bodies --save`. Megabytes are the most that was taken"
        about = f"{head} beyond the start,\nby the process that fetches and by it with the processes it starts"
        about += ", without the files of libraries.\n"
        SAVED.write_text("\n".join([about, *_merge_rows(lines)]) + "\n", encoding="utf-8")
    if reached or TRACE.exists():
        print(f"a document was run or fetched from: {reached[:5]} {TRACE if TRACE.exists() else ''}")
        bad += 1
    print(f"bodies: {len(rows)} measured, {bad} beyond the bounds")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
