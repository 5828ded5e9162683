"""What a model picked, scored or proposed is used only as far as it is well formed; the rest is refused in words."""

from __future__ import annotations

import pytest

from nexi.structured.ranking import (
    Assessment,
    Pick,
    UrlScore,
    pick_or_first,
    pick_schema,
    read_assessment,
    read_pick,
    read_queries,
    read_scores,
)
from nexi.structured.schema_check import check_schema


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ('{"pick":[2,0,1]}', (2, 0, 1)),
        ('{"pick":[2,2,0]}', (2, 0)),
        ('{"pick":[9,-1,1]}', (1,)),
        ('{"pick":[1.0,true,"0",null,2]}', (2,)),
        ('{"pick":[3,2,1,0]}', (3, 2, 1)),
        (' {"pick":[1]}\n', (1,)),
    ],
)
def test_a_pick_keeps_known_indices_once_in_order_and_no_more_than_wanted(text: str, order: tuple[int, ...]) -> None:
    assert pick_or_first(text, 4, 3) == Pick(order)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1, 2",
        "[1, 2]",
        "{}",
        '{"pick":1}',
        '{"pick":[]}',
        '{"pick":[7]}',
        'Sure: {"pick":[1]}',
        '```\n{"pick":[1]}\n```',
        "{",
    ],
)
def test_a_pick_that_cannot_be_used_falls_back_to_the_first_ones(text: str) -> None:
    assert pick_or_first(text, 4, 3) == Pick((0, 1, 2), fell_back=True)


def test_fewer_candidates_than_wanted_and_none_at_all() -> None:
    assert pick_or_first("no", 2, 3) == Pick((0, 1), fell_back=True)
    assert pick_or_first('{"pick":[0]}', 0, 3) == Pick((), fell_back=True)


def test_reasons_come_along_when_there_is_one_for_each() -> None:
    long = "x" * 100
    assert read_pick(f'{{"pick":[1,5,0],"why":["a","b","{long}"]}}', 2, 3) == Pick((1, 0), why=("a", "x" * 80))
    assert read_pick('{"pick":[1,0],"why":["a"]}', 2, 3) == Pick((1, 0))


def test_the_schema_of_a_pick_asks_for_what_the_reader_takes() -> None:
    assert check_schema({"pick": [0, 1]}, pick_schema(2, 3)) == []
    assert check_schema({"pick": [2]}, pick_schema(2, 3)) == ["pick[0]: expected 0 to 1, got 2"]


def test_scores_come_best_first_and_malformed_entries_are_left_out() -> None:
    text = """{"ranked": [{"i": 0, "score": 0.2}, {"i": 1, "score": 0.9, "reasoning": "an\\nowl"}, {"i": 1, "score": 1.0},
               {"i": 2, "score": 85}, {"i": 7, "score": 1}, {"score": 1}, "x", {"i": 3, "score": "high"}]}"""
    assert read_scores(text, 4) == (UrlScore(1, 0.9, "an owl"), UrlScore(0, 0.2))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"ranked": [{"i": 0, "score": NaN}]}', "no JSON object"),
        ('{"ranked": [{"i": 0, "score": 1e999}]}', "no JSON object|finite|expected"),
        ('{"ranked": [{"i": 0, "score": 2}]}', "score: expected 0 to 1, got 2"),
        ('{"ranked": []}', "no candidate was scored"),
        ("[]", "one JSON object"),
        ("owl", "no JSON object"),
    ],
)
def test_scores_without_one_usable_entry_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_scores(text, 3)


def test_an_assessment_is_taken_whole() -> None:
    text = '```json\n{"score": 0.45, "reasoning": "no tokens", "gaps": ["JWT", "jwt", " refresh\\ntokens "]}\n```'
    assert read_assessment(text) == Assessment(0.45, "no tokens", ("JWT", "refresh tokens"))


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 1.2, "reasoning": "", "gaps": []}',
        '{"score": -0.1, "reasoning": "", "gaps": []}',
        '{"score": "0.5", "reasoning": "", "gaps": []}',
        '{"score": NaN, "reasoning": "", "gaps": []}',
        '{"score": Infinity, "reasoning": "", "gaps": []}',
        '{"score": true, "reasoning": "", "gaps": []}',
        '{"reasoning": "", "gaps": []}',
        '{"score": 0.5, "gaps": []}',
        '{"score": 0.5, "reasoning": ""}',
        '{"score": 0.5, "reasoning": "", "gaps": [1]}',
        "I think about 0.9.",
    ],
)
def test_an_assessment_with_anything_wrong_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_assessment(text)


def test_queries_are_distinct_lines_within_their_number() -> None:
    assert read_queries('{"queries": ["owl food", "Owl  food", "owl\\nhabitat", 3, "owls", "voles"]}', 2, 3) == (
        "owl food",
        "owl habitat",
        "owls",
    )
    with pytest.raises(ValueError, match="expected 2 to 3 different queries, got 1"):
        read_queries('{"queries": ["owl", " OWL "]}', 2, 3)
