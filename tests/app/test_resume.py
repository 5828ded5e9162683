"""What a run takes over from its log when it is resumed, repeated or replayed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from nexi.app import RunLimits, RunRequest
from nexi.app.environment import RecordedRun
from nexi.app.request import request_to_dict
from nexi.app.resume import (
    RecordedLLM,
    Replay,
    config_of_run,
    read_finished_run,
    refuse_damaged_replay,
    reopen_run,
    request_to_resume,
    resolve_replay,
    session_of,
)
from nexi.app.run import result_of
from nexi.budget import Budget
from nexi.config import Config
from nexi.errors import LLMError, StoreError
from nexi.events import (
    AgendaSet,
    Fact,
    LimitApplied,
    LimitNear,
    LimitReached,
    ModelAsked,
    ModelReplied,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceNumbered,
    Warned,
)
from nexi.runs.directory import LOST_FACT, RunDirectory
from nexi.testing import FakeClock
from nexi.types import Message, Page, Source, StopReason, Usage, content_digest

STARTED = RunStarted("How far is the Moon?", "m", "scripted", max_iterations=7)
SOURCE = Source(1, "https://moon.example/", "Moon", content_digest("It is far."))
NUMBERED = SourceNumbered(SOURCE)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def runs(tmp_path: Path, clock: FakeClock) -> RunDirectory:
    return RunDirectory(tmp_path / "runs", tmp_path / "pages", clock)


def finished(stop: StopReason, answer: str = "Far [1].") -> RunFinished:
    return RunFinished(answer, (SOURCE,), stop, 2, Usage(10, 5), 3.0, 1, 2)


async def write(runs: RunDirectory, clock: FakeClock, *facts: Fact) -> str:
    """A run whose facts came a second apart."""
    log = runs.create()
    for fact in facts:
        clock.advance(1)
        await log.append(fact)
    await log.close()
    return log.run_id


async def test_a_run_that_was_cut_off_goes_on_in_its_own_log(runs: RunDirectory, clock: FakeClock) -> None:
    run_id = await write(runs, clock, STARTED, NUMBERED, Warned("w", "A warning."))
    started, past = reopen_run(runs, run_id)
    assert past.log is not None
    await past.log.close()
    assert (started, past.run, past.facts, past.sources) == (
        STARTED,
        run_id,
        (STARTED, NUMBERED, Warned("w", "A warning.")),
        (SOURCE,),
    )
    assert (past.seconds, past.today) == (3.0, "2026-01-02")


async def test_the_time_a_person_took_over_the_plan_is_not_work(runs: RunDirectory, clock: FakeClock) -> None:
    run_id = await write(runs, clock, STARTED, AgendaSet(("a",), 1, by="user", seconds=1.5), Warned("w", "A warning."))
    _, past = reopen_run(runs, run_id)
    assert past.log is not None
    await past.log.close()
    assert past.seconds == 1.5


async def test_a_plan_that_took_a_person_longer_than_the_log_says_leaves_no_time_of_work(
    runs: RunDirectory, clock: FakeClock
) -> None:
    run_id = await write(runs, clock, STARTED, AgendaSet(("a",), 1, by="user", seconds=60.0))
    _, past = reopen_run(runs, run_id)
    assert past.log is not None
    await past.log.close()
    assert past.seconds == 0.0


async def test_a_run_that_a_limit_ended_is_repeated_without_the_limit_and_its_end(runs: RunDirectory, clock: FakeClock) -> None:
    limits = (LimitNear(), LimitApplied("before 2", StopReason.BUDGET_SPENT), LimitReached(StopReason.BUDGET_SPENT))
    run_id = await write(runs, clock, STARTED, NUMBERED, *limits, finished(StopReason.BUDGET_SPENT))
    started, past = reopen_run(runs, run_id)
    assert (started, past.facts, past.log, past.seconds) == (STARTED, (STARTED, NUMBERED), None, 0.0)


async def test_a_run_whose_model_died_is_repeated(runs: RunDirectory, clock: FakeClock) -> None:
    failed = RunFailed("gone", "the model is gone", "", "", StopReason.API_ERROR, 1, Usage(), 1.0)
    run_id = await write(runs, clock, STARTED, failed)
    assert reopen_run(runs, run_id)[1].facts == (STARTED,)


@pytest.mark.parametrize("stop", [StopReason.FINAL_ANSWER, StopReason.PLAIN_ANSWER])
async def test_a_run_with_its_answer_is_not_resumed(runs: RunDirectory, clock: FakeClock, stop: StopReason) -> None:
    run_id = await write(runs, clock, STARTED, finished(stop))
    with pytest.raises(StoreError) as refusal:
        reopen_run(runs, run_id)
    assert (refusal.value.code, refusal.value.fix) == ("complete", f"nexi --show {run_id} shows it")


async def test_a_run_without_its_question_cannot_be_resumed(runs: RunDirectory, clock: FakeClock) -> None:
    for facts in ((), (Warned("w", "A warning."),)):
        run_id = await write(runs, clock, *facts)
        with pytest.raises(StoreError) as refusal:
            reopen_run(runs, run_id)
        assert refusal.value.cause == "it was cut off before its first fact"


async def test_a_run_whose_question_was_damaged_says_so(runs: RunDirectory, clock: FakeClock) -> None:
    warned, lost = Warned("w", "A warning."), Warned(LOST_FACT, "fact 1 of this log was damaged and is lost")
    causes = []
    for facts in ((lost, warned), (warned, lost)):
        run_id = await write(runs, clock, *facts)
        with pytest.raises(StoreError) as refusal:
            reopen_run(runs, run_id)
        causes.append(refusal.value.cause)
    assert causes == ["its first fact, the question, was damaged and is lost", "it was cut off before its first fact"]


async def test_a_finished_run_is_replayed_from_its_log_alone(runs: RunDirectory, clock: FakeClock) -> None:
    run_id = await write(runs, clock, STARTED, NUMBERED, finished(StopReason.MAX_ITERATIONS, "Far away [1]."))
    started, past, answer = read_finished_run(runs, run_id)
    assert (started, past.sources, answer) == (STARTED, (SOURCE,), "Far away [1].")
    assert past.recording.is_replay_only


async def test_a_run_without_an_answer_is_not_replayed(runs: RunDirectory, clock: FakeClock) -> None:
    run_id = await write(runs, clock, STARTED)
    with pytest.raises(StoreError) as refusal:
        read_finished_run(runs, run_id)
    assert (refusal.value.cause, refusal.value.fix) == ("it did not end with an answer", f"resume it: nexi resume {run_id}")


async def test_a_replay_is_refused_as_damaged_only_where_it_is(runs: RunDirectory) -> None:
    await runs.pages.put("It is far.")
    refuse_damaged_replay(runs, "run", [])


def test_a_run_resumed_by_hand_does_not_wait_for_its_plan_again() -> None:
    held = replace(STARTED, request=request_to_dict(RunRequest("q", mode="research", holds_plan=True, continues="earlier")))
    by_hand, by_door = request_to_resume(held, None), request_to_resume(held, RunRequest("", door="http"))
    assert (by_hand.holds_plan, by_door.holds_plan) == (False, True)
    assert request_to_resume(held, RunRequest("", model="other")).holds_plan is False
    assert (by_hand.continues, by_door.continues, by_door.door) == ("", "", "http")


def test_changes_win_and_the_rest_stays_as_it_was_asked() -> None:
    request = RunRequest("q", model="first", limits=RunLimits(max_cost=0.5, time_target=60))
    started = replace(STARTED, request=request_to_dict(request))
    resumed = request_to_resume(started, RunRequest("", limits=RunLimits(max_cost=2.0)))
    assert (resumed.model, resumed.limits) == ("first", RunLimits(max_iterations=7, max_cost=2.0, time_target=60))
    assert request_to_resume(started, RunRequest("", model="second")).model == "second"
    assert request_to_resume(replace(started, max_iterations=0), None).limits.max_iterations is None


def test_a_replay_has_no_limit_but_the_recorded_one_on_iterations(make_config: Callable[..., Config]) -> None:
    request = RunRequest("q", limits=RunLimits(max_cost=0.5, time_target=60, max_output_tokens=900), model="m", keeps_log=True)
    resolved = resolve_replay(replace(STARTED, request=request_to_dict(request)), make_config())
    assert resolved.request.limits == RunLimits(max_iterations=7, max_output_tokens=900)
    assert (resolved.request.model, resolved.request.keeps_log, resolved.request.keeps_history) == ("", False, False)
    assert resolved.budget == Budget(max_iterations=7)
    research = replace(STARTED, mode="research")
    assert resolve_replay(research, make_config()).budget == Budget()


def test_the_settings_of_a_run_are_its_own_and_no_others(make_config: Callable[..., Config]) -> None:
    started = replace(STARTED, settings={"config": {"max_context": 9_000, "base_url": "http://192.0.2.1/v1"}})
    config = config_of_run(started, make_config(max_context=50_000))
    assert (config.max_context, config.base_url) == (9_000, "http://127.0.0.1:9/v1")
    assert config_of_run(replace(STARTED, settings={"config": "none"}), make_config(max_context=5_000)).max_context == 5_000


async def test_a_conversation_comes_back_word_for_word_with_the_addresses_it_may_read(runs: RunDirectory) -> None:
    said = [
        Message("user", "See https://a.example/page please."),
        Message("assistant", "I read https://b.example/never."),
        Message("tool", '{"url": "https://c.example/hit"}', tool_call_id="1"),
    ]
    digest = await runs.pages.put(json.dumps([message.to_dict() for message in said]))
    session = await session_of(replace(STARTED, settings={"conversation": {"digest": digest}}), runs)
    assert [message.content for message in session.messages] == [message.content for message in said]
    refused = {url: bool(session.refuse_fetch(url)) for url in ("https://a.example/page", "https://b.example/never")}
    assert refused == {"https://a.example/page": False, "https://b.example/never": True}
    assert not session.refuse_fetch("https://c.example/hit")


async def test_a_conversation_that_cannot_be_read_is_an_empty_one(runs: RunDirectory) -> None:
    digest = await runs.pages.put("[1, 2")
    for kept in ({"digest": digest}, {"digest": "gone"}, "text", None):
        session = await session_of(replace(STARTED, settings={"conversation": kept}), runs)
        assert session.messages == []


async def test_sources_that_a_run_began_with_are_there_again(runs: RunDirectory) -> None:
    await runs.pages.put("It is far.")
    late = SourceNumbered(replace(SOURCE, number=2, url="https://late.example/"))
    session = await session_of(STARTED, runs, (STARTED, NUMBERED, ModelAsked(1, "answer", "m", 10), late))
    assert [source.url for source in session.book.sources] == ["https://moon.example/"]
    page = session.find_page("https://moon.example/")
    assert isinstance(page, Page)
    assert page.text == "It is far."


async def test_a_run_that_continued_another_has_the_conversation_and_the_sources_of_that_one(
    runs: RunDirectory, clock: FakeClock
) -> None:
    earlier = await write(runs, clock, STARTED, NUMBERED, finished(StopReason.FINAL_ANSWER))
    continued = replace(STARTED, settings={"continues": earlier})
    other = SourceNumbered(replace(SOURCE, url="https://other.example/"))
    session = await session_of(continued, runs, (continued, other))
    assert [(message.role, message.content.splitlines()[0]) for message in session.messages] == [
        ("user", "How far is the Moon?"),
        ("assistant", "Far [1]."),
    ]
    assert session.book.sources == (SOURCE,)


def test_a_replay_is_the_same_where_it_comes_to_the_same_answer() -> None:
    result = result_of("run", (STARTED, finished(StopReason.FINAL_ANSWER, "Far.")))
    assert [Replay("run", text, result).is_same for text in ("Far.", "Near.")] == [True, False]


def test_a_replay_cannot_be_changed() -> None:
    replay = Replay("run", "Far.", result_of("run", (STARTED, finished(StopReason.FINAL_ANSWER))))
    with pytest.raises(AttributeError):
        replay.answer = "Near."  # type: ignore[misc]


async def test_a_recorded_model_has_its_name_and_answers_nothing() -> None:
    model = RecordedLLM("large")
    with pytest.raises(LLMError) as refusal:
        await model.complete([])
    assert (model.name, refusal.value.code, refusal.value.cause) == ("large", "not_recorded", "this is a replay")


def test_a_search_holds_its_recorded_and_its_lost_calls_against_new_ones_and_research_the_lost_alone() -> None:
    facts = (
        ModelAsked(1, "answer", "m", 1000),
        ModelReplied(1, "", (), Usage(1200, 300, cost=0.4), "stop", 1.0),
        ModelAsked(2, "answer", "m", 500),
    )
    past = RecordedRun("run", facts)
    lost = Usage(600, 150, estimated=True, cost=0.2)
    assert past.unreplayed_usage("research") == (lost, 1)
    assert past.unreplayed_usage("search") == (lost + Usage(1200, 300, cost=0.4), 2)
