"""Run: one search, piece of research or agentic search under way, from its first fact to its last.

A `RunEngine` answers, and the run owns its task, its log and its events. What a door shows is not known here. Others hear of a
run by its trace, without what was asked or read, and by the webhook, which has its id and its figures, never its text.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from nexi import __version__, errors, events
from nexi.answers.citations import CitationBook
from nexi.app.emit import RunEmit, warn_of_lost_log
from nexi.app.environment import RECORDED_SETTINGS, RecordedRun, RunEnvironment, has_store
from nexi.app.factory import PortFactory
from nexi.app.request import RunRequest, request_to_dict
from nexi.app.resolve import ResolvedRun
from nexi.budget import Meter
from nexi.history import create_entry
from nexi.install import install_command
from nexi.model import CallCounter
from nexi.notices import Notice, join_sentences
from nexi.ports import RunLog
from nexi.runs.log import MemoryRunLog
from nexi.runs.session import Session
from nexi.tasks import run_in_group, wait_uninterrupted
from nexi.types import Answer, StopReason, Usage
from nexi.urls import hit_key, host_of

if TYPE_CHECKING:
    from nexi.app.knowledge import Knowledge
    from nexi.research.planner import PlanGate

STOP_POLL_S = 0.5
NANOSECONDS = 1_000_000_000
webhook_log = logging.getLogger("nexi.webhook")
OnEvent: TypeAlias = Callable[[events.Event], object]


class RunEngine:
    """How a run comes to its answer. An engine inherits the steps at which it has nothing to do."""

    gate: PlanGate | None = None  # where the run waits with its plan, if it does

    def settings(self) -> dict[str, Any]:
        """What a resumed run must know beside its request."""
        raise NotImplementedError

    def open_conversation(self) -> None:
        """Put the question into the session, where the engine talks in it."""

    def observe(self, fact: events.Fact) -> None:
        """Take note of a fact that was committed."""

    async def answer(self, tasks: asyncio.TaskGroup) -> Answer:
        """Raises NexiError when there is no answer. What works in `tasks` must end with it."""
        raise NotImplementedError

    def close_conversation(self, answer: Answer) -> None:
        """Leave in the session what a follow-up may refer to."""


class RunResult(Struct, frozen=True):
    """A run that ended with an answer."""

    id: str
    answer: Answer
    finished: events.RunFinished
    facts: tuple[events.Fact, ...]
    session: Session

    @property
    def started(self) -> events.RunStarted:
        """The fact that names its question, mode and model."""
        return next(fact for fact in self.facts if isinstance(fact, events.RunStarted))

    @property
    def read_urls(self) -> list[str]:
        """The pages that were read for this answer; those of earlier questions of its conversation are not among them."""
        return _list_read_pages(self.facts)


class Run:
    """One run under way, which `RunOpening` begins and ends; what the log of its `recorded` past holds is not asked again."""

    def __init__(
        self,
        ports: PortFactory,
        resolved: ResolvedRun,
        build_engine: Callable[[RunEnvironment], RunEngine],
        *,
        session: Session,
        recorded: RecordedRun,
        attached: Knowledge | None = None,
        log: RunLog | None = None,
    ) -> None:
        self._ports, self.resolved, self.session, self.recorded = ports, resolved, session, recorded
        self.request, self.question, self.mode = resolved.request, resolved.request.question, resolved.request.mode
        self._events: asyncio.Queue[events.Event | None] = asyncio.Queue()
        self._started = ports.clock.monotonic()
        self.stopping = asyncio.Event()
        log, self._log_warning = (log, None) if log else _open_log(ports, resolved.request, recorded)
        self.id = log.run_id
        collector = ports.config.otel_endpoint
        self._trace = _RunTrace(_open_tracer(collector), self.id, self.mode) if collector else None
        self.emit = RunEmit(log, self._publish, recorded.facts if recorded.log else ())
        self.meter = Meter(resolved.budget, started=self._started - recorded.seconds)
        self._lost_usage, self._lost_calls = recorded.lost_usage() if recorded.run else (Usage(), 0)
        if recorded.run and not recorded.recording.is_replay_only:
            self.meter.carry_over(*recorded.unreplayed_usage(resolved.request.mode))
        book = self.session.book
        book.reserve(recorded.sources)
        book.orders_by_use = recorded.has_setting("orders_by_use")
        book.keep_numbers()  # the conversation before this run has them
        knows, calls = has_store(ports, resolved.request, recorded, attached), CallCounter(recorded.calls)
        self.environment = RunEnvironment(
            ports, resolved, session, self.meter, self.emit, self.stopping, recorded, attached, knows, calls
        )
        self.engine = build_engine(self.environment)
        self.gate = self.engine.gate
        self._task: asyncio.Task[None] | None = None
        self._notice: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._work(), name=f"run {self.id}")

    def abort(self) -> None:
        """Cancel the engine; the run's last events follow."""
        if self._task:
            self._task.cancel()

    async def close(self) -> None:
        """Cancel the engine if it still works, and wait for its clean-up."""
        if self._task:
            self._task.cancel()
            await wait_uninterrupted(self._task)
        await self._end_as_cancelled()  # for a task that was cancelled before its first step
        if self._notice:
            await wait_uninterrupted(self._notice)
        if self._trace:
            self._trace.close()

    async def __aiter__(self) -> AsyncIterator[events.Event]:
        while (event := await self._events.get()) is not None:
            yield event

    async def drive(self, on_event: OnEvent | None = None) -> None:
        """Go on to the end of the run, showing each event to `on_event`, which may be a coroutine function."""
        async for event in self:
            if on_event and isawaitable(reaction := on_event(event)):
                await reaction

    def _publish(self, event: events.Event) -> None:
        if events.is_fact(event):
            self.engine.observe(event)
        if self._trace:
            self._trace.observe(event)
        self._events.put_nowait(event)

    def stop(self) -> None:
        """Ask for the answer now, from what was read."""
        self.stopping.set()

    def suspend(self) -> None:
        """Stop logging: the run ends without a last fact and stays resumable."""
        self.emit.is_sealed = True

    @property
    def facts(self) -> tuple[events.Fact, ...]:
        return tuple(self.emit.facts)

    def result(self) -> RunResult:
        """The answer of a run that has ended. Raises the run's error if it has none."""
        return result_of(self.id, self.facts, self.session)

    # the engine's task

    async def _work(self) -> None:
        try:
            await self._begin()
            await self._finish(await run_in_group(self._answer))
        except asyncio.CancelledError:
            await self._end_as_cancelled()
            raise
        except errors.NexiError as error:
            # a person may have ended the run before anything was read
            is_unread_stop = isinstance(error, errors.NoEvidenceError) and self.stopping.is_set()
            is_stop = is_unread_stop or error.code in ("cancelled", "not_approved")
            await self._fail(error, StopReason.CANCELLED if is_stop else StopReason.API_ERROR)
        except Exception as error:  # noqa: BLE001 - the edge of the engine: a fault of ours must still end the run
            file, fix = self._ports.config.runs_dir / self.id / "traceback.txt", ""
            with suppress(OSError):
                await asyncio.to_thread(file.write_text, "".join(traceback.format_exception(error)), "utf-8")
                fix = f"please report it with {file.parent}"
            fault = errors.InternalError("an internal error ended the search", cause=repr(error)[:500], fix=fix)
            await self._fail(fault, StopReason.API_ERROR)
        finally:
            try:
                await self.emit.log.close()
            finally:  # who follows the run must not wait for ever where it is cancelled a second time
                if self._ports.config.webhook_url and not self.environment.is_replay and not self.emit.is_sealed:
                    self._notice = asyncio.create_task(self._send_notice())
                self._events.put_nowait(None)
            await asyncio.to_thread(self._ports.tidy)

    async def _send_notice(self) -> None:
        """Tell the address of `webhook_url` once that the run has ended; a failure is logged and costs nothing else."""
        notice, ports = _describe_end(self.id, self.mode, self.facts), self._ports
        if notice is None:
            return
        from nexi.fetchers.guard import AddressGuard
        from nexi.fetchers.transport import Transport
        from nexi.fetchers.webhook import WebhookSender

        guard = AddressGuard(ports.config.allow_private)
        sender = WebhookSender(guard, Transport(guard, **ports.connections()), ports.clock, ports.config.webhook_secret)
        try:
            await sender.send(ports.config.webhook_url, self.id, json.dumps(notice).encode())
        except errors.FetchError as error:
            webhook_log.warning("The webhook of run %s was not delivered: %s", self.id, error)
        finally:
            await sender.aclose()

    async def _begin(self) -> None:
        if self.recorded.log:
            await self.emit(events.RunResumed(len(self.recorded.facts), self.recorded.seconds))
        else:
            request, settings = self.request, await self._settings()
            model, most = self._ports.config.endpoint("answer").model, request.limits.max_iterations or 0
            form = request_to_dict(request)
            await self.emit(events.RunStarted(request.question, request.effort, model, request.mode, most, settings, form))
        if not self.environment.is_replay and not self.environment.is_local:
            self._ports.check()
        for notice in self.resolved.notices:
            await self.emit(events.Warned("model_not_asked", notice))
        if self.request.keeps_log and not self.environment.is_replay:
            keep_days, message = self._ports.config.runs_keep_days, ""
            with suppress(OSError):  # it is shown by a run that can note that it was
                message = await asyncio.to_thread(self._ports.retention().take_message, keep_days)
            if message:
                await self.emit(events.Warned("runs_expire", message))
        if self._log_warning:
            await self.emit(self._log_warning)
        for source in self.session.book.sources:
            await self.emit(events.SourceNumbered(source))  # a follow-up may cite them, so its log names them too
        self.engine.open_conversation()

    async def _settings(self) -> dict[str, Any]:
        """What a resumed run must know beside its request."""
        config, environment, session = self._ports.config, self.environment, self.session
        chains = {"search": list(config.search_chain()), "fetch": list(config.fetch_chain())}
        settings: dict[str, Any] = {**chains, "continues": session.last_run}
        rare = {"resumes": self.recorded.run, "door": self.request.door, "only_local": self.request.is_local}
        settings |= {name: value for name, value in rare.items() if value}
        settings["approach"], settings["small_model"] = environment.approach, environment.is_small_model
        settings["chooses_passages"] = environment.chooses_passages
        settings["looks_up_first"] = environment.looks_up_first
        settings["local"] = await environment.finds_knowledge()
        settings["config"] = {name: getattr(config, name) for name in RECORDED_SETTINGS}
        if session.book.orders_by_use:
            settings["orders_by_use"] = True
        settings |= self.engine.settings()
        if session.conversation and self.request.keeps_log:
            # word for word, as every request of a follow-up rests on it; without it, a resumed run has questions and answers
            with suppress(errors.StoreError):
                digest = await self._ports.pages().put(json.dumps([m.to_dict() for m in session.conversation]))
                settings["conversation"] = {"digest": digest}
        return settings

    async def _answer(self, tasks: asyncio.TaskGroup) -> Answer:
        """The engine's answer, while another process may ask for a stop with a file."""
        watcher = tasks.create_task(self._watch_for_stop())
        try:
            return await run_in_group(self.engine.answer)
        finally:
            watcher.cancel()

    async def _watch_for_stop(self) -> None:
        """Polling a file is I/O, not time, so it does not go through the clock."""
        while not self.stopping.is_set():
            await asyncio.sleep(STOP_POLL_S)
            if self.emit.log.stop_requested():
                if why := self.emit.log.explain_stop():
                    await self.emit(events.Warned("quota_reached", why))
                self.stopping.set()

    async def _finish(self, answer: Answer) -> None:
        self.engine.close_conversation(answer)
        self.session.last_run = self.id
        keeps_history = self.request.keeps_history and not self._ports.config.is_for_guests
        if keeps_history and (failure := await asyncio.to_thread(self._add_to_history, answer)):
            await self.emit(failure)
        if answer.review:
            await self.emit(events.AnswerChecked(answer.review))
        # faults beside the answer, such as a full disk: a door that shows only the end of a run shows them, too
        faults = [fact.message for fact in self.emit.facts if isinstance(fact, events.Warned) and fact.cause]
        await self.emit(
            events.RunFinished(
                answer.text,
                answer.sources,
                answer.stop,
                self.meter.iterations,
                self.meter.usage + self._lost_usage,
                self._seconds(),
                len(_list_read_pages(self.emit.facts)),
                self.meter.model_calls + self._lost_calls,
                (*answer.warnings, *faults),
                answer.conflicts,
                answer.answered,
            )
        )

    async def _fail(self, error: errors.NexiError, stop: StopReason) -> None:
        if any(isinstance(f, events.TERMINAL) for f in self.emit.facts):
            return
        usage, iterations = self.meter.usage + self._lost_usage, self.meter.iterations
        end = events.RunFailed(error.code, error.message, error.cause, error.fix, stop, iterations, usage, self._seconds())
        with suppress(errors.RunTakenError):  # whoever has the run now ends it
            await self.emit(end)

    async def _end_as_cancelled(self) -> None:
        await self._fail(errors.StoppedError(Notice("run.cancelled", "the search was cancelled")), StopReason.CANCELLED)
        await self.emit.log.close()

    def _add_to_history(self, answer: Answer) -> events.Warned | None:
        entry = create_entry(
            query=self.question,
            answer=answer.text,
            urls=[s.url for s in self.session.book.sources],
            effort=self.request.effort,
            iterations=self.meter.iterations,
            duration_s=self._seconds(),
            tokens=self.meter.usage.total,
            id=self.id,
            space=self.request.space,
        )
        try:
            self._ports.history().add(entry)
        except errors.StoreError as error:
            refusal = Notice("answer.not_in_history", "the answer is not in the history: {error}", error=str(error))
            return events.Warned("history_not_kept", join_sentences(refusal, error.fix), cause=error.fix)
        return None

    def _seconds(self) -> float:
        return round(self._ports.clock.monotonic() - self._started + self.recorded.seconds, 3)


class RunOpening:
    """A run to enter: `async with nexi.run(request) as run`. Leaving the block cancels the engine and awaits its clean-up."""

    def __init__(self, prepare: Callable[[AsyncExitStack], Awaitable[Run]]) -> None:
        """`prepare` enters into the stack what stays open for the life of the run."""
        self._prepare, self._closing = prepare, AsyncExitStack()

    async def __aenter__(self) -> Run:
        try:
            run = await self._prepare(self._closing)
        except BaseException:
            await self._closing.aclose()
            raise
        self._closing.push_async_callback(run.close)
        run.start()  # in one step with its log, so that nothing can come between
        return run

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()

    async def drive(self, on_event: OnEvent | None = None) -> RunResult:
        """The run from its first event to its last. Raises the run's error when it has no answer."""
        async with self as run:
            await run.drive(on_event)
            return run.result()


def _open_log(ports: PortFactory, request: RunRequest, recorded: RecordedRun) -> tuple[RunLog, events.Warned | None]:
    """The log of a run, and why it is kept in memory alone if the disk refuses it."""
    if recorded.log:
        return recorded.log, None
    if not request.keeps_log:
        return MemoryRunLog(), None
    try:
        return ports.runs().create(), None
    except errors.StoreError as error:
        return MemoryRunLog(), warn_of_lost_log(error)


def result_of(run_id: str, facts: Sequence[events.Fact], session: Session | None = None) -> RunResult:
    """The answer of a run that has ended, by its facts. Raises the run's error if it has none."""
    end = events.find_end(facts)
    if isinstance(end, events.RunFailed):
        raise error_of(end)
    if end is None:
        raise errors.InternalError("the run has not ended")
    if session is None:
        session = Session()
        session.book = CitationBook(hit_key, events.map_sources(facts).values())
    review = events.find_review(facts)
    answer = Answer(end.answer, end.sources, end.stop, end.warnings, end.conflicts, review, end.answered)
    return RunResult(run_id, answer, end, tuple(facts), session)


def error_of(end: events.RunFailed) -> errors.NexiError:
    """The error a terminal fact stands for."""
    outcomes = (errors.NoEvidenceError, errors.VerificationError, errors.StoppedError)
    faults = (errors.ConfigError, errors.QuestionError, errors.InternalError)
    kinds: dict[str, type[errors.NexiError]] = {cls.code: cls for cls in (*outcomes, *faults)}
    kind = kinds.get(end.code, errors.LLMError if end.stop is StopReason.API_ERROR else errors.NexiError)
    return kind(end.message, cause=end.cause, fix=end.fix, code=end.code)


def _list_read_pages(facts: Sequence[events.Fact]) -> list[str]:
    """List the pages that were asked for: one that was only fetched ahead counts once it is handed to the model."""
    sources = {hit_key(fact.source.url): fact.source.url for fact in facts if isinstance(fact, events.SourceNumbered)}
    pages = {hit_key(fact.final_url or fact.url): fact for fact in facts if isinstance(fact, events.PageFetched)}
    in_their_order = [url for key, url in sources.items() if key in pages]
    return in_their_order + [f.final_url or f.url for key, f in pages.items() if key not in sources and not f.ahead]


# what others hear of a run


@functools.cache
def _open_tracer(endpoint: str) -> Any:
    """One tracer for a process; what it holds is sent in the background, and at exit. Raises ConfigError."""
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
    except ImportError as error:
        fix = f"install it: {install_command('otel')}"
        raise errors.ConfigError("traces need a library that is not installed", cause=str(error), fix=fix) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "nexi", "service.version": __version__}))
    provider.add_span_processor(_make_processor(endpoint))
    return provider.get_tracer("nexi", __version__)


def _make_processor(endpoint: str) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces"))


class _RunTrace:
    """The spans of one run."""

    def __init__(self, tracer: Any, run_id: str, mode: str) -> None:
        from opentelemetry.trace import set_span_in_context

        self._tracer = tracer
        self._span = tracer.start_span("run", attributes={"nexi.run": run_id, "nexi.mode": mode})
        self._context = set_span_in_context(self._span)

    def observe(self, event: events.Event) -> None:
        match event:
            case events.ModelReplied():
                tokens = {"input_tokens": event.usage.input_tokens, "output_tokens": event.usage.output_tokens}
                usage = {f"gen_ai.usage.{name}": count for name, count in tokens.items()}
                self._add("model call", event.seconds, **usage, **{"gen_ai.response.finish_reasons": event.finish})
            case events.ModelFailed():
                self._add("model call", event.seconds, **{"error.type": event.code})
            case events.SearchFinished():
                self._add("search", event.seconds, **{"nexi.backend": event.backend or "none", "nexi.hits": len(event.hits)})
            case events.PageFetched():
                self._add("page", event.seconds, **{"server.address": host_of(event.url), "nexi.chars": event.chars})
            case events.PageFailed():
                self._add("page", event.seconds, **{"server.address": host_of(event.url), "error.type": event.reason})
            case events.RunFinished() | events.RunFailed():
                self._span.set_attribute("nexi.stop", event.stop.value)
                if isinstance(event, events.RunFailed):
                    self._span.set_attribute("error.type", event.code)
                self.close()
            case _:
                pass

    def close(self) -> None:
        """End the span of the run; one that was left open is sent as it is. Closing twice is harmless."""
        if self._span.is_recording():
            self._span.end()

    def _add(self, name: str, seconds: float, **attributes: Any) -> None:
        """A span that ends now."""
        end = time.time_ns()
        start = end - int(seconds * NANOSECONDS)
        self._tracer.start_span(name, context=self._context, start_time=start, attributes=attributes).end(end)


def _describe_end(run_id: str, mode: str, facts: Sequence[events.Fact]) -> dict[str, Any] | None:
    """The body of the notice; None for a run that has not ended."""
    end = events.find_end(facts)
    if end is None:
        return None
    tokens = {"input": end.usage.input_tokens, "output": end.usage.output_tokens}
    figures = {"stop": end.stop.value, "seconds": end.seconds, "tokens": tokens, "cost": end.usage.cost}
    head = {"schema": "nexi-webhook-1", "id": run_id, "mode": mode}
    if isinstance(end, events.RunFinished):
        return {**head, "event": "run.finished", "pages": end.pages, "answered": end.answered, **figures}
    return {**head, "event": "run.failed", "code": end.code, **figures}
