"""Runs that live in a process: started, followed, stopped, left open when it ends, and resumed by the next one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from nexi.app import Nexi, RunRequest
from nexi.app.hosting import DOOR, HostedRun, RunHost, RunRegistry, RunSnapshot, _QueuedRun
from nexi.app.research_state import fold
from nexi.app.run import Run, RunOpening
from nexi.config import Config
from nexi.errors import LLMError, NexiError, QuestionError, StoreError
from nexi.events import MAX_LOSSES, AgendaSet, Event, Fact, RunFailed, RunFinished, RunResumed, RunStarted, Warned
from nexi.runs.log_format import LogHeader, ReadLog
from nexi.testing import FakeClock, FakeWeb, ScriptedLLM, answering, reading, searching
from nexi.types import Message, Reply, StopReason, Usage
from tests.raising import has_code

Make = Callable[..., Config]
QUESTION = RunRequest("How far is the Moon?", door=DOOR)
MOON = "https://moon.example/facts"
PAGES = {MOON: "# Moon facts\n\nThe Moon is 384,400 km from Earth on average."}
ANSWER = "The Moon is 384,400 km from Earth on average [1]."
CREATED = "2026-01-02T03:04:05.000+00:00"


class GatedLLM:
    """A model that searches, reads a page and answers, once its gate is open."""

    name = "scripted"

    def __init__(self, *, is_open: bool = True, error: Exception | None = None) -> None:
        self.asked, self.gate, self._error = asyncio.Event(), asyncio.Event(), error
        if is_open:
            self.gate.set()

    async def complete(self, messages: Sequence[Message], *arguments: Any, **options: Any) -> Reply:
        self.asked.set()
        await self.gate.wait()
        results = sum(message.role == "tool" for message in messages)
        step = (searching("distance of the Moon"), reading(MOON), answering(ANSWER))[min(results, 2)]
        return await ScriptedLLM(self._error or step).complete(messages, *arguments, **options)


class Metrics:
    """Notes what is counted, and the kinds of the events that are observed."""

    def __init__(self) -> None:
        self.counts: list[tuple[str, dict[str, str]]] = []
        self.events: list[tuple[str, str]] = []

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        self.counts.append((name, labels))

    def observe(self, event: Event, mode: str = "search") -> None:
        self.events.append((event.kind, mode))


class Queue:
    """Takes the runs of a team server; no worker does them."""

    def __init__(self) -> None:
        self.requests: list[RunRequest] = []
        self.resumed: list[str] = []

    async def submit(self, request: RunRequest) -> str:
        self.requests.append(request)
        return "abc123"

    async def resubmit(self, run_id: str) -> None:
        self.resumed.append(run_id)


@asynccontextmanager
async def hosting(config: Config, model: GatedLLM | None = None, **options: Any) -> AsyncIterator[RunHost]:
    """A server without a listener; leaving the block ends it."""
    config, web, model = config.override(knowledge=False), FakeWeb(PAGES), model or GatedLLM()
    nexi = Nexi(config, clock=FakeClock(), llms={"answer": model, "judge": model}, backends=[web], fetchers=[web])
    async with nexi:
        host = RunHost(nexi, **options)
        try:
            yield host
        finally:
            await host.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0)


async def leave_open(config: Config, count: int = 1) -> list[str]:
    """The ids of runs that a server began and left open when it ended."""
    async with hosting(config, GatedLLM(is_open=False)) as host:
        runs = [await host.start(QUESTION) for _ in range(count)]
        await host.drain(0)
        return [hosted.id for hosted in runs]


async def write_log(host: RunHost, *facts: Fact) -> str:
    log = host.nexi.runs().create()
    for fact in facts:
        await log.append(fact)
    await log.close()
    return log.run_id


# one run


async def test_a_run_is_here_while_it_works_and_for_a_while_after_its_end(make_config: Make) -> None:
    model = GatedLLM(is_open=False)
    async with hosting(make_config(), model) as host:
        hosted = await host.start(QUESTION)
        assert hosted.created == CREATED
        assert (host.active, host.active_ids, host.get_active(hosted.id)) == (1, [hosted.id], hosted)
        assert host.get(hosted.id) is host.get_active(hosted.id) is hosted
        snapshot = await host.snapshot_of(hosted.id)
        assert (snapshot.id, snapshot.created, snapshot.state, snapshot.result()) == (hosted.id, CREATED, "running", None)
        assert snapshot.start_fact.query == "How far is the Moon?"
        model.gate.set()
        assert (await hosted.wait_for_result()).answer.text == ANSWER
        await until(lambda: host.active == 0)
        assert (host.active_ids, host.get_active(hosted.id)) == ([], None)
        assert host.get(hosted.id) is hosted
        host.forget(hosted.id)
        assert host.get(hosted.id) is None
        snapshot = await host.snapshot_of(hosted.id)
        result = snapshot.result()
        assert result is not None
        assert (snapshot.state, snapshot.failure(), result.answer.text) == ("finished", None, ANSWER)
        assert snapshot.facts == hosted.run.facts == host.nexi.runs().open_log(hosted.id).bare_facts


async def test_every_event_is_in_the_feed_and_is_counted(make_config: Make) -> None:
    metrics = Metrics()
    async with hosting(make_config(), metrics=metrics) as host:
        hosted = await host.start(QUESTION)
        await hosted.wait()
        assert metrics.counts == [("nexi_runs_started_total", {"mode": "search"})]
        assert [kind for kind, _ in metrics.events if kind in {fact.kind for fact in hosted.run.facts}] == [
            fact.kind for fact in hosted.run.facts
        ]
        assert {mode for _, mode in metrics.events} == {"search"}
        assert (hosted.feed.fact_count, hosted.feed.has_ended) == (len(hosted.run.facts), True)


async def test_the_log_has_its_first_fact_when_a_run_has_begun(make_config: Make) -> None:
    async with hosting(make_config(), GatedLLM(is_open=False)) as host:
        hosted = await host.start(QUESTION)
        assert isinstance(host.nexi.runs().open_log(hosted.id).bare_facts[0], RunStarted)


async def test_only_so_many_ended_runs_can_be_followed_the_oldest_goes_first(make_config: Make) -> None:
    async with hosting(make_config(), max_ended=2) as host:
        runs = []
        for _ in range(3):
            runs.append(await host.start(QUESTION))
            await runs[-1].wait()
        assert [host.get(hosted.id) for hosted in runs] == [None, *runs[1:]]


async def test_a_run_without_room_is_refused_until_another_has_ended(make_config: Make) -> None:
    model = GatedLLM(is_open=False)
    async with hosting(make_config(), model, max_runs=2) as host:
        runs = [await host.start(QUESTION) for _ in range(2)]
        for refused in (host.start(QUESTION), host.submit(QUESTION), host.resume(runs[0].id)):
            with pytest.raises(NexiError, check=has_code("busy")):
                await refused
        model.gate.set()
        for hosted in runs:
            await hosted.wait()
        await until(lambda: host.active == 0)
        assert isinstance(await host.submit(QUESTION), HostedRun)


async def test_a_cancelled_run_has_ended_and_did_not_fail(make_config: Make) -> None:
    model = GatedLLM(is_open=False)
    async with hosting(make_config(), model) as host:
        hosted = await host.start(QUESTION)
        await model.asked.wait()
        await hosted.cancel()
        await hosted.cancel()
        snapshot = await host.snapshot_of(hosted.id)
        assert (snapshot.state, snapshot.failure(), snapshot.result()) == ("stopped", None, None)


async def test_a_run_that_failed_says_why(make_config: Make) -> None:
    async with hosting(make_config(), GatedLLM(error=LLMError("the model is gone", code="model_gone"))) as host:
        hosted = await host.start(QUESTION)
        with pytest.raises(LLMError, check=has_code("model_gone")):
            await hosted.wait_for_result()
        snapshot = await host.snapshot_of(hosted.id)
        failure = snapshot.failure()
        assert (snapshot.state, failure and failure.code, snapshot.result()) == ("failed", "model_gone", None)


async def test_a_question_that_cannot_be_asked_is_refused_to_its_caller(make_config: Make) -> None:
    async with hosting(make_config()) as host:
        with pytest.raises(QuestionError):
            await host.start(RunRequest(" "))
        with pytest.raises(StoreError, check=has_code("no_such_run")):
            await host.begin(host.nexi.resume("123abc"), CREATED)
        await until(lambda: host.active == 0)


async def test_a_run_that_is_asked_to_stop_ends(make_config: Make) -> None:
    model = GatedLLM(is_open=False)
    async with hosting(make_config(), model) as host:
        hosted = await host.start(QUESTION)
        await model.asked.wait()
        assert await host.stop(hosted.id) is True
        await hosted.wait()
        end = hosted.run.facts[-1]
        assert isinstance(end, RunFailed | RunFinished)
        assert await host.stop(hosted.id) is False


async def test_a_run_is_cancelled_from_another_process(make_config: Make) -> None:
    model, config = GatedLLM(is_open=False), make_config()
    async with hosting(config, model) as host, hosting(config) as other:
        hosted = await host.start(QUESTION)
        await model.asked.wait()
        assert (await other.snapshot_of(hosted.id)).state == "running"
        other.nexi.runs().request_cancel(hosted.id)
        await hosted.wait(120)
        assert (await other.snapshot_of(hosted.id)).state == "stopped"


async def test_another_process_is_told_whether_there_is_a_run_to_stop(make_config: Make) -> None:
    config = make_config()
    async with hosting(config, GatedLLM(is_open=False)) as host, hosting(config) as other:
        hosted = await host.start(QUESTION)
        assert await other.stop(hosted.id) is True
        await hosted.cancel()
        assert await other.stop(hosted.id) is False


async def test_the_facts_of_a_run_whose_log_is_gone_are_those_of_this_process(make_config: Make) -> None:
    async with hosting(make_config()) as host:
        hosted = await host.start(QUESTION)
        await hosted.wait()
        facts = host.nexi.runs().open_log(hosted.id).facts
        host.nexi.runs().remove(hosted.id)
        read = await host.open_log(hosted.id)
        assert (read.facts, read.header) == (facts, LogHeader(1, hosted.id, CREATED, ""))
        with pytest.raises(StoreError, check=has_code("no_such_run")):
            await host.open_log("123abc")


async def test_a_damaged_log_is_read_only_where_that_is_asked_for(make_config: Make) -> None:
    config = make_config()
    async with hosting(config) as host:
        run_id = await write_log(host, RunStarted("q", "m", "scripted"), Warned("w", "A warning."), Warned("w", "Another."))
        path = config.runs_dir / run_id / "log.jsonl"
        path.write_bytes(path.read_bytes().replace(b"A warning", b"a warning"))
        with pytest.raises(StoreError, check=has_code("damaged_log")):
            await host.snapshot_of(run_id)
        snapshot = await host.snapshot_of(run_id, reads_damaged=True)
        assert (snapshot.state, snapshot.facts) == ("unfinished", (RunStarted("q", "m", "scripted"),))
        path.write_bytes(b"nothing\n")
        with pytest.raises(StoreError, check=has_code("damaged_log")):
            await host.snapshot_of(run_id, reads_damaged=True)


# snapshots


def snapshot_of(*facts: Fact) -> RunSnapshot:
    return RunSnapshot(ReadLog(LogHeader(1, "abc123", CREATED, "0"), list(enumerate(facts, 1))), "unfinished")


def test_a_log_without_its_question_has_an_empty_one() -> None:
    empty = RunStarted("", "", "")
    assert [snapshot_of().start_fact, snapshot_of(Warned("w", "A warning.")).start_fact] == [empty, empty]


def test_only_research_has_a_state_of_research() -> None:
    agenda = AgendaSet(("Where is it?",), 1)
    facts = [(RunStarted("q", "m", "s", mode=mode), agenda) for mode in ("search", "research")]
    assert [snapshot_of(*each).research_state for each in facts] == [fold(()), fold(facts[1])]
    assert fold(()) != fold(facts[1])


def test_a_snapshot_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        snapshot_of().state = "finished"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        _QueuedRun("abc123", CREATED).id = "def456"  # type: ignore[misc]


# the end of a server, and the next one


async def test_a_server_that_ends_leaves_its_own_runs_open_and_ends_those_of_other_doors(
    make_config: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nexi.hosting")
    model = GatedLLM(is_open=False)
    async with hosting(make_config(), model) as host:
        own, other = await host.start(QUESTION), await host.start(RunRequest("How far is the Moon?", door="mcp"))
        await model.asked.wait()
        await host.drain(0)
        assert [(await host.snapshot_of(hosted.id)).state for hosted in (own, other)] == ["unfinished", "stopped"]
        assert [(record.msg, getattr(record, "run", "")) for record in caplog.records if record.msg == "run left open"] == [
            ("run left open", own.id)
        ]
        assert host.will_resume(own.id) is False
        with pytest.raises(NexiError, check=has_code("busy")):
            await host.start(QUESTION)


async def test_a_server_gives_its_runs_some_time_before_it_ends(make_config: Make) -> None:
    model = GatedLLM(is_open=False)
    async with hosting(make_config(), model) as host:
        hosted = await host.start(QUESTION)
        draining = asyncio.create_task(host.drain(120))
        await until(lambda: host.draining)
        model.gate.set()
        await draining
        assert (await host.snapshot_of(hosted.id)).state == "finished"


async def test_a_server_without_runs_ends_at_once(make_config: Make) -> None:
    async with hosting(make_config()) as host:
        await host.drain(120)


async def test_a_run_that_is_being_opened_is_given_up_when_its_server_ends(make_config: Make) -> None:
    entered, is_given_up = asyncio.Event(), False

    async def prepare(_: AsyncExitStack) -> Run:
        nonlocal is_given_up
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_given_up = True
        raise AssertionError

    async with hosting(make_config()) as host:
        beginning = asyncio.create_task(host.begin(RunOpening(prepare), CREATED))
        await entered.wait()
        assert (host.active, host.active_ids) == (1, [])
        await host.close()
        with pytest.raises(asyncio.CancelledError):
            await beginning
        assert (is_given_up, host.active) == (True, 0)


async def test_the_next_server_resumes_what_was_left_open(make_config: Make) -> None:
    config = make_config()
    (run_id,) = await leave_open(config)
    model = GatedLLM(is_open=False)
    async with hosting(config, model) as host:
        assert host.will_resume(run_id)  # as far as it knows
        host.open()
        await model.asked.wait()
        hosted = host.get_active(run_id)
        assert hosted is not None
        assert (hosted.created, hosted.feed.fact_count) == (CREATED, len(hosted.run.facts))
        await until(lambda: not host.will_resume(run_id))
        model.gate.set()
        assert (await hosted.wait_for_result()).answer.text == ANSWER
        snapshot = await host.snapshot_of(run_id)
        assert snapshot.state == "finished"
        assert sum(isinstance(fact, RunResumed) for fact in snapshot.facts) == 1
        assert hosted.feed.fact_count == len(snapshot.facts)


async def test_runs_that_were_left_open_wait_for_room(make_config: Make) -> None:
    config = make_config()
    run_ids = await leave_open(config, 3)
    most = 0

    def observe(event: Event, mode: str) -> None:
        nonlocal most
        most = max(most, host.active)

    metrics = Metrics()
    metrics.observe = observe  # type: ignore[assignment,method-assign]
    async with hosting(config, max_runs=1, metrics=metrics) as host:
        host.open()
        await until(lambda: not any(host.will_resume(run_id) for run_id in run_ids) and host.active == 0)
        assert [(await host.snapshot_of(run_id)).state for run_id in run_ids] == ["finished"] * 3
    assert most == 1


async def test_a_server_that_ends_while_runs_wait_for_room_leaves_them_open(make_config: Make) -> None:
    config = make_config()
    run_ids = await leave_open(config, 2)
    model = GatedLLM(is_open=False)
    async with hosting(config, model, max_runs=1) as host:
        host.open()
        await model.asked.wait()
    async with hosting(config) as host:
        assert [(await host.snapshot_of(run_id)).state for run_id in run_ids] == ["unfinished"] * 2


async def test_nothing_is_resumed_where_that_is_not_wanted(make_config: Make) -> None:
    config = make_config()
    (run_id,) = await leave_open(config)
    for queue, resumes in ((None, False), (Queue(), True)):
        async with hosting(config, queue=queue) as host:
            host.open(resumes=resumes)
            assert (host.will_resume(run_id), host.active) == (False, 0)
            await host.close()
            assert (await host.snapshot_of(run_id)).state == "unfinished"


async def test_a_server_that_was_drained_takes_runs_again_when_it_is_opened(make_config: Make) -> None:
    async with hosting(make_config()) as host:
        await host.drain(0)
        host.open(resumes=False)
        await (await host.start(QUESTION)).wait()


async def test_only_sound_runs_of_a_server_that_get_on_are_resumed(make_config: Make, caplog: pytest.LogCaptureFixture) -> None:
    config = make_config()
    started = RunStarted("q", "m", "scripted", settings={"door": DOOR})
    resumed = [RunResumed(1, 0.0)] * MAX_LOSSES
    async with hosting(config) as host:
        own = await write_log(host, started, Warned("w", "A warning."))
        tired = await write_log(host, started, *resumed)
        trying = await write_log(host, started, *resumed[1:])
        foreign = await write_log(host, RunStarted("q", "m", "scripted", settings={"door": "cli"}))
        empty = await write_log(host)
        headless = await write_log(host, Warned("w", "A warning."), started)
        damaged = await write_log(host, started, Warned("w", "A warning."), Warned("w", "Another."))
        path = config.runs_dir / damaged / "log.jsonl"
        path.write_bytes(path.read_bytes().replace(b"A warning", b"a warning"))
        host.open()
        run_ids = (own, tired, trying, foreign, empty, headless, damaged)
        await until(lambda: not any(map(host.will_resume, run_ids)) and host.active == 0)
        states = {}
        for run_id in run_ids[:-1]:
            states[run_id] = (await host.snapshot_of(run_id)).state
    assert states == {own: "finished", trying: "finished"} | dict.fromkeys((tired, foreign, empty, headless), "unfinished")
    assert [(record.msg, getattr(record, "run", "")) for record in caplog.records if record.msg == "run not resumed"] == [
        ("run not resumed", damaged)
    ]


async def test_a_run_is_resumed_when_a_person_asks_for_it(make_config: Make) -> None:
    config = make_config()
    (run_id,) = await leave_open(config)
    async with hosting(config) as host:
        resumed = await host.resume(run_id)
        assert isinstance(resumed, HostedRun)
        assert (resumed.id, resumed.created) == (run_id, CREATED)
        assert (await resumed.wait_for_result()).answer.text == ANSWER
        await until(lambda: host.active == 0)
        with pytest.raises(StoreError, check=has_code("complete")):
            await host.resume(run_id)


# a queue for the workers of a team


async def test_a_run_that_outlives_its_request_is_left_to_a_worker(make_config: Make) -> None:
    queue, metrics = Queue(), Metrics()
    async with hosting(make_config(), queue=queue, metrics=metrics) as host:
        assert await host.submit(QUESTION) == _QueuedRun("abc123", CREATED)
        assert (queue.requests, host.active) == ([QUESTION], 0)
        assert metrics.counts == [("nexi_runs_started_total", {"mode": "search"})]
        with pytest.raises(QuestionError):
            await host.submit(RunRequest(" "))
        with pytest.raises(StoreError, check=has_code("no_such_run")):
            await host.submit(RunRequest("And Mars?", continues="123abc"))
        await host.drain(0)
        with pytest.raises(NexiError, check=has_code("busy")):
            await host.submit(QUESTION)
        assert queue.requests == [QUESTION]


async def test_a_plan_that_a_person_settles_is_made_where_its_run_is(make_config: Make) -> None:
    queue = Queue()
    async with hosting(make_config(), GatedLLM(is_open=False), queue=queue) as host:
        request = RunRequest("How far is the Moon?", mode="research", holds_plan=True, door=DOOR)
        assert isinstance(await host.submit(request), HostedRun)
        assert queue.requests == []


async def test_an_unfinished_run_is_resumed_by_a_worker_and_an_ended_one_is_repeated_here(make_config: Make) -> None:
    queue, config = Queue(), make_config()
    (run_id,) = await leave_open(config)
    async with hosting(config, queue=queue) as host:
        assert await host.resume(run_id) == _QueuedRun(run_id, CREATED)
        failed = RunFailed("gone", "the model is gone", "", "", StopReason.API_ERROR, 1, Usage(), 1.0)
        ended = await write_log(host, RunStarted("q", "m", "scripted"), failed)
        repeated = await host.resume(ended)
        assert isinstance(repeated, HostedRun)
        assert repeated.id != ended
        assert (await repeated.wait_for_result()).answer.text == ANSWER
        assert queue.resumed == [run_id]


# the runs of a worker


async def test_a_worker_drives_a_run_in_its_own_task_with_a_watch_beside_it(make_config: Make) -> None:
    watched: list[str] = []

    async def watch(run: Run) -> None:
        watched.append(run.id)
        try:
            await asyncio.Event().wait()
        finally:
            watched.append("ended")

    async with hosting(make_config()) as host:
        registry = RunRegistry(watch=watch)
        await registry.drive(host.nexi.run(QUESTION))
        (run_id,) = [summary.id for summary in host.nexi.runs().list_runs()]
        hosted = registry.get(run_id)
        assert hosted is not None
        await until(lambda: "ended" in watched)
        assert (watched, hosted.created, hosted.feed.has_ended) == ([run_id, "ended"], "", True)
