"""The recipe of planted errors makes what it says."""

from __future__ import annotations

from random import Random  # a seed, no secret

import pytest

from evals.planted import PLANTED, TRUTHFUL, Page, cases, read_page
from evals.proof import SnapshotCache, check, figures, interval

SEEDED = Random
LINES = (
    "In 1990, the Norwegian engineer Ruth Levy opened a large bridge of 300 metres near Bergen.",
    "The bridge was designed by Ann Hill, who lived in Oslo, and it does not carry trains.",
    "It was the largest bridge in Norway on 5 May 1998 and had 1,200 visitors in the first week.",
    "She moved to the city of Molde before the war and earned 3 million crowns.",
)


@pytest.fixture(name="pages")
def made_pages() -> list[Page]:
    text = "\n\n".join(LINES)
    return [read_page(f"http://a.test/{n}", f"Bridge {n}", text.replace("Bergen", f"Bergen{n}")) for n in "xy"]


def test_every_case_is_marked_and_names_its_pages(pages: list[Page]) -> None:
    made = list(cases(pages, SEEDED(1), 4))
    assert all("[" in case.text and case.pages for case in made)
    assert {case.kind for case in made} >= {"verbatim", "swapped number", "swapped date", "denial put in", "two sources"}


def test_a_planted_error_is_never_a_sentence_of_its_page(pages: list[Page]) -> None:
    planted = [case for case in cases(pages, SEEDED(2), 6) if case.kind in PLANTED]
    assert planted
    assert not any(line[:-1] in case.text for case in planted if case.kind != "invented quote" for line in LINES)


def test_rules_are_either_truthful_or_planted() -> None:
    assert not TRUTHFUL.keys() & PLANTED.keys()


def test_verbatim_sentences_pass_and_invented_sources_do_not(pages: list[Page]) -> None:
    cache = SnapshotCache(pages)
    judged = {(c.kind, check(c, cache)[0]) for c in cases(pages, SEEDED(3), 4) if c.kind in ("verbatim", "invented source")}
    assert judged == {("verbatim", True), ("invented source", False)}


def test_figures_are_counted_over_classes() -> None:
    rows = {"verbatim": (True, 10, 9), "swapped number": (False, 10, 8), "invented source": (False, 5, 5)}
    assert figures(rows) == {
        "precision of supported": (9, 11),
        "recall of true sentences": (9, 10),
        "swapped numbers and dates caught": (8, 10),
        "invented sources removed": (5, 5),
    }


def test_the_interval_is_wilsons() -> None:
    assert [round(edge, 3) for edge in interval(9, 10)] == [0.596, 0.982]
