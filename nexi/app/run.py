"""Run: one search under way, from its first fact to its last, in a task that its block owns.

The engine is `Parts`; the clients belong to `Nexi`. What a door shows is not known here.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

from nexi.app.clients import Clients
from nexi.app.emit import RunEmit
from nexi.app.kept import KeptPages
from nexi.app.options import SearchOptions, budget_of, recorded_options
from nexi.app.parts import Parts
from nexi.app.past import Past, recorded_settings
from nexi.budget import Budget, Meter
from nexi.config import get_system_prompt
from nexi.errors import ConfigError, InternalError, NexiError, NoEvidenceError, QuestionError, StoreError
from nexi.events import (
    TERMINAL,
    AnswerChecked,
    Event,
    Fact,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    SourceNumbered,
    Warned,
)
from nexi.model import CallCounter
from nexi.ports import RunLog
from nexi.runs.log import MemoryRunLog
from nexi.runs.session import Session
from nexi.tasks import wait_uninterrupted
from nexi.types import Answer, Hit, StopReason
from nexi.values import frozen

STOP_POLL_S = 0.5


@frozen
class RunResult:
    """A run that ended with an answer."""

    id: str
    answer: Answer
    finished: RunFinished
    facts: tuple[Fact, ...]
    session: Session


class Run:
    """One search under way. Leaving its block cancels the engine and waits for its clean-up.

    With a `past` it is a run that began before: what its log holds is not asked for again.
    """

    mode = "search"

    def __init__(
        self, nexi: Clients, question: str, options: SearchOptions, session: Session, past: Past | None = None
    ) -> None:
        self.nexi, self.question, self.options, self.session = nexi, question, options, session
        self.past = past or Past()
        self.id = ""
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self.stopping = asyncio.Event()
        self._local: bool | None = None
        self._started = 0.0

    async def __aenter__(self) -> Self:
        self._started = self.nexi.clock.monotonic()
        self.meter = Meter(self._budget(), started=self._started - self.past.seconds)
        log, self._log_warning = self._open_log()  # in one step with its task, so that nothing can come between
        self.id = log.run_id
        self.emit = RunEmit(log, self._publish, self.past.facts if self.past.log else ())
        self.session.book.reserve(self.past.sources)
        self._task = asyncio.create_task(self._work(), name=f"run {self.id}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        await wait_uninterrupted(self._task)
        await self._end_as_cancelled()  # for a task that was cancelled before its first step

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self._events.get()) is not None:
            yield event

    def _publish(self, event: Event) -> None:
        self._events.put_nowait(event)

    def stop(self) -> None:
        """Ask for the answer now, from what was read."""
        self.stopping.set()

    def suspend(self) -> None:
        """Tell nothing more: when its block is left, the run ends without a last fact and can be taken up again."""
        self.emit.seal()

    @property
    def facts(self) -> tuple[Fact, ...]:
        return tuple(self.emit.facts)

    def result(self) -> RunResult:
        """The answer of a run that has ended. Raises the run's error if it has none."""
        end = next((f for f in reversed(self.facts) if isinstance(f, TERMINAL)), None)
        if isinstance(end, RunFinished):
            review = next((f.review for f in reversed(self.facts) if isinstance(f, AnswerChecked) and not f.agent), None)
            answer = Answer(end.answer, end.sources, end.stop, end.warnings, end.conflicts, review)
            return RunResult(self.id, answer, end, self.facts, self.session)
        if isinstance(end, RunFailed):
            raise error_of(end)
        raise InternalError("the run has not ended")

    # the engine's task

    async def _work(self) -> None:
        try:
            await self._begin()
            await self._finish(await self._engine())
        except asyncio.CancelledError:
            await self._end_as_cancelled()
            raise
        except NexiError as error:
            await self._fail(error, _stop_of(error))
        except Exception as error:  # noqa: BLE001 - the edge of the engine: a fault of ours must still end the run
            await self._fail(await self._internal(error), StopReason.API_ERROR)
        finally:
            await self.emit.log.close()
            self._events.put_nowait(None)
            await asyncio.to_thread(self.nexi.tidy)

    async def _begin(self) -> None:
        if self.past.log:
            await self.emit(RunResumed(len(self.past.facts), self.past.seconds))
        else:
            model, most = self.nexi.config.endpoint("answer").model, self.options.max_iterations or 0
            settings = {**self._settings(), **await self._said_before()}
            await self.emit(RunStarted(self.question, self.options.effort, model, self.mode, most, settings))
        if not self.past.recording.only and not self.options.only_local:
            self.nexi.check()
        for notice in self.nexi.notices:
            await self.emit(Warned("model_not_asked", notice))
        if self._log_warning:
            await self.emit(Warned("log_not_kept", self._log_warning))
        for source in self.session.book.sources:
            await self.emit(SourceNumbered(source))  # a follow-up may cite them, so its log names them too
        self._open_conversation()

    def _settings(self) -> dict[str, Any]:
        """What a run that is taken up again must know."""
        config = self.nexi.config
        chains = {"search": list(config.search_chain()), "fetch": list(config.fetch_chain())}
        links = {"continues": self.session.last_run, **({"resumes": self.past.run} if self.past.run else {})}
        door = {"door": self.options.door, "asked": recorded_options(self.options)} if self.options.door else {}
        alone = {"only_local": True} if self.options.only_local else {}
        return {**chains, **links, **door, **alone, "local": self._may_know(), "config": recorded_settings(config)}

    async def _said_before(self) -> dict[str, Any]:
        """The conversation this run goes on from, kept word for word: every request of a follow-up rests on it."""
        if not self.session.said or not self.options.keeps_log:
            return {}
        try:
            digest = await self.nexi.pages().put(json.dumps([m.to_dict() for m in self.session.said]))
        except StoreError:
            return {}  # the run is not lost for that; taken up again, it goes on from questions and answers
        return {"conversation": {"digest": digest}}

    @property
    def today(self) -> str:
        """The day the run began: a prompt must not change because the night came between."""
        return self.past.today or self.nexi.clock.now().date().isoformat()

    def _open_conversation(self) -> None:
        config, options = self.nexi.config, self.options
        if options.system_prompt:
            config = config.override(system_prompt=options.system_prompt)
        self.session.instruct(get_system_prompt(options.effort, options.max_iterations, today=self.today, config=config))
        self.session.ask(self.question)

    async def _engine(self) -> Answer:
        async with asyncio.TaskGroup() as tasks:
            watcher = tasks.create_task(self._watch_for_stop())
            parts: Parts | None = None
            kept = self._keeping(tasks)
            try:
                parts = self._parts(tasks, kept, knows=await self._knows())
                answer: Answer | NexiError = await parts.loop(self.stopping).run()
            except NexiError as error:
                answer = error  # carried past the task group, which would bundle it
            watcher.cancel()
            if parts:
                parts.reader.cancel()
                await parts.reader.report()
            await kept.close(hurried=self.stopping.is_set())
        if isinstance(answer, NexiError):
            raise answer
        return answer

    def _parts(self, tasks: asyncio.TaskGroup, kept: KeptPages, *, knows: bool) -> Parts:
        return Parts(
            self.nexi,
            self.session,
            self.meter,
            self.emit,
            tasks,
            self.question,
            self.options,
            track=self.past.recording.of(""),
            calls=CallCounter(self.past.calls),
            knows=knows,
            keep=kept.keep,
            before=self._answered_before,
        )

    # knowledge

    def _may_know(self) -> bool:
        """Whether there may be something to look into before the web; a run that began before goes on as it was."""
        if self._local is None:  # once: what this run itself keeps does not count
            self._local = self._has_store()
        return self._local

    def _has_store(self) -> bool:
        if self.past.facts:
            return bool(self.past.settings.get("local"))
        wanted = self.nexi.config.knowledge or self.options.only_local or self.options.shelf is not None
        return wanted and (self.options.shelf or self.nexi.knowledge()).may_hold_something()

    async def _knows(self) -> bool:
        if self.past.recording.only or (not self._may_know() and not self.options.only_local):
            return self._may_know()
        knowledge = self.options.shelf or self.nexi.knowledge()
        if self.options.only_local and not (knowledge.may_hold_something() and await knowledge.first_source()):
            raise _nothing_known()
        return await knowledge.holds_something()

    async def _answered_before(self, question: str) -> tuple[Hit, ...]:
        """The pages of an earlier answer to the same question; a run that began before is told what it was told then."""
        from nexi.app.local import answered_before, told_before

        told = told_before(self.past.facts)
        if told is not None or self.past.recording.only or self.options.shelf:
            return told or ()
        return await answered_before(self.nexi.knowledge(), question)

    def _keeping(self, tasks: asyncio.TaskGroup) -> KeptPages:
        """Where the pages of this run go; a run that leaves no trace leaves none there either."""
        keeps = self.nexi.config.knowledge and self.options.keeps_log and not self.options.only_local
        return KeptPages(self.nexi, self.emit, tasks, keeps=keeps and not self.past.recording.only)

    async def _watch_for_stop(self) -> None:
        """Another process asks with a file. Polling it is I/O, not time, so it does not go through the clock."""
        while not self.stopping.is_set():
            await asyncio.sleep(STOP_POLL_S)
            if self.emit.log.stop_requested():
                self.stopping.set()

    async def _finish(self, answer: Answer) -> None:
        self.session.last_run = self.id
        trouble = await asyncio.to_thread(self._keep_history, answer) if self.options.keeps_history else []
        for message in trouble:
            await self.emit(Warned("history_not_kept", message))
        if answer.review:
            await self.emit(AnswerChecked(answer.review))
        await self.emit(
            RunFinished(
                answer.text,
                answer.sources,
                answer.stop,
                self.meter.iterations,
                self.meter.usage,
                self._seconds(),
                self.meter.pages,
                self.meter.model_calls,
                (*answer.warnings, *trouble),
                answer.conflicts,
            )
        )

    async def _fail(self, error: NexiError, stop: StopReason) -> None:
        if any(isinstance(f, TERMINAL) for f in self.emit.facts):
            return
        failed = RunFailed(
            error.code, error.message, error.cause, error.fix, stop, self.meter.iterations, self.meter.usage, self._seconds()
        )
        await self.emit(failed)

    async def _end_as_cancelled(self) -> None:
        await self._fail(NexiError("the search was cancelled", code="cancelled"), StopReason.CANCELLED)
        await self.emit.log.close()

    async def _internal(self, error: BaseException) -> NexiError:
        name = self.nexi.config.runs_dir / self.id / "traceback.txt"
        text = "".join(traceback.format_exception(error))
        try:
            await asyncio.to_thread(name.write_text, text, "utf-8")
        except OSError:
            return InternalError("an internal error ended the search", cause=repr(error)[:500])
        return InternalError(
            "an internal error ended the search", cause=repr(error)[:500], fix=f"please report it with {name.parent}"
        )

    def _open_log(self) -> tuple[RunLog, str]:
        if self.past.log:
            return self.past.log, ""
        if not self.options.keeps_log:
            return MemoryRunLog(), ""
        try:
            return self.nexi.runs().create(), ""
        except StoreError as error:
            return MemoryRunLog(), f"this run is not kept: {error}. {error.fix}".strip()

    def _keep_history(self, answer: Answer) -> list[str]:
        from nexi.history import add_history_entry, create_entry

        entry = create_entry(
            query=self.question,
            answer=answer.text,
            urls=[s.url for s in self.session.book.sources],
            effort=self.options.effort,
            iterations=self.meter.iterations,
            duration_s=self._seconds(),
            tokens=self.meter.usage.total,
            id=self.id,
        )
        try:
            add_history_entry(entry, self.nexi.config.history_path)
        except StoreError as error:
            return [f"the answer is not in the history: {error}. {error.fix}".strip()]
        return []

    def _seconds(self) -> float:
        return round(self.nexi.clock.monotonic() - self._started + self.past.seconds, 3)

    def _budget(self) -> Budget:
        """The limits; in a replay nothing costs and no time passes, and the record says what they decided."""
        if self.past.recording.only:
            return Budget(max_iterations=self.options.max_iterations)
        return budget_of(self.nexi.config, self.options)


def _nothing_known() -> NoEvidenceError:
    return NoEvidenceError(
        "nothing is known yet",
        cause="--local asks the knowledge store alone, and it is empty",
        fix="nexi index PATH takes files into it; without --local the web is asked, and what is read is kept",
    )


def error_of(failed: RunFailed) -> NexiError:
    """The error a terminal fact stands for."""
    from nexi.errors import LLMError, VerificationError

    known = (NoEvidenceError, VerificationError, ConfigError, QuestionError, InternalError)
    kinds: dict[str, type[NexiError]] = {cls.code: cls for cls in known}
    kind = kinds.get(failed.code, LLMError if failed.stop is StopReason.API_ERROR else NexiError)
    return kind(failed.message, cause=failed.cause, fix=failed.fix, code=failed.code)


def _stop_of(error: NexiError) -> StopReason:
    return StopReason.CANCELLED if error.code == "cancelled" else StopReason.API_ERROR
