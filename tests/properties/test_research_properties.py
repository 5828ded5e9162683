"""The pure core of research holds its promises for every sequence of facts."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from nexi.errors import ResearchError
from nexi.events import (
    AgendaSet,
    Fact,
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
    Warned,
)
from nexi.research.state import (
    MAX_PARALLEL_RESEARCHERS,
    EndedStep,
    EvaluateStep,
    FailStep,
    FinishStep,
    PlanStep,
    ResearchState,
    StartStep,
    WaitStep,
    fold,
    next_step,
    reduce,
)
from nexi.types import StopReason, Usage

Draw = Callable[[st.SearchStrategy[int]], int]
STOPS = st.sampled_from([StopReason.BUDGET_SPENT, StopReason.CANCELLED, StopReason.TIME_TARGET])


def finished() -> RunFinished:
    return RunFinished("text", (), StopReason.FINAL_ANSWER, 1, Usage(), 1.0, 1, 1)


def failed(message: str) -> RunFailed:
    return RunFailed("critical_failure", message, "", "", StopReason.API_ERROR, 0, Usage(), 1.0)


def a_fact(draw: st.DrawFn, state: ResearchState) -> Fact:
    """Something that may happen next: what the step asks for, or an event among those who run."""
    step = next_step(state)
    if state.limit is None and draw(st.integers(0, 30)) == 0:
        return LimitReached(draw(STOPS))
    if state.running_researchers and (isinstance(step, WaitStep) or draw(st.booleans())):
        return of_a_researcher(draw, state)
    if isinstance(step, PlanStep):
        tasks = tuple(f"task {n}" for n in range(draw(st.integers(1, 5))))
        return AgendaSet(tasks, draw(st.integers(1, 3)))
    if isinstance(step, StartStep):
        return ResearcherStarted(step.tasks[0][0], state.round, step.tasks[0][1])
    if isinstance(step, EvaluateStep):
        again = step.may_delegate and draw(st.booleans())
        return (
            RoundEvaluated(step.round, "delegate", ("more",)) if again else RoundEvaluated(step.round, "synthesise", text="t")
        )
    if isinstance(step, FinishStep):
        return finished()
    assert isinstance(step, FailStep)
    return failed(step.message)


def of_a_researcher(draw: st.DrawFn, state: ResearchState) -> Fact:
    who = draw(st.sampled_from(state.running_researchers)).id
    facts: list[Fact] = [
        ToolStarted("c", "search", "{}", who),
        ToolFinished("c", draw(st.sampled_from(["search", "scrape", "grep"])), True, "", 0.1, who),
        ModelReplied(1, "", (), Usage(3, 4), "stop", 0.1, who),
        ReportsShared(who, 1, tuple(r.id for r in state.reported_researchers)),
        ResearcherReported(who, "report"),
        ResearcherFailed(who, "llm", "the model is gone"),
    ]
    return draw(st.sampled_from(facts))


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Fact, ResearchState]]:
    """A run to its end, with the state after every fact."""
    state = reduce(ResearchState(), RunStarted("q", "m", "model", "research"))
    history: list[tuple[Fact, ResearchState]] = []
    for _ in range(400):
        if isinstance(next_step(state), EndedStep):
            break
        fact = a_fact(draw, state)
        state = reduce(state, fact)
        history.append((fact, state))
    return history


@given(histories())
def test_round_budgets_hold_and_at_most_three_run_at_once(history: list[tuple[Fact, ResearchState]]) -> None:
    for _, state in history:
        assert len(state.running_researchers) <= MAX_PARALLEL_RESEARCHERS
        assert state.round <= state.max_rounds or state.status == "planning"


@given(histories())
def test_progress_never_falls_and_is_whole_only_at_the_end(history: list[tuple[Fact, ResearchState]]) -> None:
    shown = [state.progress for _, state in history]
    assert shown == sorted(shown)
    assert all(state.progress < 1 or state.status == "completed" for _, state in history)


@given(histories())
def test_every_researcher_ends_as_reported_or_failed_before_a_report_is_written(
    history: list[tuple[Fact, ResearchState]],
) -> None:
    for fact, state in history:
        if isinstance(fact, RoundEvaluated | RunFinished):
            assert {r.status for r in state.researchers} <= {"reported", "failed"}


@given(histories())
def test_nobody_starts_after_a_limit(history: list[tuple[Fact, ResearchState]]) -> None:
    limited = False
    for fact, state in history:
        assert not (limited and isinstance(fact, ResearcherStarted))
        limited = state.limit is not None


@given(histories())
def test_folding_the_facts_again_gives_the_same_state(history: list[tuple[Fact, ResearchState]]) -> None:
    facts = [RunStarted("q", "m", "model", "research"), *(fact for fact, _ in history)]
    assert not history or fold(facts) == history[-1][1]


@given(histories(), st.data())
def test_no_state_is_stuck_when_everyone_who_runs_ends(history: list[tuple[Fact, ResearchState]], data: st.DataObject) -> None:
    state = data.draw(st.sampled_from([s for _, s in history])) if history else ResearchState("q")
    for _ in range(100):
        step = next_step(state)
        if isinstance(step, EndedStep):
            return
        state = reduce(state, the_shortest_way(state))
    raise AssertionError(f"stuck in {state}")


def the_shortest_way(state: ResearchState) -> Fact:
    step = next_step(state)
    if isinstance(step, PlanStep):
        return AgendaSet(("task",), 1)
    if isinstance(step, StartStep):
        return ResearcherStarted(step.tasks[0][0], state.round, step.tasks[0][1])
    if isinstance(step, WaitStep):
        return ResearcherFailed(state.running_researchers[0].id, "llm", "gone")
    if isinstance(step, EvaluateStep):
        return RoundEvaluated(step.round, "synthesise", text="t")
    return finished() if isinstance(step, FinishStep) else failed("nothing")


ANY_FACT: st.SearchStrategy[Fact] = st.one_of(
    st.builds(RunStarted, st.just("q"), st.just("m"), st.just("model")),
    st.builds(AgendaSet, st.lists(st.sampled_from(["", "a", "b"]), max_size=7).map(tuple), st.integers(-1, 5)),
    st.builds(ResearcherStarted, st.sampled_from(["1.1", "1.2", "2.1", ""]), st.integers(0, 3), st.sampled_from(["a", "b"])),
    st.builds(
        ToolFinished,
        st.just("c"),
        st.just("search"),
        st.just(True),
        st.just(""),
        st.just(0.1),
        st.sampled_from(["", "1.1", "9.9"]),
    ),
    st.builds(ReportsShared, st.sampled_from(["1.1", "1.2"]), st.just(1), st.just(("1.1",))),
    st.builds(ResearcherReported, st.sampled_from(["1.1", "1.2"]), st.just("r")),
    st.builds(ResearcherFailed, st.sampled_from(["1.1", "1.2"]), st.just("llm"), st.just("gone")),
    st.builds(RoundEvaluated, st.integers(0, 4), st.sampled_from(["delegate", "synthesise", "?"]), st.just(("a",))),
    st.builds(LimitReached, STOPS),
    st.just(finished()),
    st.just(failed("x")),
    st.just(Warned("w", "w")),
)


@given(st.lists(ANY_FACT, max_size=30))
def test_a_fact_that_must_not_happen_is_named_and_changes_nothing(facts: list[Fact]) -> None:
    state = ResearchState()
    for fact in facts:
        try:
            state = reduce(state, fact)
        except ResearchError as error:
            refused = (error.message, bool(error.cause), error.code)
        else:
            refused = (f"the fact {fact.kind} must not happen here", True, "impossible_fact")
        assert refused == (f"the fact {fact.kind} must not happen here", True, "impossible_fact")
        next_step(state)
