"""What the model writes becomes what the reader gets, stretch by stretch."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexi.answers.streaming import AnswerArgument, AnswerStream, find_rest, keep_given_addresses


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


@pytest.mark.parametrize(
    ("second", "repeats"),
    [
        ("The river is 80 km long [1].", 0),
        ("the  RIVER is 80 km long [1].", 0),
        ("- The river is 80 km long [1].", 0),
        ("The river is 80 km long [2].", 1),
        ("The river is 80 km long.", 2),  # without a citation
        ("| The river is 80 km long [1]", 2),  # of a table
        ("It is so long [1].", 1),
        ("It is long [1].", 2),  # too short to matter
    ],
)
def test_a_report_says_a_cited_sentence_once(second: str, repeats: int) -> None:
    first, end = "The river is 80 km long [1].", "The end."
    stream = AnswerStream({1, 2}, drops_repeats=True)
    stream.feed(f"{first}\n\n{second}\n\n{second}\n\n{end}\n")
    assert [line for line in stream.finish().split("\n") if line] == [first, *[second] * repeats, end]


@pytest.mark.parametrize(
    ("shown", "answer", "rest"),
    [
        ("It is far.", "It is far. It is cold.", " It is cold."),
        ("It is far.", "It is far.", ""),
        ("It is far.\n\nIt is cold.\n", "It is far.\n\nIt is cold.", ""),
        (
            "It is far. It is cold. It is old.",
            "It is far. It is warm. It is old.",
            "\n\nCorrected after it was written:\n\n- Removed: It is cold.\n- Replaced by: It is warm.",
        ),
        ("It is far. It is cold.", "It is far.", "\n\nCorrected after it was written:\n\n- Removed: It is cold."),
    ],
)
def test_a_reader_of_a_corrected_answer_gets_what_changed_and_no_sentence_twice(shown: str, answer: str, rest: str) -> None:
    assert find_rest(shown, answer) == rest


READ, GIVEN, INVENTED = "https://read.example/a", "https://given.example/b", "https://invented.example/c"
PLACES = {READ: 4, GIVEN: 0}


@pytest.mark.parametrize(
    ("text", "kept", "removed"),
    [
        ("No address here, only http: and //.", "No address here, only http: and //.", set()),
        (f"See {READ}.", "See [4].", set()),
        (f"See {GIVEN}.", f"See {GIVEN}.", set()),
        (f"See {INVENTED}.", "See.", {INVENTED}),
        (f"See ({INVENTED}) or **{INVENTED}** or <{INVENTED}> there.", "See or or there.", {INVENTED}),
        (f"See ( ) and <{READ}>.", "See ( ) and [4].", set()),
        (f"The [page]({READ}) says.", "The page [4] says.", set()),
        (f"The [{READ}]({READ}) says.", "The [4] says.", set()),
        (f"The [page]({GIVEN}) says.", f"The [page]({GIVEN}) says.", set()),
        (f"The [page]({INVENTED}) says.", "The page says.", {INVENTED}),
        (f"The [{INVENTED}]({INVENTED}) says.", "The  says.", {INVENTED}),
        (f"![a map]({READ}) here", "a map [4] here", set()),
        (f"![a map]({GIVEN}) here", "a map here", set()),
        (f"![]({INVENTED})here", "here", {INVENTED}),
        (f"`curl {INVENTED}` and\n```\n{INVENTED}\n```\n", f"`curl {INVENTED}` and\n```\n{INVENTED}\n```\n", set()),
    ],
)
def test_addresses_become_citations_stay_or_are_removed(text: str, kept: str, removed: set[str]) -> None:
    assert keep_given_addresses(text, PLACES.get) == (kept, removed)


def test_addresses_that_were_removed_are_collected_over_the_whole_answer() -> None:
    stream = AnswerStream({4}, place=PLACES.get)
    stream.feed(f"One {INVENTED} here. Two {READ} there [9]. Three {INVENTED}/d [8]. End")
    assert stream.finish() == "One here. Two [4] there. Three. End"
    assert (stream.removed, stream.dropped) == ({INVENTED, f"{INVENTED}/d"}, {8, 9})


def test_without_a_rule_every_address_stays() -> None:
    stream = AnswerStream(set())
    stream.feed(f"See {INVENTED}. ")
    assert (stream.finish(), stream.removed) == (f"See {INVENTED}.", set())


def test_a_stretch_of_code_is_released_as_code() -> None:
    out: list[tuple[str, bool]] = []
    stream = AnswerStream({1}, lambda stretch, is_code: out.append((stretch, is_code)))
    stream.feed("One [1].\n~~~\nx[9]\nSources\n~~~\nTwo [9].\n")
    stream.finish()
    code = [("~~~\n", True), ("x[9]\n", True), ("Sources\n", True), ("~~~\n", True)]
    assert out == [("One [1].\n", False), *code, ("Two.\n", False)]


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


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"\ud800\udc00", "\U00010000"),
        (r"\udbff\udfff", "\U0010ffff"),
        (r"\uD83C\uDF19", "\U0001f319"),
        (r"\ud7ff\ue000", "\ud7ff\ue000"),
        (r"\udc00\udfff", "\ufffd\ufffd"),
        (r"\udbff\ue000", "\ufffd\ue000"),
        (r"\ud800\ud800\udc00", "\ufffd\U00010000"),
        (r"\ud800\n", "\ufffd\n"),
        (r"\ud800x", "\ufffdx"),
        (r"\q\/", "q/"),
    ],
)
@pytest.mark.parametrize("size", [1, 6, 100])
def test_escapes_of_two_halves_become_one_character_however_they_arrive(escaped: str, text: str, size: int) -> None:
    got: list[str] = []
    argument = AnswerArgument(got.append)
    arriving = f'{{"answer": "a{escaped}b"}}'
    for start in range(0, len(arriving), size):
        argument.take(arriving[start : start + size])
    assert ("".join(got), argument.is_open) == (f"a{text}b", False)


def test_a_half_that_is_not_followed_is_held_back_until_the_next_character() -> None:
    got: list[str] = []
    argument = AnswerArgument(got.append)
    for piece in ('{"answer": "a', "\\", "u00e", "9", "\\ud83c", "\\", "udf1", "9b"):
        argument.take(piece)
    assert got == ["a", "é", "\U0001f319b"]


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
