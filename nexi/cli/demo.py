"""`nexi demo`: a search over nexi's own handbook, which is served on loopback.

It answers searches like a SearXNG, so that everything works as on the web, without a key and without a network.
"""

from __future__ import annotations

import html
import json
import re
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import click

from nexi import app, output
from nexi.cli.exits import Interrupts
from nexi.cli.flags import screen_options
from nexi.cli.runner import follow_run, run_with_nexi
from nexi.config import Config
from nexi.errors import StoreError
from nexi.output import set_plain_mode, write
from nexi.text.words import STOP

QUESTIONS = (
    "How does nexi check its sentences?",
    "Which addresses does nexi refuse to fetch?",
    "How do I use nexi with Ollama?",
)
NEXT_STEPS = """
Nothing was saved: the demo uses a temporary folder. What to do next:
  nexi "your question"    ask the web, without a key or a model
  nexi config setup       add a model and a search service
  nexi index notes        add your own files, here the folder notes
  nexi serve              open the web page
"""


@click.command("demo")
@click.argument("question", required=False)
@screen_options
def _demo_command(question: str | None, verbose: bool, plain: bool) -> None:
    """Ask nexi's own handbook three questions, or yours: no API key, no network."""
    set_plain_mode(plain)
    with Interrupts() as interrupts, serve_handbook() as address:
        write(f"Serving nexi's handbook on {address}.\n", sys.stderr)
        for text in (question,) if question else QUESTIONS:
            write(f"\nQuestion: {text}\n", sys.stderr)
            screen = output.Screen(verbose=verbose, usage=True)
            screen.finish(_search_handbook(address, text, screen, interrupts))
    write(NEXT_STEPS, sys.stderr)


def _search_handbook(address: str, question: str, screen: output.Screen, interrupts: Interrupts) -> app.RunResult:
    """One search in a home of its own, so that no question is answered from the pages of the one before."""
    with tempfile.TemporaryDirectory(prefix="nexi-demo-") as home:
        config = Config(
            model="extractive",
            searxng_url=f"http://{address}",
            search_backend="searxng",
            content_fetcher="http",
            allow_private=(address,),
            home=Path(home),
        )
        return run_with_nexi(lambda nexi: follow_run(nexi.search(question), screen, interrupts), config)


def _handbook_folder() -> Path:
    """The folder of the handbook: in the installed package, or next to it in a checkout."""
    package = Path(__file__).parents[1]
    for folder in (package / "handbook", package.parent / "docs"):
        if any(folder.glob("*.md")):
            return folder
    raise StoreError("the handbook is missing", cause=f"no pages in {package / 'handbook'}", fix="reinstall nexi")


class _Handbook:
    def __init__(self, folder: Path) -> None:
        self.pages = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
        self.index = sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = threading.Lock()
        self.index.execute("CREATE VIRTUAL TABLE page USING fts5(name, title, body, tokenize='porter')")
        rows = [(name, _title_of(text), text) for name, text in self.pages.items()]
        self.index.executemany("INSERT INTO page VALUES (?, ?, ?)", rows)

    def search(self, query: str, limit: int = 10) -> list[tuple[str, str, str]]:
        """(name, title, snippet) of matching pages, best first."""
        every = re.findall(r"\w+", query)
        telling = [word for word in every if word.lower() not in STOP] or every
        words = " OR ".join(f'"{word}"' for word in telling) or '""'
        sql = (
            "SELECT name, title, snippet(page, 2, '', '', ' … ', 40) FROM page WHERE page MATCH ? "
            "ORDER BY bm25(page, 0.0, 4.0, 1.0) LIMIT ?"
        )
        with self._lock:
            return self.index.execute(sql, (words, limit)).fetchall()


def _title_of(markdown: str) -> str:
    return next((line.lstrip("# ").strip() for line in markdown.splitlines() if line.startswith("#")), "nexi")


def _markdown_to_html(markdown: str) -> str:
    from markdown_it import MarkdownIt

    linked = re.sub(r"\]\(([^)\s]+?)\.md\)", r"](/\1)", markdown)  # a page has no suffix here
    body, title = MarkdownIt("commonmark", {"html": False}).enable("table").render(linked), html.escape(_title_of(markdown))
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
    return f"{head}<body><main>{body}</main></body></html>"


class _HandbookHandler(BaseHTTPRequestHandler):
    """GET /search as a SearXNG, GET /<name> a page."""

    handbook: _Handbook

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        if target.path == "/search":
            query, port = parse_qs(target.query).get("q", [""])[0], self.connection.getsockname()[1]
            results = [
                {"url": f"http://127.0.0.1:{port}/{name}", "title": title, "content": snippet, "engine": "handbook"}
                for name, title, snippet in self.handbook.search(query)
            ]
            answer = {"query": query, "results": results, "answers": [], "unresponsive_engines": []}
            self._send_body(json.dumps(answer), "application/json")
        elif page := self.handbook.pages.get(target.path.strip("/")):
            self._send_body(_markdown_to_html(page), "text/html; charset=utf-8")
        else:
            self._send_body("not found", "text/plain", 404)

    def _send_body(self, body: str, kind: str, status: int = 200) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""


@contextmanager
def serve_handbook() -> Iterator[str]:
    """Serve the handbook on a loopback port; yields `127.0.0.1:port`."""
    handbook = _Handbook(_handbook_folder())
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("HandbookHandler", (_HandbookHandler,), {"handbook": handbook}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        handbook.index.close()
