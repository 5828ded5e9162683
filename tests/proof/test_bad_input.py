"""Strange pages and answers get a verdict or a stated gap, in linear time."""

from __future__ import annotations

import time

import pytest

from nexi.checking.pages import prepare
from nexi.checking.rules import check_answer
from nexi.types import Verdict

TABLE = "| City | People |\n|---|---|\n| Oslo | 709,037 |\n| Bergen | 285,601 |"


def verdict(answer: str, page: str) -> Verdict:
    return check_answer(answer, {1: prepare(page)}).claims[0].verdict


def test_a_page_beyond_the_cap_is_read_from_its_beginning_and_says_so() -> None:
    text = "The house has 12 rooms. " + "Filler words stand here for long. " * (100_000 // 33)
    page = prepare(text, max_chars=100_000)
    found = check_answer("The house has 12 rooms [1]. The garden has two old apple trees [1].", {1: page}).claims
    assert [c.verdict for c in found] == [Verdict.FOUND, Verdict.UNCHECKED]
    assert found[1].reason == "not in the first 100,000 characters; the rest of the page was not read"


def test_one_endless_line_is_read_in_pieces() -> None:
    assert (
        verdict("The bridge opened in 1932 [1].", "word " * 20_000 + "The bridge opened in 1932. " + "word " * 20)
        is Verdict.FOUND
    )


@pytest.mark.parametrize("page", ["", "   \n", "\x00\ufffd\x01", "[[[[](((", "| | |\n|---|", "```\n", "\ud800"])
def test_a_damaged_page_supports_nothing(page: str) -> None:
    assert verdict("The bridge opened in 1932 [1].", page) in (Verdict.NOT_FOUND, Verdict.UNCHECKED)


def test_five_hundred_citations_of_one_sentence_are_answered_one_by_one() -> None:
    marks = "".join(f"[{n}]" for n in range(1, 501))
    claim = check_answer(
        f"The cat sat on the mat {marks}.", {n: prepare("The cat sat on the mat.") for n in range(1, 501)}
    ).claims[0]
    assert len(claim.evidence) == 500
    assert claim.verdict is Verdict.FOUND
    assert claim.evidence[-1].verdict is Verdict.UNCHECKED


@pytest.mark.parametrize(
    "unit", ["[", "](", "&amp;<b>\\_", "1 ", "12,345.67 km ", "A and b, ", "x", "不", '"', "May 5 ", "one ", "not ", "A. "]
)
@pytest.mark.slow
def test_time_grows_with_length_and_no_faster(unit: str) -> None:
    def cpu(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        check_answer(f"{text} [1].", {1: prepare(text)})
        return time.process_time() - start

    cpu(2_000)
    small, large = cpu(3_000), cpu(24_000)
    assert large < 8 * 4 * small + 0.5


def test_a_sentence_without_end_is_a_stated_gap() -> None:
    assert verdict("The cat sat " * 200 + "[1].", "The cat sat on the mat.") is Verdict.UNCHECKED


@pytest.mark.parametrize(
    ("answer", "page", "expected"),
    [
        ("The bridge opened in 1932 [1].", "La brücke öffnete. The bridge opened in 1932. 大桥于1932年通车。", Verdict.FOUND),
        ("大桥于1932年通车 [1]。", "La brücke öffnete. The bridge opened in 1932. 大桥于1932年通车。", Verdict.FOUND),
        ("Oslo has 709,037 people [1].", TABLE, Verdict.FOUND),
        ("Oslo has 285,601 people [1].", TABLE, Verdict.CONTRADICTED),
        ("Call `run(x, y=2)` first [1].", "```python\nrun(x, y=2)\n```\nCall `run(x, y=2)` first.", Verdict.FOUND),
        ("Call `stop_all()` first [1].", "```python\nrun(x, y=2)\n```\nCall `run(x, y=2)` first.", Verdict.NOT_FOUND),
        ("The energy is $E = mc^2$ [1].", "Einstein wrote that the energy is $E = mc^2$.", Verdict.FOUND),
        ("The energy is $E = 3mc^2$ [1].", "Einstein wrote that the energy is $E = 2mc^2$.", Verdict.NOT_FOUND),
        ("| Oslo | 285,601 | [1]", TABLE, Verdict.CONTRADICTED),
        ("```\nrun(x, y=3)\n```\nCall `run(x, y=3)` last [1].", "Call `run(x, y=2)` first.", Verdict.CONTRADICTED),
    ],
)
def test_mixed_languages_tables_code_and_formulas_get_a_verdict(answer: str, page: str, expected: Verdict) -> None:
    assert verdict(answer, page) is expected


def test_a_sentence_of_four_hundred_words_is_compared_and_one_more_is_a_stated_gap() -> None:
    words = [f"{chr(97 + n % 26)}word{n}s" for n in range(398)]
    page = prepare(f"The {' '.join(words)} end.")
    whole, longer, other = (" ".join(["The", *some, "end [1]."]) for some in (words, [*words, "more"], [*words[:-1], "12345"]))
    found = [check_answer(text, {1: page}).claims[0] for text in (whole, longer, other)]
    assert [claim.verdict for claim in found] == [Verdict.FOUND, Verdict.UNCHECKED, Verdict.NOT_FOUND]
    assert found[1].reason == "too long to be compared as one sentence"


def test_a_page_of_one_and_a_half_million_characters_is_read_to_its_end() -> None:
    filler = "The committee met again in the old hall and spoke of the weather, 17 letters and the price of 240 sacks of oats. "
    last = "The lighthouse at Varn Point was lit on 3 May 1907."
    page = prepare((filler * (1_500_000 // len(filler))) + " " + last)
    texts = (
        "The lighthouse at Varn Point was lit on 3 May 1907 [1].",
        "The lighthouse at Varn Point was lit on 3 May 1908 [1].",
    )
    assert [check_answer(text, {1: page}).claims[0].verdict for text in texts] == [Verdict.FOUND, Verdict.CONTRADICTED]
