"""Markdown to plain text, for readers and for comparison."""

from __future__ import annotations

import pytest

from nexi.text.plain import plain, strip_heading_marks, strip_markdown


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("The *Moon* is **far** and __cold__.", "The Moon is far and cold."),
        ("See [the list](https://a.example/x_(y)) and ![a picture](p.png).", "See the list and ."),
        ("It is 384,400 km away.[12][note 3]", "It is 384,400 km away."),
        (r"2 \* 3 \* 4 and snake\_case", "2 * 3 * 4 and snake_case"),
        (r"Prices are \*not\* bold", "Prices are *not* bold"),
        ("Use `a_b_c` or `<div>` in <b>code</b>", "Use `a_b_c` or `<div>` in code"),
        ("Add <file> to the list, <br/>then <em class=x>commit</em>", "Add <file> to the list, then commit"),
        ("one\n  two\t three ¶", "one two three"),
    ],
)
def test_one_block_becomes_one_line(markdown: str, text: str) -> None:
    assert strip_markdown(markdown) == text


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (r"snake\_case costs \$5", "snake_case costs $5"),
        ("a soft\u00adhyphen and a broken-\nword", "a softhyphen and a brokenword"),
        ("Caf&eacute;<br>it is 5 km.[3]", "Café it is 5 km."),
        ("cafe\u0301", "café"),
    ],
)
def test_a_page_is_compared_as_readers_see_it(stored: str, text: str) -> None:
    assert plain(stored).text == text


def test_every_place_leads_back_to_the_stored_text() -> None:
    stored = r"The [Moon](https://moon.example) is snake\_case far."
    seen = plain(stored)
    assert stored[seen.stored_place(seen.text.index("far")) :] == "far."


def test_headings_lose_their_number_signs_and_nothing_else_does() -> None:
    assert strip_heading_marks("a #1\n## Part 2\n#hashtag\n####### seven") == "a #1\nPart 2\n#hashtag\n####### seven"
