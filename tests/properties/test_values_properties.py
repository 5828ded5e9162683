"""What holds for every number and date, however it is written."""

from __future__ import annotations

from datetime import date as calendar_date

from hypothesis import given
from hypothesis import strategies as st

from nexi.checking.lexicon import SYMBOLS
from nexi.checking.values import (
    _parse_dates,
    _parse_numbers,
    _states_date,
    dates_differ,
    find_missing,
    is_same_number,
    parse_values,
)

counts = st.integers(2, 10**12)
UNITS = st.sampled_from(["", " km", " kg", " percent", " dollars", " visitors"])
DAYS = st.dates(calendar_date(1000, 1, 1), calendar_date(2199, 12, 31))
SPELLINGS = (
    "{0.day} {0:%B} {1}",
    "{0:%B} {0.day}, {1}",
    "{1}-{0:%m}-{0:%d}",
    "the {0.day}th of {0:%B} {1}",
    "{0:%b} {0.day}, {1}",
)
TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


@given(counts, UNITS)
def test_a_number_agrees_with_itself_with_and_without_separators(count: int, unit: str) -> None:
    (one,), (other,) = _parse_numbers(f"{count:,}{unit}"), _parse_numbers(f"{count}{unit}")
    assert is_same_number(one, other)
    assert is_same_number(other, one)


@given(counts, counts, UNITS)
def test_two_exact_numbers_agree_only_when_they_are_equal(one: int, other: int, unit: str) -> None:
    (first,), (second,) = _parse_numbers(f"{one:,}{unit}"), _parse_numbers(f"{other:,}{unit}")
    assert is_same_number(first, second) == (one == other)


@given(st.integers(1, 999), st.sampled_from([("thousand", 10**3), ("million", 10**6), ("billion", 10**9)]))
def test_a_scale_word_is_as_good_as_its_zeros(count: int, scale: tuple[str, int]) -> None:
    (spelled,), (written,) = _parse_numbers(f"{count} {scale[0]} men"), _parse_numbers(f"{count * scale[1]:,} men")
    assert is_same_number(spelled, written)


@given(st.floats(1, 10**6, allow_nan=False), st.sampled_from(sorted(SYMBOLS)), st.sampled_from(sorted(SYMBOLS)))
def test_measures_of_different_kinds_never_agree(amount: float, one: str, other: str) -> None:
    (first,), (second,) = _parse_numbers(f"{amount:.2f} {one}"), _parse_numbers(f"{amount:.2f} {other}")
    if SYMBOLS[one][0] != SYMBOLS[other][0]:
        assert not is_same_number(first, second)


@given(DAYS, st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS))
def test_a_day_is_the_same_however_it_is_spelled(day: calendar_date, one: str, other: str) -> None:
    (first,), (second,) = (_parse_dates(spelling.format(day, f"{day.year:04}")) for spelling in (one, other))
    assert _states_date(first, second)
    assert not dates_differ(first, second)


@given(DAYS, DAYS)
def test_two_days_exclude_each_other_exactly_when_they_differ(one: calendar_date, other: calendar_date) -> None:
    (first,), (second,) = (_parse_dates(f"{d.day} {d:%B} {d.year:04}") for d in (one, other))
    assert dates_differ(first, second) == (one != other)


@given(TEXT)
def test_any_text_gives_values_that_stand_where_they_say(text: str) -> None:
    numbers, dates = parse_values(text)
    for value in [*numbers, *dates]:
        assert value.text.strip(" ,") in text[value.start : value.end]
    assert all(n.end <= d.start or d.end <= n.start for n in numbers for d in dates)
    assert list(find_missing([*numbers, *dates], [*numbers, *dates])) == []
