"""Links that turn the pages of a manual are no part of its text; sentences about them are."""

from __future__ import annotations

import pytest

from nexi.extract.text import to_markdown

STORY = (
    "<p>"
    + "A transaction sees a snapshot of the rows as they were before the query began, and none that came later. " * 4
    + "</p>"
)
HEADER = """<div class=navheader><table><tr><th colspan=5>13.2. Isolation</th></tr><tr><td><a href=a>Prev</a></td>
<td><a href=b>Up</a></td><th>Chapter 13. Concurrency</th><td><a href=c>Home</a></td>
<td><a href=d>Next</a></td></tr></table><hr></div>"""
FOOTER = """<div class=navfooter><hr><table><tr><td><a href=a>Prev</a></td><td><a href=b>Up</a></td>
<td><a href=d>Next</a></td></tr><tr>
<td>13.1. Introduction</td><td><a href=c>Home</a></td><td>13.3. Locking</td></tr></table></div>"""


def read_manual(before: str, after: str = "") -> str:
    return to_markdown(
        f"<body>{before}<div class=sect1><h2>13.2. Isolation</h2>{STORY * 3}</div>{after}</body>", "http://m.test/"
    )


def test_the_bars_above_and_below_a_page_of_a_manual_are_dropped() -> None:
    text = read_manual(HEADER, FOOTER)
    assert text.startswith("## 13.2. Isolation\n\nA transaction")
    assert text.endswith("came later.")
    for stray in ("Prev", "Home", "Chapter 13", "Locking", "|", "---"):
        assert stray not in text


@pytest.mark.parametrize(
    "bar",
    [
        "<p><a href=a>« Previous</a> | <a href=b>Up</a> | <a href=c>Next »</a></p>",
        "<ul><li><a href=a>Previous page</a></li><li><a href=c>Next page</a></li></ul>",
        "<div><a href=a>prev</a> <a href=1>1</a> <a href=2>2</a> <a href=c>next</a></div>",
        "<div class='menu mainmenu'><ul><li><a href=a>Home</a><li><a href=b>About</a><li><a href=c>Download</a></ul></div>",
    ],
)
def test_bars_of_other_kinds_and_menus_are_dropped(bar: str) -> None:
    assert read_manual(bar) == read_manual("")


@pytest.mark.parametrize(
    "kept",
    [
        "<p>Press <a href=a>Next</a> to go on with the installation, or <a href=b>Previous</a> to change what you chose.</p>",
        "<ul><li>Press <a href=a>Next</a> to go on with the set-up.</li><li>Press Cancel to end it.</li></ul>",
        "<table><tr><th>Key</th><th>Act</th></tr><tr><td>n</td><td>Next</td></tr><tr><td>p</td><td>Prev</td></tr></table>",
    ],
)
def test_a_text_about_such_links_stays(kept: str) -> None:
    text = to_markdown(f"<body><div><h2>Steps</h2>{STORY}{kept}{STORY}</div></body>", "http://m.test/")
    assert "Next" in text
    assert "Prev" in text or "Cancel" in text
