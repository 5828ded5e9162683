"""A research run, fact by fact."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nexi.errors import ResearchError
from nexi.events import (
    AgendaProposed,
    AgendaSet,
    Fact,
    LimitNear,
    LimitReached,
    ModelReplied,
    ReportsShared,
    ResearcherFailed,
    ResearcherReported,
    ResearcherStarted,
    RoundEvaluated,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolStarted,
)
from nexi.research.state import (
    EndedStep,
    EvaluateStep,
    FailStep,
    FinishStep,
    PlanStep,
    StartStep,
    WaitStep,
    fold,
    next_step,
    reduce,
)
from nexi.types import StopReason, Usage
from tests.raising import has_code

BEGUN: list[Fact] = [RunStarted("q", "m", "model", "research")]
PLANNED: list[Fact] = [*BEGUN, AgendaSet(("a", "b", "c", "d", "e"), 3)]
THREE_RUN: list[Fact] = [*PLANNED, *(ResearcherStarted(f"1.{n}", 1, t) for n, t in ((1, "a"), (2, "b"), (3, "c")))]
TWO: list[Fact] = [*BEGUN, AgendaSet(("a", "b"), 1), ResearcherStarted("1.1", 1, "a"), ResearcherStarted("1.2", 1, "b")]

REPLIED = ModelReplied(1, "text", (), Usage(10, 5), "stop", 0.1)
RUN_FINISHED = RunFinished("# Report", (), StopReason.FINAL_ANSWER, 1, Usage(), 0.5, 1, 1)
RUN_FAILED = RunFailed("llm", "it failed", "", "", StopReason.API_ERROR, 1, Usage(), 0.5)


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
    assert next_step(fold(ended)) == FailStep("critical_failure", "no key")


def test_when_nobody_found_anything_the_run_ends_without_evidence() -> None:
    ended = [*TWO, *(ResearcherFailed(name, "no_evidence", "nothing", "add json") for name in ("1.1", "1.2"))]
    assert next_step(fold(ended)) == FailStep("no_evidence", "nothing", "add json")


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
    with pytest.raises(ResearchError, check=has_code("impossible_fact", "round_evaluated")):
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
    assert (state.header, state.researchers[0].units, state.researchers[0].phase) == ("Research: 16%", 4, "scraping")
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
    assert fold([*TWO, ToolStarted("1", name, arguments, "1.1")]).researchers[0].last_action == action


# facts that must not happen, and what each leaves behind


def refused(*facts: Fact) -> str:
    """The reason why the last of these facts must not happen."""
    *before, last = facts
    state = fold(before)
    with pytest.raises(ResearchError) as caught:
        reduce(state, last)
    assert caught.value.code == "impossible_fact"
    return caught.value.cause


def test_a_proposal_waits_until_the_agenda_is_set_and_none_follows_it() -> None:
    proposed = fold([*BEGUN, AgendaProposed(("a", "b"), 1)])
    assert (proposed.proposed, proposed.status, next_step(proposed)) == (("a", "b"), "planning", PlanStep())
    assert refused(*PLANNED, AgendaProposed(("a",), 1)) == "the agenda is already set"
    assert refused(*PLANNED, AgendaSet(("a",), 1)) == "the agenda is already set"


@pytest.mark.parametrize("tasks", [(), ("a", "b", "c", "d", "e", "f"), ("a", " "), ("",)])
def test_an_agenda_has_one_to_five_tasks_with_words_in_them(tasks: tuple[str, ...]) -> None:
    reason = f"it has {len(tasks)} tasks, not 1 to 5 with words in them"
    reported = [*TWO, ResearcherReported("1.1", "r"), ResearcherReported("1.2", "r")]
    assert refused(*BEGUN, AgendaProposed(tasks, 1)) == reason
    assert refused(*BEGUN, AgendaSet(tasks, 1)) == reason
    assert refused(*reported, RoundEvaluated(1, "delegate", tasks)) == reason


@pytest.mark.parametrize("complexity", [0, 4, -1])
def test_a_complexity_is_one_two_or_three(complexity: int) -> None:
    assert refused(*BEGUN, AgendaSet(("a",), complexity)) == f"its complexity is {complexity}, not 1, 2 or 3"


def test_a_run_begins_once_and_nothing_follows_its_end() -> None:
    assert refused(*BEGUN, RunStarted("again", "m", "model", "research")) == "the run has already begun"
    assert refused(*BEGUN, RUN_FAILED, AgendaSet(("a",), 1)) == "the run has ended"
    assert next_step(fold([*BEGUN, RUN_FAILED])) == EndedStep()


def test_a_researcher_starts_in_its_turn_and_not_once_the_report_is_written() -> None:
    done = [*TWO, ResearcherReported("1.1", "r"), ResearcherReported("1.2", "r")]
    written = [*done, RoundEvaluated(1, "synthesise", text="# Report")]
    assert refused(*BEGUN, ResearcherStarted("1.1", 1, "a")) == "no researcher may start now"
    assert refused(*written, ResearcherStarted("1.3", 1, "c")) == "no researcher may start now"
    assert refused(*PLANNED, ResearcherStarted("1.2", 1, "b")) == "researcher 1.2 was not next"
    assert refused(*PLANNED, ResearcherStarted("1.1", 2, "a")) == "researcher 1.1 was not next"
    assert refused(*PLANNED, ResearcherStarted("1.1", 1, "b")) == "researcher 1.1 was not next"


def test_a_report_is_shared_with_one_who_runs_by_one_who_has_reported() -> None:
    shared = [*TWO, ResearcherReported("1.1", "r"), ReportsShared("1.2", 1, ("1.1",))]
    assert fold(shared) == fold(shared[:-1])
    assert refused(*TWO, ReportsShared("1.2", 1, ("1.1",))) == "researcher 1.1 has not reported"
    assert refused(*shared[:-1], ReportsShared("1.1", 1, ("1.1",))) == "researcher 1.1 has already reported"


def test_a_round_is_judged_by_its_number_with_a_known_decision() -> None:
    done = [*TWO, ResearcherReported("1.1", "r"), ResearcherReported("1.2", "r")]
    assert refused(*TWO, RoundEvaluated(1, "synthesise", text="t")) == "the round is not over"
    assert refused(*done, RoundEvaluated(2, "synthesise", text="t")) == "the round is 1"
    assert refused(*done, RoundEvaluated(1, "ponder")) == "'ponder' is no decision"  # type: ignore[arg-type]


def test_what_the_run_itself_calls_belongs_to_no_researcher() -> None:
    own = [ToolStarted("c", "search", "{}"), ToolFinished("c", "search", True, "", 0.1), REPLIED]
    state = fold([*TWO, *own])
    assert state.researchers == fold(TWO).researchers
    assert state.usage == Usage(10, 5)
    assert refused(*TWO, ToolStarted("c", "search", "{}", "9.9")) == "there is no researcher 9.9"


def test_what_a_researcher_spends_counts_for_it_and_for_the_run() -> None:
    state = fold([*TWO, replace(REPLIED, agent="1.1"), replace(REPLIED, agent="1.1"), REPLIED])
    assert ([r.usage for r in state.researchers], state.usage) == ([Usage(20, 10), Usage()], Usage(30, 15))


def test_the_last_action_is_cut_and_the_report_counts_for_no_phase() -> None:
    state = fold([*TWO, ToolStarted("c", "search", "x" * 500, "1.1"), ToolFinished("c", "final_answer", True, "", 0.1, "1.1")])
    first = state.researchers[0]
    assert (len(first.last_action), first.gathered, first.scraped) == (200, 0, 0)


def test_a_limit_is_remembered_as_the_first_one_and_a_near_one_as_near() -> None:
    facts = [*TWO, LimitNear(), LimitReached(StopReason.TIME_TARGET), LimitReached(StopReason.BUDGET_SPENT)]
    state = fold(facts)
    assert (state.is_near_limit, state.limit) == (True, StopReason.TIME_TARGET)
    assert fold(TWO).is_near_limit is False


def test_a_limit_before_the_plan_and_one_before_any_report_end_the_run() -> None:
    stopped = LimitReached(StopReason.TIME_TARGET)
    assert next_step(fold([*BEGUN, stopped])) == FailStep("no_evidence", "the run was stopped before it was planned")
    before_any = fold([*BEGUN, AgendaSet(("a",), 1), stopped])
    assert next_step(before_any) == FailStep("critical_failure", "the run was stopped before any researcher had reported")


def test_at_most_three_reasons_are_given_each_once() -> None:
    facts = [*BEGUN, AgendaSet(("a", "b", "c", "d", "e"), 3)]
    for n, task in enumerate("abcde", 1):
        facts += [ResearcherStarted(f"1.{n}", 1, task), ResearcherFailed(f"1.{n}", "llm", f"reason {min(n, 4)}")]
    assert next_step(fold(facts)) == FailStep("critical_failure", "reason 1; reason 2; reason 3")
    two = [*TWO, ResearcherFailed("1.1", "llm", "same"), ResearcherFailed("1.2", "llm", "")]
    assert next_step(fold(two)) == FailStep("critical_failure", "same; llm")


def test_progress_counts_started_waiting_and_planned_work() -> None:
    reported = [*THREE_RUN, *(ResearcherReported(f"1.{n}", "r") for n in (1, 2, 3))]
    shares = [round(fold(facts).progress, 3) for facts in (BEGUN, PLANNED, THREE_RUN, reported)]
    assert shares == [0.0, 0.0, round(3 / 130, 3), round(30 / 130, 3)]  # 5 tasks, and 2 expected in each of 4 more rounds
    done = [*TWO, ResearcherReported("1.1", "r"), ResearcherReported("1.2", "r")]
    assert round(fold(done).progress, 3) == round(2 / 3, 3)
    finished = [*done, RoundEvaluated(1, "synthesise", text="# Report"), RUN_FINISHED]
    assert (fold(finished).progress, next_step(fold(finished))) == (1.0, EndedStep())
    assert refused(*done, RUN_FINISHED) == "no report was written"


def test_progress_never_falls_and_never_stands_still_for_a_round() -> None:
    facts: list[Fact] = [*TWO]
    ends = []
    for number in (1, 2, 3, 4):
        names = [r.id for r in fold(facts).running_researchers]
        for name in names:
            facts += [ToolFinished("c", "search", True, "", 0.1, name), ResearcherReported(name, "r")]
        ends.append(fold(facts).progress)
        if number < 4:
            tasks = ("t", "u", "v")
            facts.append(RoundEvaluated(number, "delegate", tasks))
            facts += [ResearcherStarted(f"{number + 1}.{n}", number + 1, task) for n, task in enumerate(tasks, 1)]
    each = [fold(facts[:count]).progress for count in range(1, len(facts) + 1)]
    assert each == sorted(each)
    assert [round(end, 2) for end in ends] == [0.67, 0.99, 0.99, 0.99]
