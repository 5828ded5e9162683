"""Citations inside a sentence, sentences about a disagreement, and values in brackets."""

from __future__ import annotations

import pytest

from nexi.checking.conflicts import find_conflicts
from nexi.checking.pages import prepare
from nexi.checking.rules import check_answer
from nexi.checking.sentences import Clause, cut_at_markers
from nexi.types import Verdict

MOON = prepare("# Moon\n\nThe Moon is the only natural satellite of Earth. It has almost no air.", "http://moon.test/")
MARS = prepare("# Mars\n\nMars is the fourth planet. Mars has two small moons, Phobos and Deimos.", "http://mars.test/")
LONG = prepare("# Varn bridge\n\nThe Varn bridge is 186 metres long.", "http://one.test/varn")
LONGER = prepare("# Varn bridge\n\nThe Varn bridge is 192 metres long.", "http://two.test/varn")
AIRPORT = prepare(
    "# Airport\n\nIt is a public airport six miles (10 km) southwest of Christiansted on the island of St. Croix."
)


def verdicts(text: str, *pages: object) -> list[Verdict]:
    return [c.verdict for c in check_answer(text, dict(enumerate(pages, 1))).checked]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("It has almost no air [1], and Mars has two small moons [2].", Verdict.FOUND),
        ("It has almost no air [1], and Mars has three small moons [2].", Verdict.CONTRADICTED),
        ("Mars has two small moons [1], and the Moon has almost no air [2].", Verdict.NOT_FOUND),
    ],
)
def test_each_clause_is_judged_by_the_sources_that_stand_behind_it(text: str, verdict: Verdict) -> None:
    assert verdicts(text, MOON, MARS) == [verdict]


def test_our_own_sentence_about_a_disagreement_is_judged_reading_by_reading() -> None:
    pages = {1: LONG, 2: LONGER}
    claims = check_answer("The Varn bridge is 186 metres long [1].", pages).claims
    said = find_conflicts("How long is the Varn bridge?", claims, pages)[0].sentence()
    assert verdicts(said, LONG, LONGER) == [Verdict.FOUND]
    assert verdicts(said.replace("192", "195"), LONG, LONGER) != [Verdict.FOUND]
    assert verdicts(said, LONGER, LONG) != [Verdict.FOUND]


def test_a_value_in_brackets_stands_beside_the_value_it_restates() -> None:
    text = "It is a public airport {} southwest of Christiansted on the island of St. Croix [1]."
    assert verdicts(text.format("six miles"), AIRPORT) == [Verdict.FOUND]
    assert verdicts(text.format("eight miles"), AIRPORT) == [Verdict.CONTRADICTED]


def test_a_citation_behind_no_word_is_no_claim() -> None:
    assert verdicts("... [1]", MOON) == []


def test_a_sentence_that_one_source_says_in_several_places_names_them_all() -> None:
    text = "The Moon is the only natural satellite of Earth, and the Moon has two small seas of dust"
    page = prepare(
        "# Moon\n\nThe Moon is the only natural satellite of Earth. It is far away, and was always known to everybody.\n\n"
        "Poets wrote about it. Painters painted it.\n\nThe Moon has two small seas of dust."
    )
    (claim,) = check_answer(f"{text} [1].", {1: page}).checked
    (found,) = claim.evidence
    told = [found.span, *(page.text[start:end] for start, end in found.places)]
    assert (claim.reason, sorted(told)) == (
        "said in several places of the source",
        ["The Moon has two small seas of dust.", "The Moon is the only natural satellite of Earth."],
    )


def test_a_word_before_the_first_clause_belongs_to_it() -> None:
    text = "Chopin [1] and [2] died in Paris [3], [4] aged young [5]."
    assert cut_at_markers(text) == [Clause("Chopin died in Paris", (3, 4)), Clause("aged young", (5,))]


def test_a_sentence_of_thirty_thousand_markers_is_cut_in_one_pass() -> None:
    assert cut_at_markers("of [1] " * 30_000 + "The Moon has no air [2].") == [Clause("The Moon has no air", (2,))]
