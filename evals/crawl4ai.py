"""The fetcher `crawl4ai` with the real crawl4ai and Chromium, beside the fetcher `http`, over pages that scripts write.

    python -m evals.crawl4ai [--save]

Run it in an environment that has nexi, crawl4ai and a Chromium (`pip install '.[browser]'`); without them it says what is
missing and ends. The pages are served on loopback: one plain, one whose text a script writes, one that a script redirects.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from evals.tables import render_table
from nexi.app import Nexi
from nexi.config import Config
from nexi.errors import NexiError
from rig.serving import serve_in_thread

RESULTS = Path(__file__).resolve().parent / "crawl4ai.md"
FACT = "The lighthouse of Ardnamurchan was built in 1849 and stands 36 metres tall."
PADDING = "<p>It is the westernmost point of the mainland, and its lens turned until the keepers left.</p>" * 6
SITE = {
    "/plain": f"<title>Plain</title><main><h1>Lighthouse</h1><p>{FACT}</p>{PADDING}</main>",
    "/written": "<title>Written</title><main id=m></main><script>setTimeout(() => {document.getElementById('m').innerHTML = "
    f'"<h1>Lighthouse</h1><p>{FACT}</p>{PADDING}"}}, 300)</script>',
    "/moved": "<title>Moved</title><script>location.replace('/plain')</script>",
}
HEADS = ("page", "fetcher", "fact read", "characters", "seconds", "error")


@dataclass(frozen=True)
class Row:
    """How one fetcher read one page."""

    page: str
    fetcher: str
    has_fact: str
    chars: int
    seconds: float
    error: str = ""


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = SITE.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *rest: object) -> None:
        return None


@contextmanager
def serve_site() -> Iterator[str]:
    with serve_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), _Site)) as root:
        yield root


async def read_pages(base_url: str, fetcher: str) -> list[Row]:
    allowed = (base_url.removeprefix("http://"),)
    config = Config(content_fetcher=(fetcher,), allow_private=allowed, page_cache=False, knowledge=False, fetch_timeout=60)
    rows = []
    async with Nexi(config) as nexi:
        for path in SITE:
            started = time.perf_counter()
            try:
                page = await nexi.fetch(base_url + path)
                found = (("yes" if FACT in page.text else "no"), len(page.text), "")
            except NexiError as error:
                found = ("no", 0, error.code)
            rows.append(Row(path, fetcher, found[0], found[1], time.perf_counter() - started, found[2]))
    return rows


def table(rows: Sequence[Row]) -> str:
    return render_table(HEADS, (vars(row).values() for row in rows))


def main() -> int:
    parser = argparse.ArgumentParser(description="The fetcher crawl4ai with the real crawl4ai and Chromium.")
    parser.add_argument("--save", action="store_true", help="write evals/crawl4ai.md")
    args = parser.parse_args()
    try:
        used = f"crawl4ai {version('crawl4ai')}, playwright {version('playwright')}"
    except PackageNotFoundError as error:
        print(f"evals: {error.name} is not installed here")
        return 0
    with serve_site() as base_url:
        rows = [row for fetcher in ("http", "crawl4ai") for row in asyncio.run(read_pages(base_url, fetcher))]
    print(table(rows))
    if args.save:
        RESULTS.write_text(
            "# Pages read with crawl4ai\n\n"
            f"Made by `python -m evals.crawl4ai --save` with {used} and Debian's Chromium, in an environment of its own,\n"
            "over three pages on loopback. The first page of crawl4ai includes the start of its process and of Chromium.\n\n"
            + table(rows)
            + "\n",
            encoding="utf-8",
        )
    return 0 if all(row.has_fact == "yes" for row in rows if row.fetcher == "crawl4ai") else 1


if __name__ == "__main__":
    sys.exit(main())
