"""Whatever a model writes, a pick is usable, and readers give a sound value or ValueError and nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from nexi.structured.ranking import pick_or_first, read_assessment, read_queries, read_scores

T = TypeVar("T")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(["pick", "why", "ranked", "i", "score", "reasoning", "gaps", "queries"]), inner, max_size=5
        )
    ),
    max_leaves=20,
)
REPLY = st.one_of(st.text(max_size=60), JSON.map(json.dumps))


@given(REPLY, st.integers(0, 12), st.integers(0, 5))
def test_a_pick_names_known_candidates_once_and_no_more_than_wanted(text: str, count: int, want: int) -> None:
    pick = pick_or_first(text, count, want)
    assert len(set(pick.order)) == len(pick.order) <= want
    assert all(0 <= index < count for index in pick.order)
    assert bool(pick.order) == bool(count and want)


@given(REPLY, st.integers(1, 12))
def test_scores_are_finite_in_range_and_in_order(text: str, count: int) -> None:
    scores = sound(lambda: read_scores(text, count)) or ()
    assert [s.score for s in scores] == sorted((s.score for s in scores), reverse=True)
    assert all(0 <= s.index < count and 0 <= s.score <= 1 and math.isfinite(s.score) for s in scores)


@given(REPLY)
def test_an_assessment_is_finite_and_in_range(text: str) -> None:
    verdict = sound(lambda: read_assessment(text))
    assert verdict is None or (math.isfinite(verdict.score) and 0 <= verdict.score <= 1)


@given(REPLY)
def test_queries_are_two_or_three_lines(text: str) -> None:
    queries = sound(lambda: read_queries(text, 2, 3))
    assert queries is None or (2 <= len(queries) <= 3 and all("\n" not in q and q for q in queries))


def sound(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except ValueError:
        return None
