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

from nexi.app import Nexi
from nexi.web.contract import Contract
from nexi.web.page.history import words_of

CONTRACT = Contract()
MAX_QUESTIONS, MAX_TITLES = 6, 4
MAX_ENTRIES = 100  # that have the words in their question or their answer
MAX_SOURCES = 5_000  # whose titles are looked at, the last fetched first
MAX_SUGGESTION_CHARS = 200


@CONTRACT.serve("GET /suggest")
async def _suggest(request: Request) -> Response:
    """Own questions that contain `q`, those that begin with it first, then titles of stored pages and files."""
    nexi: Nexi = request.app.state.nexi
    words, knowledge, titles, count = words_of(request), nexi.knowledge(), list[str](), 0
    folded, questions = words.casefold(), list[str]()
    if words:
        entries = (await asyncio.to_thread(nexi.history().find, words, MAX_ENTRIES)).entries  # the newest first
        past_questions = (" ".join(entry.query.split()) for entry in entries)
        fitting = [question for question in past_questions if folded in question.casefold()]
        questions = _unique(sorted(fitting, key=lambda question: not question.casefold().startswith(folded)), words)
    if words and knowledge.may_hold_something():
        async for source in knowledge.sources():
            count += 1
            if source.title and folded in source.title.casefold():
                titles = _unique([*titles, " ".join(source.title.split())], words)
            if len(titles) == MAX_TITLES or count == MAX_SOURCES:
                break
    suggestions = _unique([*questions[:MAX_QUESTIONS], *titles], words)
    body = json.dumps([request.query_params.get("q", ""), suggestions], ensure_ascii=False).encode("utf-8", "replace")
    headers = {"cache-control": "private, no-store", "x-content-type-options": "nosniff"}
    return Response(body, media_type="application/x-suggestions+json", headers=headers)


def _unique(texts: Iterable[str], words: str) -> list[str]:
    """The texts that may be offered, each once whatever its case; what was typed is no offer."""
    offers: dict[str, str] = {}
    for text in texts:
        if len(text) <= MAX_SUGGESTION_CHARS and text.casefold() != words.casefold():
            offers.setdefault(text.casefold(), text)
    return list(offers.values())
