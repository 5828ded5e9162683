"""The response: a universal context pack, "ucp-1", from what one request found and read. Pure: no I/O.

An item is a hit with its place in the backend's order (`rank`, from 1), how much of the query it holds (`relevance`), and
what became of its page (`fetch`). The seed knows four reasons for a page that is not there; ours are told in those.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from nexi import __version__
from nexi.apis.search.excerpt import Relevance
from nexi.apis.search.render import RenderedItem, render_items
from nexi.apis.search.schema import SearchRequest
from nexi.errors import FetchError
from nexi.types import Failure, Hit, Page, content_digest
from nexi.urls import page_id

SCHEMA = "ucp-1"
PRODUCER = "searcher-service"
SEEDS = "seed_items"
REASONS = ("content_type", "too_large", "timeout")  # what the seed calls an error is any other
NOT_TRIED = ("content_type", "too_large")  # the service would not read it; every other reason is a failure


class RankedHit(Struct, frozen=True):
    """A result of one request: the hit, its 0-based place, when it was found, and its page or why there is none."""

    hit: Hit
    place: int
    found_at: str
    page: Page | FetchError | None = None
    read_at: str = ""


class Outcome(Struct, frozen=True):
    """All that one request came to. `picks` is None where no pick was asked for."""

    results: tuple[RankedHit, ...]
    backend: str
    fallback: bool = False
    picks: tuple[int, ...] | None = None
    failures: tuple[Failure, ...] = ()
    search_s: float = 0.0
    fetch_s: float = 0.0
    total_s: float = 0.0
    at: str = ""


def build_response(echo: Mapping[str, Any], request: SearchRequest, outcome: Outcome) -> dict[str, Any]:
    """The whole pack; `items` and `rendered_text` as far as they are wanted."""
    times, text = {"search": outcome.search_s, "fetch": outcome.fetch_s, "total": outcome.total_s}, ""
    if request.wants_text:
        items = [RenderedItem(_title_of(r), r.hit.url, r.hit.snippet, _content_of(r)) for r in outcome.results]
        room = request.limits.context_chars
        text = render_items(items, backend=outcome.backend, mode=request.mode, query=request.text, room=room)
    pack: dict[str, Any] = {
        "schema": SCHEMA,
        "created_utc": outcome.at,
        "producer": {"name": PRODUCER, "version": __version__},
        "request": echo,
        "meta": {
            "backend_used": outcome.backend,
            "fallback_used": outcome.fallback,
            "pick_applied": outcome.picks is not None,
            "pick_ids": list(outcome.picks or ()),
            "mode_used": request.mode,
            "timing_ms": {name: round(seconds * 1000) for name, seconds in times.items()},
            "failures": [asdict(failure) for failure in outcome.failures],
        },
        "usage": {
            "results_returned": len(outcome.results),
            "context_chars": len(text),
            "fetch_pages_used": sum(result.page is not None for result in outcome.results),
        },
    }
    if request.wants_items:
        relevance = Relevance(request.text)
        pack["items"] = [_build_item(result, relevance, outcome.backend) for result in outcome.results]
    if request.wants_text:
        pack["rendered_text"] = text
    return pack


def format_utc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _build_item(result: RankedHit, relevance: Relevance, backend: str) -> dict[str, Any]:
    hit, engine = result.hit, result.hit.backend or backend
    try:
        item_id = page_id(hit.url)
    except ValueError:  # a result of this machine is no web page and goes by its own address
        item_id = f"web:sha256:{content_digest(hit.url)}"
    item: dict[str, Any] = {
        "id": item_id,
        "type": "web_result",
        "title": _title_of(result),
        "url": hit.url,
        "retrieved_utc": result.read_at or result.found_at,
        "engine": engine,
        "snippet": hit.snippet,
        "score": {"rank": result.place + 1, "relevance": relevance.of(hit), "method": f"{engine}_snippet"},
        "fetch": _describe_fetch(result.page),
    }
    if hit.published:
        item["published"] = hit.published
    if content := _content_of(result):
        item["content"] = content
    return item


def _describe_fetch(page: Page | FetchError | None) -> dict[str, Any]:
    content_type = (page.content_type if page else "") or None
    if isinstance(page, Page):
        sizes = {"downloaded_bytes": page.downloaded_bytes, "truncated": page.truncated, "extracted_chars": len(page.text)}
        return {"status": "fetched", "skip_reason": None, "content_type": content_type, **sizes}
    reason = (page.reason if page.reason in REASONS else "error") if page else None
    status = "failed" if reason and reason not in NOT_TRIED else "skipped"
    message = {"message": str(page)} if page else {}
    sizes = {"downloaded_bytes": 0, "truncated": False, "extracted_chars": 0}
    return {"status": status, "skip_reason": reason, "content_type": content_type, **sizes, **message}


def _title_of(result: RankedHit) -> str:
    page = result.page
    return result.hit.title or (page.title if isinstance(page, Page) else "")


def _content_of(result: RankedHit) -> str:
    return result.page.text if isinstance(result.page, Page) else ""
