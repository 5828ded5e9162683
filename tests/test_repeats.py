"""The same call with the same arguments is answered with a fixed message, and a model that goes on is ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nexi.agent.repeats import RepeatedCalls, _call_key
from nexi.config import Config
from nexi.events import LimitApplied, SearchFinished, ToolFinished
from nexi.testing import answering, calling, reading, searching
from nexi.types import StopReason, ToolCall, ToolResult
from tests.scenarios.world import MOON, World

Make = Callable[..., Config]

FOUND = ToolResult(("hit",), "{}")
NOTHING = ToolResult((), "{}")
FAILED = ToolResult(None, "{}", ok=False)


def call(arguments: str = '{"queries": ["moon"]}', name: str = "web_search") -> ToolCall:
    return ToolCall("c", name, arguments)


def test_keys_in_another_order_and_blanks_make_no_other_call() -> None:
    assert _call_key(call('{"a":1, "b": 2}')) == _call_key(call('{"b": 2,"a": 1}'))
    assert _call_key(call('{"a": 1}')) != _call_key(call('{"a": 2}'))
    assert _call_key(call("", "x")) == _call_key(call("{}", "x"))
    assert _call_key(call("[broken", "x")) == "x [broken"


def test_a_call_that_brought_something_runs_once() -> None:
    repeats = RepeatedCalls()
    assert repeats.start_call(call())
    repeats.end_call(call(), FOUND)
    assert not repeats.start_call(call())


@pytest.mark.parametrize("result", [NOTHING, FAILED, None])
def test_a_call_that_brought_nothing_may_be_tried_once_more(result: ToolResult | None) -> None:
    repeats, ran = RepeatedCalls(), 0
    for _ in range(5):
        if repeats.start_call(call()):
            ran += 1
            repeats.end_call(call(), result)
    assert ran == 2


def test_a_call_that_is_under_way_is_not_begun_beside_itself() -> None:
    repeats = RepeatedCalls()
    assert [repeats.start_call(call()), repeats.start_call(call())] == [True, False]


def test_two_turns_of_repeats_in_a_row_are_a_circle_and_another_call_breaks_it() -> None:
    repeats = RepeatedCalls()
    turns = [(2, 2), (2, 1), (1, 1), (0, 0), (1, 1), (3, 3)]
    looping = []
    for turn in turns:
        looping.append(repeats.count_turn(*turn))
    assert looping == [False, False, False, False, False, True]


def test_what_is_out_of_sight_may_be_asked_for_again() -> None:
    repeats = RepeatedCalls()
    repeats.start_call(call())
    repeats.end_call(call(), FOUND)
    repeats.forget()
    assert repeats.start_call(call())


def test_forgetting_gives_a_call_all_its_tries_again() -> None:
    repeats, tries = RepeatedCalls(), []
    for _ in range(3):
        tries.append(repeats.start_call(call()))
        repeats.end_call(call(), NOTHING)
    repeats.forget()
    assert [*tries, repeats.start_call(call())] == [True, True, False, True]


async def test_a_search_that_is_repeated_is_not_run_again(make_config: Make) -> None:
    world = World(
        make_config(), searching("moon"), searching("moon"), reading(MOON), answering("The Moon is 384,400 km from Earth [1].")
    )
    result = await world.ask("How far is the Moon?")
    assert result.answer.stop is StopReason.FINAL_ANSWER
    assert sum(isinstance(f, SearchFinished) for f in result.facts) == 1
    second = [f for f in result.facts if isinstance(f, ToolFinished)][1]
    assert (second.ok, "not run again" in second.text) == (False, True)


async def test_a_model_that_goes_round_in_circles_is_ended_with_what_was_read(make_config: Make) -> None:
    world = World(make_config(), *[reading(MOON)] * 9)
    result = await world.ask(f"How far is the Moon, says {MOON}?")
    assert result.answer.stop is StopReason.REPEATED
    assert "384,400 km" in result.answer.text
    assert any("the same calls again and again" in warning for warning in result.answer.warnings)


async def test_after_circles_before_anything_was_read_the_built_in_model_answers(make_config: Make) -> None:
    world = World(make_config(), *[calling("web_search", queries=["moon"])] * 9)
    result = await world.ask("How far is the Moon?")
    assert [f.stop for f in world.facts if isinstance(f, LimitApplied)] == [StopReason.REPEATED]
    assert "384,400 km" in result.answer.text


def test_what_compaction_removed_may_be_asked_for_again_but_not_for_ever() -> None:
    repeats, ran = RepeatedCalls(max_runs=2), []
    for _ in range(4):
        ran.append(repeats.start_call(call()))
        repeats.end_call(call(), FOUND)
        repeats.forget()
    assert ran == [True, True, False, False]
