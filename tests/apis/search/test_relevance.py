"""How much of a query a hit holds."""

from __future__ import annotations

import pytest

from nexi.apis.search.excerpt import Relevance
from nexi.types import Hit


@pytest.mark.parametrize(
    ("query", "title", "held"),
    [
        ("ranking algorithms", "Ranked by an algorithm", 1.0),
        ("ranking algorithms", "A ranking", 0.5),
        ("rank", "frank", 0.0),
        ("rank", "frank ranks", 1.0),
        ("bm25", "Okapi BM25", 1.0),
        ("café", "Le CAFE", 1.0),
        ("東京の天気", "明日の東京の天気", 1.0),
        ("photo", "Фото", 0.0),
        ("the of and", "the of and", 0.0),
        ("", "x", 0.0),
    ],
)
def test_a_root_counts_where_a_word_begins_with_it(query: str, title: str, held: float) -> None:
    assert Relevance(query).of(Hit("https://a.example/", title)) == held


def test_the_snippet_and_the_address_count_too() -> None:
    assert Relevance("okapi ranking").of(Hit("https://a.example/okapi", "", "a ranking function")) == 1.0
