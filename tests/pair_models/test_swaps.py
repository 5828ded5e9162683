"""Lies made by script differ from their sentence in the one thing they name, and truths do not."""

from __future__ import annotations

from random import Random

import pytest

from evals.pair_training import swaps
from evals.pair_training.swaps import CONTRADICTION, ENTAILMENT, LIES, TRUTHS, change_sentence

AROUND = [
    "Gareth Wynne was elected in 1998.",
    "The dispute has lasted since 2015.",
    "Ferry Road was closed for 12 days in April.",
]


def chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - chance that is the same in every run


@pytest.mark.parametrize(
    ("kind", "sentence", "changed"),
    [
        ("number", "It has 40 rooms.", {"It has 12 rooms.", "It has 36 rooms.", "It has 80 rooms.", "It has 400 rooms."}),
        ("number", "It has three rooms.", None),
        (
            "year",
            "It opened in 1859.",
            {"It opened in 1998.", "It opened in 2015.", "It opened in 1858.", "It opened in 1879."},
        ),
        ("month", "It opened in May.", None),
        ("name", "It was built by Isambard Brunel.", {"It was built by Gareth Wynne.", "It was built by Ferry Road."}),
        ("roles", "In 1803 Ada Lovelace beat Charles Babbage.", {"In 1803 Charles Babbage beat Ada Lovelace."}),
        ("order", "It fell from 40 to 12.", {"It fell from 12 to 40."}),
        ("negation", "It was not closed.", {"It was closed."}),
        ("negation", "It was closed.", {"It was not closed."}),
        ("opposite", "Prices rose.", {"Prices fell."}),
        ("hedge", "It may have been closed.", {"It was closed."}),
        ("condition", "It will close if the council agrees to it.", {"It will close."}),
        ("condition", "If the council agrees, it will close.", {"It will close."}),
        ("scope", "Some rooms are warm.", {"All rooms are warm."}),
        ("merged", "Ada Lovelace wrote notes.", {"Gareth Wynne wrote notes.", "Ferry Road wrote notes."}),
        ("attribution", "According to Ada Lovelace it rained.", None),
    ],
)
def test_a_lie_changes_what_it_names(kind: str, sentence: str, changed: set[str] | None) -> None:
    seen = {LIES[kind][0](sentence, AROUND, chance(seed)) for seed in range(200)}
    assert sentence not in seen
    assert "" not in seen
    assert changed is None or changed <= seen if kind in ("number", "year") else changed is None or seen == changed


@pytest.mark.parametrize("kind", LIES)
def test_a_sentence_with_nothing_to_change_stays_out(kind: str) -> None:
    assert LIES[kind][0]("yes", [], chance(1)) == ""


@pytest.mark.parametrize(
    ("kind", "sentence", "changed"),
    [
        ("without brackets", "Harwick (a town) grew.", "Harwick grew."),
        ("respelled", "It rose by 25% on March 14, 2023.", "It rose by 25 percent on 14 March 2023."),
        ("connective", "However, it rained.", "It rained."),
        ("moved", "In 1859, the bridge opened.", "The bridge opened in 1859."),
    ],
)
def test_a_truth_says_the_same(kind: str, sentence: str, changed: str) -> None:
    assert TRUTHS[kind](sentence, [], chance(1)) == changed


def test_as_many_kinds_as_asked_for_come_and_each_once() -> None:
    made = change_sentence("In May 1859 Ada Lovelace was 40.", AROUND, chance(5), lies=3, truths=1)
    kinds = [kind for kind, _, _ in made]
    assert len(kinds) == len(set(kinds)) == 4
    assert [label for _, label, _ in made].count(ENTAILMENT) == 1


def test_a_passage_is_weakened_by_a_doubt_or_a_condition() -> None:
    seen = {swaps.weaken_sentence("It is late.", chance(seed)) for seed in range(200)}
    assert {"It may be late.", "It is late, in some cases."} <= seen
    assert "It is late." not in seen


def test_values_contradict_and_names_are_only_not_said() -> None:
    assert [LIES[kind][1] for kind in ("number", "year", "negation")] == [CONTRADICTION] * 3
    assert LIES["name"][1] == "neutral"
