"""Numbers and dates as people write them, and which of them agree."""

from __future__ import annotations

import pytest

from nexi.checking.values import (
    Date,
    Number,
    _parse_dates,
    _states_date,
    dates_differ,
    find_missing,
    is_same_number,
    parse_values,
)
from nexi.checking.values import _parse_numbers as numbers


def only_number(text: str) -> Number:
    (number,) = [n for n in parse_values(text)[0] if not n.is_weak]
    return number


def only_date(text: str) -> Date:
    (date,) = _parse_dates(text)
    return date


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,200 people", [(1200.0, "")]),
        ("1.2 thousand people", [(1200.0, "")]),
        ("12 % of it", [(12.0, "share")]),
        ("12 percent of it", [(12.0, "share")]),
        ("12 per cent of it", [(12.0, "share")]),
        ("three quarters of it", [(75.0, "share")]),
        ("one fifth of it", [(20.0, "share")]),
        ("a tenth of it", [(10.0, "share")]),
        ("3/4 of it", [(75.0, "share")]),
        ("2 1/2 cups", [(2.5, "")]),
        ("twelve men", [(12.0, "")]),
        ("two hundred and five thousand men", [(205_000.0, "")]),
        ("$5 million", [(5_000_000.0, "usd")]),
        ("£5m", [(5_000_000.0, "gbp")]),
        ("$3b", [(3e9, "usd")]),
        ("25,000 dollars", [(25_000.0, "usd")]),
        ("€3,000", [(3000.0, "eur")]),
        ("-5 °C", [(-5.0, "celsius")]),
        ("half a million votes", [(500_000.0, "")]),
        ("a dozen eggs", [(12.0, "")]),
        ("five seconds", [(5.0, "time")]),
        ("twenty-second street", [(22.0, "")]),
        ("3万人", [(30_000.0, "")]),
        ("全长1240米", [(1240.0, "length")]),
        ("高さは24メートル", [(24.0, "")]),
        ("10 to 15 km", [(10.0, "length"), (15.0, "length")]),
        ("5-10 million", [(5_000_000.0, ""), (10_000_000.0, "")]),
        ("an F-16 with COVID-19 in HTML5", []),
        ("version 3.11.2", []),
        ("two in ten minutes", [(2.0, ""), (10.0, "time")]),
        ("two and a half kilograms", [(2.5, "mass")]),
        ("10 km and 12 km", [(10.0, "length"), (12.0, "length")]),
        ("1.500.000 Einwohner", [(1_500_000.0, "")]),
    ],
)
def test_a_number_is_read_with_scale_and_unit(text: str, expected: list[tuple[float, str]]) -> None:
    assert [(n.values[-1], n.unit) for n in numbers(text)] == expected


@pytest.mark.parametrize(
    ("claimed", "stated"),
    [
        ("1,200", "1.2 thousand"),
        ("1.500.000", "1,5 Millionen"),
        ("1.200", "1200"),
        ("two million people", "2,000,000 people"),
        ("2 million people", "2m people"),
        ("$2 million", "$2m"),
        ("4 km", "4,000 metres"),
        ("10 miles", "16.1 km"),
        ("75 %", "three quarters"),
        ("three quarters", "75 percent"),
        ("two-thirds", "67 %"),
        ("two-thirds", "2/3"),
        ("one fifth", "20 %"),
        ("1.2 million", "1,234,567"),
        ("about 160 miles", "157 miles"),
        ("nearly 69,200", "69,197"),
        ("more than 2,400 metres", "2,467 metres"),
        ("at least 2,400 metres", "2,467 metres"),
        ("fewer than 2,500 metres", "2,467 metres"),
        ("up to 2,500 metres", "2,467 metres"),
        ("3rd", "third"),
        ("one second", "1 second"),
    ],
)
def test_two_spellings_of_a_number_agree(claimed: str, stated: str) -> None:
    assert is_same_number(numbers(claimed)[0], numbers(stated)[0])


@pytest.mark.parametrize(
    ("claimed", "stated"),
    [
        ("about 1941", "1924"),
        ("10 miles", "10 km"),
        ("1.3 million", "1,234,567"),
        ("1,200,000", "1,234,567"),
        ("2147483646", "2147483647"),
        ("5 million", "5 billion"),
        ("$5", "€5"),
        ("3rd", "3"),
        ("two-thirds", "60 %"),
        ("75 %", "75 metres"),
        ("about 160 miles", "190 miles"),
        ("more than 2,400 metres", "2,300 metres"),
        ("more than 2,400 metres", "9,000 metres"),
        ("fewer than 2,400 metres", "2,467 metres"),
        ("less than 10,001 years", "less than 10,000 years"),
        ("2,467", "about 2,500"),
        ("5", f"1{'0' * 400}"),  # infinite as a float
    ],
)
def test_two_numbers_that_say_something_else_do_not(claimed: str, stated: str) -> None:
    assert not is_same_number(only_number(claimed), only_number(stated))


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("5 May 1990", [((1990, 5, 5),)]),
        ("May 5th, 1990", [((1990, 5, 5),)]),
        ("1990-05-05", [((1990, 5, 5),)]),
        ("1990/05/06", [((1990, 5, 6),)]),
        ("the fifth of May 1990", [((1990, 5, 5),)]),
        ("May 1998", [((1998, 5, 0),)]),
        ("in May", [((0, 5, 0),)]),
        ("03/04/2020", [((2020, 4, 3), (2020, 3, 4))]),
        ("25.12.2001", [((2001, 12, 25),)]),
        ("45.13.2001", []),
        ("5-7 June 2001", [((2001, 6, 5),), ((2001, 6, 7),)]),
        ("1939-45", [((1939, 0, 0),), ((1945, 0, 0),)]),
        ("the 1990s", [((1990, 0, 0),)]),
        ("the nineteenth century", [((1900, 0, 0),)]),
        ("the twenty-first century", [((2100, 0, 0),)]),
        ("the 5th century BC", [((-500, 0, 0),)]),
        ("44 BC", [((-44, 0, 0),)]),
        ("AD 79", [((79, 0, 0),)]),
        ("2024年5月3日", [((2024, 5, 3),)]),
        ("5 мая 1990", [((1990, 5, 5),)]),
        ("it may be so", []),
    ],
)
def test_a_date_is_read_as_far_as_it_is_given(text: str, readings: list[tuple[tuple[int, int, int], ...]]) -> None:
    assert [date.readings for date in _parse_dates(text)] == readings


def test_a_fuller_date_says_the_shorter_one_and_not_the_other_way_round() -> None:
    full, short = only_date("5 May 1990"), only_date("May 1990")
    assert (_states_date(full, short), _states_date(short, full), dates_differ(full, short)) == (True, False, False)


def test_dates_that_differ_in_one_part_exclude_each_other() -> None:
    assert dates_differ(only_date("5 May 1990"), only_date("6 May 1990"))
    assert not dates_differ(only_date("the 1990s"), only_date("5 May 1990"))


@pytest.mark.parametrize(
    ("claim", "source", "missing"),
    [
        ("in 1990", "on 5 May 1990", []),
        ("on 5 May 1990", "in 1990", ["5 May 1990"]),
        ("on 5 May 1990", "on 5 May of that year; it was 1990", []),
        ("on 5 May 1990", "on 5 May; it was 1991", ["5 May 1990"]),
        ("1200 men", "1,200 men", []),
        ("one man and 30 dogs", "nothing", ["30"]),
    ],
)
def test_what_a_text_does_not_state_is_missing(claim: str, source: str, missing: list[str]) -> None:
    ours, theirs = ([v for values in parse_values(text) for v in values] for text in (claim, source))
    assert [value.text for value in find_missing(ours, theirs)] == missing
