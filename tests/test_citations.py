"""Citations: stable numbers, one spelling, nothing invented, and answers cut into sentences as they arrive."""

from __future__ import annotations

import pytest

from nexi.answers.citations import (
    CitationBook,
    NumbersByUse,
    SentenceStream,
    add_citations_to_answer,
    drop_unknown,
    extract_citation_markers,
    extract_citations_from_tool_result,
    format_citations_section,
    is_row,
    link_citations,
    map_markers_to_urls,
    normalise_markers,
    process_answer_with_citations,
    renumber_markers,
    strip_sources_section,
    unlink_citations,
)
from nexi.types import Source

URLS = {1: "https://a.example/1", 2: "https://a.example/2", 3: "https://a.example/3"}


# the book


def test_a_page_keeps_the_number_it_got_first() -> None:
    book = CitationBook(key=str.lower)
    first = book.number_for("https://a.example/X", "X", "d1")
    second = book.number_for("https://a.example/Y")
    again = book.number_for("https://A.example/x", "other title", "d2")
    assert (first, second, again) == (Source(1, "https://a.example/X", "X", "d1"), Source(2, "https://a.example/Y"), first)
    assert book.sources == (first, second)
    assert (book.by_number(2), book.by_number(3)) == (second, None)


def test_a_book_goes_on_where_another_stopped() -> None:
    book = CitationBook(sources=[Source(1, "u1"), Source(4, "u4")])
    assert [book.number_for(url).number for url in ("u4", "new", "u1")] == [4, 5, 1]


def test_a_page_is_found_only_once_it_has_a_number() -> None:
    book = CitationBook(key=str.lower, sources=[Source(3, "https://a.example/X")])
    assert (book.find("https://A.example/x"), book.find("https://a.example/y")) == (Source(3, "https://a.example/X"), None)


def test_reserved_numbers_go_to_their_pages_and_others_follow_them() -> None:
    book = CitationBook()
    book.reserve([Source(2, "u2"), Source(5, "u5")])
    book.reserve([Source(7, "u7")])
    assert [book.number_for(url).number for url in ("new", "u5", "u2", "newer", "u7", "u5")] == [8, 5, 2, 9, 7, 5]


def test_an_answer_numbers_its_sources_in_the_order_in_which_it_cites_them() -> None:
    book = CitationBook(sources=[Source(number, f"u{number}") for number in (1, 2, 3)])
    numbers = NumbersByUse(book)
    assert numbers.translate("A [1].") == "A [1]."
    assert (numbers.moved, [source.url for source in book.sources]) == ({}, ["u1", "u2", "u3"])
    assert (
        numbers.translate("B [3]. C [2], again [3] and [1], `[2]` and [9].")
        == "B [2]. C [3], again [2] and [1], `[2]` and [9]."
    )
    assert (numbers.moved, [source.url for source in book.sources]) == ({2: 3, 3: 2}, ["u1", "u3", "u2"])
    assert [numbers.given_number(source) for source in (*book.sources, Source(7, "new"))] == [1, 3, 2, 7]


def test_a_later_answer_leaves_the_numbers_of_a_conversation_alone() -> None:
    book = CitationBook(sources=[Source(1, "u1"), Source(2, "u2")])
    book.keep_numbers()
    for url in ("u3", "u4"):
        book.number_for(url)
    assert NumbersByUse(book).translate("A [2]. B [4]. C [3]. D [1].") == "A [2]. B [3]. C [4]. D [1]."
    assert [source.url for source in book.sources] == ["u1", "u2", "u4", "u3"]


def test_citations_get_new_numbers_outside_code() -> None:
    assert renumber_markers("A [1] and [2], `[1]`", {1: 3}) == "A [3] and [2], `[1]`"


def test_citations_become_links_to_pages_and_notes_and_plain_again() -> None:
    sources = [Source(1, "https://a.example/x"), Source(2, "/notes/n.md", link="obsidian://open?file=n"), Source(3, "/b.txt")]
    text = "A [1]. B [2]. C [3] and [4]. `x[1]`"
    linked = link_citations(text, sources)
    assert linked == r"A [\[1\]](https://a.example/x). B [\[2\]](obsidian://open?file=n). C [3] and [4]. `x[1]`"
    assert unlink_citations(linked) == text


def test_a_number_that_another_page_already_has_is_not_given_again() -> None:
    book = CitationBook(sources=[Source(2, "first")])
    book.reserve([Source(2, "second")])
    assert [book.number_for(url).number for url in ("second", "first")] == [3, 2]


def test_a_branch_takes_its_numbers_from_the_book_and_lists_only_its_own_sources() -> None:
    book = CitationBook()
    moon = book.number_for("moon", "Moon", "d1")
    left, right = book.branch(), book.branch()
    tide = left.number_for("tide", "Tide", "d2")
    assert (tide, right.number_for("tide", "other"), right.number_for("moon")) == (Source(2, "tide", "Tide", "d2"), tide, moon)
    assert (left.sources, right.sources, book.sources) == ((tide,), (tide, moon), (moon, tide))


def test_a_branch_adopts_sources_of_its_book_by_number() -> None:
    book = CitationBook(sources=[Source(1, "moon"), Source(2, "tide")])
    branch = book.branch()
    branch.adopt([2, 9])
    assert branch.sources == (Source(2, "tide"),)
    book.adopt([1])
    assert book.sources == (Source(1, "moon"), Source(2, "tide"))


# markers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("According to [1], yes.", {1}),
        ("Yes[1][2]. And [3] and [1].", {1, 2, 3}),
        ("The answer is [1], but not [1,2] or [see note 1].", {1}),
        ("In [2024] and [0] and [007] nothing.", set()),
        ("Inline `x[1]` and ``y[2] ` z[3]`` but [4].", {4}),
        ("```py\nx[1]\n```\nand [2]\n~~~\n[3]\n```\n[3]\n~~~\n[4]", {2, 4}),
        ("an open fence\n```\n[1]", set()),
        ("an open ` tick [1]", {1}),
        ("", set()),
    ],
)
def test_markers_are_numbers_in_brackets_outside_code(text: str, numbers: set[int]) -> None:
    assert extract_citation_markers(text) == numbers


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("a [1, 2] b", "a [1][2] b"),
        ("a [1;2 ,3] b", "a [1][2][3] b"),
        ("a 【1】 b", "a [1] b"),
        ("a 【12†L3-L5】 b", "a [12] b"),
        ("a 【4:0†source】 b", "a [4] b"),
        ("a [^1] b", "a [1] b"),
        ("a [^1, ^2] b", "a [1][2] b"),
        ("a [1†source] b", "a [1] b"),
        ("a [[1]](https://x.example) b [[2]] c", "a [1] b [2] c"),
        ("a [1](https://evil.example/?q=secret) b", "a [1] b"),
        ("a [1] [2] [2024] [text](u) [see 1]", "a [1] [2] [2024] [text](u) [see 1]"),
        ("code `x[1, 2]`\n```\n[^1]\n```\n[1, 2]", "code `x[1, 2]`\n```\n[^1]\n```\n[1][2]"),
        ("【1234】 【x】 [1, 2024]", "【1234】 【x】 [1, 2024]"),
    ],
)
def test_every_spelling_becomes_one(text: str, normal: str) -> None:
    assert normalise_markers(text) == normal


@pytest.mark.parametrize(
    ("text", "kept", "dropped"),
    [
        ("Fact [1].", "Fact [1].", set()),
        ("Fact [9]. More [1] [8]!", "Fact. More [1]!", {8, 9}),
        ("Fact[9][1][8] end", "Fact[1] end", {8, 9}),
        ("Fact [9][8]. More [9][1].", "Fact. More [1].", {8, 9}),
        ("- [9] item", "- item", {9}),
        ("`x[9]` but [9] gone\n```\n[9]\n```", "`x[9]` but gone\n```\n[9]\n```", {9}),
        ("a [9](link) b", "a [9](link) b", set()),
        ("[[9]2] and [[8][9]2] and [[9]]", "[ 2] and [ 2] and [ ]", {8, 9}),
        ("line  \t[9]\nnext", "line\nnext", {9}),
    ],
)
def test_markers_that_name_nothing_are_dropped_with_the_space_before(text: str, kept: str, dropped: set[int]) -> None:
    assert drop_unknown(text, {1}) == (kept, dropped)


def test_markers_without_number_are_dropped_to_the_end() -> None:
    """A pass that is not linear would hang here."""
    assert drop_unknown("word [9] " * 200_000, set()) == ("word " * 199_999 + "word ", {9})


@pytest.mark.parametrize(("text", "expected"), [("| a | b |", True), ("\n\t> | a", True), ("a | b", False), ("", False)])
def test_a_row_of_a_table_begins_with_a_bar(text: str, expected: bool) -> None:
    assert is_row(text) is expected


# the list of sources


def test_the_list_has_titles_where_there_are_some() -> None:
    titles = {URLS[1]: "  A\ntitle \x1b[1m", URLS[3]: URLS[3]}
    assert format_citations_section({3: URLS[3], 1: URLS[1], 2: URLS[2]}, titles) == "\n".join(
        ["Sources:", "[1] A title [1m - https://a.example/1", "[2] https://a.example/2", "[3] https://a.example/3"]
    )
    assert format_citations_section({1: URLS[1]}, plain=False) == "📚 Sources:\n[1] https://a.example/1"
    assert format_citations_section({}) == ""


def test_markers_map_to_the_urls_there_are() -> None:
    assert map_markers_to_urls({3, 1, 7}, URLS) == {1: URLS[1], 3: URLS[3]}


def test_only_what_is_cited_is_listed() -> None:
    answer = "Yes [2]. Never [9]. Code `x[1]`.\n"
    expected = "Yes [2]. Never [9]. Code `x[1]`.\n\nSources:\n[2] Two - https://a.example/2"
    assert add_citations_to_answer(answer, URLS, url_to_title={URLS[2]: "Two"}) == expected
    by_url = {url: number for number, url in URLS.items()}
    assert process_answer_with_citations(answer, by_url, url_to_title={URLS[2]: "Two"}) == expected
    assert process_answer_with_citations(answer, by_url, include_citations_section=False) == answer


def test_an_answer_that_cites_nothing_gets_no_list() -> None:
    assert add_citations_to_answer("See https://a.example/1.", URLS) == "See https://a.example/1."


def test_an_answer_with_its_own_list_gets_no_second_one() -> None:
    for answer in (
        "Yes [1].\n\nSources:\n[1] https://a.example/1",
        "Yes [1].\n\n**References**\n- [1] A\n",
        "Yes [1].\n\nSources: [1]",
    ):
        assert add_citations_to_answer(answer, URLS) == answer


def test_the_word_sources_in_prose_fools_nobody() -> None:
    answer = "It names its\nSources:\nthe census and a survey [1].\n\nSources: differ on this [2]."
    assert add_citations_to_answer(answer, URLS) == f"{answer}\n\nSources:\n[1] {URLS[1]}\n[2] {URLS[2]}"


def test_a_heading_with_nothing_under_it_is_replaced() -> None:
    assert add_citations_to_answer("Yes [1].\n\n## Sources:\n", URLS) == f"Yes [1].\n\nSources:\n[1] {URLS[1]}"


@pytest.mark.parametrize(
    "section",
    [
        "Sources:\n[1] https://a.example",
        "**Sources:**\n\n[1] Title\n    https://a.example\n\n[2] Other\n",
        "## References\n1. Title, https://a.example\n2. [Other](https://b.example)",
        "---\n\n### Sources Used\n- [1] Title\n* www.a.example",
        "__Citations__:\n- https://a.example",
        "📚 Sources:\n[1] https://a.example",
        "SOURCES\n[^1]: https://a.example",
        "Works cited:\n- **[1]** x https://a.example",
        "Sources: [1], [2]",
        "Source: https://a.example",
        "[^1]: https://a.example\n[^2]: https://b.example",
        "[1]: https://a.example",
    ],
)
def test_a_list_the_model_wrote_is_taken_off_the_end(section: str) -> None:
    assert strip_sources_section(f"A fact [1].\n\nSecond.\n\n{section}") == "A fact [1].\n\nSecond."
    assert strip_sources_section(section) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "A fact [1].",
        "Good sources:\n- oranges [1]\n- kale",
        "Sources:\n- oranges [1]\n- kale",
        "Sources:\n[1] https://a.example\n\nAnd then more prose.",
        "Sources: the 2020 census and more [1].",
        "References to this are rare [1].",
        "```\nSources:\n[1] https://a.example\n```",
        "The list\n[1] says so.",
        "Ends with blank\n\n",
    ],
)
def test_anything_else_is_kept(answer: str) -> None:
    assert strip_sources_section(answer) == answer


def test_numbers_are_read_from_the_start_of_a_page_text_only() -> None:
    result = {
        "pages": [
            {"url": "u1", "content": "[1] u1\n---\nText [7]"},
            {"url": "u2", "content": "u2\n---\n[2] not at the start"},
            {"url": "u3", "content": "[3] u3", "error": "blocked"},
            {"url": "u4", "content": None},
            {"content": "[5] nobody"},
        ]
    }
    assert extract_citations_from_tool_result(result) == {"u1": 1}
    assert extract_citations_from_tool_result({}) == {}


# sentences

TEXT = (
    "Python is old. [1] It was made by Guido van Rossum, e.g. in 1991 [2]. See 3.5 for more [1](https://x.example/z). "
    'Dr. Who said "yes." [3][4] Then `a. B` is code [5, 6]. Is it? Yes! … "So." 【7†x】 [A link](u). U.S. law [1].\n'
    "- item one. Two [1].\n"
    "1. first. Second.\n"
    "\n"
    "```py\nx[1]. Y\n```\n"
    "| a. B | c |\n"
    "## Head. Line\n"
    "日本語。[1]次の文。Fine [one. Two] three. Four.  \n"
    "Sources:\n"
    "[1] https://a.example\n"
    "The end. [1"
)
STRETCHES = [
    "Python is old. [1] ",
    "It was made by Guido van Rossum, e.g. in 1991 [2]. ",
    "See 3.5 for more [1](https://x.example/z). ",
    'Dr. Who said "yes." [3][4] ',
    "Then `a. B` is code [5, 6]. ",
    "Is it? ",
    "Yes! ",
    '… "So." 【7†x】 ',
    "[A link](u). ",
    "U.S. law [1].\n",
    "- item one. Two [1].\n",
    "1. first. Second.\n",
    "\n",
    "```py\n",
    "x[1]. Y\n",
    "```\n",
    "| a. B | c |\n",
    "## Head. Line\n",
    "日本語。[1]",
    "次の文。",
    "Fine [one. Two] three. ",
    "Four.  \n",
    "Sources:\n",
    "[1] https://a.example\n",
    "The end. [1",
]


@pytest.mark.parametrize("step", [1, 2, 3, 7, 50, 10_000])
def test_a_stream_is_cut_the_same_however_it_arrives(step: int) -> None:
    stream = SentenceStream()
    out = [s for at in range(0, len(TEXT), step) for s in stream.feed(TEXT[at : at + step])]
    assert [*out, stream.finish()] == STRETCHES


def test_a_sentence_is_held_until_it_is_sure_that_no_marker_follows() -> None:
    stream = SentenceStream()
    released = [stream.feed(piece) for piece in ("Fact.", " ", "[", "1", "]", "[2]", " ", "N", "ext")]
    assert released == [[], [], [], [], [], [], [], ["Fact. [1][2] "], []]
    assert (stream.finish(), stream.finish()) == ("Next", "")


def test_a_line_nobody_ends_is_released_without_splitting_a_marker() -> None:
    stream = SentenceStream()
    text = "x" * (SentenceStream.LONGEST - 2) + "[12] and so on"
    out = [s for char in text for s in stream.feed(char)]
    assert out == ["x" * (SentenceStream.LONGEST - 2)]
    assert stream.finish() == "[12] and so on"


def test_an_overlong_text_that_begins_with_a_bracket_is_released_whole() -> None:
    text = "[" + "x" * (SentenceStream.LONGEST - 1)
    stream = SentenceStream()
    assert ([*stream.feed(text)], stream.finish()) == ([text], "")


def test_an_overlong_text_is_cut_before_the_last_bracket_of_either_kind() -> None:
    head = "x" * (SentenceStream.LONGEST - 9)
    stream = SentenceStream()
    assert ([*stream.feed(f"{head}[1]【12")], stream.finish()) == ([], f"{head}[1]【12")
    stream = SentenceStream()
    assert ([*stream.feed(f"{head}[1]【12†L34")], stream.finish()) == ([f"{head}[1]"], "【12†L34")


def test_the_end_of_a_fence_lets_sentences_be_cut_again() -> None:
    text = "~~~\nA. B\n```\nC. D\n~~~~\nE. F. "
    stream = SentenceStream()
    assert [*stream.feed(text), stream.finish()] == ["~~~\n", "A. B\n", "```\n", "C. D\n", "~~~~\n", "E. F. "]


def test_a_fence_inside_a_line_is_none() -> None:
    stream = SentenceStream()
    assert [*stream.feed("One. ``` two. Three. Four"), stream.finish()] == ["One. ", "``` two. Three. Four"]


@pytest.mark.parametrize(
    "text", ["It is approx. Five.", "See fig. Two.", "A Prof. Moon.", "J. Smith.", "the U.S. Senate.", "see (cf. Moon)."]
)
def test_an_abbreviation_ends_no_sentence(text: str) -> None:
    stream = SentenceStream()
    assert [*stream.feed(f"{text} Next"), stream.finish()] == [f"{text} ", "Next"]


@pytest.mark.parametrize("piece", ["a.b.", " ", "[", "A? [", "[1, ", "`", "- x. Y ", "x\n"])
def test_a_long_text_of_anything_streams(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    stream = SentenceStream()
    assert "".join(stream.feed(text)) + stream.finish() == text
    assert drop_unknown(normalise_markers(text), set())[1] == set()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("It is also in [7].", "It is also in a page that was not read."),
        ("See [7] for more.", "See a page that was not read for more."),
        ("It was built in [7] 1969.", "It was built in 1969."),
        ("See [1] and [7].", "See [1] and a page that was not read."),
        ("See [7] and [1].", "See a page that was not read and [1]."),
        ("It is far [7].", "It is far."),
        ("In 1969, as in [1].", "In 1969, as in [1]."),
        ("`in [7].`", "`in [7].`"),
    ],
)
def test_a_sentence_is_not_broken_where_a_page_it_names_was_not_read(text: str, kept: str) -> None:
    assert drop_unknown(text, {1}, stand_in="a page that was not read")[0] == kept
