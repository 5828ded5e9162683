"""What tokens cost, where that is known."""

from __future__ import annotations

import pytest

from nexi.llm.openai.prices import FREE, PRICES, Price, price_of, price_table


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("google/gemini-2.5-flash-lite", PRICES["gemini-2.5-flash-lite"]),
        ("gpt-4o-mini-2024-07-18", PRICES["gpt-4o-mini"]),
        ("someone/some-model:free", FREE),
        ("qwen2.5:0.5b", None),
        ("mine", Price(1.0, 2.0)),
        ("gpt-4o", Price(3.0, 4.0)),
    ],
)
def test_a_price_is_found_by_name_overridden_or_unknown(model: str, price: Price | None) -> None:
    overrides = price_table({"mine": {"input": 1, "output": 2}, "gpt-4o": {"input": 3, "output": 4}})
    assert price_of(model, overrides) == price


def test_a_model_without_a_price_has_that_of_the_star_and_a_free_one_stays_free() -> None:
    overrides = price_table({"*": {"input": 5, "output": 6}})
    models = ("gpt-99-unpriced", "gpt-4o-mini", "some-model:free")
    assert [price_of(model, overrides) for model in models] == [Price(5.0, 6.0), PRICES["gpt-4o-mini"], FREE]


def test_a_price_is_for_a_million_tokens() -> None:
    assert Price(2.0, 8.0).cost(500_000, 250_000) == 3.0
