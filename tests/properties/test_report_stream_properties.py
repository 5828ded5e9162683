"""However a reply is cut into pieces, the report that is told as it comes is the one its whole text holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nexi.answers.citations import extract_citation_markers
from nexi.research.evaluator import MAX_PROSE_CHARS, _parse_judgement, _ReportStream

PARTS = (
    "<think>",
    "</think>",
    "<answer>",
    "</answer>",
    "</report>",
    "<fin",
    "<",
    ">",
    "# Moon\n\n",
    "It is far [1]. ",
    "[2]",
    " ",
    "\n",
    "a b",
    "{",
    "```",
)


@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join), st.lists(st.integers(1, 9), max_size=40))
def test_what_is_told_is_the_report(text: str, sizes: list[int]) -> None:
    told: list[str] = []
    stream, at = _ReportStream(told.append), 0
    for size in sizes:
        stream.receive(text[at : at + size])
        at += size
    stream.receive(text[at:])
    whole = stream.finish()
    assert "".join(told) == (stream.text if stream.released else "")
    if stream.released:
        assert whole == _parse_judgement(text).text
    elif extract_citation_markers(whole):
        assert whole[0] in "{`" or (
            len(whole) <= MAX_PROSE_CHARS and not whole.startswith("#")
        )  # it may introduce a delegation


@given(st.text(max_size=60), st.integers(0, 60))
def test_nothing_is_lost_of_what_has_no_tags(text: str, cut: int) -> None:
    stream = _ReportStream(lambda _: None)
    stream.receive(text[:cut])
    stream.receive(text[cut:])
    assert stream.finish() == text.strip() or "<" in text
