"""The coordinator's agenda: what models write is read with tolerance, and the question itself stands in."""

from __future__ import annotations

import json

import pytest

from nexi.errors import LLMError
from nexi.research.planner import (
    Agenda,
    PlanningContext,
    _parse_agenda,
    _resolve_from_conversation,
    find_names,
    plan_by_parts,
    plan_research,
    render_conversation,
    split_question,
)
from nexi.testing import ScriptedLLM
from nexi.types import Message, Reply, ToolCall

TWO = ("How far is the Moon?", "What are tides?")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"complexity": 1, "tasks": TWO}),
        "```json\n" + json.dumps({"complexity": 1, "tasks": TWO}, indent=2) + "\n```",
        "Here is the plan:\n" + json.dumps({"complexity": 1, "agenda": TWO}) + "\nGood luck!",
        json.dumps({"queries": TWO}),
        json.dumps(TWO),
        json.dumps({"complexity": "one", "items": [{"task": TWO[0]}, {"question": TWO[1], "why": "it matters"}]}),
        json.dumps({"tasks": [*TWO, "", 7, None, {"no": "text"}, TWO[0]]}),
        json.dumps({"tasks": [f"**{TWO[0]}**", f"  {TWO[1]}\n"]}),
        f"1. {TWO[0]}\n2) {TWO[1]}",
        f"I would ask:\n\n- {TWO[0]}\n* {TWO[1]}\n\nThat is all.",
    ],
)
def test_an_agenda_is_found_in_every_shape_models_use(text: str) -> None:
    assert _parse_agenda(text) == Agenda(TWO, 1)


@pytest.mark.parametrize("text", ["", "I cannot plan this.", "{}", "[]", '{"tasks": []}', '{"tasks": "none"}', "{{{{", "null"])
def test_garbage_holds_no_agenda(text: str) -> None:
    assert _parse_agenda(text) is None


def test_complexity_decides_how_many_tasks_are_taken() -> None:
    tasks = tuple(f"task {n}" for n in range(1, 8))
    said = json.dumps({"complexity": 2, "tasks": tasks})
    assert _parse_agenda(said) == Agenda(tasks[:3], 2)
    assert _parse_agenda(said, depth=3) == Agenda(tasks[:5], 3)
    assert _parse_agenda(said, depth=1) == Agenda(tasks[:2], 1)
    assert _parse_agenda(json.dumps({"complexity": 9, "tasks": tasks[:4]})) == Agenda(tasks[:4], 3)
    assert _parse_agenda(json.dumps({"complexity": True, "tasks": tasks[:1]})) == Agenda(tasks[:1], 1)


@pytest.mark.parametrize(
    ("question", "agenda"),
    [
        (
            "Who was Ingmar Bergman, and which films did he direct?",
            Agenda(
                (
                    "Who was Ingmar Bergman, and which films did he direct?",
                    "Who was Ingmar Bergman?",
                    "Which films did Ingmar Bergman direct?",
                ),
                2,
                "fallback",
            ),
        ),
        (
            "Who is younger, Mart Van Duren or Madeleine Simms?",
            Agenda(("Who is younger, Mart Van Duren or Madeleine Simms?", "Mart Van Duren", "Madeleine Simms"), 2, "fallback"),
        ),
        (
            "Procter & Gamble Co. was founded by whom?",
            Agenda(("Procter & Gamble Co. was founded by whom?", "Procter & Gamble Co"), 1, "fallback"),
        ),
        ("Why does the Zorb rainforest burn?", Agenda(("Why does the Zorb rainforest burn?",), 1, "fallback")),
        ("How old is the Zorb?", Agenda(("How old is the Zorb?", "Zorb"), 1, "fallback")),
        ("Rust vs Go", Agenda(("Rust vs Go", "Rust", "Go"), 2, "fallback")),
        ("how do heat pumps work", Agenda(("how do heat pumps work",), 1, "fallback")),
        ("月球有多远", Agenda(("月球有多远",), 1, "fallback")),
        ("", Agenda(("the question",), 1, "fallback")),
    ],
)
def test_without_a_plan_the_question_its_parts_and_its_names_are_the_agenda(question: str, agenda: Agenda) -> None:
    assert plan_by_parts(question, PlanningContext("2026-01-02"), "fallback") == agenda


def test_a_depth_that_is_given_holds_for_the_fallback_too() -> None:
    agenda = plan_by_parts(
        "Who was Ingmar Bergman, and which films did he direct, and where did he die?", PlanningContext("2026-01-02", depth=1)
    )
    assert (agenda.complexity, len(agenda.tasks)) == (1, 2)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("In 2020, what did Apple sell and why was it late?", ["In 2020, what did Apple sell", "Why was Apple late?"]),
        ("Pyotr Verzilov is married to an artist and what kind of activist?", None),
        (
            "Wie weit ist der Mond und was macht er mit den Gezeiten?",
            ["Wie weit ist der Mond?", "Was macht er mit den Gezeiten?"],
        ),
        ("Qui était Victor Hugo et quand est-il mort?", ["Qui était Victor Hugo?", "Quand est-il mort (Victor Hugo)?"]),
        ("Кто такой Лев Толстой и когда он умер?", ["Кто такой Лев Толстой?", "Когда он умер (Лев Толстой)?"]),
        ("月球有多远？它有多大？", ["月球有多远？", "它有多大？ (月球有多远？)"]),
        (
            "how far is the moon and what does it do to tides",
            ["How far is the moon?", "What does the moon do to tides"],
        ),
        ("coffee compared with tea", ["coffee", "tea"]),
    ],
)
def test_the_parts_of_a_question_stand_alone(question: str, parts: list[str] | None) -> None:
    assert [p.rstrip("?") for p in split_question(question)] == [p.rstrip("?") for p in parts or [question]]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ('Who wrote "The Old Man and the Sea"?', ["The Old Man and the Sea"]),
        ("Compare Rust and Go", ["Rust", "Go"]),
        ("Where is the Museum of Modern Art in New York?", ["Museum of Modern Art", "New York"]),
        ("Was Vincent van Gogh poor?", ["Vincent van Gogh"]),
        ("Что написал Лев Толстой?", ["Лев Толстой"]),
        ("What is Ångström's law?", ["Ångström's"]),
        ("what is a heat pump", []),
        ("Moon", []),
    ],
)
def test_names_are_found_in_several_scripts_and_a_first_word_alone_is_none(question: str, names: list[str]) -> None:
    found = find_names(question)
    assert [n.removeprefix("Что написал ") for n in found] == names


async def test_the_coordinator_is_asked_once_with_the_conversation_the_day_and_the_depth() -> None:
    model = ScriptedLLM(Reply(json.dumps({"complexity": 2, "tasks": TWO})))
    brief = PlanningContext("2026-01-02", depth=2, conversation="Question: q\n\nAnswer: a")
    assert await plan_research("And the tides?", model, brief) == Agenda(TWO, 2)
    rules, asked = model.requests[0]
    assert "Today is 2026-01-02" in rules.content
    assert "The complexity is given: 2." in rules.content
    assert asked.content == "The conversation so far:\nQuestion: q\n\nAnswer: a\n\nQuestion: And the tides?"


@pytest.mark.parametrize(
    ("step", "by"),
    [
        (Reply("I would rather not."), "fallback"),
        (LLMError("gone", code="unavailable"), "fallback"),
        (LLMError("no forms", code="unsupported"), "built-in"),
    ],
)
async def test_a_coordinator_that_fails_is_replaced_by_the_question(step: Reply | LLMError, by: str) -> None:
    agenda = await plan_research("Who was Ada Lovelace?", ScriptedLLM(step), PlanningContext("2026-01-02"))
    assert agenda == Agenda(("Who was Ada Lovelace?", "Ada Lovelace"), 1, by)


async def test_without_a_model_a_follow_up_is_given_the_name_it_refers_to() -> None:
    brief = PlanningContext("2026-01-02", conversation="Question: Who was Ada Lovelace?\n\nAnswer: A mathematician [1].")
    agenda = await plan_research("where did she die?", ScriptedLLM(LLMError("no forms", code="unsupported")), brief)
    assert agenda.tasks[0] == "Where did Ada Lovelace die?"
    assert _resolve_from_conversation("Who was Alan Turing?", brief.conversation) == "Who was Alan Turing?"


def test_a_conversation_is_told_as_questions_and_answers_without_tools() -> None:
    messages = [
        Message("user", "How far?"),
        Message("assistant", "", (ToolCall("c", "web_search", "{}"),)),
        Message("tool", "found", tool_call_id="c"),
        Message("assistant", "Far [1]."),
    ]
    assert render_conversation(messages) == "Question: How far?\n\nAnswer: Far [1]."


async def test_a_task_that_says_only_he_is_given_the_name_of_the_question() -> None:
    model = ScriptedLLM(Reply(json.dumps({"complexity": 1, "tasks": ["Who was Ada Lovelace?", "where did she die?"]})))
    agenda = await plan_research("Who was Ada Lovelace, and where did she die?", model, PlanningContext("2026-01-02"))
    assert agenda.tasks == ("Who was Ada Lovelace?", "Where did Ada Lovelace die?")
