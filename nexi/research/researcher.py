"""One researcher: a conversation of its own over what all researchers of a run share, driven by the one loop.

The orchestrator above starts it and hears how it ended. Reports of others reach it before its first turn, or between two
turns, in order of round and researcher; what was delivered is a fact, so that a researcher who is taken up again reads the
same words at the same place.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Protocol

from nexi.agent import AgentLoop
from nexi.answers.citations import CitationBook, extract_citation_markers
from nexi.budget import Meter
from nexi.errors import NexiError
from nexi.events import Delta, Fact, ReportsShared, ResearcherFailed, ResearcherReported
from nexi.ports import Emit
from nexi.prompts import render
from nexi.research.evaluator import cut
from nexi.research.state import GATHERING_CALLS, GATHERING_TOOLS, Researcher
from nexi.research.tools import LinkPool
from nexi.runs.recording import Track
from nexi.runs.session import Session
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.types import Answer, Message, Page, ToolSpec
from nexi.urls import hit_key

MAX_SHARED_CHARS = 50_000
SHARED_OF_WINDOW = 0.25


@dataclass
class Desk:
    """What the researchers of one run have in common."""

    book: CitationBook = field(default_factory=lambda: CitationBook(key=hit_key))
    pages: dict[str, Page] = field(default_factory=dict)
    pool: LinkPool = field(default_factory=LinkPool)
    ended: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))


class AgentEmit:
    """Signs every fact with its researcher. Its text is a report for colleagues, so nothing of it is shown as it comes."""

    def __init__(self, emit: Emit, agent: str) -> None:
        self._emit = emit
        self._agent = agent

    async def __call__(self, fact: Fact) -> None:
        signed = {f.name for f in fields_of(fact)}
        await self._emit(replace(fact, agent=self._agent) if "agent" in signed else fact)  # type: ignore[arg-type]

    def delta(self, delta: Delta) -> None:
        return None


class Workshop(Protocol):
    """Builds what a researcher works with; the assembly wears it."""

    def researcher_loop(self, agent: str, task: str, session: Session, meter: Meter, desk: Desk, emit: Emit) -> AgentLoop: ...


@dataclass
class Work:
    """One researcher at work. `reports` are those who have reported so far, whenever it is asked."""

    researcher: Researcher
    question: str
    desk: Desk
    reports: Callable[[], Sequence[Researcher]]
    emit: Emit
    track: Track
    today: str
    window: int
    prompts_folder: Path | None = None
    late: float = 0.0
    seats: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    _delivered: set[str] = field(default_factory=set)

    async def run(self, workshop: Workshop, meter: Meter) -> None:
        """Research to the end; how it ended is a fact, whatever happens. Where a model serves one at a time, so does this."""
        async with self.seats:
            await self._seated(workshop, meter)

    async def _seated(self, workshop: Workshop, meter: Meter) -> None:
        await self.track.pass_time(self.late)
        me = self.researcher.id
        session = self._session()
        loop = workshop.researcher_loop(me, self.researcher.task, session, meter, self.desk, AgentEmit(self.emit, me))
        session.messages.append(Message("system", self._rules(loop.toolbox.specs)))
        session.messages += await self._arriving(0, session)
        session.ask(self.researcher.task)
        try:
            answer = await loop.run(inbox=lambda turn: self._arriving(turn, session))
            text = answer.text if extract_citation_markers(answer.text) else await self._quoted(loop, answer)
        except NexiError as error:
            await self.emit(ResearcherFailed(me, error.code, str(error)))
            return
        if not text.strip():
            await self.emit(ResearcherFailed(me, "empty_report", "the report is empty"))
            return
        await self.emit(ResearcherReported(me, text[:MAX_SHARED_CHARS], answer.stop))

    async def _quoted(self, loop: AgentLoop, answer: Answer) -> str:
        """A report that cites nothing proves nothing: where pages were read, their passages take its place."""
        text = await loop.fallbacks.extractive_answer() if loop.context.session.has_evidence else ""
        return text if extract_citation_markers(text) else answer.text

    def _session(self) -> Session:
        session = Session()
        session.book = self.desk.book.branch()
        session.pages = self.desk.pages
        return session

    def _rules(self, specs: Sequence[ToolSpec]) -> str:
        gathering = [f"`{s.name}`" for s in specs if s.name in GATHERING_TOOLS]
        return render(
            "researcher",
            folder=self.prompts_folder,
            question=self.question,
            gathering=GATHERING_CALLS,
            gathering_tools=", ".join(gathering),
            today=self.today,
        )

    async def _arriving(self, turn: int, session: Session) -> list[Message]:
        """What others found since the last turn, in one message: who speaks last must not be taken for the asker."""
        recorded = self.track.reports_at(turn)
        for name in recorded or ():
            await self.desk.ended[name].wait()
        known = {r.id: r for r in self.reports()}
        fresh = [r.id for r in known.values() if r.id not in self._delivered and r.id != self.researcher.id]
        names = [name for name in (fresh if recorded is None else recorded) if name in known]
        if not names:
            return []
        await self.emit(ReportsShared(self.researcher.id, turn, tuple(names)))
        self._delivered |= set(names)
        share = min(MAX_SHARED_CHARS, int(self.window * SHARED_OF_WINDOW) * BYTES_PER_TOKEN // len(names))
        for name in names:
            numbers = extract_citation_markers(known[name].report)
            session.book.adopt(numbers)
            session.allow(s.url for n in numbers if (s := self.desk.book.by_number(n)))
        told = [self._told(known[name], share) for name in names]
        return [Message("user", "\n\n---\n\n".join(told))]

    def _told(self, other: Researcher, share: int) -> str:
        return render(
            "shared_report",
            folder=self.prompts_folder,
            researcher=other.id,
            task=other.task,
            report=cut(other.report, share),
        )
