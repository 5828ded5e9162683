"""A run that is held waits with its plan until somebody settles it, and what they think costs it no time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest

from nexi.app import Nexi, Run, RunLimits, RunRequest, RunResult
from nexi.config import Config
from nexi.errors import NexiError, ResearchError
from nexi.events import AgendaProposed, AgendaSet, RunFailed
from nexi.research.planner import MAX_TASK_CHARS, Agenda, PlanGate
from tests.research.world import AGENDA, PAGES, QUESTION, PromptModel, SlowWeb, nexi_over, play

Make = Callable[..., Config]
TASKS = ("How far away is the Moon from Earth?", "Which moons does Mars have?")


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def held(config: Config, settle: Callable[[Run], object], *, time_target: float | None = None, think: float = 0.0) -> RunResult:
    """A held run to its end; `settle` is called when its plan waits."""

    async def work() -> RunResult:
        nexi = nexi_over(config, SlowWeb(PAGES), PromptModel())
        request = RunRequest(QUESTION, holds_plan=True, limits=RunLimits(time_target=time_target))
        async with nexi, nexi.research(request) as run:
            async for event in run:
                if isinstance(event, AgendaProposed):
                    await asyncio.sleep(think)
                    settle(run)
            return run.result()

    return play(work)


def _set(result: RunResult) -> AgendaSet:
    return next(f for f in result.facts if isinstance(f, AgendaSet))


def test_a_plan_that_is_settled_as_it_is_is_researched_as_it_was_made(make_config: Make) -> None:
    result = held(make_config(), lambda run: run.gate.settle())
    proposed = next(f for f in result.facts if isinstance(f, AgendaProposed))
    assert (proposed.tasks, proposed.by, proposed.estimate) == (tuple(AGENDA), "model", _set(result).estimate)
    assert proposed.estimate.startswith("about ")
    assert (_set(result).tasks, _set(result).by) == (tuple(AGENDA), "model")


def test_other_tasks_take_the_place_of_those_proposed_and_a_replay_uses_them(make_config: Make) -> None:
    config = make_config()
    result = held(config, lambda run: run.gate.settle(["How far  away is the Moon from Earth?", *TASKS]))
    assert (_set(result).tasks, _set(result).by) == (TASKS, "user")

    async def replayed() -> bool:
        async with nexi_over(config, SlowWeb({}), PromptModel()) as nexi:
            return (await nexi.replay(result.id)).is_same

    assert play(replayed)


def test_what_a_person_thinks_counts_for_no_limit(make_config: Make) -> None:
    result = held(make_config(), lambda run: run.gate.settle(), time_target=30.0, think=4000.0)
    assert (result.answer.stop.value, _set(result).seconds) == ("final_answer", 4000.0)


@pytest.mark.parametrize("end", [lambda run: run.gate.refuse(), lambda run: run.stop()], ids=["refused", "stopped"])
def test_a_plan_that_is_refused_or_stopped_is_not_researched(make_config: Make, end: Callable[[Run], object]) -> None:
    with pytest.raises(NexiError) as caught:
        held(make_config(), end)
    assert (caught.value.code, caught.value.cause) == ("not_approved", "its plan was not approved")


@pytest.mark.parametrize("tasks", [[], ["  "], [f"task {n}" for n in range(6)], ["x" * (MAX_TASK_CHARS + 1)]])
async def test_tasks_that_cannot_be_researched_are_refused_and_the_plan_still_waits(tasks: list[str]) -> None:
    gate, agenda = PlanGate(), Agenda(("a",), 1)
    waiting = asyncio.ensure_future(gate(agenda))
    await asyncio.sleep(0)
    with pytest.raises(ResearchError) as caught:
        gate.settle(tasks)
    assert (caught.value.code, gate.proposed) == ("bad_plan", agenda)
    gate.refuse()
    assert await waiting is None


async def test_a_plan_can_be_settled_once_and_not_before_it_is_made() -> None:
    gate = PlanGate()
    with pytest.raises(ResearchError) as early:
        gate.settle()
    waiting = asyncio.ensure_future(gate(Agenda(("a",), 1)))
    await asyncio.sleep(0)
    gate.settle(["b"])
    with pytest.raises(ResearchError) as late:
        gate.settle()
    assert (early.value.code, late.value.code, await waiting) == ("no_plan", "no_plan", Agenda(("b",), 1, "user"))


def test_a_held_run_that_its_server_left_waits_again_with_the_same_plan_and_asks_nothing_twice(make_config: Make) -> None:
    config, served = make_config(), RunRequest(QUESTION, holds_plan=True, door="http")

    async def left_open() -> str:
        nexi = nexi_over(config, SlowWeb(PAGES), PromptModel())
        async with nexi, nexi.research(served) as run:
            async for event in run:
                if isinstance(event, AgendaProposed):
                    run.suspend()
                    return run.id
        raise AssertionError("no plan was proposed")

    async def taken_up(run_id: str) -> tuple[tuple[str, ...], int, RunResult]:
        model = PromptModel()
        nexi = nexi_over(config, SlowWeb(PAGES), model)
        async with nexi, nexi.resume(run_id, changes=served) as run:
            proposed = await _proposed(run)
            asked = len(model.asked)
            run.gate.settle(TASKS)
            async for _ in run:
                pass
            return proposed, asked, run.result()

    run_id = play(left_open)
    proposed, asked, result = play(lambda: taken_up(run_id))
    assert (proposed, asked, result.id, _set(result).tasks) == (tuple(AGENDA), 0, run_id, TASKS)


async def _proposed(run: Run) -> tuple[str, ...]:
    while run.gate is None or run.gate.proposed is None:
        await asyncio.sleep(0.1)
    return run.gate.proposed.tasks


def test_a_held_run_that_is_taken_up_by_hand_goes_on_without_asking(make_config: Make) -> None:
    config = make_config()

    async def left_open() -> str:
        nexi = nexi_over(config, SlowWeb(PAGES), PromptModel())
        async with nexi, nexi.research(RunRequest(QUESTION, holds_plan=True)) as run:
            async for event in run:
                if isinstance(event, AgendaProposed):
                    run.suspend()
                    return run.id
        raise AssertionError("no plan was proposed")

    async def taken_up(nexi: Nexi, run_id: str) -> RunResult:
        async with nexi, nexi.resume(run_id) as run:
            async for _ in run:
                pass
            return run.result()

    run_id = play(left_open)
    result = play(lambda: taken_up(nexi_over(config, SlowWeb(PAGES), PromptModel()), run_id))
    assert _set(result).tasks == tuple(AGENDA)
    assert not any(isinstance(f, RunFailed) for f in result.facts)
