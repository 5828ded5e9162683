"""Small pages that would cost a parser minutes or gigabytes are recognised and still give their text."""

from __future__ import annotations

import time

import pytest

from nexi.extract import markup_limits
from nexi.extract.text import to_markdown

URL = "https://site.test/"
FONTS = "".join(f"<font a={n}>" for n in range(1_000))
ATTRIBUTES = " ".join(f"a{n}=1" for n in range(5_000))
QUOTED = " ".join(f"a{n}='>'" for n in range(5_000))

HOSTILE = {
    "deep": "<div>" * 20_000 + "words",
    "deep and closed": "<div>" * 20_000 + "words" + "</div>" * 20_000,
    "many attributes": f"<p {ATTRIBUTES}>words",
    "many attributes with ends of tags inside": f"<p {QUOTED}>words",
    "more tags than a page can have": "<p>words" * (markup_limits.MAX_OPENINGS + 1),
    "formatting rebuilt in every paragraph": f"<p>{FONTS}" + "<p>words" * 3_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_are_recognised(name: str) -> None:
    html = HOSTILE[name]
    assert markup_limits.is_hostile(html)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_still_give_their_words(name: str) -> None:
    assert "words" in to_markdown(HOSTILE[name], URL)


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>words</p>" * 5_000,
        "<ul>" + "<li><a href=x class=y>item</a>" * 5_000,
        f"<script>if (a <b && c) {{ x = '{ATTRIBUTES}' }}</script><p>words</p>",
        f"<!-- <p {ATTRIBUTES}> -->",
        f"<img src='data:image/png;base64,{'A' * 100_000}'>",
        "<b>bold</b> <i class=x>i</i> <code>c</code>" * 2_000,
    ],
)
def test_large_but_honest_pages_are_not(html: str) -> None:
    assert not markup_limits.is_hostile(html)


@pytest.mark.parametrize(
    "html",
    [
        "<" * 100_000,
        "<p" * 100_000,
        "<p a='" * 50_000,
        "<!--" * 50_000,
        "<script>" * 20_000,
        "<table><b>" * 2_000,
        "<b><p></b>" * 5_000,
        "<svg><style><p>" * 2_000,
        "<frameset><frame>",
        "&" * 100_000,
        "\x00" * 1_000,
        "<table>" + "<tr><td rowspan=65534 colspan=1000>x" * 30,
    ],
)
def test_no_markup_makes_extraction_fail(html: str) -> None:
    assert isinstance(to_markdown(html, URL), str)


@pytest.mark.parametrize(
    "html",
    [
        "<blockquote>words " * 5_000,
        "<div><p>words " * 5_000,
        "<table><tr><td>words " * 3_000,
        "<script>x</SCRIPT>words " * 50_000,
        "<STYLE>x</style>words " * 50_000,
        "<!-- x -->words " * 50_000,
    ],
)
@pytest.mark.slow
def test_no_page_costs_more_than_its_size(html: str) -> None:
    start = time.process_time()
    assert to_markdown(html, URL).count("words") >= 1_000
    assert time.process_time() - start < 5  # a cost that grew with the square of the size would be minutes


def test_a_page_is_cut_at_the_last_tag_that_can_be_afforded() -> None:
    html = "<p>a</p>" * markup_limits.MAX_WEIGHT
    assert markup_limits.bound_markup(html) == "<p>a</p>" * (markup_limits.MAX_WEIGHT // 4)
    assert len(markup_limits.bound_markup("<p a=1 b=2 c=3 d=4>" * markup_limits.MAX_WEIGHT)) == 19 * (
        markup_limits.MAX_WEIGHT // 6
    )
    assert len(markup_limits.bound_markup(f"<p {'a ' * 1_000}>" * 1_000)) < 500_000
    assert markup_limits.bound_markup("<p>a < b" * 10) == "<p>a < b" * 10


def test_a_cell_spans_what_a_table_can_have() -> None:
    wide, narrow = "<td ColSpan='1000' rowspan=65534 colspan=12>", "<td ColSpan='1' rowspan=1 colspan=12>"
    assert markup_limits.bound_markup(wide * 6_000) == narrow * 6_000


def can_multiply(html: str) -> bool:
    return markup_limits._can_multiply(html, html.count("<"))


def test_formatting_that_is_closed_is_not_rebuilt() -> None:
    honest = "".join(f"<p><b class=c{n}>bold</b> <i class=d{n}>i</i></p>" for n in range(3_000))
    assert (can_multiply(honest), can_multiply("<i><p>" * 30_000)) == (False, False)
    assert can_multiply("<p>" + "".join(f"<b class=c{n}>" for n in range(50)) + "<p>x" * 5_000)


@pytest.mark.parametrize("value", [">", "<>", "x<b>y"])
def test_a_tag_with_too_many_attributes_is_known_whatever_their_values_are(value: str) -> None:
    attributes = " ".join(f'a{n}="{value}"' for n in range(markup_limits.MAX_ATTRIBUTES + 1))
    html = f"<p>Words</p><a {attributes}>x</a>"
    assert markup_limits.is_hostile(html)
