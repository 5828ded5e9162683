"""Links that open a page where its evidence stands."""

from __future__ import annotations

import pytest

from nexi.checking.links import _text_directive, link_to, list_shown_lines, page_number, with_links
from nexi.checking.pages import prepare
from nexi.types import Claim, Evidence, Imprint, Source, Verdict

PAGE = """# Forth Bridge

The **Forth Bridge** is a [cantilever](https://example.org/c) railway bridge. \
It is a well-known, 2,467-metre crossing & landmark.

Trains cross it every day. The bridge was opened on 4 March 1890 by the Duke of Rothesay, the later King Edward VII, \
who drove home the last rivet.

Trains cross it every day. Painters, too.

| Part | Length |
|------|--------|
| Main span | 521 m |
"""
URL = "https://example.org/forth"


def directive(words: str) -> str:
    start = PAGE.index(words)
    return _text_directive(PAGE, start, start + len(words))


def test_a_short_quote_is_named_whole_with_its_syntax_escaped() -> None:
    assert directive("It is a well-known, 2,467-metre crossing & landmark.") == (
        "It%20is%20a%20well%2Dknown%2C%202%2C467%2Dmetre%20crossing%20%26%20landmark"
    )


def test_markdown_is_taken_off_because_browsers_do_not_show_it() -> None:
    assert directive("The **Forth Bridge** is a [cantilever](https://example.org/c) railway bridge.") == (
        "The%20Forth%20Bridge%20is%20a%20cantilever%20railway%20bridge"
    )


def test_a_long_quote_is_named_by_its_beginning_and_its_end() -> None:
    quote = "The bridge was opened on 4 March 1890 by the Duke of Rothesay, the later King Edward VII, "
    assert directive(f"{quote}who drove home the last rivet.") == "The%20bridge%20was%20opened,home%20the%20last%20rivet"


def test_a_quote_that_stands_there_twice_is_told_by_what_stands_before_it() -> None:
    again = PAGE.rindex("Trains cross it every day.")
    assert _text_directive(PAGE, again, again + 26) == "the%20last%20rivet-,Trains%20cross%20it%20every%20day"


def test_a_quote_over_two_blocks_is_named_by_its_ends() -> None:
    start, end = PAGE.index("Painters"), PAGE.index("521 m") + 5
    assert _text_directive(PAGE, start, end) == "Painters%2C%20too,521%20m"


def test_a_quote_that_begins_inside_a_word_is_widened() -> None:
    start = PAGE.index("ainters")
    assert _text_directive(PAGE, start, start + 10) == "Painters%2C%20too"


def test_a_script_without_spaces_is_named_by_its_clauses() -> None:
    text = (
        "东京是日本的首都，也是世界上人口最多的城市之一，拥有约一千四百万居民，并且是日本的政治经济文化中心，"
        "每年吸引大量游客前来观光，也是许多国际企业的总部所在地，其交通网络十分发达而且便利，覆盖了整个大都市圈。"
    )
    from urllib.parse import unquote

    head, tail = unquote(_text_directive(text, 0, len(text))).split(",")
    assert (head, tail) == ("东京是日本的首都", "覆盖了整个大都市圈")


@pytest.mark.parametrize("words", ["---", "|------|--------|", "***"])
def test_what_a_browser_does_not_show_has_no_fragment(words: str) -> None:
    assert _text_directive(words, 0, len(words)) == ""


def test_a_fragment_of_the_page_s_own_stays() -> None:
    start = PAGE.index("Painters")
    assert link_to(f"{URL}#history", PAGE, start, start + 13, "text/html; charset=utf-8") == (
        f"{URL}#history:~:text=Painters%2C%20too"
    )


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "text/markdown", ""])
def test_only_html_pages_get_a_text_fragment(kind: str) -> None:
    assert link_to(URL, PAGE, 0, 10, kind) == URL


@pytest.mark.parametrize(("start", "end"), [(5, 5), (-1, 3), (0, 10_000), (9, 2)])
def test_a_place_that_is_none_leaves_the_plain_url(start: int, end: int) -> None:
    assert link_to(URL, "some text", start, end, "text/html") == URL


def test_a_pdf_opens_at_the_page_of_its_evidence() -> None:
    text = "[page 1]\n\nFirst words.\n\n[page 12]\n\nThe span is 521 m.\n\n[page 13]\n\nEnd."
    start = text.index("521")
    assert link_to(f"{URL}.pdf#page=1", text, start, start + 5, "application/pdf") == f"{URL}.pdf#page=12"
    assert page_number(text, start) == 12
    assert page_number(text, start, "text/html") == 0
    assert page_number("no marks", 3) == 0


def test_marks_of_markdown_are_not_words() -> None:
    text = (
        "## See [*the* `x_y`](u)\n\n> 1. and snake_case \\*stars\\* ![alt](i.png)\n\n"
        "| a \\| b | **c** |\n|---|---|\n| 1 | |\n\n```sh\n# a comment\n```"
    )
    assert list_shown_lines(text) == ["See the x_y", "and snake_case *stars*", "a | b", "c", "1", "# a comment"]


def test_a_number_before_a_bracket_is_no_mark_of_a_list() -> None:
    text = "The war (1754–1763) was long - it ended in 1763. Then came peace."
    assert list_shown_lines(text) == [text]


def test_each_source_is_linked_to_what_it_is_first_cited_for() -> None:
    start = PAGE.index("Painters")
    found = Evidence(1, URL, verdict=Verdict.FOUND, start=start, end=start + 13)
    missed = Evidence(2, URL, verdict=Verdict.NOT_FOUND, start=0, end=5)
    claims = [Claim(0, "Painters, too.", 0, 14, evidence=(missed, found))]
    sources = [Source(1, URL, imprint=Imprint(content_type="text/html")), Source(2, "https://example.net/")]
    assert with_links(sources, claims, {1: prepare(PAGE), 2: None}) == (
        Source(1, URL, imprint=Imprint(content_type="text/html"), link=f"{URL}#:~:text=Painters%2C%20too"),
        Source(2, "https://example.net/"),
    )


def test_a_word_ends_where_the_browser_ends_it_whatever_marks_it_holds() -> None:
    text = "The last rivet of six and a half million*s* was **over**laid with gold."
    start = text.index("rivet")
    assert _text_directive(text, start, text.index("million") + len("million")).endswith("half%20millions")
    start = text.index("laid")
    assert _text_directive(text, start, len(text) - 1) == "overlaid%20with%20gold"
