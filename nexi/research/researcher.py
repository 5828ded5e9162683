"""One researcher: the agent loop over its own conversation, the context that all researchers of a run share, and its tools.

The orchestrator above starts it and learns how it ended from its facts. Reports of other researchers arrive before its first
turn or between two turns, in order of round and researcher. Each delivery is a fact, so that a resumed researcher reads the
same text at the same place. Its tools gather, then scrape in batches, then report: the limits of a phase are enforced in code.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.agent import NO_ANSWER, AgentLoop
from nexi.answers.citations import CitationBook, extract_citation_markers
from nexi.budget import Meter
from nexi.errors import NexiError, NoEvidenceError
from nexi.events import Delta, Fact, ReportsShared, ResearcherFailed, ResearcherReported
from nexi.ports import Emit
from nexi.prompts import render
from nexi.research.evaluator import cut_to_bytes
from nexi.research.planner import PlanningContext
from nexi.research.state import GATHERING_CALLS, REPORTING_TOOL, SCRAPING_TOOL, Researcher
from nexi.runs.recording import AgentReplay
from nexi.runs.session import PrivateTexts, Session
from nexi.structured.schema_check import object_schema
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.tools.specs import FINAL_ANSWER, QUERY, URL, WEB_GET, WEB_SEARCH, parse_arguments
from nexi.tools.toolbox import Toolbox, error_result, render_pages, render_searches, to_json
from nexi.types import Hit, Message, Page, SearchOutcome, ToolCall, ToolResult, ToolSpec
from nexi.urls import hit_key

__all__ = [
    "LOCAL_SEARCH",
    "ContextUsage",
    "ResearchToolbox",
    "ResearcherFactory",
    "ResearcherTask",
    "SharedResearchContext",
    "build_specs",
]

MAX_SHARED_CHARS = 50_000
MAX_SHARED_PART_OF_WINDOW = 0.25  # for all reports that reach one researcher
MIN_SHARED_BYTES = 500
BATCH_SIZES = (3, 2, 3)
MAX_CONTEXT_SHARE = 0.55
MAX_PAGE_BYTES = 9_000
DEFAULT_PAGE_TOKENS = 2_500  # expected of a page until this researcher has read one
MAX_URLS = 8
MIN_PAGES_PER_WINDOW = 10  # so that no page takes more than a tenth of a small window
FIRST_BATCH_SHARE = 0.2  # of the window, kept free of search results for the first batch
MIN_GATHERED_BYTES = 900  # of search results in a call, about three hits without their descriptions
MIN_DESCRIPTION_CHARS = 80

SEARCH = ToolSpec(
    "search",
    "Search the web. Give 1 to 5 different queries; they run in parallel and count as one gathering call.",
    object_schema({"queries": {"type": "array", "items": QUERY, "minItems": 1, "maxItems": 5}}),
)
LOCAL_SEARCH = replace(
    SEARCH,
    name="local_search",
    description="Search what nexi already knows: pages read before and the user's own files. Takes 1 to 5 queries.",
)
SCRAPE = ToolSpec(
    SCRAPING_TOOL,
    "Read pages. The first call only tells which of your URLs others have read; then come three batches of at most 3, 2 and 3 "
    "URLs. Every page comes with its citation number.",
    object_schema({"urls": {"type": "array", "items": URL, "minItems": 1, "maxItems": MAX_URLS}}),
)
RESEARCH_TOOL_NAMES = {WEB_SEARCH.name: SEARCH.name, WEB_GET.name: SCRAPE.name}


@dataclass
class SharedResearchContext:
    """What the researchers of one run share: citation numbers, pages, private texts, links read, and who has finished."""

    book: CitationBook = field(default_factory=lambda: CitationBook(key=hit_key))
    pages: dict[str, Page] = field(default_factory=dict)
    private: PrivateTexts = field(default_factory=PrivateTexts)
    link_pool: dict[str, str] = field(default_factory=dict)  # who read each URL first, by its key
    finished: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))


class _AgentEmit:
    """Adds the researcher's id to every fact. Deltas are dropped: a researcher's report is not shown to the user."""

    def __init__(self, emit: Emit, agent: str) -> None:
        self._emit, self._agent = emit, agent

    async def __call__(self, fact: Fact) -> None:
        await self._emit(replace(fact, agent=self._agent) if "agent" in fact.__struct_fields__ else fact)

    def delta(self, delta: Delta) -> None:
        return None


class ResearcherFactory(Protocol):
    """Builds the agent loop of a researcher; implemented in `app`."""

    def build_researcher(
        self, agent: str, task: str, session: Session, meter: Meter, shared: SharedResearchContext, emit: Emit
    ) -> AgentLoop: ...


@dataclass
class ResearcherTask:
    """The work of one researcher. `get_reports` returns those who have reported so far, `delay_s` is waited in a replay."""

    researcher: Researcher
    question: str
    shared: SharedResearchContext
    get_reports: Callable[[], Sequence[Researcher]]
    emit: Emit
    replay: AgentReplay
    planning: PlanningContext
    window: int
    delay_s: float = 0.0
    concurrency: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    _delivered: set[str] = field(default_factory=set)
    _delivered_bytes: int = 0

    async def run(self, factory: ResearcherFactory, meter: Meter) -> None:
        """Research and commit how it ended as a fact. `concurrency` limits how many researchers run at the same time."""
        async with self.concurrency:
            await self._research_and_report(factory, meter)

    async def _research_and_report(self, factory: ResearcherFactory, meter: Meter) -> None:
        await self.replay.pass_time(self.delay_s)
        me = self.researcher.id
        session = Session()
        session.book, session.pages, session.private = self.shared.book.branch(), self.shared.pages, self.shared.private
        loop = factory.build_researcher(me, self.researcher.task, session, meter, self.shared, _AgentEmit(self.emit, me))
        names = ", ".join(f"`{s.name}`" for s in loop.toolbox.specs if s.name not in (SCRAPING_TOOL, REPORTING_TOOL))
        folder, today = self.planning.prompts_folder, self.planning.today
        rules = render(
            "researcher", folder=folder, question=self.question, gathering=GATHERING_CALLS, gathering_tools=names, today=today
        )
        session.messages.append(Message("system", rules + self.planning.instructions))
        session.messages += await self._collect_reports(0, session)
        session.add_question(self.researcher.task)
        try:
            answer = await loop.run(inbox=lambda turn: self._collect_reports(turn, session))
            text = answer.text
            if not extract_citation_markers(text) and loop.context.session.has_evidence:
                # what cites nothing cannot be verified, so passages of the pages that were read take its place
                quotation = await loop.fallbacks.extractive_answer()
                text = quotation if extract_citation_markers(quotation) else text
        except NexiError as error:
            reason = error.cause if isinstance(error, NoEvidenceError) and error.message == NO_ANSWER else str(error)
            await self.emit(ResearcherFailed(me, error.code, reason, error.fix))
            return
        if not text.strip():
            await self.emit(ResearcherFailed(me, "empty_report", "the report is empty"))
            return
        await self.emit(ResearcherReported(me, text[:MAX_SHARED_CHARS], answer.stop))

    async def _collect_reports(self, turn: int, session: Session) -> list[Message]:
        """Deliver new reports of other researchers in one message, so that the model does not take a report for its task."""
        recorded = self.replay.reports_at(turn)
        for name in recorded or ():
            await self.shared.finished[name].wait()
        reports_by_id = {r.id: r for r in self.get_reports()}
        undelivered = [r.id for r in reports_by_id.values() if r.id not in self._delivered and r.id != self.researcher.id]
        names = [name for name in (undelivered if recorded is None else recorded) if name in reports_by_id]
        if not names:
            return []
        await self.emit(ReportsShared(self.researcher.id, turn, tuple(names)))
        self._delivered |= set(names)
        room = int(self.window * MAX_SHARED_PART_OF_WINDOW) * BYTES_PER_TOKEN - self._delivered_bytes
        share = min(MAX_SHARED_CHARS, max(MIN_SHARED_BYTES, room // len(names)))
        texts, folder = [], self.planning.prompts_folder
        for other in (reports_by_id[name] for name in names):
            numbers = extract_citation_markers(other.report)
            session.book.adopt(numbers)
            session.allow_urls(s.url for n in numbers if (s := self.shared.book.by_number(n)))
            report = cut_to_bytes(other.report, share)
            texts.append(render("shared_report", folder=folder, researcher=other.id, task=other.task, report=report))
        text = "\n\n---\n\n".join(texts)
        self._delivered_bytes += len(text.encode("utf-8", "replace"))
        return [Message("user", text)]


@dataclass
class PhaseUsage:
    """What a researcher has used of its phases: gathering calls, the handshake, scraping batches."""

    gathered: int = 0
    gathered_bytes: int | None = None  # what one gathering call may add to the context, set by the first
    handshake_done: bool = False
    batches: int = 0
    read_bytes: list[int] = field(default_factory=list)
    read_keys: set[str] = field(default_factory=set)
    failed_keys: set[str] = field(default_factory=set)


class ContextUsage(Struct, frozen=True):
    """How full a researcher's context window is."""

    count_used: Callable[[], int]
    window: int

    def free_tokens(self) -> int:
        """Tokens left below the share up to which pages are read."""
        return int(self.window * MAX_CONTEXT_SHARE) - self.count_used()


class ResearchToolbox(Toolbox, Struct, frozen=True):
    """The tools of one researcher."""

    researcher: str = ""
    phases: PhaseUsage = msgspec.field(default_factory=PhaseUsage)
    pool: dict[str, str] = {}  # who read each URL first, of the researchers of one run
    context: ContextUsage = ContextUsage(lambda: 0, 1)
    reads_passages: bool = False  # of a long page, with their headings; the built-in model is given its best sentences
    replay: AgentReplay = msgspec.field(default_factory=AgentReplay)

    async def run(self, call: ToolCall) -> ToolResult:
        """Run a call; the tool names of an ordinary search are accepted too, and `web_get` skips the handshake."""
        # the fallbacks of the loop use those names, and some models know no others
        if call.name == WEB_GET.name:
            self.phases.handshake_done = True
        return await super().run(replace(call, name=RESEARCH_TOOL_NAMES.get(call.name, call.name)))

    def user_words(self) -> str:
        """The user's question; tasks and reports are written by models."""
        return self.part_of or self.question

    async def _dispatch(self, call: ToolCall) -> ToolResult:
        """Run a call. A recorded `scrape` reads its recorded pages, because its result depends on what others had read."""
        recorded = self.replay.next_scrape(call.id) if call.name == SCRAPE.name else None
        if recorded and not self.phases.handshake_done:
            self.phases.handshake_done = True
            return ToolResult((), recorded.text, recorded.ok)
        batch: list[str] = []  # the URLs of the recorded pages
        with suppress(ValueError, KeyError, TypeError):
            batch = [str(page["url"]) for page in json.loads(recorded.text)["pages"]] if recorded else []
        if batch:
            return await self._read_batch(batch, parse_arguments(call, SCRAPE)[0].get("urls", batch))
        return await super()._dispatch(call)

    def is_repeatable(self, call: ToolCall) -> bool:
        """Whether the same call again does something new: a list of URLs with unread ones is read on in the next batch."""
        if RESEARCH_TOOL_NAMES.get(call.name, call.name) != SCRAPE.name or self.phases.batches >= len(BATCH_SIZES):
            return False
        unread = self._list_unread_urls(parse_arguments(call, SCRAPE)[0].get("urls", ()))
        return bool(unread) and self._count_fitting_pages() > 0

    def reminder_prompt(self) -> str:
        return "read_first_research"

    def runners(self) -> Mapping[str, Callable[[Mapping[str, Any]], Awaitable[ToolResult]]]:
        searches = {name: partial(self.search_source, name) for name in self.extra_searchers}
        gathering = {name: partial(self._gather, search) for name, search in searches.items()}
        return {SEARCH.name: partial(self._gather, self._web_search), SCRAPE.name: self._run_scrape, **gathering}

    async def extract_text(self, page: Page, arguments: Mapping[str, Any], room: int) -> str:
        """Return a short page whole and the relevant passages of a long one, verbatim, so that they can be verified."""
        max_bytes = min(
            MAX_PAGE_BYTES, self.context.window * BYTES_PER_TOKEN // MIN_PAGES_PER_WINDOW, self.summary_tokens * BYTES_PER_TOKEN
        )
        if len(page.text.encode("utf-8", "replace")) <= max_bytes:
            return page.text
        if self.reads_passages:
            return await self._choose_passages(page, "", max_bytes)
        return await super().extract_text(page, {}, room)

    async def _gather(
        self, search: Callable[[Mapping[str, Any]], Awaitable[ToolResult]], arguments: Mapping[str, Any]
    ) -> ToolResult:
        if self.phases.gathered >= GATHERING_CALLS:
            return error_result(f"all {GATHERING_CALLS} gathering calls are used; read pages with scrape, or write the report")
        self.phases.gathered += 1
        result = await search(arguments)
        if self.phases.gathered_bytes is None:  # an equal share of what gathering may use, so that pages fit after all calls
            free = self.context.free_tokens() - int(self.context.window * FIRST_BATCH_SHARE)
            self.phases.gathered_bytes = max(MIN_GATHERED_BYTES, free * BYTES_PER_TOKEN // GATHERING_CALLS)
        if isinstance(result.value, tuple) and len(result.text.encode("utf-8", "replace")) > self.phases.gathered_bytes:
            outcomes = _trim_outcomes(result.value, self.phases.gathered_bytes)
            result = ToolResult(outcomes, to_json(render_searches(outcomes)), result.ok)
        calls_left = GATHERING_CALLS - self.phases.gathered
        note = "That was the last gathering call: scrape what matters now."
        if calls_left:
            note = f"{calls_left} gathering call{'s are' if calls_left > 1 else ' is'} left."
        return ToolResult(result.value, to_json({**json.loads(result.text), "note": note}), result.ok)

    async def _run_scrape(self, arguments: Mapping[str, Any]) -> ToolResult:
        urls = list(dict.fromkeys(arguments["urls"]))
        if not self.phases.handshake_done:
            self.phases.handshake_done = True
            readers = ((url, self.pool.get(hit_key(url), self.researcher)) for url in urls)
            fitting = min(self._count_fitting_pages(), sum(BATCH_SIZES))
            form = {
                "already_read_by_others": [{"url": url, "researcher": who} for url, who in readers if who != self.researcher],
                "pages_that_fit": fitting,
                "note": f"Nothing was fetched yet. Call scrape again with at most {min(BATCH_SIZES[0], fitting)} URLs, "
                "best those that no other researcher has read.",
            }
            return ToolResult((), to_json(form))
        if self.phases.batches >= len(BATCH_SIZES):
            return error_result("all scraping batches are used; write the report with final_answer")
        unread = self._list_unread_urls(urls)
        if not unread:
            return error_result("you have read all of these pages, and their text is above; name others or write the report")
        batch = unread[: min(BATCH_SIZES[self.phases.batches], self._count_fitting_pages())]
        if not batch:
            full, limit = f"{self.context.count_used() / max(1, self.context.window):.0%}", f"{MAX_CONTEXT_SHARE:.0%}"
            return error_result(f"skipped: the context is {full} full and pages are read up to {limit}; write the report")
        return await self._read_batch(batch, unread)

    async def _read_batch(self, batch: Sequence[str], urls: Sequence[str]) -> ToolResult:
        self.phases.batches += 1
        for url in batch:
            self.pool.setdefault(hit_key(url), self.researcher)
        views = await self.read_pages({"urls": list(batch)})
        self.phases.read_bytes += [len(v.text.encode("utf-8", "replace")) for v in views if not v.error]
        self.phases.read_keys |= {hit_key(v.url) for v in views if not v.error}
        self.phases.failed_keys |= {hit_key(v.url) for v in views if v.error}
        batches_left = len(BATCH_SIZES) - self.phases.batches
        note = "That was the last batch: write the report with final_answer now."
        if batches_left:
            plural = "batches are" if batches_left > 1 else "batch is"
            note = f"{batches_left} {plural} left; the next takes at most {BATCH_SIZES[self.phases.batches]} URLs."
        rest = [url for url in urls if url not in batch]
        text = to_json({**render_pages(views), **({"not_read_in_this_batch": rest} if rest else {}), "note": note})
        return ToolResult(views, text, any(not v.error for v in views))

    def _list_unread_urls(self, urls: Sequence[str]) -> list[str]:
        """List the URLs that no earlier batch has read, in the order given; those that failed come last."""
        # pages that others have read stay in: the run has them already, so they are not fetched again
        unread = [url for url in urls if hit_key(url) not in self.phases.read_keys]
        return sorted(unread, key=lambda url: hit_key(url) in self.phases.failed_keys)

    def _count_fitting_pages(self) -> int:
        """Count the pages expected to fit, if they are as long as those read so far."""
        free, read = self.context.free_tokens(), self.phases.read_bytes
        if read:
            return max(0, free // max(1, sum(read) // len(read) // BYTES_PER_TOKEN))
        # at least one before anything was read, so that there is evidence to report
        return max(1, free // min(DEFAULT_PAGE_TOKENS, max(1, self.context.window // 20)))


def build_specs(extra: Iterable[ToolSpec], *, has_local: bool = False, about_local: str = "") -> tuple[ToolSpec, ...]:
    """The tools of a researcher and those that can be used here; `about_local` says what the local search covers besides."""
    local = replace(LOCAL_SEARCH, description=f"{about_local} {LOCAL_SEARCH.description}".strip())
    return (SEARCH, *extra, *((local,) if has_local else ()), SCRAPE, FINAL_ANSWER)


def _trim_outcomes(outcomes: Sequence[SearchOutcome], max_bytes: int) -> tuple[SearchOutcome, ...]:
    """Shorten descriptions, then drop the last hits of every query, until the rendered results fit; each keeps its first."""
    most = max((len(outcome.hits) for outcome in outcomes), default=0)
    chars = max((len(hit.snippet) for outcome in outcomes for hit in outcome.hits), default=0)
    trimmed = tuple(outcomes)

    def cut(hit: Hit) -> Hit:
        return hit if len(hit.snippet) <= chars else replace(hit, snippet=f"{hit.snippet[:chars]}…" if chars else "")

    while most > 1 or chars > 0:
        trimmed = tuple(replace(o, hits=tuple(cut(hit) for hit in o.hits[:most])) for o in outcomes)
        if len(to_json(render_searches(trimmed)).encode("utf-8", "replace")) <= max_bytes:
            break
        if chars > MIN_DESCRIPTION_CHARS or most <= 1:
            chars = chars * 2 // 3
        else:
            most -= 1
    return trimmed
