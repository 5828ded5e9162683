"""Any Markdown with links is read as text with [n] and the sources those numbers name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexi.answers.citations import extract_citation_markers
from nexi.answers.document import MAX_SOURCES, read_answer, read_markdown
from nexi.types import Source


def cited(text: str) -> tuple[str, dict[int, str]]:
    document = read_markdown(text)
    return document.text.rstrip(), {source.number: source.url for source in document.sources}


@pytest.mark.parametrize(
    ("markdown", "text", "sources"),
    [
        ("A is B [1].\n\nSources:\n[1] T - https://a.example/", "A is B [1].", {1: "https://a.example/"}),
        ("A is B [2].\n\n## References\n\n2. [T](https://a.example/)", "A is B [2].", {2: "https://a.example/"}),
        ("A is B[^1].\n\n[^1]: See https://a.example/.", "A is B[1].", {1: "https://a.example/"}),
        ("A is B[^note].\n\n[^note]: Book,\n    https://a.example/b", "A is B[1].", {1: "https://a.example/b"}),
        ("A is [B](https://a.example/).", "A is B [1].", {1: "https://a.example/"}),
        ("A is [B][x].\n\n[x]: https://a.example/ 'T'", "A is B [1].", {1: "https://a.example/"}),
        ("A is [B][].\n\n[b]: <https://a.example/>", "A is B [1].", {1: "https://a.example/"}),
        ("A is B [1].\n\n[1]: https://a.example/", "A is B [1].", {1: "https://a.example/"}),
        ("A is B, see https://a.example/x.", "A is B, see [1].", {1: "https://a.example/x"}),
        ("A is B <https://a.example/x>.", "A is B [1].", {1: "https://a.example/x"}),
        ("[A](https://a.example/#x) and [B](https://a.example/).", "A [1] and B [1].", {1: "https://a.example/#x"}),
        ("`[A](https://a.example/)` is code.", "`[A](https://a.example/)` is code.", {}),
        ("A [relative](page.html) link.", "A [relative](page.html) link.", {}),
    ],
)
def test_every_way_to_cite_is_read(markdown: str, text: str, sources: dict[int, str]) -> None:
    assert cited(markdown) == (text, sources)


def test_links_get_numbers_that_the_list_does_not_use() -> None:
    text = "A [1]. B is [here](https://b.example/).\n\nSources:\n[1] https://a.example/\n"
    assert cited(text) == ("A [1]. B is here [2].", {1: "https://a.example/", 2: "https://b.example/"})


def test_lines_stay_where_they_are() -> None:
    text = "---\nrun: 3fa9c1\nx: y\n---\n# T\n\n[^1]: https://a.example/\n\nA is B[^1].\n"
    document = read_markdown(text)
    assert (document.run, document.text.split("\n")[8]) == ("3fa9c1", "A is B[1].")


def test_a_number_without_an_entry_is_lost() -> None:
    assert read_markdown("A [1]. B [7].\n\nSources:\n[1] https://a.example/").lost == (7,)


@pytest.mark.parametrize(
    "line",
    [
        "Verified: 0 of 1 sentence supported.\n",
        "Checked: 0 of 1 sentence found in the cited pages, 2 omitted.\n",
        "Checked: 2 sentences not confirmed: only rules have read the answer, and they see words.\n",
        "*Checked: 1 of 3 sentences supported, 1 more found.*\n",
    ],
)
def test_our_mark_and_our_figures_are_no_part_of_the_text(line: str) -> None:
    document = read_markdown("A is B [1]. [unverified] C.\n\nSources:\n[1] https://a.example/\n\n" + line)
    assert document.text.split() == ["A", "is", "B", "[1].", "C."]
    assert document.sources == (Source(1, "https://a.example/"),)


def test_a_document_with_too_many_addresses_says_how_many_were_left() -> None:
    document = read_markdown(" ".join(f"https://a.example/{n}" for n in range(MAX_SOURCES + 5)))
    assert (len(document.sources), document.unread) == (MAX_SOURCES, 5)


def test_an_answer_as_json_is_read_with_its_digests() -> None:
    data = {
        "schema": "nexi-answer-1",
        "id": "3fa9c1",
        "answer": "A [1]. B [2].",
        "sources": [{"n": 1, "url": "u", "digest": "d"}],
    }
    document = read_answer(data)
    assert (document.sources, document.lost, document.run) == ((Source(1, "u", "", "d"),), (2,), "3fa9c1")
    with pytest.raises(ValueError, match="no answer"):
        read_answer({"schema": "other"})


@given(st.text(alphabet="[]()^:#<>!.`~- \n1a\"'" + "https://x.y", max_size=300))
def test_no_text_breaks_the_reader_and_every_number_is_accounted_for(text: str) -> None:
    document = read_markdown(text)
    numbers = {source.number for source in document.sources}
    assert extract_citation_markers(document.text) <= numbers | set(document.lost)
    assert document.text.count("\n") == text.replace("\r\n", "\n").count("\n")


@pytest.mark.parametrize(
    ("text", "shown", "urls"),
    [
        (
            "A is B.[1](https://a.example/) C [[2]](https://b.example/(y)).",
            "A is B.[1] C [2].",
            ["a.example/", "b.example/(y)"],
        ),
        (
            "A is B [1](https://a.example/). C is D [1](https://b.example/).",
            "A is B [1]. C is D [2].",
            ["a.example/", "b.example/"],
        ),
        (
            "A is B ([x](https://a.example/), [y](https://b.example/)).",
            "A is B [1][2].",
            ["a.example/", "b.example/"],
        ),
        ("A is 3 m².¹\n\nSources:\n[1] https://a.example/", "A is 3 m².[1]", ["a.example/"]),
        ("A is B <sup>1</sup>.\n\n## Works cited\n\n1. T, https://a.example/", "A is B [1].", ["a.example/"]),
    ],
    ids=["linked numbers", "one number for two pages", "links in brackets", "raised digits", "sup"],
)
def test_reports_of_other_tools_are_read(text: str, shown: str, urls: list[str]) -> None:
    document = read_markdown(text)
    assert document.text.strip() == shown
    assert [source.url.removeprefix("https://") for source in document.sources] == urls


def test_a_list_of_links_states_nothing() -> None:
    document = read_markdown(
        "A is B [x](https://a.example/).\n\n## See also\n\n- [T](https://b.example/)\n1. **[U](https://c.example/)**\n"
    )
    assert document.text.rstrip() == "A is B x [1].\n\n## See also"
    assert [source.url for source in document.sources] == ["https://a.example/"]
