"""One researcher: the agent loop over its own conversation and the context that all researchers of a run share.

The orchestrator above starts it and learns how it ended from its facts. Reports of other researchers arrive before its first
turn or between two turns, in order of round and researcher. Each delivery is a fact, so that a resumed researcher reads the
same text at the same place.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

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
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.types import Message, Page
from nexi.urls import hit_key

MAX_SHARED_CHARS = 50_000
MAX_SHARED_PART_OF_WINDOW = 0.25  # for all reports that reach one researcher
MIN_SHARED_BYTES = 500


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
