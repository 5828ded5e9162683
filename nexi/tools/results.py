"""Tool results as the JSON that the model sees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nexi.types import PageView, SearchOutcome, ToolResult


def error_result(message: str) -> ToolResult:
    return ToolResult(None, to_json({"error": message}), ok=False)


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def render_searches(outcomes: Sequence[SearchOutcome]) -> dict[str, Any]:
    """Render search results as the seeds' JSON; a query without hits says why."""
    searches = []
    for outcome in outcomes:
        entry: dict[str, Any] = {"query": outcome.query, "results": [_render_hit(h) for h in outcome.hits]}
        if outcome.backend:
            entry["backend"] = outcome.backend
        if outcome.failures:
            entry["failures"] = [f"{f.provider}: {f.message}" for f in outcome.failures]
        if not outcome.hits:
            entry["error"] = "no results. " + " ".join(f"{f.provider}: {f.message}." for f in outcome.failures)
        searches.append(entry)
    return {"searches": searches}


def _render_hit(hit: Any) -> dict[str, str]:
    form = {"title": hit.title, "url": hit.url, "description": hit.snippet}
    return {**form, "published_time": hit.published} if hit.published else form


def render_pages(views: Sequence[PageView]) -> dict[str, Any]:
    """Render pages as the seeds' JSON: `[n] url`, a line, the text; with the day of the text where it is known."""
    pages = []
    for view in views:
        if view.error:
            pages.append({"url": view.url, "content": "", "error": view.error})
        else:
            form = {"url": view.url, "title": view.title, "content": _render_page_text(view.number, view.url, view.text)}
            pages.append({**form, "date": view.day} if view.day else form)
    return {"pages": pages}


def _render_page_text(number: int, url: str, text: str) -> str:
    head = f"[{number}] {url}" if number else url
    return f"{head}\n---\n{text}"
