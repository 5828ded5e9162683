"""The page's view of what nexi knows: stored pages and files to list, to search and to forget.

Above, the page; below, the app's knowledge. A file is shown under its address, which tells no path of this machine.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.app import Nexi
from nexi.errors import NexiError
from nexi.types import Query, StoredSource, StoreStats
from nexi.web.contract import Contract
from nexi.web.page.history import LISTED, MAX_LISTED, words_of
from nexi.web.payload import build_refusal, json_reply, parse_number, read_body

CONTRACT = Contract()
FOUND = 20
SNIPPET_CHARS = 600


class _ForgottenSources(Struct, frozen=True, forbid_unknown_fields=True):
    urls: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=4000)], ...], Meta(min_length=1, max_length=1000)]


@CONTRACT.serve("GET /page/knowledge")
async def _list_sources(request: Request) -> Response:
    """Stored pages, the last fetched first, with `q` in their address, title or tags; and how much there is in all."""
    nexi: Nexi = request.app.state.nexi
    words, limit = words_of(request).casefold(), parse_number(request, "limit", LISTED, most=MAX_LISTED)
    knowledge, fitting, stats = nexi.knowledge(), list[StoredSource](), StoreStats()
    if knowledge.may_hold_something():  # else there is no store to open
        async for source in knowledge.sources():
            if words in f"{source.url}\n{source.title}\n{' '.join(source.tags)}".casefold():
                fitting.append(source)
            if len(fitting) > limit:
                break
        stats = await (await knowledge.open_store()).stats()
    figures = {"total": stats.sources, "passages": stats.chunks, "bytes": stats.bytes, "damage": stats.damage}
    sources = []
    for source in fitting[:limit]:
        about = {name: getattr(source, name) for name in ("url", "title", "owner", "domain", "words")}
        more = {"fetched": source.fetched_at[:10], "passages": source.chunk_count, "tags": list(source.tags)}
        sources.append({**about, **more})
    return json_reply({**figures, "on": bool(nexi.config.knowledge), "sources": sources, "more": len(fitting) > limit})


@CONTRACT.serve("GET /page/knowledge/find")
async def _search_passages(request: Request) -> Response:
    """Passages that fit the words of `q`, best first, with no network unless a store or an embedder is one."""
    nexi: Nexi = request.app.state.nexi
    words = words_of(request)
    if not words or not nexi.knowledge().may_hold_something():
        return json_reply({"hits": []})
    outcome = await nexi.find_known(Query(words, FOUND))
    failure = next((f for f in outcome.failures if f.code != "empty"), None)
    if not outcome.hits and failure:
        raise NexiError(failure.message, fix=failure.fix, code=failure.code)
    hits = [{"url": hit.url, "title": hit.title, "snippet": hit.snippet[:SNIPPET_CHARS]} for hit in outcome.hits]
    return json_reply({"hits": hits})


@CONTRACT.serve("POST /page/knowledge/forget")
async def _remove_sources(request: Request) -> Response:
    body, knowledge = await read_body(request, _ForgottenSources), request.app.state.nexi.knowledge()
    removed = await (await knowledge.open_store()).remove(body.urls) if knowledge.may_hold_something() else 0
    if not removed:
        raise build_refusal(404, "not_found", "none of it is in the knowledge base", fix="list it again")
    return json_reply({"removed": removed})
