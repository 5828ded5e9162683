"""Nothing that can come over the wire makes extraction fail, and what comes out can be shown anywhere."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from resiliparse.parse.html import HTMLTree

from nexi.errors import FetchError
from nexi.extract import classifier
from nexi.extract.layout import Layout
from nexi.extract.markup_limits import remove_invisible
from nexi.extract.text import to_markdown
from nexi.formats import extract
from nexi.urls import is_web_url
from tests.formats.archives import docx

TYPES = st.sampled_from(["text/html", "text/plain", "application/json", "application/rss+xml", "", "text/html; charset=koi8-r"])
TAGS = st.sampled_from(
    [
        "<p>",
        "</p>",
        "<table>",
        "<td>",
        "<a href='x y'>",
        "<b>",
        "</b>",
        "<pre>",
        "<li>",
        "<!--",
        "<svg>",
        "</",
        "<h1>",
        "\n",
        " w ",
    ]
)


@given(st.binary(max_size=300), TYPES)
def test_any_bytes_of_any_type_give_clean_text(body: bytes, content_type: str) -> None:
    text = extract(body, content_type, "https://site.test/").text
    assert text.encode().decode() == text
    assert not any(ord(char) < 32 and char not in "\n\t" for char in text)


@given(st.lists(TAGS | st.text(max_size=10), max_size=40).map("".join))
def test_any_markup_gives_text_and_links_that_could_be_fetched(html: str) -> None:
    got = extract(html, "text/html", "https://site.test/")
    assert all(is_web_url(link) for link in got.links)
    assert to_markdown(html, "https://site.test/") == got.text


WORDS = st.text("abcdefghij", min_size=2, max_size=8)
SENTENCES = st.lists(WORDS, min_size=4, max_size=9).map(lambda words: " ".join(words).capitalize() + ".")


@given(st.lists(SENTENCES, min_size=1, max_size=8))
def test_sentences_stay_whole_and_in_order(sentences: list[str]) -> None:
    html = "<main>" + "".join(f"<p>{sentence.replace(' ', chr(10), 1)}</p>" for sentence in sentences) + "</main>"
    assert to_markdown(html, "https://site.test/").split("\n\n") == sentences


@given(st.lists(TAGS | st.text(max_size=10), max_size=40).map("".join))
def test_cutting_out_the_unseen_is_done_once(html: str) -> None:
    once = remove_invisible(html)
    assert len(once) <= len(html)
    assert remove_invisible(once) == once or "<" in once


@given(st.lists(SENTENCES, min_size=1, max_size=8), st.integers(0, 3))
def test_every_block_is_judged_and_their_order_is_that_of_the_page(sentences: list[str], deep: int) -> None:
    html = "".join(f"{'<div>' * deep}<p>{sentence}</p>{'</div>' * deep}" for sentence in sentences)
    layout = Layout(HTMLTree.parse(f"<html><body>{html}</body></html>").body)
    assert [block.text for block in layout.blocks] == sentences
    assert len(classifier.classify_blocks(layout)) == len(sentences)


@given(st.binary(max_size=400) | st.builds(lambda body: docx(body), st.text(max_size=60)))
def test_any_bytes_called_a_document_are_read_or_refused(data: bytes) -> None:
    for kind in ("application/epub+zip", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"):
        with suppress(FetchError):
            assert extract(data, kind, "").text
