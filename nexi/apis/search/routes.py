"""The routes of the Search API: `POST /v1/search`, `/v1/snippet_rank` and `/v1/cache/clear`.

They hand the body to the search service of the shared `Nexi` and return what it says; what a request means is not known here.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.datastructures import State
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.apis.search.schema import SearchBody
from nexi.apis.search.snippets import RankBody
from nexi.errors import ConfigError
from nexi.events import Delta, Fact, Judged
from nexi.structured.schema_check import object_schema
from nexi.web.metrics import Metrics
from nexi.web.payload import build_operation, json_reply, read_json

if TYPE_CHECKING:
    from nexi.apis.search.service import SearchService

__all__ = ["service_of", "sweep_cache"]

log = logging.getLogger("nexi.web")


class _WarningCollector:
    """An emit for work outside of runs: facts are counted, and judgements logged for who debugs."""

    def __init__(self, metrics: Metrics | None) -> None:
        self._metrics = metrics

    async def __call__(self, fact: Fact) -> None:
        if self._metrics:
            self._metrics.observe(fact)
        if isinstance(fact, Judged):
            log.debug("judged", extra={"about": fact.about, "by": fact.by, "items": fact.items})

    def delta(self, delta: Delta) -> None:
        return None


async def sweep_cache(state: State) -> None:
    """Sweep the page cache for as long as the server runs; what is wrong with its settings is told to requests."""
    with suppress(ConfigError):
        await service_of(state).sweep_cache_regularly()


def service_of(state: State) -> SearchService:
    """The search service of the `Nexi` that all requests share, built once; its file may be named in `searcher_config`."""
    collector = _WarningCollector(getattr(state, "metrics", None))
    service: SearchService = state.nexi.search_api(getattr(state, "searcher_config", None), emit=collector)
    return service


async def search_web(request: Request) -> Response:
    return json_reply(await service_of(request.app.state).search(await read_json(request)))


async def snippet_rank(request: Request) -> Response:
    return json_reply(await service_of(request.app.state).snippet_rank(await read_json(request)))


async def clear_cache(request: Request) -> Response:
    return json_reply({"cleared": await service_of(request.app.state).clear_cache()})


def routes() -> list[Route]:
    return [
        Route("/v1/search", search_web, methods=["POST"]),
        Route("/v1/snippet_rank", snippet_rank, methods=["POST"]),
        Route("/v1/cache/clear", clear_cache, methods=["POST"]),
    ]


def openapi() -> dict[str, Any]:
    error = object_schema({"error": {"type": "object"}})
    describe = partial(build_operation, tag="Search API", error=error)
    search = "Search, and read pages in full mode; the response is a context pack (ucp-1)."
    rank, clear = "Pick the most relevant results with one model call.", "Forget the kept page texts."
    cleared = object_schema({"cleared": _WHOLE})
    return {
        "/v1/search": {"post": describe(search, body=SearchBody, ok=_PACK, operationId="search")},
        "/v1/snippet_rank": {"post": describe(rank, body=RankBody, ok=_RANKED, operationId="snippet_rank")},
        "/v1/cache/clear": {"post": describe(clear, ok=cleared, operationId="clear_cache")},
    }


def _all_of(**properties: Any) -> dict[str, Any]:
    return object_schema(properties)


_TEXT, _WHOLE, _FLAG = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_FETCH = _all_of(
    status={"enum": ["skipped", "fetched", "failed"]},
    skip_reason={"enum": ["content_type", "too_large", "timeout", "error", None]},
    content_type=_MAYBE_TEXT,
    downloaded_bytes=_WHOLE,
    truncated=_FLAG,
    extracted_chars=_WHOLE,
)
_SCORE = _all_of(rank={"type": "integer", "minimum": 1}, relevance={"type": "number", "minimum": 0, "maximum": 1}, method=_TEXT)
_ITEM = _all_of(
    id={"type": "string", "pattern": "^web:sha256:[0-9a-f]{64}$"},
    type={"const": "web_result"},
    title=_TEXT,
    url=_TEXT,
    retrieved_utc=_TEXT,
    engine=_TEXT,
    snippet=_TEXT,
    score=_SCORE,
    fetch=_FETCH,
)
_META = _all_of(
    backend_used=_TEXT,
    fallback_used=_FLAG,
    pick_applied=_FLAG,
    pick_ids={"type": "array", "items": _WHOLE},
    mode_used={"enum": ["simple", "full"]},
    timing_ms=_all_of(search=_WHOLE, fetch=_WHOLE, total=_WHOLE),
    failures={"type": "array", "items": _all_of(provider=_TEXT, code=_TEXT, message=_TEXT, fix=_TEXT)},
)
_PACK = _all_of(
    schema={"const": "ucp-1"},
    created_utc=_TEXT,
    producer=_all_of(name=_TEXT, version=_TEXT),
    request={"type": "object"},
    meta=_META,
    usage=_all_of(results_returned=_WHOLE, context_chars=_WHOLE, fetch_pages_used=_WHOLE),
)
_PACK["properties"] |= {"items": {"type": "array", "items": _ITEM}, "rendered_text": _TEXT}
_RANKED = _all_of(
    pick={"type": "array", "items": _WHOLE}, urls={"type": "array", "items": _TEXT}, fallback_used=_FLAG, reason=_TEXT
)
_RANKED["properties"] |= {"qid": _TEXT, "why": {"type": "array", "items": {"type": "string", "maxLength": 80}}}
