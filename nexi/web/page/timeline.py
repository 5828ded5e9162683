"""The timeline of a run: a bar for every model call, search and page, from its facts and when they were written. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from nexi.events import Fact, ModelFailed, ModelReplied, PageFailed, PageFetched, SearchFinished
from nexi.urls import host_of

MOST_BARS = 2000


def timeline_of(facts: Sequence[tuple[int, Fact]], moments: Sequence[str], created: str) -> list[dict[str, Any]]:
    """Bars with their start and end in seconds after the run began."""
    begun = _seconds(created)
    bars = []
    for (_, fact), moment in zip(facts, moments, strict=True):
        about = _about(fact)
        if about is None:
            continue
        lane, label, failed = about
        end = max(0.0, _seconds(moment) - begun)
        start = max(0.0, end - float(getattr(fact, "seconds", 0.0)))
        bar = {"lane": lane, "who": getattr(fact, "agent", ""), "label": label[:200], "failed": failed}
        bars.append({**bar, "start": round(start, 3), "end": round(end, 3)})
    return bars[:MOST_BARS]


def _about(fact: Fact) -> tuple[str, str, bool] | None:
    match fact:
        case ModelReplied(call=call):
            return "model", f"call {call}", False
        case ModelFailed(message=message):
            return "model", message, True
        case SearchFinished(query=query, hits=hits):
            return "search", query, not hits
        case PageFetched(url=url):
            return "page", host_of(url), False
        case PageFailed(url=url, message=message):
            return "page", f"{host_of(url)}: {message}", True
        case _:
            return None


def _seconds(moment: str) -> float:
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return 0.0
