"""Whatever the text, chunks lose nothing, keep the order, stay within the size and never cut a closed fence."""

from __future__ import annotations

import itertools
import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nexi.text.chunking import TextChunk, chunk_markdown

WORD = st.text("abcdeé字. !?", min_size=1, max_size=12)
LINE = st.one_of(
    st.lists(WORD, max_size=12).map(" ".join),
    st.sampled_from(["", "# One", "## Two words", "### Three #", "- item", "| a | b |", "Title", "=====", "---", "```", "~~~"]),
    st.sampled_from(["```python", "````", "x = '''", "    indented", "#hash", "######", "> quoted", "\t"]),
)
FENCE = st.tuples(
    st.sampled_from(["```", "~~~", "````"]),
    st.sampled_from(["", "python", "sh"]),
    st.lists(st.text("ab #=\t", max_size=20), max_size=8),
).map(lambda f: "\n".join([f[0] + f[1], *f[2], f[0]]))
MARKDOWN = st.lists(st.one_of(LINE, FENCE), max_size=30).map("\n".join)
SIZES = st.integers(1, 120)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(MARKDOWN, SIZES)
@settings(max_examples=300)
def test_nothing_is_lost_and_the_order_is_kept(text: str, size: int) -> None:
    pieces = chunk_markdown(text, size)
    assert squeezed("".join(p.text for p in pieces)) == squeezed(text)
    ends = [(p.start, p.end) for p in pieces]
    assert ends == sorted(ends)
    assert all(a.end <= b.start for a, b in itertools.pairwise(pieces))


@example("\t\n```\n```", 1)
@given(MARKDOWN, SIZES)
@settings(max_examples=300)
def test_a_chunk_is_within_the_size_or_is_one_longer_fence(text: str, size: int) -> None:
    for piece in chunk_markdown(text, size):
        assert piece.text
        assert len(piece.text) <= size or is_one_fence(piece)


def is_one_fence(piece: TextChunk) -> bool:
    first, *_, last = piece.text.split("\n")
    return piece.has_code and bool(re.match(r"[ \t>]*(```|~~~)", first)) and bool(re.match(r"[ \t>]*(```|~~~)", last))


@given(st.lists(LINE.filter(lambda line: "```" not in line and "~~~" not in line), max_size=8), FENCE, SIZES)
@settings(max_examples=200)
def test_a_closed_fence_stays_in_one_chunk(before: list[str], fence: str, size: int) -> None:
    text = "\n".join([*before, "", fence, "", *before])
    assert [p.has_code for p in chunk_markdown(text, size) if fence.strip() in p.text] == [True]


@given(st.text(max_size=300), SIZES)
@settings(max_examples=300)
def test_any_text_at_all_can_be_cut(text: str, size: int) -> None:
    assert squeezed("".join(p.text for p in chunk_markdown(text, size))) == squeezed(text)
