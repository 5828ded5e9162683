"""Resume and replay: a run from its log, taken up where it stopped, or played again without a network.

Above, `assembly` offers both; below are the run log and `run`. A run that was cut off goes on in its own log. A run that has
ended, by a spent budget or a dead provider, is repeated in a new log from everything the old one holds. A replay may ask for
nothing that is not recorded.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, cast

from nexi.app.clients import Clients
from nexi.app.options import SearchOptions, with_effort
from nexi.app.past import RECORDED_SETTINGS, Past, past_of
from nexi.app.run import Run, RunResult
from nexi.config import Config
from nexi.errors import LLMError, StoreError
from nexi.events import (
    TERMINAL,
    AgendaSet,
    Fact,
    LimitApplied,
    LimitNear,
    LimitReached,
    RunFinished,
    RunStarted,
    SourceNumbered,
    Warned,
)
from nexi.runs.conversation import conversation_after, take_up
from nexi.runs.directory import RunDirectory
from nexi.runs.log_format import ReadLog
from nexi.runs.recording import Pace
from nexi.runs.session import Session
from nexi.types import Message, Reply, Source, StopReason, ToolSpec
from nexi.urls import find_urls
from nexi.values import frozen

if TYPE_CHECKING:
    from nexi.app.assembly import Nexi

_URL_FIELD = re.compile(r'"url": "([^"]+)"')  # of hits and pages, as tools write them


def reopened(runs: RunDirectory, run_id: str, *, pace: Pace | None = None) -> tuple[RunStarted, Past]:
    """The past of a run that was cut off, in its own log, or of one that ended, for a new one. Raises StoreError."""
    log = runs.open_log(run_id)
    started = _start_of(run_id, log)
    if log.ended:
        _refuse_complete(run_id, log)
        return started, past_of(run_id, worth_keeping(log), log.header.created, pace=pace)
    log, writer = runs.reopen(run_id)
    facts = [fact for _, fact in log.facts]
    created, begun = log.header.created, log.beginnings
    worked = max(0.0, log.seconds - sum(fact.seconds for fact in facts if isinstance(fact, AgendaSet)))
    return started, past_of(run_id, facts, created, log=writer, seconds=worked, pace=pace, begun=begun)


def recorded(runs: RunDirectory, run_id: str) -> tuple[RunStarted, Past, str]:
    """The past of a finished run for a replay, and the answer it ended with. Raises StoreError."""
    log = runs.open_log(run_id)
    started = _start_of(run_id, log)
    end = log.facts[-1][1]
    if not isinstance(end, RunFinished):
        raise StoreError(
            f"Run {run_id} cannot be replayed",
            cause="it did not end with an answer",
            fix=f"nexi resume {run_id} goes on with it",
        )
    facts = [fact for _, fact in log.facts]
    return started, past_of(run_id, facts, log.header.created, only=True), end.answer


def asked_nobody_else(runs: RunDirectory, run_id: str) -> bool:
    """Whether a run was to ask only what is known, so that whoever takes it up asks nobody else either."""
    try:
        return is_local(_start_of(run_id, runs.open_log(run_id)))
    except StoreError:
        return False  # taking it up says why it cannot be


def is_local(started: RunStarted) -> bool:
    """Whether a run may use nothing beyond this machine."""
    return bool(started.settings.get("only_local"))


def _start_of(run_id: str, log: ReadLog) -> RunStarted:
    first = log.facts[0][1] if log.facts else None
    if not isinstance(first, RunStarted):
        raise StoreError(
            f"Run {run_id} has nothing to go on from",
            cause="it was cut off before its first fact",
            fix="ask the question again",
        )
    return first


def _refuse_complete(run_id: str, log: ReadLog) -> None:
    end = log.facts[-1][1]
    if isinstance(end, RunFinished) and end.stop in (StopReason.FINAL_ANSWER, StopReason.PLAIN_ANSWER):
        raise StoreError(
            f"Run {run_id} is complete", cause="it ended with its answer", fix=f"nexi --show {run_id} shows it", code="complete"
        )


def worth_keeping(log: ReadLog) -> list[Fact]:
    """What an ended run learned: not how it ended, and not the limit that ended it."""
    return [fact for _, fact in log.facts if not isinstance(fact, (*TERMINAL, LimitNear, LimitApplied, LimitReached))]


async def session_of(started: RunStarted, runs: RunDirectory, facts: Sequence[Fact] = ()) -> Session:
    """The conversation a run belonged to, word for word where that is kept, else as questions and answers.

    `facts` are those of the run, which names the sources it began with; the runs before it may be gone.
    """
    before = str(started.settings.get("continues") or "")
    session = await conversation_after(runs, before) if before else Session()
    if not session.has_evidence and (known := _known_at_first(facts)):
        await take_up(session, runs, known)
    if said := await _said_before(started, runs):
        session.messages[:] = said
        for message in said:
            found = _URL_FIELD.findall(message.content) if message.role == "tool" else find_urls(message.content)
            session.allow(found if message.role in ("tool", "user") else ())
    return session


def _known_at_first(facts: Sequence[Fact]) -> tuple[Source, ...]:
    """The sources that were numbered before the run did anything."""
    first = takewhile(lambda fact: isinstance(fact, RunStarted | SourceNumbered | Warned), facts)
    return tuple(fact.source for fact in first if isinstance(fact, SourceNumbered))


async def _said_before(started: RunStarted, runs: RunDirectory) -> list[Message]:
    kept = started.settings.get("conversation")
    text = await runs.pages.get(str(kept.get("digest"))) if isinstance(kept, Mapping) else None
    try:
        return [Message.from_dict(form) for form in json.loads(text or "[]")]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []  # not what this program writes


def config_of(started: RunStarted, config: Config) -> Config:
    """The config with the settings that shaped the requests of a run."""
    told = started.settings.get("config")
    known = {n: v for n, v in told.items() if n in RECORDED_SETTINGS} if isinstance(told, Mapping) else {}
    return config.override(**known)


def build(nexi: Clients, started: RunStarted, past: Past, session: Session, options: SearchOptions) -> Run:
    """The run again, in its own mode and under its own settings; what the options name is changed."""
    options = replace(options, effort=options.effort or started.effort)
    options = replace(options, max_iterations=options.max_iterations or started.max_iterations or None)
    options = replace(options, only_local=options.only_local or is_local(started))
    options = with_effort(options, nexi.config)
    if started.mode == "agentic":
        from nexi.app.agentic import AgenticRun

        asked = started.settings.get("agentic")
        return AgenticRun(cast("Nexi", nexi), started.query, options, session, past, asked=asked)
    if started.mode != "research":
        return Run(nexi, started.query, options, session, past)
    from nexi.app.research import ResearchRun

    held = bool(started.settings.get("held") and options.door)  # its door holds it again; who takes it up by hand has decided
    depth = int(started.settings.get("depth") or 0)
    return ResearchRun(nexi, started.query, options, session, past, depth=depth, held=held)


@frozen
class Replay:
    """A run played again: the answer it ended with then, and the one it came to now."""

    run: str
    told: str
    result: RunResult

    @property
    def is_same(self) -> bool:
        return self.told == self.result.answer.text


class Silent:
    """A model that is only a name: whatever it once said comes from the record."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **_: Any) -> Reply:
        await asyncio.sleep(0)
        raise LLMError("the model was not asked", cause="this is a replay", code="not_recorded")
