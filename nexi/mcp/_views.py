"""What nexi's values look like to a client: the structured content with its schemas, and Markdown for a model to read.

Above are the tools and resources; below are nexi's values and `output`, which words the same things for a terminal. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from nexi.answers.answered import describe_answered
from nexi.answers.citations import clean_address, clean_title
from nexi.app import RunResult
from nexi.app.hosting import RunSnapshot
from nexi.app.report import report_text
from nexi.output import answer_json
from nexi.output.proof import figures_line
from nexi.runs.log_format import LogState
from nexi.types import Page, SearchOutcome

MAX_STEPS = 200
_HALVES = re.compile("[\ud800-\udfff]")


class CitedSource(BaseModel):
    """A page that the answer cites as [n]."""

    n: int
    url: str
    title: str = ""


class FoundAnswer(BaseModel):
    """An answer with its sources, and what it took."""

    id: str = Field(description="The id of the run; nexi://runs/{id} has everything about it.")
    question: str
    answer: str = Field(description="Markdown; [n] names a source.")
    answered: str = Field(
        default="",
        description="Whether the pages answer the question: yes, likely, no, or depends where it can mean several things.",
    )
    sources: list[CitedSource]
    verified: str = Field(description="How many sentences the cited pages support, or contain.")
    stop: str = Field(description="Why the search ended; final_answer unless a limit was reached.")
    warnings: list[str]
    model: str
    iterations: int
    pages: int = Field(description="Pages read.")
    seconds: float
    tokens: int
    cost: float | None = Field(description="US dollars; null where a price is unknown.")


class _Shown(BaseModel):
    """What is made of a value of nexi by its attributes."""

    model_config = ConfigDict(from_attributes=True)


class SearchHit(_Shown):
    """One search result."""

    url: str
    title: str
    snippet: str
    published: str = ""
    backend: str = ""


class Trouble(_Shown):
    """A search service that could not answer."""

    provider: str
    code: str
    message: str
    fix: str = ""


class FoundHits(_Shown):
    """Raw search results."""

    query: str
    backend: str
    hits: list[SearchHit]
    failures: list[Trouble]


class ReadPage(BaseModel):
    """A stretch of a page as Markdown."""

    url: str
    final_url: str
    title: str
    text: str
    start: int = Field(description="Where in the page this stretch begins, in characters.")
    chars: int = Field(description="How long the whole page is.")
    next_start: int | None = Field(description="Where to go on; null at the end of the page.")
    author: str = ""
    published: str = ""
    language: str = ""
    content_type: str = ""
    truncated: bool = Field(description="Whether the page was longer than nexi reads.")


class ResearcherShown(_Shown):
    """One researcher of a run."""

    id: str
    task: str
    phase: str
    last_action: str = ""


class ResearchShown(BaseModel):
    """How far a research run is."""

    id: str
    question: str
    state: LogState = Field(description="unfinished: it was cut off and can be resumed with `nexi resume`.")
    status: str = Field(description="The line a person watches.")
    progress: float = Field(description="From 0 to 1.")
    round: int
    researchers: list[ResearcherShown]
    tokens: int
    cost: float | None
    error: str = ""
    fix: str = ""


class ResearchReport(BaseModel):
    """The report of a research run, once there is one."""

    id: str
    state: LogState
    status: str
    progress: float
    report: str = Field(description="Markdown with front matter, [n] citations and the list of sources; empty while it runs.")
    sources: list[CitedSource]
    verified: str = ""
    stop: str = ""
    warnings: list[str] = []


class Cancelled(BaseModel):
    """What was done about a run."""

    id: str
    state: LogState
    done: Literal["cancelled", "asked_to_stop", "nothing"]
    message: str


class _SearchResultChunk(BaseModel):
    """A passage of the knowledge store."""

    content: str
    url: str
    similarity_score: float
    chunk_index: int


class AgenticResult(BaseModel):
    """The response of agentic_search."""

    success: bool
    query: str
    iterations: int
    completeness: float
    results: list[_SearchResultChunk]
    search_history: list[dict[str, Any]]
    status: Literal["complete", "max_iterations_reached", "error"]
    usage: dict[str, Any] = Field(default_factory=dict, description="Model calls, tokens, cost, searches and pages read.")


class Checked(BaseModel):
    """A text that was checked; an audit has precision, recall and sentences in place of the proof."""

    model_config = ConfigDict(extra="allow")

    ok: bool
    contradicted: bool = Field(description="Whether a page says otherwise than a sentence.")
    strict: bool = False
    refetched: bool = False
    run: str = ""
    counts: dict[str, int] = Field(description="How many sentences have each verdict.")
    judge: str = Field(description="Who judged; empty where rules alone looked.")
    gap: str = Field(description="What was not checked or judged, and why.")
    precision: float | None = Field(default=None, description="Of an audit: citations whose page supports the sentence.")
    recall: float | None = Field(default=None, description="Of an audit: sentences that their citations fully support.")
    proof: dict[str, Any] = {}
    sources: list[dict[str, Any]]
    changes: list[dict[str, Any]] = []


class TableRow(BaseModel):
    """One document of a table."""

    document: str
    url: str
    title: str
    date: str = Field(description="When the document says it was last changed or published.")
    problem: str = Field(description="Why it could not be read; empty where it was.")
    cells: list[dict[str, Any]] = Field(description="One for each column: value, quote, page, heading, stated.")


class Tabulated(BaseModel):
    """Documents by columns."""

    columns: list[str]
    model: str
    gap: str = Field(description="What was left out, and why.")
    rows: list[TableRow]


class IndexedPageOutcome(BaseModel):
    """One page, and what became of it: stored, unchanged, linked (equal content is there), empty, or skipped with a reason."""

    url: str
    outcome: str


class Indexed(BaseModel):
    """What became of pages that were to be kept."""

    pages: list[IndexedPageOutcome]
    stored: int
    unchanged: int
    linked: int
    chunks: int = Field(description="Passages that are new in the store.")
    warnings: list[str]


def replace_surrogates(value: Any) -> Any:
    """A value whose texts can be sent: halves of characters, which a stranger's page may hold, are replaced."""
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {replace_surrogates(name): replace_surrogates(item) for name, item in value.items()}
    return [replace_surrogates(item) for item in value] if isinstance(value, list) else value


def show_answer(result: RunResult) -> FoundAnswer:
    figures = {"verified": figures_line(result.answer.review), "tokens": result.finished.usage.total}
    return FoundAnswer.model_validate({**answer_json(result), **figures})


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


def show_page_part(page: Page, start: int, most: int) -> ReadPage:
    """A part of a page, and where it goes on."""
    end = min(len(page.text), start + most)
    names = ("url", "title", "author", "published", "language", "content_type", "truncated")
    return ReadPage(
        **{name: getattr(page, name) for name in names},
        final_url=page.final_url or page.url,
        text=page.text[start:end],
        start=start,
        chars=len(page.text),
        next_start=end if end < len(page.text) else None,
    )


def page_markdown(page: ReadPage) -> str:
    rest = page.chars - page.next_start if page.next_start else 0
    more = f"\n\n[There are {rest:,} more characters: start={page.next_start}]" if rest else ""
    head = f"# {' '.join(page.title.split())}\n{page.final_url}\n\n" if page.title else f"{page.final_url}\n\n"
    return f"{head if not page.start else ''}{page.text}{more}"


def show_research(snapshot: RunSnapshot) -> ResearchShown:
    state, failure = snapshot.research_state, snapshot.failure()
    return ResearchShown(
        id=snapshot.id,
        question=snapshot.start_fact.query,
        state=snapshot.state,
        status=state.header if snapshot.state == "running" else f"Research: {snapshot.state}",
        progress=1.0 if snapshot.state == "finished" else state.progress,
        round=state.round,
        researchers=[ResearcherShown.model_validate(researcher) for researcher in state.researchers],
        tokens=state.usage.total,
        cost=state.usage.cost,
        error=str(failure) if failure else "",
        fix=failure.fix if failure else "",
    )


def research_markdown(research: ResearchShown) -> str:
    lines = [f"{research.status} (run {research.id}, {research.tokens:,} tokens)"]
    lines += [f"- {r.id} {r.phase}: {r.task}" + (f" ({r.last_action})" if r.last_action else "") for r in research.researchers]
    if research.error:
        lines.append(f"{research.error}. {research.fix}".rstrip())
    if research.state == "finished":
        lines.append("nexi_research_result gives the report.")
    return "\n".join(lines) + "\n"


def show_report(snapshot: RunSnapshot) -> ResearchReport:
    """The report of a run that has ended; one without text of a run that has not."""
    report = ResearchReport.model_validate({**show_research(snapshot).model_dump(), "report": "", "sources": []})
    if result := snapshot.result():
        report.report, document = report_text(result, snapshot.created[:10])
        report.sources = [CitedSource(n=s.number, url=s.url, title=s.title) for s in document.sources]
        report.verified, report.stop = figures_line(result.answer.review), result.finished.stop.value
        report.warnings = [*result.finished.warnings, *document.notes]
    return report


def waiting_message(report: ResearchReport) -> str:
    if report.state == "running":
        return f"{report.status}. There is no report yet; ask again in a while, or with wait_s."
    if report.state == "stopped":
        return f"Run {report.id} was stopped before it had a report; resume it with `nexi resume {report.id}`."
    return f"Run {report.id} was cut off before it ended; resume it with `nexi resume {report.id}`."


def indexed_markdown(result: Indexed) -> str:
    old = result.unchanged + result.linked
    lines = [f"{result.stored} stored, {old} already in the knowledge base, {result.chunks} new passages."]
    lines += [f"- {page.url}: {page.outcome}" for page in result.pages]
    lines += [f"Warning: {warning}" for warning in result.warnings]
    return "\n".join(lines) + "\n"
