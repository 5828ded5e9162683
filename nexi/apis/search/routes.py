"""The routes of the Search API: `POST /v1/search`, `/v1/snippet_rank` and `/v1/cache/clear`.

They hand the body to the search service of the shared `Nexi` and return what it says; what a request means is not known here.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.datastructures import State
from starlette.requests import Request
from starlette.responses import Response

from nexi.apis.search.schema import SearchBody
from nexi.apis.search.snippets import RankBody
from nexi.errors import ConfigError
from nexi.events import Delta, Fact, Judged
from nexi.structured.schema_check import object_schema
from nexi.web.contract import Contract
from nexi.web.operations import Metrics
from nexi.web.payload import json_reply, read_json

if TYPE_CHECKING:
    from nexi.apis.search.service import SearchService

__all__ = ["CONTRACT", "service_of", "sweep_cache"]

log = logging.getLogger("nexi.web")
CONTRACT = Contract("Search API", error=object_schema({"error": {"type": "object"}}))
REPLIES = json.loads(Path(__file__).with_name("replies.json").read_text(encoding="utf-8"))
SEARCH = "Search, and read pages in full mode; the response is a context pack (ucp-1)."
RANK = "Pick the most relevant results with one model call."


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


@CONTRACT.serve("POST /v1/search", SEARCH, body=SearchBody, ok=REPLIES["search"], operationId="search")
async def search_web(request: Request) -> Response:
    return json_reply(await service_of(request.app.state).search(await read_json(request)))


@CONTRACT.serve("POST /v1/snippet_rank", RANK, body=RankBody, ok=REPLIES["snippet_rank"], operationId="snippet_rank")
async def snippet_rank(request: Request) -> Response:
    return json_reply(await service_of(request.app.state).snippet_rank(await read_json(request)))


@CONTRACT.serve("POST /v1/cache/clear", "Forget the kept page texts.", ok=REPLIES["clear_cache"], operationId="clear_cache")
async def clear_cache(request: Request) -> Response:
    return json_reply({"cleared": await service_of(request.app.state).clear_cache()})
