"""Stand-ins of open services over one corpus: each answers in its own documented form what the same search finds.

Only services whose answers carry the address of a page can stand for a corpus; those that build an address of their own site
from an identifier answer that they have nothing. Any of them can be dead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from nexi.backends import Settings, create_backend
from nexi.backends.duckduckgo import DuckDuckGo
from nexi.backends.sender import BackendRequest, BackendResponse, Sender
from nexi.backends.services import OpenServices
from nexi.errors import BackendError
from nexi.ports import SearchBackend
from nexi.routing.table import SERVICES
from nexi.types import Hit
from rig import miniweb

FindPages = Callable[[str], Sequence[Hit]]
Form = Callable[[Sequence[Hit]], Any]

ARXIV_ENTRY = "<entry><id>{0.url}</id><title>{0.title}</title><summary>{0.snippet}</summary></entry>"
FORMS: dict[str, Form] = {
    "wikipedia": lambda hits: {
        "query": {"pages": [{"fullurl": h.url, "title": h.title, "extract": h.snippet, "index": n} for n, h in enumerate(hits)]}
    },
    "arxiv": lambda hits: "<feed>" + "".join(ARXIV_ENTRY.format(h) for h in hits) + "</feed>",
    "stackexchange": lambda hits: {"items": [{"link": h.url, "title": h.title, "body": h.snippet} for h in hits]},
    "openalex": lambda hits: {
        "results": [{"display_name": h.title, "primary_location": {"landing_page_url": h.url}} for h in hits]
    },
    "crossref": lambda hits: {"message": {"items": [{"title": [h.title], "URL": h.url, "abstract": h.snippet} for h in hits]}},
    "europepmc": lambda hits: {"resultList": {"result": []}},
    "pubmed": lambda hits: {"esearchresult": {"idlist": []}},
    "semanticscholar": lambda hits: {"data": [{"title": h.title, "url": h.url, "abstract": h.snippet} for h in hits]},
    "doaj": lambda hits: {
        "results": [{"bibjson": {"title": h.title, "abstract": h.snippet, "link": [{"url": h.url}]}} for h in hits]
    },
    "zenodo": lambda hits: {
        "hits": {
            "hits": [{"links": {"self_html": h.url}, "metadata": {"title": h.title, "description": h.snippet}} for h in hits]
        }
    },
    "clinicaltrials": lambda hits: {"studies": []},
    "hackernews": lambda hits: {"hits": []},
    "github": lambda hits: {"items": [{"html_url": h.url, "full_name": h.title, "description": h.snippet} for h in hits]},
    "pypi": lambda hits: {
        "info": {"name": hits[0].title, "version": "1", "project_url": hits[0].url} if hits else {"name": ""}
    },
    "npm": lambda hits: {
        "objects": [{"package": {"name": h.title, "links": {"npm": h.url}, "description": h.snippet}} for h in hits]
    },
    "crates": lambda hits: {"crates": []},
    "marginalia": lambda hits: {"results": [{"url": h.url, "title": h.title, "description": h.snippet} for h in hits]},
    "mwmbl": lambda hits: [{"url": h.url, "title": [{"value": h.title}], "extract": [{"value": h.snippet}]} for h in hits],
    "yacy": lambda hits: {"channels": [{"items": [{"link": h.url, "title": h.title, "description": h.snippet} for h in hits]}]},
    "gdelt": lambda hits: {"articles": [{"url": h.url, "title": h.title, "domain": h.snippet} for h in hits]},
    "archive": lambda hits: {"response": {"docs": []}},
    "wayback": lambda hits: {"archived_snapshots": {"closest": {"available": True, "url": hits[0].url}} if hits else {}},
    "openlibrary": lambda hits: {"docs": []},
    "nominatim": lambda hits: [
        {"osm_id": n, "display_name": f"{h.title} {h.snippet}", "name": h.title, "extratags": {"website": h.url}}
        for n, h in enumerate(hits, 1)
    ],
    "wikidata": lambda hits: {"search": []},
}
WORD_FIELDS = (
    "gsrsearch", "search_query", "q", "search", "query", "query.bibliographic", "query.term", "term", "text", "s", "url",
)  # fmt: skip


def read_words(url: str, params: Sequence[tuple[str, str]]) -> str:
    """What a request asks for: the field of its words, or the end of its path."""
    fields = dict(params)
    words = next((fields[name] for name in WORD_FIELDS if name in fields), "") or unquote(urlsplit(url).path.rpartition("/")[2])
    return words.replace("all:", "").replace(" AND ", " ")


def answer(name: str, words: str, find_pages: FindPages) -> bytes:
    value = FORMS[name](find_pages(words))
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def search_corpus(corpus: miniweb.Corpus, link: Callable[[str], str] = str) -> FindPages:
    """The search of the mini-web as hits."""

    def find_pages(words: str) -> list[Hit]:
        _, ranked = corpus.search(words)
        pages = [(corpus.pages[i], corpus.snippet(i, words)) for i, _ in ranked]
        return [Hit(link(page["url"]), page.get("title", ""), snippet) for page, snippet in pages]

    return find_pages


class StandIns(Sender):
    """A sender in whose place every service answers from memory; the dead ones refuse the connection."""

    def __init__(self, find_pages: FindPages, dead: Collection[str] = ()) -> None:
        super().__init__(user_agent="test")
        self._find_pages = find_pages
        self.dead = set(dead)
        self.called: list[str] = []

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        self.called.append(service)
        if service in self.dead:
            raise BackendError(f"{service} refused the connection", code="refused", cause="it is dead", fix="start it")
        return BackendResponse(200, {}, answer(service, read_words(request.url, request.params), self._find_pages))

    def federation(self, rate_meaning: Any = None, left_out: Collection[str] = ()) -> OpenServices:
        """All services over this sender but those left out, DuckDuckGo's library among them."""

        def build(name: str) -> Callable[[], SearchBackend]:
            return lambda: create_backend(name, Settings("http://127.0.0.1:9" if name == "yacy" else ""), self)

        members = {name: build(name) for name in SERVICES} | {"duckduckgo": lambda: DuckDuckGo(ask=self._ask_duckduckgo)}
        return OpenServices({name: make for name, make in members.items() if name not in left_out}, rate_meaning)

    def _ask_duckduckgo(self, text: str, **options: Any) -> list[dict[str, Any]]:
        self.called.append("duckduckgo")
        if "duckduckgo" in self.dead:
            raise OSError("it is dead")
        return [{"href": h.url, "title": h.title, "body": h.snippet} for h in self._find_pages(text)]


@contextmanager
def serve_services(find_pages: FindPages) -> Iterator[dict[str, str]]:
    """The stand-ins over HTTP on loopback: what `service_urls` is set to."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            body = answer(parts.path.split("/")[1], read_words(self.path, parse_qsl(parts.query)), find_pages)
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {name: f"http://127.0.0.1:{server.server_port}/{name}" for name in FORMS}
    finally:
        server.shutdown()
        server.server_close()
