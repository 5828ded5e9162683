"""What tokens cost, where that is known.

The adapter asks with a model's name and gets a price or None; None means unknown and is never taken for free. Operators
override any entry; a cost that the server reports itself always wins over this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct


class Price(Struct, frozen=True):
    """US dollars for a million tokens."""

    input: float
    output: float

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


FREE = Price(0.0, 0.0)
ANY_MODEL = "*"  # among the overrides: the price of whatever has none

PRICES: Mapping[str, Price] = {
    "claude-3.5-haiku": Price(0.80, 4.00),
    "claude-haiku-4.5": Price(1.00, 5.00),
    "claude-sonnet-4": Price(3.00, 15.00),
    "claude-sonnet-4.5": Price(3.00, 15.00),
    "gemini-2.0-flash-001": Price(0.10, 0.40),
    "gemini-2.5-flash": Price(0.30, 2.50),
    "gemini-2.5-flash-lite": Price(0.10, 0.40),
    "gemini-2.5-pro": Price(1.25, 10.00),
    "gpt-4.1": Price(2.00, 8.00),
    "gpt-4.1-mini": Price(0.40, 1.60),
    "gpt-4.1-nano": Price(0.10, 0.40),
    "gpt-4o": Price(2.50, 10.00),
    "gpt-4o-mini": Price(0.15, 0.60),
    "gpt-5": Price(1.25, 10.00),
    "gpt-5-mini": Price(0.25, 2.00),
    "gpt-5-nano": Price(0.05, 0.40),
    "text-embedding-3-large": Price(0.13, 0.0),
    "text-embedding-3-small": Price(0.02, 0.0),
}

_DATE = re.compile(r"-20\d\d-?\d\d-?\d\d$")


def price_table(prices: Mapping[str, Mapping[str, float]]) -> dict[str, Price]:
    """The overrides of a config, `{model: {"input": dollars, "output": dollars}}`, which were checked when it was read."""
    return {model: Price(float(price["input"]), float(price["output"])) for model, price in prices.items()}


def price_of(model: str, overrides: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model as named by its endpoint; a maker's prefix or a date at the end may be absent from the table."""
    short = model.rsplit("/", 1)[-1]
    names = (model, short, _DATE.sub("", model), _DATE.sub("", short))
    for table in (overrides or {}, PRICES):
        for name in names:
            if name in table:
                return table[name]
    return FREE if model.endswith(":free") else (overrides or {}).get(ANY_MODEL)
