"""The lead evaluator: delegation is recognised, everything else is the report, and reports stand in for it."""

from __future__ import annotations

import json

import pytest

from nexi.errors import LLMError
from nexi.events import (
    AgendaSet,
    Fact,
    LimitNear,
    LimitReached,
    ResearcherFailed,
    ResearcherReported,
    ResearcherStarted,
    RoundEvaluated,
    RunStarted,
)
from nexi.research.evaluator import (
    EvaluationLimits,
    RoundJudgement,
    _parse_judgement,
    cut_to_bytes,
    describe_budget,
    evaluate_round,
    judge_without_model,
)
from nexi.research.state import EvaluateStep, ResearchState, fold
from nexi.testing import ScriptedLLM
from nexi.types import Reply, StopReason

TERMS = EvaluationLimits(window=8000, max_tokens=1000)
MORE = json.dumps({"action": "delegate", "queries": ["What is a neap tide?"]})
DELEGATES = RoundJudgement("delegate", ("What is a neap tide?",))
MAY, MUST = EvaluateStep(1, may_delegate=True), EvaluateStep(1, may_delegate=False)


def after(
    *reports: str, question: str = "How far is the Moon, and what are tides?", tasks: tuple[str, ...] = ()
) -> ResearchState:
    """A round whose researchers reported this; "" failed."""
    agenda = tasks or tuple(f"task {n}" for n in range(1, len(reports) + 1))
    facts: list[Fact] = [RunStarted(question, "m", "model", "research"), AgendaSet(agenda, 2)]
    facts += [ResearcherStarted(f"1.{n}", 1, task) for n, task in enumerate(agenda, 1)]
    for n, report in enumerate(reports, 1):
        facts.append(ResearcherReported(f"1.{n}", report) if report else ResearcherFailed(f"1.{n}", "llm", "the model is gone"))
    return fold(facts)


@pytest.mark.parametrize(
    "text",
    [
        MORE,
        f"```json\n{MORE}\n```",
        f"```\n{MORE}\n```",
        f"<think>Tides are missing.</think>\n{MORE}",
        f"  {MORE}  ",
        f"The findings are incomplete, so I delegate:\n```json\n{MORE}\n```",
        f"The reports agree [1][2], but neap tides are missing. {MORE} That should do.",
        json.dumps({"action": "delegate", "tasks": ["What is a neap tide?"]}),
        json.dumps({"action": "delegate", "queries": ["What is a neap tide?", "", 3, "What is\n a neap tide?"]}),
    ],
)
def test_a_delegation_is_read_bare_fenced_in_prose_and_behind_leaked_thoughts(text: str) -> None:
    assert _parse_judgement(text) == DELEGATES


@pytest.mark.parametrize(
    ("text", "report"),
    [
        ("# Tides\n\nThey follow the Moon [1].", "# Tides\n\nThey follow the Moon [1]."),
        (f"# Agents\n\nThey say {MORE} [1].", f"# Agents\n\nThey say {MORE} [1]."),
        (f"{'Much prose. ' * 60}{MORE}", f"{'Much prose. ' * 60}{MORE}"),
        ('{"action": "synthesise"}', '{"action": "synthesise"}'),
        ("{not json", "{not json"),
        ("<think>hm</think><answer># Tides [1]</answer>", "# Tides [1]"),
        ("", ""),
    ],
)
def test_everything_else_is_the_report(text: str, report: str) -> None:
    assert _parse_judgement(text) == RoundJudgement("synthesise", text=report)


def test_a_delegation_of_nothing_is_no_delegation() -> None:
    assert _parse_judgement('{"action": "delegate", "queries": []}') == RoundJudgement("synthesise")


def test_at_most_five_tasks_are_delegated() -> None:
    many = json.dumps({"action": "delegate", "queries": [f"q{n}" for n in range(9)]})
    assert _parse_judgement(many).tasks == ("q0", "q1", "q2", "q3", "q4")


async def test_the_evaluator_reads_the_agenda_every_report_and_what_failed() -> None:
    model = ScriptedLLM(Reply("# Report [1]"))
    state = after("The Moon is far [1].", "", tasks=("How far is the Moon?", "What are tides?"))
    terms = EvaluationLimits(8000, 1000, describe_budget(ResearchState(is_near_limit=True)))
    assert await evaluate_round(state, MAY, model, terms) == RoundJudgement("synthesise", text="# Report [1]")
    rules, reports = (m.content for m in model.requests[0])
    assert "- How far is the Moon?\n- What are tides?" in rules
    assert (
        "Round 1 of 3 planned rounds has ended; 5 is the most there can be. More than 80 % of the budget is used: finish soon."
        in rules
    )
    assert '"action": "delegate"' in rules
    assert reports == (
        "## Researcher 1.1: How far is the Moon?\n\nThe Moon is far [1].\n\n"
        "## Without a report\n\n- 1.2 (What are tides?): the model is gone"
    )


async def test_one_who_delegates_in_the_last_round_is_asked_once_more_for_the_report() -> None:
    model = ScriptedLLM(Reply(MORE), Reply("# Report [1]"))
    assert await evaluate_round(after("Far [1]."), MUST, model, TERMS) == RoundJudgement("synthesise", text="# Report [1]")
    first, second = model.requests
    assert "No further round is possible." in first[0].content
    assert (second[:2], [m.content for m in second[2:]]) == (
        first,
        ["No further round is possible. Write the report now from what there is, and name what is missing."],
    )


async def test_one_who_delegates_twice_in_the_last_round_is_answered_with_a_digest() -> None:
    model = ScriptedLLM(Reply(MORE), Reply(MORE))
    judgement = await evaluate_round(after("The Moon is far [1]."), MUST, model, TERMS)
    assert (judgement.decision, judgement.by, len(model.requests)) == ("synthesise", "built-in", 2)


async def test_an_empty_reply_is_asked_for_once_more_without_the_choice() -> None:
    model = ScriptedLLM(Reply(""), Reply("# Report [1]"))
    assert await evaluate_round(after("Far [1]."), MAY, model, TERMS) == RoundJudgement("synthesise", text="# Report [1]")
    assert ['"action": "delegate"' in request[0].content for request in model.requests] == [True, False]


async def test_a_report_that_cites_nothing_gives_way_to_what_was_cited() -> None:
    judgement = await evaluate_round(after("The Moon is far [1]."), MUST, ScriptedLLM(Reply("# The Moon\n\nIt is far.")), TERMS)
    assert judgement.by == "built-in"
    assert "The Moon is far [1]." in judgement.text


async def test_a_dead_model_costs_the_judgement_and_not_the_reports() -> None:
    judgement = await evaluate_round(after("The Moon is far [1]."), MUST, ScriptedLLM(LLMError("gone")), TERMS)
    assert "The Moon is far [1]." in judgement.text


async def test_reports_are_cut_to_their_share_of_the_window() -> None:
    model = ScriptedLLM(Reply("# Report [1]"))
    state = after(*(f"{n} " + "ünï " * 20_000 for n in range(3)))
    await evaluate_round(state, MUST, model, EvaluationLimits(window=6000, max_tokens=1000))
    told = model.requests[0][1].content
    assert len(told.encode()) < (6000 - 1000) * 3
    assert told.count("[cut here]") == 3


def test_a_cut_never_splits_a_character() -> None:
    assert cut_to_bytes("äöü", 3) == "ä\n\n[cut here]"
    assert cut_to_bytes("äöü", 6) == "äöü"


def test_without_a_model_what_no_report_covers_is_looked_for_once_more() -> None:
    state = after("The Moon is far from Earth [1].", "Nothing.", tasks=("How far is the Moon?", "What causes ocean tides?"))
    assert judge_without_model(state, MAY) == RoundJudgement("delegate", ("causes ocean tides",), by="built-in")
    assert judge_without_model(state, MUST).decision == "synthesise"


def test_without_a_model_there_is_no_third_round() -> None:
    state = after("The Moon is far [1].", "Nothing.", tasks=("How far is the Moon?", "What causes ocean tides?"))
    second: list[Fact] = [
        RoundEvaluated(1, "delegate", ("causes ocean tides",)),
        ResearcherStarted("2.1", 2, "causes ocean tides"),
        ResearcherReported("2.1", "Nothing."),
    ]
    assert judge_without_model(fold(second, state), EvaluateStep(2, may_delegate=True)).decision == "synthesise"


def test_the_budget_is_mentioned_from_eighty_per_cent_on() -> None:
    states = fold(()), fold((LimitNear(),)), fold((LimitNear(), LimitReached(StopReason.BUDGET_SPENT)))
    said = ["", "More than 80 % of the budget is used: finish soon.", "The budget is spent."]
    assert [describe_budget(state) for state in states] == said


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (StopReason.TIME_TARGET, "The time target was reached."),
        (StopReason.CANCELLED, "The user has stopped the research."),
        (StopReason.BUDGET_SPENT, "The budget is spent."),
    ],
)
def test_the_evaluator_is_told_which_limit_was_reached_unless_the_run_began_without(limit: StopReason, sentence: str) -> None:
    state = fold((LimitReached(limit),))
    assert (describe_budget(state), describe_budget(state, names_limit=False)) == (sentence, "The budget is spent.")


def test_researchers_are_ordered_by_round_and_number() -> None:
    later: list[Fact] = [RoundEvaluated(1, "delegate", ("tides",)), ResearcherStarted("2.1", 2, "tides")]
    ends: list[Fact] = [ResearcherReported("1.2", "b"), ResearcherReported("1.1", "a"), *later, ResearcherReported("2.1", "c")]
    begun: list[Fact] = [RunStarted("q", "m", "model", "research"), AgendaSet(("moon", "sun"), 2)]
    begun += [ResearcherStarted("1.1", 1, "moon"), ResearcherStarted("1.2", 1, "sun")]
    assert [r.id for r in fold([*begun, *ends]).reported_researchers] == ["1.1", "1.2", "2.1"]
