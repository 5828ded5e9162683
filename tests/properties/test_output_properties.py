"""Streaming changes nothing: blocks joined are the text, however it arrives; and no text commands a terminal."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nexi.output.blocks import BlockStream
from nexi.text.controls import clean_text, escape_json

LINES = st.sampled_from(
    ["", "text", "# head", "- item", "  more", "1. one", "```", "```py", "~~~", "> quote", "| a | b |", "    code", "***", " "]
)
MARKDOWN = st.lists(LINES | st.text(max_size=20), max_size=30).map("\n".join)
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def blocks_of(pieces: list[str]) -> list[str]:
    stream = BlockStream()
    return [*(block for piece in pieces for block in stream.feed(piece)), stream.finish()]


@given(MARKDOWN, st.lists(st.integers(0, 400), max_size=20))
def test_blocks_do_not_depend_on_how_the_text_arrives(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(places)]
    assert blocks_of(pieces) == blocks_of([text])
    assert "".join(blocks_of([text])) == text


@given(MARKDOWN)
def test_what_is_open_and_what_is_done_are_the_text(text: str) -> None:
    stream, done = BlockStream(), ""
    for character in text:
        done += "".join(stream.feed(character))
        assert text.startswith(done + stream.open_block)
    assert done + stream.open_block == text


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b[]m;\x07\x9b\u202e\r\n\t0"), max_size=200))
def test_clean_text_has_nothing_harmful_and_stays_as_it_is(text: str) -> None:
    once = clean_text(text)
    assert not HARMFUL.search(once)
    assert clean_text(once) == once
    assert not HARMFUL.search(escape_json(text))
