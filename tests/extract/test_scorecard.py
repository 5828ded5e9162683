"""Blocks are judged by learned weights, and what belongs together stays together."""

from __future__ import annotations

from unittest.mock import patch

from resiliparse.parse.html import HTMLTree

from nexi.extract import classifier, features
from nexi.extract.layout import Layout

RUNNING = "This is a sentence of running text, and there is more of it in the same paragraph. "
LONG = f"<p>{RUNNING * 4}</p>"


def layout(html: str) -> Layout:
    return Layout(HTMLTree.parse(f"<html><body>{html}</body></html>").body)


def kept(html: str, **weights: float) -> list[str]:
    """The first words of the blocks that are kept; with weights, judged by these alone."""
    page = layout(html)
    scale = classifier.scale_of(weights) if weights else classifier.scale_of(classifier.load_weights())
    with patch.object(classifier, "_load_scale", lambda: scale):
        keep = classifier.classify_blocks(page)
    return [block.text.split()[0] for block, taken in zip(page.blocks, keep, strict=True) if taken]


def test_running_text_is_content_and_a_line_of_links_is_not() -> None:
    menu = "<div class=menu>" + "".join(f"<a href=/{n}>Menu {n}</a> " for n in range(30)) + "</div>"
    assert kept(f"{menu}<div>{LONG}{LONG}</div>") == ["This", "This"]


def test_a_page_of_a_few_lines_is_kept_but_for_a_banner() -> None:
    assert kept("<p>Hello there, this is all we say.</p><div class=gdpr-box>Accept</div>") == ["Hello"]


def test_a_part_about_cookies_with_code_in_it_is_no_banner() -> None:
    text = f"<div>{LONG * 4}</div>"
    assert "Ask" not in kept(f"{text}<div id=cookies><p>Ask for consent, please do it now.</p></div>", bias=5)
    assert "Ask" in kept(f"{text}<div id=cookies><p>Ask <code>jar</code> for them, please do it now.</p></div>", bias=5)


def test_the_items_of_a_list_stand_or_fall_together() -> None:
    items = "<ul><li>zero one two three</li><li>a</li><li>b</li></ul>"
    weights = {"bias": -1.0, "t:p": 9.0, "w2": 6.0}  # an item of four words would stay alone, and the others go
    assert kept(f"{LONG * 2}{items}", **weights) == ["This", "This", "zero", "a", "b"]
    broken = items.replace("<li>a</li>", "<li><h3>a</h3></li>")
    assert kept(f"{LONG * 2}{broken}", **weights) == ["This", "This", "zero"]


def test_code_and_what_stands_between_kept_blocks_stay() -> None:
    weights = {"bias": -5.0, "t:p": 20.0}
    assert kept(f"<div>{LONG}<pre>code</pre></div>", **weights) == ["This", "code"]
    assert kept(f"<div>{LONG}<h2>between</h2>{LONG}</div>", **weights) == ["This", "between", "This"]
    assert kept(f"<div>{LONG}</div><i>apart</i><div>{LONG}</div>", **weights) == ["This", "This"]


def test_a_heading_stays_with_the_text_that_it_stands_over() -> None:
    weights = {"bias": -5.0, "t:p": 20.0}
    section = f"<h2>over</h2><h3>nearer</h3><div>{LONG}</div>"
    assert kept(f"<div>{section}<h2>under</h2></div><div>{LONG}</div>", **weights) == ["over", "nearer", "This", "This"]
    assert kept(f"<div><h2>elsewhere</h2></div><div>{LONG * 2}</div>", **weights) == ["This", "This"]


def test_documentation_is_filled_but_for_its_menus() -> None:
    weights = {"bias": -5.0, "t:p": 20.0}
    menu = "<ul>" + "".join(f"<li><a href={n}>page number {n}</a></li>" for n in range(20)) + "</ul>"
    parts = (LONG + "<pre>code</pre>") * 3
    assert kept(f"<div>{parts}<dl><dt>name</dt></dl>{menu}</div>", **weights) == ["This", "code"] * 3 + ["name"]


def test_a_manual_with_code_in_its_sentences_is_filled_but_for_its_menus() -> None:
    weights = {"bias": -5.0, "t:p": 20.0}
    option = f"<p>{RUNNING * 4}<code>-x</code></p><dl><dt>option</dt></dl>"
    menu = "<ul>" + "".join(f"<li><a href={n}>page number {n}</a></li>" for n in range(20)) + "</ul>"
    few, many = option * (classifier.MUCH_CODE - 1), option * classifier.MUCH_CODE
    assert "option" not in kept(f"<div>{few}{menu}</div><footer>end</footer>", **weights)
    table = "<table><tr><td><a href=/os.path.abspath>os.path.abspath(), and what it is called here</a></td></tr></table>"
    filled = ["This", "option"] * classifier.MUCH_CODE
    assert kept(f"<div>{many}{menu}{table * 5}</div><footer>end</footer>", **weights) == [*filled, *["os.path.abspath(),"] * 5]


def test_what_is_learned_and_what_is_judged_have_the_same_names() -> None:
    names = features.PageFeatures(layout(f"<main><h1>Head</h1>{LONG}</main>"), features.Scale(list)).judge()
    assert {"bias", "t:h1", "in:main", "end"} <= set(names[0])
    assert {"t:p", "w7", "d0", "comma", "end.", "h1:1", "a00h"} <= set(names[1])
    by_hand = [sum(classifier.load_weights().get(name, 0.0) for name in block) for block in names]
    judged = features.PageFeatures(
        layout(f"<main><h1>Head</h1>{LONG}</main>"), classifier.scale_of(classifier.load_weights())
    ).judge()
    assert [round(score, 9) for score in judged] == [round(score, 9) for score in by_hand]


def test_a_page_without_text_has_nothing_to_judge() -> None:
    assert features.PageFeatures(layout("<div></div>"), features.Scale(list)).judge() == []
