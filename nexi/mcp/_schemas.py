"""What the tools give back: the output schemas, and the structured content that fits them.

Above are the tools; below are nexi's own values. Nothing here runs anything.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from nexi.runs.log_format import LogState


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
