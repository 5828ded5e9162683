"""The timeline of a run: a bar for every model call, search and page, from its facts and when they were written; and as SVG.

Pure. What is drawn runs nothing; a failure is told by its outline and in words, not by colour alone.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from nexi import events
from nexi.urls import host_of

MAX_BARS = 2000
ROW, LEFT, WIDTH, FOOT = 14, 120, 800, 18
LABEL_CHARS = 20
TOOL_LANES = {"web_search": "search", "local_search": "search", "web_get": "page"}
KINDS = {"model": ("model call", "model calls"), "search": ("search", "searches"), "page": ("page", "pages")}


def timeline_of(facts: Sequence[tuple[int, events.Fact]], moments: Sequence[str], created: str) -> list[dict[str, Any]]:
    """Bars with their start and end in seconds after the run began."""
    first, bars = _to_seconds(created), list[dict[str, Any]]()
    for (_, fact), moment in zip(facts, moments, strict=True):
        match fact:
            case events.ModelReplied(call=call):
                lane, label, has_failed = "model", f"call {call}", False
            case events.ModelFailed(message=message):
                lane, label, has_failed = "model", message, True
            case events.SearchFinished(query=query):
                # no service answered, which is not a search that found nothing
                lane, label = "search", query
                has_failed = bool(fact.reason) and all(failure.code != "empty" for failure in fact.failures)
            case events.PageFetched(url=url):
                lane, label, has_failed = "page", host_of(url), False
            case events.PageFailed(url=url, message=message):
                lane, label, has_failed = "page", f"{host_of(url)}: {message}", True
            case _:
                continue
        end = max(0.0, _to_seconds(moment) - first)
        start = max(0.0, end - float(getattr(fact, "seconds", 0.0)))
        bar = {"lane": lane, "who": getattr(fact, "agent", ""), "label": label[:200], "failed": has_failed}
        bars.append({**bar, "start": round(start, 3), "end": round(end, 3)})
    return bars[:MAX_BARS]


def open_bars_of(facts: Sequence[tuple[int, events.Fact]], moments: Sequence[str], created: str) -> list[dict[str, Any]]:
    """Bars of what has begun and not ended; each has the key under which the page closes it."""
    first, bars = _to_seconds(created), dict[str, dict[str, Any]]()
    for (_, fact), moment in zip(facts, moments, strict=True):
        match fact:
            case events.ModelAsked(call=call):
                key, lane, label = f"model|{fact.agent}|{call}", "model", f"call {call}"
            case events.ToolStarted(name=name) if name in TOOL_LANES:
                key, lane, label = f"tool|{fact.agent}|{fact.call_id}", TOOL_LANES[name], name
            case events.ModelReplied(call=call) | events.ModelFailed(call=call):
                bars.pop(f"model|{fact.agent}|{call}", None)
                continue
            case events.ToolFinished():
                bars.pop(f"tool|{fact.agent}|{fact.call_id}", None)
                continue
            case _:
                continue
        start = round(max(0.0, _to_seconds(moment) - first), 3)
        bars[key] = {"key": key, "lane": lane, "who": fact.agent, "label": label, "failed": False, "start": start}
    return list(bars.values())


def _to_seconds(moment: str) -> float:
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return 0.0


def timeline_svg(bars: Sequence[Mapping[str, Any]]) -> str:
    """One lane for each kind of work of each researcher."""
    lanes = {name: row for row, name in enumerate(dict.fromkeys(map(_row_name, sorted(bars, key=_sort_key))))}
    end = max([float(bar["end"]) for bar in bars] + [0.1])
    scale, height = (WIDTH - LEFT - 10) / end, len(lanes) * ROW + FOOT
    shapes = [f'<text x="0" y="{row * ROW + 11}">{html.escape(name[:LABEL_CHARS])}</text>' for name, row in lanes.items()]
    shapes += [_draw_bar(bar, lanes[_row_name(bar)], scale) for bar in bars]
    shapes.append(f'<text x="{LEFT}" y="{height - 4}">0 s</text>')
    shapes.append(f'<text x="{WIDTH - 2}" y="{height - 4}" text-anchor="end">{end:.1f} s</text>')
    description = f'<desc id="timeline-told">{totals_of(bars)}</desc>'
    about = 'role="img" aria-label="Timeline of the run" aria-describedby="timeline-told"'
    return f'<svg viewBox="0 0 {WIDTH} {height}" {about}>{description}{"".join(shapes)}</svg>'


def _sort_key(bar: Mapping[str, Any]) -> tuple[list[int], str, int]:
    """The run itself first, then its researchers in their order, each with its kinds of work in one order."""
    who = str(bar["who"])
    kind = list(KINDS).index(bar["lane"]) if bar["lane"] in KINDS else len(KINDS)
    return [int(part) for part in re.findall(r"\d+", who)[:4]], who, kind


def _row_name(bar: Mapping[str, Any]) -> str:
    return f"{bar['who']} {bar['lane']}".strip()


def _draw_bar(bar: Mapping[str, Any], row: int, scale: float) -> str:
    start, end = float(bar["start"]), float(bar["end"])
    kind = "failed" if bar["failed"] else f"lane-{bar['lane']}" if bar["lane"] in KINDS else "bar"
    title = f"{'failed: ' if bar['failed'] else ''}{bar['label']} ({end - start:.2f} s)"
    x, width = LEFT + start * scale, max(1.5, (end - start) * scale)
    place = f'x="{x:.1f}" y="{row * ROW + 2}" width="{width:.1f}" height="{ROW - 4}" rx="2"'
    return f'<rect class="{kind}" {place}><title>{html.escape(title.encode("utf-8", "replace").decode())}</title></rect>'


def totals_of(bars: Sequence[Mapping[str, Any]]) -> str:
    """How much there was of each kind, in words."""
    count = Counter(str(bar["lane"]) for bar in bars)
    failures = sum(bool(bar["failed"]) for bar in bars)
    totals = [f"{count[kind]:,} {names[count[kind] != 1]}" for kind, names in KINDS.items() if count[kind]]
    end = max([float(bar["end"]) for bar in bars] + [0.0])
    return ", ".join([*totals, *([f"{failures:,} failed"] if failures else [])]) + f", in {end:.1f} s"
