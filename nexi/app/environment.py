"""RunEnvironment: what one run works with, as its engine sees it. Made whole by `run` before the engine is built.

A RecordedRun in it is what the log of an earlier run tells, which goes on in that log or is repeated in one of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from nexi.app.factory import PortFactory
from nexi.app.gate import ModelGate
from nexi.app.knowledge import Knowledge, PageIndexer, pages_answered_before, recorded_pages_answered_before
from nexi.app.request import RunRequest
from nexi.app.resolve import ResolvedRun
from nexi.budget import Meter
from nexi.config import Config
from nexi.errors import NoEvidenceError
from nexi.events import Fact, ModelAsked, ModelFailed, ModelReplied, PageFetched, RunResumed, RunStarted, SourceNumbered
from nexi.model import CallCounter
from nexi.notices import Notice
from nexi.ports import Emit, RunLog
from nexi.prompts import render
from nexi.runs.log_format import ReadLog
from nexi.runs.recording import AgentReplay, Pace, Recording
from nexi.runs.session import Session
from nexi.types import Approach, Hit, Source, Usage

RECORDED_SETTINGS = (  # which shape the requests of a run, so that it can be replayed elsewhere
    "max_context", "max_output_tokens", "auto_compact_thresh", "compact_target_words", "preserve_last_n_messages",
    "tokenizer_encoding", "system_prompt", "strict", "verify_judge", "prefetch", "max_pages",
)  # fmt: skip


class RecordedRun(Struct, frozen=True):
    """The facts of a run so far, and what follows from them. `seconds` is how long it had worked."""

    run: str = ""
    facts: tuple[Fact, ...] = ()
    recording: Recording = msgspec.field(default_factory=Recording)
    log: RunLog | None = None
    today: str = ""
    seconds: float = 0.0

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(f.source for f in self.facts if isinstance(f, SourceNumbered))

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the run was started with."""
        return next((f.settings for f in self.facts if isinstance(f, RunStarted)), {})

    def has_setting(self, name: str, *, by_default: bool = True) -> bool:
        """Whether a setting holds: `by_default` for a new run; one that is resumed or replayed goes on as it began."""
        return bool(self.settings.get(name)) if self.facts else by_default

    @property
    def calls(self) -> int:
        """The number of the last model call that is in the log."""
        return max((f.call for f in self.facts if isinstance(f, ModelAsked)), default=0) if self.log else 0

    def usage_so_far(self, *, agents: bool) -> tuple[Usage, int, int]:
        """Usage, model calls and pages, of the researchers or of everyone."""
        facts = [f for f in self.facts if not agents or getattr(f, "agent", None)]
        replies = [f for f in facts if isinstance(f, ModelReplied | ModelFailed)]
        usage = sum((f.usage for f in replies), Usage())
        return usage, len(replies), sum(isinstance(f, PageFetched) for f in facts)

    def unreplayed_usage(self, mode: str) -> tuple[Usage, int]:
        """Usage and calls that limit new calls of a resumed run although they are not in its meter: a search meets its recorded
        calls one by one, while research has restored them in its meter."""
        recorded_usage, calls, _ = self.usage_so_far(agents=False)
        usage, lost = self.lost_usage()
        return (usage, lost) if mode == "research" else (usage + recorded_usage, lost + calls)

    def lost_usage(self) -> tuple[Usage, int]:
        """An estimate of what the calls in flight at a kill cost, and how many there were: their intent is in the log alone."""
        ends = {f.call for f in self.facts if isinstance(f, ModelReplied | ModelFailed)}
        calls = [f for f in self.facts if isinstance(f, ModelAsked)]
        lost = [f for f in calls if f.call not in ends]
        if not lost:
            return Usage(), 0
        usage, _, _ = self.usage_so_far(agents=False)
        prompts, known_prompts = sum(f.prompt_tokens for f in lost), sum(f.prompt_tokens for f in calls if f.call in ends)
        scale = prompts / known_prompts if known_prompts else 0.0
        tokens_in = round(usage.input_tokens * scale) if known_prompts else prompts
        cost = None if usage.cost is None else usage.cost * scale
        return Usage(tokens_in, round(usage.output_tokens * scale), estimated=True, cost=cost), len(lost)


def read_recorded_run(
    log: ReadLog,
    facts: tuple[Fact, ...],
    *,
    writer: RunLog | None = None,
    seconds: float = 0.0,
    only: bool = False,
    pace: Pace | None = None,
) -> RecordedRun:
    """What these facts of a log tell of its run. `only` forbids asking for anything they do not hold."""
    day = datetime.fromisoformat(log.header.created).date().isoformat()
    recorded = [f for f in facts if not isinstance(f, RunResumed)]
    recording = Recording(recorded, pace=pace, is_replay_only=only, start_offsets=log.beginnings if writer else None)
    return RecordedRun(log.header.run, facts, recording, writer, day, seconds)


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
