"""Numbers as people write them."""

from __future__ import annotations

import pytest

from nexi.proof.numbers import read_numbers, same


def values(text: str) -> list[tuple[float, str]]:
    return [(n.values[-1], n.unit) for n in read_numbers(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,200 people", [(1200.0, "")]),
        ("1.2 thousand people", [(1200.0, "")]),
        ("12 % of it", [(12.0, "share")]),
        ("12 percent of it", [(12.0, "share")]),
        ("twelve men", [(12.0, "")]),
        ("two hundred and five thousand men", [(205_000.0, "")]),
        ("$5 million", [(5_000_000.0, "usd")]),
        ("25,000 dollars", [(25_000.0, "usd")]),
        ("€3,000", [(3000.0, "eur")]),
        ("-5 °C", [(-5.0, "celsius")]),
        ("half a million votes", [(500_000.0, "")]),
        ("a dozen eggs", [(12.0, "")]),
        ("3万人", [(30_000.0, "")]),
        ("10 to 15 km", [(10.0, "length"), (15.0, "length")]),
        ("5-10 million", [(5_000_000.0, ""), (10_000_000.0, "")]),
        ("an F-16 with COVID-19 in HTML5", []),
        ("version 3.11.2", []),
    ],
)
def test_a_number_is_read_with_scale_and_unit(text: str, expected: list[tuple[float, str]]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("claimed", "stated", "agree"),
    [
        ("1,200", "1.2 thousand", True),
        ("4 km", "4,000 metres", True),
        ("10 miles", "16.1 km", True),
        ("10 miles", "10 km", False),
        ("1.2 million", "1,234,567", True),
        ("1.3 million", "1,234,567", False),
        ("1,200,000", "1,234,567", False),
        ("5 million", "5 billion", False),
        ("$5", "€5", False),
        ("3rd", "third", True),
        ("3rd", "3", False),
        ("1.200", "1200", True),
    ],
)
def test_two_numbers_say_the_same_or_not(claimed: str, stated: str, agree: bool) -> None:
    assert same(read_numbers(claimed)[0], read_numbers(stated)[0]) is agree
