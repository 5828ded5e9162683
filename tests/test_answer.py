"""What the model writes becomes what the reader gets, stretch by stretch."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from nexi.answers.streaming import AnswerArgument, AnswerStream


def released(text: str, known: set[int], size: int = 5) -> tuple[str, list[str], set[int]]:
    out: list[str] = []
    stream = AnswerStream(known, lambda stretch, _: out.append(stretch))
    for start in range(0, len(text), size):
        stream.feed(text[start : start + size])
    return stream.finish(), out, stream.dropped


def test_known_citations_pass_and_unknown_ones_are_dropped() -> None:
    assert released("One [1]. Two [2]. Three.", {1})[0::2] == ("One [1]. Two. Three.", {2})


def test_other_spellings_of_a_citation_become_ours() -> None:
    assert released("One [1, 2]. Two 【2】.", {1, 2})[0] == "One [1][2]. Two [2]."


def test_code_is_left_alone() -> None:
    text = "Use this [1]:\n\n```python\nx = a[7]\n```\n\nDone [1].\n"
    assert released(text, {1})[0] == text.strip()


def test_a_source_list_at_the_end_is_held_back_and_removed() -> None:
    answer, out, _ = released("Fact [1].\n\n## Sources\n\n1. https://invented.example\n2. [2] more\n", {1})
    assert (answer, "".join(out).strip()) == ("Fact [1].", "Fact [1].")


def test_a_heading_called_sources_in_the_middle_stays() -> None:
    text = "Sources\n\nThe river has two sources [1], in the hills and in the marsh.\n\nThat is all there is to say.\n"
    assert "two sources [1]" in released(text, {1})[0]


@given(st.text(), st.integers(1, 9))
def test_what_was_released_is_the_answer(text: str, size: int) -> None:
    answer, out, _ = released(text, {1, 2}, size)
    assert "".join(out).strip() == answer


@given(st.text(), st.booleans(), st.integers(1, 20))
def test_the_answer_is_read_out_of_json_that_is_still_arriving(text: str, ascii_only: bool, size: int) -> None:
    arriving = json.dumps({"answer": text, "more": 1}, ensure_ascii=ascii_only)
    got: list[str] = []
    argument = AnswerArgument(got.append)
    for start in range(0, len(arriving), size):
        argument.take(arriving[start : start + size])
    assert "".join(got) == text


def test_an_object_whose_first_key_is_another_is_not_streamed() -> None:
    got: list[str] = []
    argument = AnswerArgument(got.append)
    argument.take('{"thoughts": "hm", "answer": "x"}')
    assert (got, argument.is_open) == ([], False)


def test_broken_escapes_become_a_replacement_character() -> None:
    got: list[str] = []
    AnswerArgument(got.append).take('{"answer": "a\\uZZZZb\\ud800c"}')
    assert "".join(got) == "a\ufffdb\ufffdc"


def test_an_answer_is_open_from_its_first_quote_to_its_last() -> None:
    argument = AnswerArgument(lambda _: None)
    seen = []
    for piece in ('{"answer"', ': "a', " \\", '" b', '"', "}"):
        argument.take(piece)
        seen.append(argument.is_open)
    assert seen == [False, True, True, True, False, False]


def test_a_stream_says_whether_anything_is_out() -> None:
    stream = AnswerStream({1})
    stream.feed("It is far [1]")
    assert not stream.has_released
    stream.feed(". It has no")
    assert stream.has_released
