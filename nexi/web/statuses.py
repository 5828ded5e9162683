"""Statuses: what is told of a run, from its facts.

Above, `runs` sends them; below are the words. Page text and answers are hostile here: HTML is made with everything escaped,
no raw markup, no images, and links to web addresses only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from nexi.app import RunSummary
from nexi.events import Fact, ModelReplied, PageFetched, RunFailed, RunFinished, RunStarted, SearchFinished
from nexi.types import StopReason, Usage

SCHEMA = "nexi-run-1"
_ALIGNED = re.compile(r'(<t[dh]) style="text-align:(left|right|center)"')


def status_of(run_id: str, state: str, created: str, facts: Sequence[Fact]) -> dict[str, Any]:
    """A run as one object: what was asked, how far it is, and how it ended."""
    start = next((f for f in facts if isinstance(f, RunStarted)), None)
    usage = sum((f.usage for f in facts if isinstance(f, ModelReplied)), Usage())
    status: dict[str, Any] = {
        "schema": SCHEMA,
        "id": run_id,
        "state": state,
        "mode": start.mode if start else "",
        "question": start.query if start else "",
        "effort": start.effort if start else "",
        "model": start.model if start else "",
        "created": created,
        "last_event_id": len(facts),
        "searches": sum(isinstance(f, SearchFinished) for f in facts),
        "pages": sum(isinstance(f, PageFetched) for f in facts),
        "model_calls": sum(isinstance(f, ModelReplied) for f in facts),
        "tokens": {"input": usage.input_tokens, "output": usage.output_tokens},
        "cost": usage.cost,
        "links": {"events": f"/v1/runs/{run_id}/events", "result": f"/v1/runs/{run_id}/result"},
    }
    if start and (space := start.request.get("space")):
        status["space"] = space
    if start and start.mode == "research":
        status["progress"] = _progress_of(facts)
    last = facts[-1] if facts else None
    if isinstance(last, RunFinished):
        return {**status, "stop": last.stop.value, "seconds": last.seconds, "warnings": list(last.warnings)}
    if isinstance(last, RunFailed):
        error = {"code": last.code, "message": last.message, "cause": last.cause, "fix": last.fix}
        end = {"stop": last.stop.value, "seconds": last.seconds}
        return {**status, **end, **({"code": last.code} if last.stop is StopReason.CANCELLED else {"error": error})}
    return status


def _progress_of(facts: Sequence[Fact]) -> dict[str, Any]:
    """The researchers of a deep run, as the reducer sees them."""
    from nexi.app.research_state import fold

    state = fold(facts)
    return {"header": state.header, "researchers": [{"id": r.id, "task": r.task, "phase": r.phase} for r in state.researchers]}


def summary_of(run: RunSummary) -> dict[str, Any]:
    """One line of the list of runs."""
    summary = {"id": run.id, "state": run.shown_state, "mode": run.mode, "question": run.query, "created": run.created}
    return {**summary, **({"space": run.space} if run.space else {}), "links": {"self": f"/v1/runs/{run.id}"}}


def passages_of(answer: str) -> str:
    """The passages of an agentic search, whose answer is JSON, each under its address."""
    response = json.loads(answer)
    passages = [f"{result['content'].strip()}\n\n<{result['url']}>\n" for result in response["results"]]
    return "\n".join([f"Completeness {response['completeness']}, {response['status']}.\n", *passages])


def html_of(markdown: str) -> str:
    """Markdown as HTML: raw markup is shown as text, images become their words, links lead to web addresses only."""
    from markdown_it import MarkdownIt

    from nexi.web.page.formulas import add_formulas

    maker = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    add_formulas(maker)
    maker.validateLink = lambda url: url.lower().startswith(("https://", "http://"))  # type: ignore[method-assign]
    return _ALIGNED.sub(r'\1 class="a-\2"', str(maker.render(markdown)))  # the page's policy allows no style in its text
