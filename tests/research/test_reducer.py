"""A research run, fact by fact."""

from __future__ import annotations

import pytest

from nexi.errors import ResearchError
from nexi.events import (
    AgendaSet,
    Fact,
    LimitReached,
    ResearcherFailed,
    ResearcherReported,
    ResearcherStarted,
    RoundEvaluated,
    RunStarted,
    ToolFinished,
    ToolStarted,
)
from nexi.research.reducer import describe_action, fold, next_step
from nexi.research.state import EvaluateStep, FailStep, FinishStep, PlanStep, StartStep, WaitStep
from nexi.types import StopReason

BEGUN: list[Fact] = [RunStarted("q", "m", "model", "research")]
PLANNED: list[Fact] = [*BEGUN, AgendaSet(("a", "b", "c", "d", "e"), 3)]
THREE_RUN: list[Fact] = [*PLANNED, *(ResearcherStarted(f"1.{n}", 1, t) for n, t in ((1, "a"), (2, "b"), (3, "c")))]
TWO: list[Fact] = [*BEGUN, AgendaSet(("a", "b"), 1), ResearcherStarted("1.1", 1, "a"), ResearcherStarted("1.2", 1, "b")]


def test_a_run_begins_with_a_plan() -> None:
    assert next_step(fold(BEGUN)) == PlanStep()


def test_three_of_five_tasks_start_at_once_and_the_next_when_one_has_ended() -> None:
    assert next_step(fold(PLANNED)) == StartStep((("1.1", "a"), ("1.2", "b"), ("1.3", "c")))
    assert next_step(fold(THREE_RUN)) == WaitStep()
    assert next_step(fold([*THREE_RUN, ResearcherReported("1.2", "r")])) == StartStep((("1.4", "d"),))


def test_a_round_is_judged_when_all_have_ended_also_when_one_failed() -> None:
    ended = [*TWO, ResearcherReported("1.2", "r"), ResearcherFailed("1.1", "llm", "gone")]
    assert next_step(fold(ended)) == EvaluateStep(1, may_delegate=True)


def test_when_all_failed_the_run_fails_with_their_reasons() -> None:
    ended = [*TWO, ResearcherFailed("1.1", "llm", "no key"), ResearcherFailed("1.2", "llm", "no key")]
    assert next_step(fold(ended)) == FailStep("critical_failure", "all researchers failed: no key")


def test_when_nobody_found_anything_the_run_ends_without_evidence() -> None:
    ended = [*TWO, ResearcherFailed("1.1", "no_evidence", "nothing"), ResearcherFailed("1.2", "no_evidence", "nothing")]
    assert next_step(fold(ended)) == FailStep("no_evidence", "all researchers failed: nothing")


def test_when_a_later_round_fails_whole_the_report_is_written_from_the_earlier_ones() -> None:
    second = [RoundEvaluated(1, "delegate", ("c",)), ResearcherStarted("2.1", 2, "c"), ResearcherFailed("2.1", "llm", "gone")]
    reported = [ResearcherReported("1.1", "r"), ResearcherReported("1.2", "r")]
    assert next_step(fold([*TWO, *reported, *second])) == EvaluateStep(2, may_delegate=False)


def test_at_the_hard_limit_of_rounds_the_report_must_be_written() -> None:
    facts = [*TWO, ResearcherReported("1.1", "r"), ResearcherReported("1.2", "r")]
    for number in (2, 3, 4):
        facts += [RoundEvaluated(number - 1, "delegate", ("t",)), ResearcherStarted(f"{number}.1", number, "t")]
        facts += [ResearcherReported(f"{number}.1", "r")]
    assert next_step(fold(facts)) == EvaluateStep(4, may_delegate=False)
    with pytest.raises(ResearchError, match="round_evaluated must not happen here: no further round is allowed"):
        fold([*facts, RoundEvaluated(4, "delegate", ("t",))])


def test_after_a_limit_nobody_starts_and_what_there_is_becomes_the_report() -> None:
    spent = [*THREE_RUN, LimitReached(StopReason.BUDGET_SPENT)]
    assert next_step(fold(spent)) == WaitStep()
    ended = [*spent, *(ResearcherReported(f"1.{n}", "r") for n in (1, 2, 3))]
    assert next_step(fold(ended)) == EvaluateStep(1, may_delegate=False)
    assert next_step(fold([*ended, RoundEvaluated(1, "synthesise", text="# Report")])) == FinishStep("# Report")


def test_the_header_counts_ten_units_a_researcher_and_says_exploring_beyond_the_plan() -> None:
    gathered = ToolFinished("c", "search", True, "", 0.1, "1.1")
    scraped = ToolFinished("c", "scrape", True, "", 0.1, "1.1")
    state = fold([*TWO, gathered, gathered, scraped])
    assert (state.header, state.researchers[0].units, state.researchers[0].phase) == ("Research: 25%", 4, "scraping")
    facts = [*TWO, ResearcherReported("1.1", "r"), ResearcherReported("1.2", "r")]
    for number in (2, 3):
        facts += [RoundEvaluated(number - 1, "delegate", ("t",)), ResearcherStarted(f"{number}.1", number, "t")]
        facts += [ResearcherReported(f"{number}.1", "r")]
    assert fold(facts).header == "Research: exploring"


@pytest.mark.parametrize(
    ("name", "arguments", "action"),
    [
        ("search", '{"queries": ["Moon", "tides"]}', 'search "Moon", "tides"'),
        ("grep", '{"query": "moon"}', 'grep "moon"'),
        ("scrape", '{"urls": ["https://a.example/1", "https://a.example/2", "nonsense"]}', "scrape a.example, nonsense"),
        ("final_answer", '{"answer": "long"}', "final_answer"),
        ("search", "[1", "search [1"),
        ("search", '{"queries": 7}', "search"),
    ],
)
def test_what_a_researcher_did_last_reads_like_words(name: str, arguments: str, action: str) -> None:
    assert describe_action(ToolStarted("1", name, arguments)) == action
