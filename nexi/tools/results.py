"""Tool results as the JSON that the model sees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nexi.types import PageView, SearchOutcome, ToolResult


def error_result(message: str) -> ToolResult:
    return ToolResult(None, as_json({"error": message}), ok=False)


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def searches_form(outcomes: Sequence[SearchOutcome]) -> dict[str, Any]:
    """The seeds' JSON of search results; a query without hits says why."""
    searches = []
    for outcome in outcomes:
        entry: dict[str, Any] = {"query": outcome.query, "results": [_hit_form(h) for h in outcome.hits]}
        if outcome.backend:
            entry["backend"] = outcome.backend
        if outcome.failures:
            entry["failures"] = [f"{f.provider}: {f.message}" for f in outcome.failures]
        if not outcome.hits:
            entry["error"] = "no results. " + " ".join(f"{f.provider}: {f.message}." for f in outcome.failures)
        searches.append(entry)
    return {"searches": searches}


def _hit_form(hit: Any) -> dict[str, str]:
    form = {"title": hit.title, "url": hit.url, "description": hit.snippet}
    return {**form, "published_time": hit.published} if hit.published else form


def pages_form(views: Sequence[PageView]) -> dict[str, Any]:
    """The seeds' JSON of pages: `[n] url`, a rule, the text."""
    pages = []
    for view in views:
        if view.error:
            pages.append({"url": view.url, "content": "", "error": view.error})
        else:
            pages.append({"url": view.url, "title": view.title, "content": page_text(view.number, view.url, view.text)})
    return {"pages": pages}


def page_text(number: int, url: str, text: str) -> str:
    head = f"[{number}] {url}" if number else url
    return f"{head}\n---\n{text}"
