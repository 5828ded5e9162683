"""A page as boxes and blocks: what is in them, how it is linked, and how often they are repeated."""

from __future__ import annotations

import pytest
from resiliparse.parse.html import HTMLTree

from nexi.extract import classifier, features, layout
from nexi.extract.layout import Layout


def layout_of(html: str) -> Layout:
    return Layout(HTMLTree.parse(f"<html><body>{html}</body></html>").body)


def test_blocks_are_the_text_of_boxes_in_reading_order() -> None:
    found = layout_of("<h1>Head</h1><div>before <b>bold</b><p>inner\n text</p>after</div>end")
    assert [(block.box.tag, block.text, block.start, block.words) for block in found.blocks] == [
        ("h1", "Head", 0, 1),
        ("div", "before bold after", 4, 3),
        ("p", "inner text", 21, 2),
        ("body", "end", 31, 1),
    ]
    assert found.chars == 34


def test_what_is_silent_is_no_text() -> None:
    silent = "<button>b</button><select><option>o</select><noscript>n</noscript><textarea>t</textarea><template>p</template>"
    assert [block.text for block in layout_of(f"<p>words{silent}</p> \n <div> </div><!-- c -->").blocks] == ["words"]


def test_only_a_link_with_a_target_links() -> None:
    found = layout_of("<p><a href=x>four</a> and <a name=y>more</a></p><p><a id=z>all of it</p><p>this")
    assert [(block.text, block.linked) for block in found.blocks] == [("four and more", 4), ("all of it", 0), ("this", 0)]


def test_boxes_hold_what_is_in_the_boxes_inside() -> None:
    running = "word " * 20
    found = layout_of(f"<div class='A b' id=C><p>{running}</p><p><a href=x>{running}</a></p></div>")
    root, box, first, second = found.boxes
    size = len(running.strip())
    assert (box.key, first.key, box.parent, first.depth) == ("a b c", "", root, 2)
    assert [(b.chars, b.linked, b.paragraphs, b.blocks) for b in (root, box, first, second)] == [
        (2 * size, size, size, 2),
        (2 * size, size, size, 2),
        (size, 0, size, 1),
        (size, size, 0, 1),
    ]


def test_alike_boxes_side_by_side_are_counted() -> None:
    found = layout_of("<ul><li class=x>a</li><li class=x>b</li><li>c</li><li class=x></li></ul><li class=x>d</li>")
    assert [(box.tag, box.repeats) for box in found.boxes[2:]] == [("li", 2), ("li", 2), ("li", 1), ("li", 1)]


def test_a_box_is_within_the_boxes_around_it() -> None:
    inner = layout_of("<nav><div><p>x</p></div></nav>").blocks[0].box
    assert (inner.is_within("nav"), inner.is_within("p"), inner.is_within("footer", "main")) == (True, True, False)


def test_depth_is_counted_and_blocks_are_bounded() -> None:
    assert layout_of("<div>" * 3_000 + "x").deepest == 3_000
    assert len(layout_of("<p>x" * (layout.MAX_BLOCKS + 10)).blocks) == layout.MAX_BLOCKS


def test_a_doubtful_last_section_of_much_prose_stays_like_the_section_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    prose = "If the data may grow, pick an engine that can hold it. " * 12
    html = f"<h2>Where it works</h2><p>{prose}</p><h2>Checklist</h2><ol><li><p>{prose}</p></li></ol><h3>More</h3><p>Log in</p>"
    blocks = Layout(HTMLTree.parse(f"<html><body>{html}</body></html>").body)
    monkeypatch.setattr(features.PageFeatures, "judge", lambda self: [1.0, 3.0, -0.4, -0.4, -3.0, -3.0])
    assert classifier.classify_blocks(blocks) == [True, True, True, True, False, False]
