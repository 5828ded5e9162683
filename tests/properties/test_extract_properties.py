"""Nothing that can come over the wire makes extraction fail, and what comes out can be shown anywhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nexi.extract import extract, to_markdown
from nexi.urls import is_web_url

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
