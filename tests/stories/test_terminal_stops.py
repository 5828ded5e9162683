"""Stories of Ctrl-C: what the person asked for is no error, and what was found until then is not lost."""

from __future__ import annotations

import json

import pytest

from rig.terminal import CTRL_C
from tests.stories.world import QUESTION, Screen, World

ESTIMATE = "Depth 1: about 6 to 41 model calls and 20 k to 616 k tokens. Press Ctrl-C once to write the report\nnow.\n"
NOTHING_READ = "Stopped before any page was read. Continue it with: nexi resume ID"


def stop_at(world: World, gate: str, *arguments: str) -> Screen:
    """Ask in a terminal and press Ctrl-C while the model is held there."""
    model = world.use_model()
    model.hold(gate)
    with world.terminal(*arguments) as screen:
        model.wait_for(gate)
        screen.type(CTRL_C)
        done = world.look_at(screen)
    model.release()
    return done


def test_an_early_stop_of_a_question_says_stopped_and_is_no_error(world: World) -> None:
    assert stop_at(world, "search", QUESTION) == Screen(130, NOTHING_READ)
    assert (world.history(), world.run_list()) == ([], f"ID  TIME  stopped     search    {QUESTION}")
    assert [run["state"] for run in json.loads(world.run("runs", "--json").out)["runs"]] == ["stopped"]


def test_a_stopped_question_can_be_continued(world: World) -> None:
    stop_at(world, "search", QUESTION)
    resumed = world.run("resume", world.run_ids()[-1])
    assert resumed.code == 0
    assert "The Moon is 384,400 km from Earth on average" in resumed.out


def test_a_late_stop_of_a_question_answers_from_what_was_read(world: World) -> None:
    done = stop_at(world, "answer", QUESTION)
    assert done.code == 130
    assert "Error" not in done.out
    assert done.out.startswith(
        "Warning: the search was stopped; this answer uses what was read until then\n"
        "Warning: the answer was assembled from passages without a model\n"
        "The Moon is 384,400 km from Earth on average. [1]\n\nSources\n[1] Moon facts  127.0.0.1  1 of 1 sentence found\n"
    )
    assert [entry["answer"] for entry in world.history()] == ["The Moon is 384,400 km from Earth on average. [1]"]


@pytest.mark.parametrize(("gate", "before"), [("plan", ""), ("search", ESTIMATE)])
def test_an_early_stop_of_research_says_stopped_and_is_no_error(world: World, gate: str, before: str) -> None:
    assert stop_at(world, gate, "research", "--yes", QUESTION) == Screen(130, before + NOTHING_READ)
    assert world.run_list() == f"ID  TIME  stopped     research  {QUESTION}"


def test_a_late_stop_of_research_writes_the_report_that_was_promised(world: World) -> None:
    done = stop_at(world, "judge", "research", "--yes", QUESTION)
    assert done.code == 130
    assert done.out.startswith(ESTIMATE)
    assert "Warning: the research was stopped; the report uses what was found until then\n" in done.out
    assert "Warning: the report was assembled from the researchers' reports without a model\n" in done.out
    assert "The Moon is 384,400 km from Earth on average [1]." in done.out
    assert "Error" not in done.out
    assert [entry["query"] for entry in world.history()] == [QUESTION]
