"""What the address bar of a browser offers while somebody types: questions asked before, and titles of the knowledge base.

Above, a browser that uses nexi as its search engine; below, the history and the knowledge base of who asks. Nothing is sent to
a model or a search service. The form is that of OpenSearch suggestions: what was typed, and what it may become.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.app import Nexi
from nexi.ports import HistoryStore
from nexi.web.page.history import words_of

__all__ = ["routes"]


MAX_QUESTIONS, MAX_TITLES = 6, 4
MAX_ENTRIES = 100  # that have the words in their question or their answer
MAX_SOURCES = 5_000  # whose titles are looked at, the last fetched first
MAX_SUGGESTION_CHARS = 200


def routes() -> list[Route]:
    return [Route("/suggest", _suggest, methods=["GET"])]


async def _suggest(request: Request) -> Response:
    """Own questions that contain `q`, those that begin with it first, then titles of stored pages and files."""
    nexi: Nexi = request.app.state.nexi
    typed = words_of(request)
    questions = await asyncio.to_thread(_find_questions, nexi.history(), typed) if typed else []
    titles = await _find_titles(nexi, typed) if typed else []
    offered = _unique([*questions[:MAX_QUESTIONS], *titles], typed)
    body = json.dumps([request.query_params.get("q", ""), offered], ensure_ascii=False).encode("utf-8", "replace")
    headers = {"cache-control": "private, no-store", "x-content-type-options": "nosniff"}
    return Response(body, media_type="application/x-suggestions+json", headers=headers)


def _find_questions(history: HistoryStore, typed: str) -> list[str]:
    """Questions of the history, the newest first. Raises StoreError."""
    wanted = typed.casefold()
    questions = [" ".join(entry.query.split()) for entry in history.find(typed, MAX_ENTRIES).entries]
    fitting = [question for question in questions if wanted in question.casefold()]
    return _unique(sorted(fitting, key=lambda question: not question.casefold().startswith(wanted)), typed)


async def _find_titles(nexi: Nexi, typed: str) -> list[str]:
    knowledge, wanted = nexi.knowledge(), typed.casefold()
    titles: list[str] = []
    if not knowledge.may_hold_something():
        return titles
    seen = 0
    async for source in knowledge.sources():
        seen += 1
        if source.title and wanted in source.title.casefold():
            titles = _unique([*titles, " ".join(source.title.split())], typed)
        if len(titles) == MAX_TITLES or seen == MAX_SOURCES:
            break
    return titles


def _unique(texts: Iterable[str], typed: str) -> list[str]:
    """The texts that may be offered, each once whatever its case; what was typed is no offer."""
    offers: dict[str, str] = {}
    for text in texts:
        if len(text) <= MAX_SUGGESTION_CHARS and text.casefold() != typed.casefold():
            offers.setdefault(text.casefold(), text)
    return list(offers.values())
