"""Resume and replay: a run from its log, continued where it stopped, or replayed without a network.

A run that was cut off goes on in its own log. One that has ended, by a spent budget or a dead provider, is repeated in a new
log from everything the old one holds. A replay may ask for nothing that is not recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from nexi import events
from nexi.app.conversation import load_conversation_after, restore_sources
from nexi.app.environment import RECORDED_SETTINGS, RecordedRun, read_recorded_run
from nexi.app.request import RunRequest, request_of_run
from nexi.app.resolve import ResolvedRun
from nexi.app.run import RunResult
from nexi.budget import Budget
from nexi.config import Config
from nexi.errors import LLMError, NexiError, StoreError
from nexi.model import NOT_ASKED
from nexi.ports import RunStore
from nexi.runs.directory import count_lost_facts, describe_damage
from nexi.runs.log_format import ReadLog
from nexi.runs.recording import Pace
from nexi.runs.session import Session
from nexi.structured.json_reader import as_mapping
from nexi.types import Message, Reply, StopReason, ToolSpec
from nexi.urls import find_urls

_URL_FIELD = re.compile(r'"url": "([^"]+)"')  # of hits and pages, as tools write them


def reopen_run(runs: RunStore, run_id: str, *, pace: Pace | None = None) -> tuple[events.RunStarted, RecordedRun]:
    """The past of a run that was cut off, in its own log, or of one that ended, for a new one. Raises StoreError."""
    log = runs.open_log(run_id)
    started = _start_of(run_id, log)
    if log.has_ended:
        end = log.facts[-1][1]
        if isinstance(end, events.RunFinished) and end.stop in (StopReason.FINAL_ANSWER, StopReason.PLAIN_ANSWER):
            cause, fix = "it ended with its answer", f"nexi --show {run_id} shows it"
            raise StoreError(f"Run {run_id} is complete", cause=cause, fix=fix, code="complete")
        # what it learned: not how it ended, and not the limit that ended it
        ending = (*events.TERMINAL, events.LimitNear, events.LimitApplied, events.LimitReached)
        facts = tuple(fact for fact in log.bare_facts if not isinstance(fact, ending))
        return started, read_recorded_run(log, facts, pace=pace)
    log, writer = runs.reopen(run_id)
    worked = max(0.0, log.seconds - sum(fact.seconds for fact in log.bare_facts if isinstance(fact, events.AgendaSet)))
    return started, read_recorded_run(log, log.bare_facts, writer=writer, seconds=worked, pace=pace)


def read_finished_run(runs: RunStore, run_id: str) -> tuple[events.RunStarted, RecordedRun, str]:
    """The past of a finished run for a replay, and the answer it ended with. Raises StoreError."""
    log = runs.open_log(run_id)
    started = _start_of(run_id, log)
    end = log.facts[-1][1]
    if not isinstance(end, events.RunFinished):
        cause, fix = "it did not end with an answer", f"resume it: nexi resume {run_id}"
        raise StoreError(f"Run {run_id} cannot be replayed", cause=cause, fix=fix)
    return started, read_recorded_run(log, log.bare_facts, only=True), end.answer


def refuse_damaged_replay(runs: RunStore, run_id: str, facts: Sequence[events.Fact], error: NexiError | None = None) -> None:
    """Raise StoreError where a replay failed or differs because the log or the page texts of the run are damaged."""
    if damage := describe_damage(runs.pages, facts):
        fix = f"`nexi --show {run_id}` still shows its answer; restore the files from a backup, or ask the question again."
        raise StoreError(f"Run {run_id} cannot be replayed", cause=damage, fix=fix, code="damaged_evidence") from error


def _start_of(run_id: str, log: ReadLog) -> events.RunStarted:
    first = log.facts[0][1] if log.facts else None
    if not isinstance(first, events.RunStarted):
        lost = count_lost_facts(fact for _, fact in log.facts[:1])
        cause = "its first fact, the question, was damaged and is lost" if lost else "it was cut off before its first fact"
        raise StoreError(f"Run {run_id} cannot be resumed", cause=cause, fix="ask the question again")
    return first


async def session_of(started: events.RunStarted, runs: RunStore, facts: Sequence[events.Fact] = ()) -> Session:
    """The conversation a run belonged to, word for word where that is kept, else as questions and answers."""
    before = str(started.settings.get("continues") or "")
    session = await load_conversation_after(runs, before) if before else Session()
    # the sources that were numbered before the run did anything: the runs before it may be gone
    first = takewhile(lambda fact: isinstance(fact, events.RunStarted | events.SourceNumbered | events.Warned), facts)
    sources = tuple(fact.source for fact in first if isinstance(fact, events.SourceNumbered))
    if sources and not session.has_evidence:
        await restore_sources(session, runs, sources)
    reference = started.settings.get("conversation")
    text = await runs.pages.get(str(reference.get("digest"))) if isinstance(reference, Mapping) else None
    try:
        messages = [Message.from_dict(form) for form in json.loads(text or "[]")]
    except (ValueError, KeyError, TypeError, AttributeError):
        return session  # not what this program writes
    session.messages[:] = messages or session.messages
    for message in messages:
        urls = _URL_FIELD.findall(message.content) if message.role == "tool" else find_urls(message.content)
        session.allow_urls(urls if message.role in ("tool", "user") else ())
    return session


def config_of_run(started: events.RunStarted, config: Config) -> Config:
    """The config with the settings that shaped the requests of a run."""
    settings = as_mapping(started.settings.get("config"))
    return config.override(**{name: value for name, value in settings.items() if name in RECORDED_SETTINGS})


def request_to_resume(started: events.RunStarted, changes: RunRequest | None) -> RunRequest:
    """The request of a run with what the user changes now: another model, other limits, the door it is resumed at."""
    request = request_of_run(started)
    iterations = request.limits.max_iterations or started.max_iterations or None
    request = replace(request, limits=replace(request.limits, max_iterations=iterations))
    if changes is None:
        return replace(request, holds_plan=False, continues="")
    new_limits = {name: value for name, value in asdict(changes.limits).items() if value is not None}
    return replace(
        request,
        model=changes.model or request.model,
        limits=replace(request.limits, **new_limits),
        holds_plan=request.holds_plan and bool(changes.door),  # a person who resumes by hand has decided
        continues="",
        door=changes.door,
    )


def resolve_replay(started: events.RunStarted, config: Config) -> ResolvedRun:
    """What a replay works with: nothing costs and no time passes, and the log says what limits decided."""
    request = request_to_resume(started, None)
    limits = replace(request.limits, time_target=None, max_cost=None, max_tokens=None)
    request = replace(request, limits=limits, model="", attachments=(), keeps_history=False, keeps_log=False)
    budget = Budget(max_iterations=None if request.mode == "research" else limits.max_iterations, is_quota=limits.is_quota)
    return ResolvedRun(request, config, budget)


class Replay(Struct, frozen=True):
    """A run played again: the answer it ended with then, and the one it came to now."""

    run: str
    answer: str
    result: RunResult

    @property
    def is_same(self) -> bool:
        return self.answer == self.result.answer.text


class RecordedLLM:
    """A model that is only a name: whatever it once said comes from the record."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **_: Any) -> Reply:
        raise LLMError(NOT_ASKED, cause="this is a replay", code="not_recorded")
