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
        hits = [{"title": h.title, "url": h.url, "description": h.snippet} for h in outcome.hits]
        for form, hit in zip(hits, outcome.hits, strict=True):
            if hit.published:
                form["published_time"] = hit.published
        entry: dict[str, Any] = {"query": outcome.query, "results": hits}
        if outcome.backend:
            entry["backend"] = outcome.backend
        if outcome.failures:
            entry["failures"] = [f"{f.provider}: {f.message}" for f in outcome.failures]
        if not outcome.hits:
            entry["error"] = "no results. " + " ".join(f"{f.provider}: {f.message}." for f in outcome.failures)
        searches.append(entry)
    return {"searches": searches}


def render_pages(views: Sequence[PageView]) -> dict[str, Any]:
    """Render pages as the seeds' JSON: `[n] url`, a line, the text; with the day of the text where it is known."""
    pages = []
    for view in views:
        if view.error:
            pages.append({"url": view.url, "content": "", "error": view.error})
        else:
            head = f"[{view.number}] {view.url}" if view.number else view.url
            form = {"url": view.url, "title": view.title, "content": f"{head}\n---\n{view.text}"}
            pages.append({**form, "date": view.day} if view.day else form)
    return {"pages": pages}
