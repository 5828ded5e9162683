"""RunEnvironment: what one run works with, as its engine sees it. Made whole by `run` before the engine is built."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Struct

from nexi.app.factory import PortFactory
from nexi.app.gate import ModelGate
from nexi.app.knowledge import Knowledge
from nexi.app.local import PageIndexer, pages_answered_before, recorded_pages_answered_before
from nexi.app.recorded import RecordedRun
from nexi.app.request import RunRequest
from nexi.app.resolve import ResolvedRun
from nexi.budget import Meter
from nexi.config import Config
from nexi.errors import NoEvidenceError
from nexi.model import CallCounter
from nexi.notices import Notice
from nexi.ports import Emit
from nexi.prompts import render
from nexi.runs.recording import AgentReplay
from nexi.runs.session import Session
from nexi.types import Approach, Hit


class RunEnvironment(Struct, frozen=True):
    """The ports, limits, conversation and record of one run."""

    ports: PortFactory
    resolved: ResolvedRun
    session: Session
    meter: Meter
    emit: Emit
    stop: asyncio.Event
    recorded: RecordedRun
    attached: Knowledge | None  # the files that came with the question, or those of its space
    may_have_knowledge: bool
    calls: CallCounter = msgspec.field(default_factory=CallCounter)
    seen: dict[str, bool] = {}  # what the run found at its beginning

    @property
    def request(self) -> RunRequest:
        return self.resolved.request

    @property
    def config(self) -> Config:
        return self.resolved.config

    @property
    def question(self) -> str:
        return self.resolved.request.question

    @property
    def instructions(self) -> str:
        """What follows the rules of a model in a space with instructions of the user; "" elsewhere."""
        if not (instructions := self.request.instructions):
            return ""
        return "\n" + render("space", folder=self.config.prompts_dir, space=self.request.space, instructions=instructions)

    @property
    def is_local(self) -> bool:
        return self.resolved.request.is_local

    def gate(self, *, meter: Meter | None = None, emit: Emit | None = None, replay: AgentReplay | None = None) -> ModelGate:
        """The way to models for this run, or for one of its agents, with the run's scope and budget."""
        meter, emit, replay = meter or self.meter, emit or self.emit, replay or self.recorded.recording.for_agent("")
        return ModelGate(self.ports, meter, emit, is_local=self.is_local, calls=self.calls, replay=replay)

    @property
    def is_replay(self) -> bool:
        """Whether nothing may be asked for that the log does not hold."""
        return self.recorded.recording.is_replay_only

    @property
    def today(self) -> str:
        """The day the run began, so that a prompt does not change at midnight."""
        return self.recorded.today or self.ports.clock.now().date().isoformat()

    @property
    def approach(self) -> Approach:
        """How the model is used; a run that is resumed or replayed goes on as it began."""
        recorded: Approach = self.recorded.settings.get("approach", "tools")
        return recorded if self.recorded.facts else self.resolved.approach

    @property
    def is_small_model(self) -> bool:
        return self.recorded.has_setting("small_model", by_default=self.resolved.is_small)

    @property
    def chooses_passages(self) -> bool:
        """Whether long pages are read by their best passages; a run that began with their beginnings goes on with them."""
        return self.recorded.has_setting("chooses_passages")

    @property
    def looks_up_first(self) -> bool:
        """Whether passages of the files that came with the question are in the first request; as the run began."""
        return self.recorded.has_setting("looks_up_first", by_default=self.attached is not None)

    @property
    def has_own_files(self) -> bool:
        """Whether files came with the question; those of a space are looked into, and not all about it."""
        return self.attached is not None and bool(self.request.attachments)

    @property
    def knowledge(self) -> Knowledge:
        return self.attached or self.ports.knowledge()

    async def has_knowledge(self) -> bool:
        """Whether there is something to look into before the web. Raises NoEvidenceError for a local run without."""
        if self.is_replay or (not self.may_have_knowledge and not self.is_local):
            return self.may_have_knowledge
        knowledge = self.knowledge
        if self.is_local and not (knowledge.may_hold_something() and await knowledge.first_source()):
            raise NoEvidenceError(
                Notice("knowledge.empty", "the knowledge base is empty"),
                cause=Notice("knowledge.local", "a local question is answered from the knowledge base alone"),
                fix="add files with nexi index PATH, or ask without --local: pages that are read are kept",
            )
        return await self.finds_knowledge()

    async def finds_knowledge(self) -> bool:
        """Whether something was stored when the run began; a resumed run goes on as it began, whatever was stored since."""
        if self.recorded.facts or not self.may_have_knowledge:
            return self.may_have_knowledge
        if "knowledge" not in self.seen:
            self.seen["knowledge"] = await self.knowledge.holds_something()
        return self.seen["knowledge"]

    async def pages_answered_before(self, question: str) -> tuple[Hit, ...]:
        """The pages of an earlier answer to the same question; a resumed run gets those it was given at first."""
        recorded = recorded_pages_answered_before(self.recorded.facts)
        if recorded is not None or self.is_replay or self.attached:
            return recorded or ()
        return await pages_answered_before(self.ports.knowledge(), question)

    def page_indexer(self, tasks: asyncio.TaskGroup) -> PageIndexer:
        """What stores the pages of this run; a run without a log stores none."""
        may_index = self.config.knowledge and self.request.keeps_log and not self.is_local and not self.is_replay
        return PageIndexer(self.gate(), tasks, is_enabled=may_index)


def has_store(ports: PortFactory, request: RunRequest, recorded: RecordedRun, attached: Knowledge | None) -> bool:
    """Whether there may be something to look into before the web; a resumed run goes on as it began."""
    if recorded.facts:
        return bool(recorded.settings.get("local"))
    if attached:
        return attached.may_hold_something()
    return (ports.config.knowledge or request.is_local) and ports.knowledge().may_hold_something()
