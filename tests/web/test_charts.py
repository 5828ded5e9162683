"""A table of numbers gets a chart of its own cells; one that would have to be guessed at gets none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexi.web.page.charts import columns_of, values_of, with_charts
from nexi.web.page.view import html_of


def table(*rows: str) -> str:
    head, *body = rows
    return html_of("\n".join([f"| {head} |", f"|{'---|' * (head.count('|') + 1)}", *(f"| {row} |" for row in body)]))


def test_bars_are_drawn_to_scale_and_named_in_the_words_of_their_cells() -> None:
    made = with_charts(table("Body | Distance", "Moon | 384,400 km", "Sun | 149,600,000 km"))
    assert re.findall(r'<rect class="bar"[^>]*width="([\d.]+)"', made) == ["1.1", "420.0"]
    assert re.findall(r">([^<]*)</text>", made) == ["Moon", "384,400 km", "Sun", "149,600,000 km"]
    assert '<title id="chart-1">Distance</title>' in made
    assert '<desc id="chart-1-values">Moon: 384,400 km; Sun: 149,600,000 km</desc>' in made
    assert 'role="img" aria-labelledby="chart-1" aria-describedby="chart-1-values"' in made


def test_each_column_of_numbers_has_a_chart_and_names_are_unique() -> None:
    made = with_charts(table("a | b | c | d", "x | 1 | red | 5%", "y | 2 | blue | 7%") * 2)
    assert re.findall(r"<figcaption[^>]*>(.*?)<", made) == ["b", "d", "b", "d"]
    assert re.findall(r'<title id="(.*?)"', made) == ["chart-1", "chart-2", "chart-3", "chart-4"]


def test_negative_numbers_go_the_other_way_from_a_common_zero() -> None:
    made = with_charts(table("a | b", "x | −10", "y | 30"))
    assert re.findall(r'<rect class="bar" x="([\d.]+)" y="\d+" width="([\d.]+)"', made) == [
        ("0.0", "105.0"),
        ("105.0", "315.0"),
    ]
    assert '<line class="axis" x1="105.0"' in made


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["384,400 km", "1,000 km"], [384_400.0, 1000.0]),
        (["1.234,5 €", "3,5 €"], [1234.5, 3.5]),
        (["12 345", "1\u202f000"], [12_345.0, 1000.0]),
        (["$1.5 million", "$2 billion"], [1_500_000.0, 2e9]),
        (["~5 %", "about 7 %"], [5.0, 7.0]),
        (["٣٨٤٬٤٠٠", "١٬٠٠٠٫٥"], [384_400.0, 1000.5]),
        (["+3", "−4", "-5"], [3.0, -4.0, -5.0]),
        (["10.", "20."], [10.0, 20.0]),
    ],
)
def test_numbers_are_read_as_people_write_them(cells: list[str], values: list[float]) -> None:
    assert values_of(cells) == values


@pytest.mark.parametrize(
    "cells", [["red", "blue"], ["5 km", "7 mi"], ["10-20", "30"], ["1/2", "3/4"], ["2031-05-06", "2031-05-07"], ["1.2.3", "4"]]
)
def test_what_is_no_single_number_in_one_unit_is_not_read(cells: list[str]) -> None:
    assert values_of(cells) is None


@pytest.mark.parametrize(
    "rows",
    [
        ("a | b", "x | 1"),
        ("Name | Year", "x | 1999", "y | 2004"),
        ("a | b", "x | –", "y | 2", "z | n/a"),
        ("a", "1", "2"),
        ("a | b", *(f"x{n} | {n}" for n in range(31))),
    ],
)
def test_other_tables_get_none(rows: tuple[str, ...]) -> None:
    assert columns_of(table(*rows)) == []


def test_a_gap_is_left_out_and_our_own_marks_are_no_part_of_a_cell() -> None:
    made = table("a | b", "x | 1", "y | 2", "z | –").replace(">1<", '>1 <a class="cite" href="#s">[1]</a><')
    (column,) = columns_of(made)
    assert (column.names, column.shown, column.values) == (("x", "y"), ("1", "2"), (1.0, 2.0))


def test_names_are_escaped_and_shortened() -> None:
    made = with_charts(table("a | b", f"<script>{'x' * 60} | 1", "\u202ey | 2"))
    drawn = made[made.index("<figure") :]
    assert "<script>" not in drawn
    assert "\u202e" not in drawn
    assert "…</text>" in drawn


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12) | st.integers().map(str)), min_size=2, max_size=6))
def test_whatever_a_table_holds_what_is_drawn_is_only_drawn(cells: list[tuple[str, str]]) -> None:
    made = with_charts(table("a | b", *(f"{name} | {cell}" for name, cell in cells)))
    drawn = "".join(re.findall(r"<figure.*?</figure>", made, re.DOTALL))
    tags = set(re.findall(r"</?([a-z]+)", drawn))
    assert tags <= {"figure", "figcaption", "svg", "title", "desc", "text", "rect", "line"}
