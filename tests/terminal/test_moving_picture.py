"""The moving picture of the README: every row at its time, nothing fetched, the last frame without motion."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rig.moving_picture import Frame, draw

pytestmark = pytest.mark.long

DRAWN = Path(__file__).resolve().parents[2] / "docs" / "run.svg"
SVG = "{http://www.w3.org/2000/svg}"


def rows_of(drawn: str) -> dict[str, tuple[str | None, str | None]]:
    """Text, class and opacity of every row."""
    tree = ElementTree.fromstring(drawn)  # noqa: S314 - we drew it
    return {"".join(g.itertext()): (g.get("class"), g.get("opacity")) for g in tree.iter(f"{SVG}g")}


def test_a_row_is_seen_while_it_stands_there_and_the_last_frame_without_motion() -> None:
    drawn = draw(
        [Frame(("one",), 1.0), Frame(("one", "\x1b[1;32mtwo\x1b[0m"), 2.0), Frame(("three", "\x1b[1;32mtwo\x1b[0m"), 1.0)]
    )
    assert rows_of(drawn) == {"one": ("r k0", "0"), "two": ("r k1", "1"), "three": ("r k2", "1")}
    assert "@keyframes k0{0%{opacity:1}0.000%{opacity:1}75.000%{opacity:0}}" in drawn
    assert "@keyframes k1{0%{opacity:0}25.000%{opacity:1}100.000%{opacity:0}}" in drawn
    assert ".r{animation:4.00s step-end infinite}" in drawn


def test_what_a_command_prints_is_text_and_no_markup() -> None:
    assert list(rows_of(draw([Frame(("<b>&",), 1.0)]))) == ["<b>&"]


@pytest.mark.skipif(not DRAWN.is_file(), reason="the pictures are not part of this copy")
def test_the_picture_of_the_readme_shows_question_answer_proof_and_evidence_and_fetches_nothing() -> None:
    text = DRAWN.read_text(encoding="utf-8")
    shown = "\n".join(rows_of(text))
    for part in ('$ nexi "Which addresses', "Searching", "Sources", "Checked: ", "$ nexi evidence 1", "found: "):
        assert part in shown
    assert re.findall(r"(?:href|src|url\(|@import|<script|<image)", text) == []
    assert len(text) < 60_000
