"""Open WebUI's external search engine and external web loader: `POST /openwebui/search` and `/openwebui/load`.

Its client takes a plain list and calls `raise_for_status`, so a failure is a status with `{"detail": ...}`. A page that
cannot be read is left out of a list that has others; where none can be read, the refusal says why.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.apis.search.pack import Outcome
from nexi.apis.search.routes import service_of
from nexi.apis.search.schema import Limits, QueryText, SearchRequest, clean_query
from nexi.errors import BackendError
from nexi.structured.schema_check import object_schema
from nexi.types import FetchLimits, Page, Query
from nexi.web.contract import Contract
from nexi.web.payload import Problem, build_refusal, json_reply, read_body

__all__ = ["CONTRACT", "openwebui_error", "require_answer"]

_TEXT = {"type": "string"}
CONTRACT = Contract("Open WebUI", error=object_schema({"detail": _TEXT}))
HITS = {"type": "array", "items": object_schema(dict.fromkeys(("link", "title", "snippet"), _TEXT))}
PAGES = {"type": "array", "items": object_schema({"page_content": _TEXT, "metadata": {"type": "object"}})}
COUNT = 5
MAX_COUNT = 50
MAX_URLS = 50
LOAD_S = 60.0


class OpenWebUISearch(Struct, frozen=True):
    """A search as Open WebUI asks for it."""

    query: QueryText
    count: Annotated[int, Meta(ge=0)] | None = COUNT


class OpenWebUIPages(Struct, frozen=True):
    """Pages to read."""

    urls: Annotated[list[Annotated[str, Meta(max_length=8192)]], Meta(max_length=MAX_URLS)]


def openwebui_error(problem: Problem) -> dict[str, Any]:
    return {"detail": problem.advice}


@CONTRACT.serve("POST /openwebui/search", "Open WebUI's external search engine.", body=OpenWebUISearch, ok=HITS)
async def search_web(request: Request) -> Response:
    body = await read_body(request, OpenWebUISearch)
    count = COUNT if body.count is None else min(body.count, MAX_COUNT)
    text = clean_query(body.query)
    outcome = await service_of(request.app.state).run(SearchRequest(text, limits=Limits(results=count)), Query(text))
    require_answer(outcome)
    return json_reply([{"link": f.hit.url, "title": f.hit.title, "snippet": f.hit.snippet} for f in outcome.results])


@CONTRACT.serve("POST /openwebui/load", "Open WebUI's external web loader.", body=OpenWebUIPages, ok=PAGES)
async def _load_pages(request: Request) -> Response:
    urls = (await read_body(request, OpenWebUIPages)).urls
    deadline = asyncio.get_running_loop().time() + LOAD_S
    outcomes = await service_of(request.app.state).read_all(urls, FetchLimits(), deadline)
    pages = [page for page in outcomes if isinstance(page, Page)]
    if urls and not pages:
        reasons = "; ".join(str(outcome) for outcome in outcomes[:3])
        raise build_refusal(422, "unreadable", f"no page could be read: {reasons}")
    replies = []
    for page in pages:
        facts = {name: getattr(page, name) for name in ("title", "description", "language", "author", "published")}
        metadata = {"source": page.final_url or page.url, **{name: value for name, value in facts.items() if value}}
        replies.append({"page_content": page.text, "metadata": metadata})
    return json_reply(replies)


def require_answer(outcome: Outcome) -> None:
    """Raises BackendError where no backend answered at all; an answer without results is one."""
    if outcome.results or outcome.backend:
        return
    why = "; ".join(f"{f.provider}: {f.message}" for f in outcome.failures) or "no backend answered"
    fix = next((f.fix for f in outcome.failures if f.fix), "")
    raise BackendError("the search failed", cause=why, fix=fix)
