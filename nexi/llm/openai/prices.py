"""What tokens cost, where that is known.

The adapter asks with a model's name and gets a price or None; None means unknown and is never taken for free. Operators
override any entry; a cost that the server reports itself always wins over this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec


class Price(msgspec.Struct, frozen=True):
    """US dollars for a million tokens."""

    input: float
    output: float

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


FREE = Price(0.0, 0.0)
ANY_MODEL = "*"  # among the overrides: the price of whatever has none

PRICES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, Price])
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
