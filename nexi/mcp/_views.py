"""What nexi's values look like to a client: Markdown for a model to read, and the structured content beside it.

Above are the tools and resources; below are nexi's values and `output`, which words the same things for a terminal. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from nexi.answers.answered import describe_answered
from nexi.answers.citations import clean_address, clean_title
from nexi.app import RunResult
from nexi.app.hosting import RunSnapshot
from nexi.app.report import report_text
from nexi.mcp import _schemas
from nexi.output import answer_json
from nexi.output.proof import figures_line
from nexi.types import Page, SearchOutcome

MAX_STEPS = 200
_HALVES = re.compile("[\ud800-\udfff]")


def replace_surrogates(value: Any) -> Any:
    """A value whose texts can be sent: halves of characters, which a stranger's page may hold, are replaced."""
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {replace_surrogates(name): replace_surrogates(item) for name, item in value.items()}
    return [replace_surrogates(item) for item in value] if isinstance(value, list) else value


def show_answer(result: RunResult) -> _schemas.FoundAnswer:
    figures = {"verified": figures_line(result.answer.review), "tokens": result.finished.usage.total}
    return _schemas.FoundAnswer.model_validate({**answer_json(result), **figures})


def answer_markdown(result: RunResult, steps: Sequence[str] = ()) -> str:
    """The answer, its sources, how it was checked and what it took."""
    view = show_answer(result)
    spent = "" if not view.cost else f", ${view.cost:.4f}"
    took = f"{view.iterations} iterations, {view.pages} pages, {view.seconds:.1f} s, {view.tokens:,} tokens{spent}"
    sources = "\n".join(f"[{s.n}] {clean_title(s.title) or clean_address(s.url)}: {clean_address(s.url)}" for s in view.sources)
    parts = [
        view.answer,
        describe_answered(result.answer.answered) if view.answered in ("no", "depends") else "",
        f"## Sources\n\n{sources}" if sources else "",
        "\n".join(f"Warning: {warning}" for warning in view.warnings),
        " ".join(filter(None, [view.verified, f"*{took}; run {view.id}, model {view.model}.*"])),
        "## Steps\n\n" + "\n".join(f"- {step}" for step in steps[:MAX_STEPS]) if steps else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def hits_markdown(outcome: SearchOutcome) -> str:
    if not outcome.hits:
        return f"Nothing was found for {outcome.query!r}.\n"
    lines = [
        f"{number}. {' '.join(hit.title.split()) or hit.url}\n   {hit.url}\n   {' '.join(hit.snippet.split())}".rstrip()
        for number, hit in enumerate(outcome.hits, 1)
    ]
    return "\n".join(lines) + "\n"


def show_page_part(page: Page, start: int, most: int) -> _schemas.ReadPage:
    """A part of a page, and where it goes on."""
    end = min(len(page.text), start + most)
    names = ("url", "title", "author", "published", "language", "content_type", "truncated")
    return _schemas.ReadPage(
        **{name: getattr(page, name) for name in names},
        final_url=page.final_url or page.url,
        text=page.text[start:end],
        start=start,
        chars=len(page.text),
        next_start=end if end < len(page.text) else None,
    )


def page_markdown(page: _schemas.ReadPage) -> str:
    rest = page.chars - page.next_start if page.next_start else 0
    more = f"\n\n[There are {rest:,} more characters: start={page.next_start}]" if rest else ""
    head = f"# {' '.join(page.title.split())}\n{page.final_url}\n\n" if page.title else f"{page.final_url}\n\n"
    return f"{head if not page.start else ''}{page.text}{more}"


def show_research(snapshot: RunSnapshot) -> _schemas.ResearchShown:
    state, failure = snapshot.research_state, snapshot.failure()
    return _schemas.ResearchShown(
        id=snapshot.id,
        question=snapshot.start_fact.query,
        state=snapshot.state,
        status=state.header if snapshot.state == "running" else f"Research: {snapshot.state}",
        progress=1.0 if snapshot.state == "finished" else state.progress,
        round=state.round,
        researchers=[_schemas.ResearcherShown.model_validate(researcher) for researcher in state.researchers],
        tokens=state.usage.total,
        cost=state.usage.cost,
        error=str(failure) if failure else "",
        fix=failure.fix if failure else "",
    )


def research_markdown(research: _schemas.ResearchShown) -> str:
    lines = [f"{research.status} (run {research.id}, {research.tokens:,} tokens)"]
    lines += [f"- {r.id} {r.phase}: {r.task}" + (f" ({r.last_action})" if r.last_action else "") for r in research.researchers]
    if research.error:
        lines.append(f"{research.error}. {research.fix}".rstrip())
    if research.state == "finished":
        lines.append("nexi_research_result gives the report.")
    return "\n".join(lines) + "\n"


def show_report(snapshot: RunSnapshot) -> _schemas.ResearchReport:
    """The report of a run that has ended; one without text of a run that has not."""
    report = _schemas.ResearchReport.model_validate({**show_research(snapshot).model_dump(), "report": "", "sources": []})
    if result := snapshot.result():
        report.report, document = report_text(result, snapshot.created[:10])
        report.sources = [_schemas.CitedSource(n=s.number, url=s.url, title=s.title) for s in document.sources]
        report.verified, report.stop = figures_line(result.answer.review), result.finished.stop.value
        report.warnings = [*result.finished.warnings, *document.notes]
    return report


def waiting_message(report: _schemas.ResearchReport) -> str:
    if report.state == "running":
        return f"{report.status}. There is no report yet; ask again in a while, or with wait_s."
    if report.state == "stopped":
        return f"Run {report.id} was stopped before it had a report; resume it with `nexi resume {report.id}`."
    return f"Run {report.id} was cut off before it ended; resume it with `nexi resume {report.id}`."


def indexed_markdown(result: _schemas.Indexed) -> str:
    old = result.unchanged + result.linked
    lines = [f"{result.stored} stored, {old} already in the knowledge base, {result.chunks} new passages."]
    lines += [f"- {page.url}: {page.outcome}" for page in result.pages]
    lines += [f"Warning: {warning}" for warning in result.warnings]
    return "\n".join(lines) + "\n"
