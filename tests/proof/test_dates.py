"""Dates as people write them."""

from __future__ import annotations

import pytest

from nexi.proof.dates import clashes, read_dates, says


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("5 May 1990", [((1990, 5, 5),)]),
        ("May 5th, 1990", [((1990, 5, 5),)]),
        ("1990-05-05", [((1990, 5, 5),)]),
        ("the fifth of May 1990", [((1990, 5, 5),)]),
        ("May 1998", [((1998, 5, 0),)]),
        ("03/04/2020", [((2020, 4, 3), (2020, 3, 4))]),
        ("25.12.2001", [((2001, 12, 25),)]),
        ("5-7 June 2001", [((2001, 6, 5),), ((2001, 6, 7),)]),
        ("1939-45", [((1939, 0, 0),), ((1945, 0, 0),)]),
        ("the 1990s", [((1990, 0, 0),)]),
        ("the nineteenth century", [((1900, 0, 0),)]),
        ("44 BC", [((-44, 0, 0),)]),
        ("2024年5月3日", [((2024, 5, 3),)]),
        ("5 мая 1990", [((1990, 5, 5),)]),
        ("it may be so", []),
    ],
)
def test_a_date_is_read_as_far_as_it_is_given(text: str, readings: list[tuple[tuple[int, int, int], ...]]) -> None:
    assert [date.readings for date in read_dates(text)] == readings


def test_a_fuller_date_says_the_shorter_one_and_not_the_other_way_round() -> None:
    full, short = read_dates("5 May 1990")[0], read_dates("May 1990")[0]
    assert (says(full, short), says(short, full), clashes(full, short)) == (True, False, False)


def test_dates_that_differ_in_one_part_clash() -> None:
    assert clashes(read_dates("5 May 1990")[0], read_dates("6 May 1990")[0])
