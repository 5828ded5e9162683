"""What holds for the built-in model whatever it is given."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexi.llm.extractive.composition import MAX_WORDS, compose_answer
from nexi.llm.extractive.model import next_reply
from nexi.llm.extractive.passages import read_sentences, split_sentences
from nexi.llm.extractive.questions import read_question
from nexi.text.plain import strip_markdown
from nexi.text.stems import stem
from nexi.types import Message, PageView, ToolCall, ToolResult

TOOLS = frozenset(("web_search", "web_get", "final_answer"))
MARKS = "owl hunts night barn `code()` **bold** [a](http://a.example) # 1952 Dr. A. \n \n\n | - ``` ( ) day"
words = st.sampled_from(MARKS.split(" "))
markdown = st.one_of(st.lists(words, max_size=60).map(" ".join), st.text(max_size=300))
questions = st.one_of(st.lists(words, min_size=1, max_size=12).map(" ".join), st.text(max_size=200))


def page(number: int, text: str) -> PageView:
    return PageView(f"https://p.example/{number}", number, f"Page {number}", text)


@given(markdown)
def test_sentences_hold_nothing_that_is_not_on_the_page(text: str) -> None:
    letters = set(text)
    for sentence in read_sentences(text):
        assert sentence.text.strip()
        assert set(sentence.text) - {" ", "–"} <= letters


@given(st.text(max_size=400))
def test_splitting_loses_no_character_but_space(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@given(st.text(max_size=300))
def test_plain_text_has_no_line_breaks_and_no_outer_space(text: str) -> None:
    assert strip_markdown(text) == " ".join(strip_markdown(text).split())


@given(st.text(max_size=40))
def test_a_stem_is_a_short_form_or_a_known_root(word: str) -> None:
    assert len(stem(word)) <= max(len(word), 10)


@given(questions, st.lists(markdown, max_size=4))
@settings(deadline=None)
def test_an_answer_is_short_and_cites_only_pages_it_was_given(question: str, texts: list[str]) -> None:
    pages = [page(n, text) for n, text in enumerate(texts, 3)]
    draft = compose_answer(read_question(question), pages)
    assert {number for _, number in draft.lines} <= {p.number for p in pages}
    assert len(" ".join([draft.short, *(line for line, _ in draft.lines)]).split()) <= MAX_WORDS + 2
    assert len({number for _, number in draft.lines}) <= 2


@given(questions, st.lists(markdown, max_size=3))
@settings(deadline=None)
def test_the_same_conversation_always_gets_the_same_reply(question: str, texts: list[str]) -> None:
    call = ToolCall("r", "web_get", "{}")
    views = tuple(page(n, text) for n, text in enumerate(texts, 1))
    talk = [
        Message("user", question),
        Message("assistant", "", (call,)),
        Message("tool", "", tool_call_id="r", result=ToolResult(views, "")),
    ]
    assert next_reply(talk, TOOLS, 200) == next_reply(talk, TOOLS, 200)


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant", "tool"]), st.text(max_size=80)), max_size=6))
@settings(deadline=None)
def test_any_conversation_gets_a_reply_with_valid_arguments(turns: list[tuple[str, str]]) -> None:
    talk = [Message(role, text) for role, text in turns]  # type: ignore[arg-type]
    reply = next_reply(talk, TOOLS, 50)
    assert [json.loads(call.arguments) for call in reply.tool_calls]
    assert next_reply(talk, frozenset(), 50).tool_calls == ()


@pytest.mark.long
def test_hostile_pages_of_full_size_are_read_to_the_end() -> None:
    """A pass that is not linear would hang here."""
    size = 300_000
    shapes = [
        "[" * size,
        "](" * (size // 2),
        "`" * size,
        "*a" * (size // 2),
        "a" * size,
        "a. B" * (size // 4),
        "| " * (size // 2),
    ]
    shapes += ["<a " * (size // 3), "([" * (size // 2), "_" * size, "owl " * (size // 4), "中文。" * (size // 3)]
    question = read_question("When does the owl hunt? " * 40_000)
    assert [bool(compose_answer(question, [page(1, text)]).lines) for text in shapes] == ["owl" in text for text in shapes]


def test_a_question_of_a_million_characters_becomes_a_query_a_backend_can_take() -> None:
    reply = next_reply([Message("user", "owl " * 250_000)], TOOLS, 50)
    (query,) = json.loads(reply.tool_calls[0].arguments)["queries"]
    assert re.fullmatch(r"(?:owl ?){1,80}", query)
