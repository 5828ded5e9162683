"""A call in flight at a kill was paid for: a run that goes on counts it, though its log has only the intent."""

from __future__ import annotations

from nexi.app.environment import RecordedRun
from nexi.events import ModelAsked, ModelReplied
from nexi.types import Usage


def test_a_call_that_a_kill_cut_is_estimated_by_its_prompt_and_by_what_the_others_cost() -> None:
    facts = (
        ModelAsked(1, "answer", "m", 1000),
        ModelReplied(1, "", (), Usage(1200, 300, cost=0.4), "stop", 1.0),
        ModelAsked(2, "answer", "m", 2000),
    )
    assert RecordedRun("run", facts).lost_usage() == (Usage(2400, 600, estimated=True, cost=0.8), 1)


def test_a_run_of_which_every_call_ended_has_lost_none() -> None:
    facts = (ModelAsked(1, "answer", "m", 1000), ModelReplied(1, "", (), Usage(1200, 300, cost=0.4), "stop", 1.0))
    assert RecordedRun("run", facts).lost_usage() == (Usage(), 0)
