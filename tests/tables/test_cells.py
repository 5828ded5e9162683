"""Columns as people type them, values under their names, and values inside sentences."""

from __future__ import annotations

import pytest

from nexi.errors import QuestionError
from nexi.tables.cells import Column, find_quote, parse_columns, place_quote
from nexi.tables.picking import Saying, choose_labelled, choose_saying, list_labelled, pick_value

SHEET = """# Income

| | 2022 | 2023 |
|---|---|---|
| Net sales | 1,200 | 1,350 |
| Other, net | 346 | (183) |

Currency: EUR
"""


@pytest.mark.parametrize(
    ("typed", "columns"),
    [
        (["price, launch date; weight"], ["price", "launch date", "weight"]),
        (["Who wrote it, and when? How long is it?"], ["Who wrote it, and when?", "How long is it?"]),
        (["price,, price ,"], ["price"]),
        (["price", "total sum\nweight"], ["price", "total sum", "weight"]),
    ],
)
def test_columns_are_names_between_commas_or_questions(typed: list[str], columns: list[str]) -> None:
    assert [column.text for column in parse_columns(typed)] == columns


@pytest.mark.parametrize("typed", ["", " , ;", "x" * 301, ",".join(map(str, range(41)))])
def test_a_table_without_usable_columns_is_refused_with_a_fix(typed: str) -> None:
    with pytest.raises(QuestionError) as refused:
        parse_columns([typed])
    assert refused.value.fix


@pytest.mark.parametrize(
    ("column", "value", "quote"),
    [
        ("net sales 2022", "1,200", "| Net sales | 1,200 | 1,350 |"),
        ("net sales", "1,350", "| Net sales | 1,200 | 1,350 |"),  # of several years the last
        ("other net 2023", "(183)", "| Other, net | 346 | (183) |"),
        ("currency", "EUR", "Currency: EUR"),
    ],
)
def test_a_value_under_its_name_is_taken_as_it_is_written(column: str, value: str, quote: str) -> None:
    chosen = choose_labelled(Column(column), list(list_labelled(SHEET)))
    assert chosen
    assert (chosen.value, chosen.quote) == (value, quote)


@pytest.mark.parametrize("column", ["gross sales", "net sales 2021", "employees"])
def test_a_name_that_lacks_a_word_of_the_column_gives_no_value(column: str) -> None:
    assert choose_labelled(Column(column), list(list_labelled(SHEET))) is None


@pytest.mark.parametrize(
    ("column", "sentence", "value"),
    [
        ("weight", "It weighs 870 grams and costs $1,299.", "870 grams"),
        ("price", "It weighs 870 grams and costs $1,299.", "$1,299"),
        ("launch date", "Announced in May, it was launched on 12 March 2024.", "12 March 2024"),
        ("city", "The flat is at 4 Quay Street, Bergen.", "Bergen"),
        ("country", "We enrolled 214 adults at six hospitals in Portugal.", "Portugal"),
        ("tenant", "It binds the landlord and Mira Solberg, the tenant.", "Mira Solberg"),
        ("conclusion", "The method works in practice.", "The method works in practice."),
    ],
)
def test_the_value_of_a_sentence_is_of_the_kind_that_its_column_wants(column: str, sentence: str, value: str) -> None:
    assert pick_value(Column(column), Saying(sentence, 0)) == value


def test_a_sentence_without_a_value_of_the_kind_is_never_chosen() -> None:
    sayings = [Saying("The price is a secret.", 0), Saying("A spare costs $40.", 30)]
    chosen = choose_saying(Column("price"), sayings, lambda _question, texts: [0.9] * len(texts))
    assert chosen == sayings[1]


def test_without_a_reading_model_a_sentence_needs_most_words_of_the_column() -> None:
    sayings = [Saying("The list price is 40 euros.", 0)]
    assert choose_saying(Column("price"), sayings, None) == sayings[0]
    assert choose_saying(Column("market price"), sayings, lambda *_: None) is None


def test_what_is_not_near_in_meaning_is_not_stated() -> None:
    assert choose_saying(Column("price"), [Saying("We met on 3 May for $5.", 0)], lambda _q, texts: [0.75] * len(texts)) is None


def test_a_quote_is_found_across_markup_and_placed_on_its_page() -> None:
    text = "[page 1]\n\nIntro.\n\n[page 2]\n\n## Costs\n\nThe **list price** is\n40 euros."
    span = find_quote(text, "The list price is 40 euros")
    assert span
    assert place_quote(text, "40 euros", "q", span[0]) == place_quote(text, "40 euros", "q", span[0])
    assert (place_quote(text, "40", "q", span[0]).page, place_quote(text, "40", "q", span[0]).heading) == (2, "Costs")
    assert find_quote(text, "The list price is 50 euros") is None


@pytest.mark.parametrize("quote", ["5.1 kg", "1 kg", "The weight is 15.1 k"])
def test_a_quote_that_cuts_a_number_or_a_word_does_not_stand_in_the_document(quote: str) -> None:
    assert find_quote("The weight is 15.1 kg today.", quote) is None


def test_a_comment_in_code_is_no_heading() -> None:
    text = "## Costs\n\n```\n# not a heading\n```\n\nThe price is 40 euros."
    assert place_quote(text, "40 euros", "The price is 40 euros.", text.index("The")).heading == "Costs"
