"""How it looks and reads: a phone, the dark, right-to-left text, less motion, no shifting, and what a screen reader needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rig.served import Stage, stage
from tests.browser.scene import ARABIC, DEEP, PAGES, QUESTION, Telling, Watched

Look = Callable[..., Watched]
PHONE = {"width": 360, "height": 740}
WIDE_QUESTION = "How far is the Moon from Earth, in the widest of answers?"
WORD = "extraordinarily" * 12
WIDE = f"""# {WORD}

The Moon is 384,400 km from Earth on average [1].

| body | distance from Earth in kilometres | orbital period in days | radius in kilometres | found by whom and when |
|---|---|---|---|---|
| Moon | 384,400 | 27.3 | 1,737 | always known, to everybody who ever looked up |

```
{"x = 1; " * 60}
```

- {WORD} [1]
"""
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SCAN = """async (tags) => {
  const { violations } = await axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
  const bad = violations.filter((v) => ["serious", "critical"].includes(v.impact));
  return bad.map((v) => `${v.impact} ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
}"""
# Every element that is seen to the right of the screen, unless it lies in a box that scrolls by itself.
STICKING_OUT = """(width) => [...document.querySelectorAll("body *")].filter((e) => {
  if (!e.checkVisibility() || e.closest(".skip")) return false;
  for (let up = e; up; up = up.parentElement) if (/auto|scroll|hidden|clip/.test(getComputedStyle(up).overflowX)) return false;
  return e.getBoundingClientRect().right > width + 0.5;
}).map((e) => e.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """As everywhere, with one answer that is as wide as answers get."""
    with stage(tmp_path_factory.mktemp("looks"), PAGES, Telling({WIDE_QUESTION: WIDE})) as there:
        yield there


@pytest.fixture(scope="module")
def axe() -> str:
    """The scanner's script; it is a tool of the tests, and no part of nexi."""
    found = pytest.importorskip("axe_playwright_python", reason="needs axe: make test-browser")
    return (Path(found.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def states(person: Watched, there: Stage) -> Iterator[str]:
    """The page in each of its main states, one after the other."""
    page = person.open()
    yield "start"
    person.ask(WIDE_QUESTION)
    person.finished()
    page.evaluate("() => document.querySelectorAll('#run details').forEach((d) => { d.open = true; })")
    yield "finished"
    page.click("#answer .cite >> nth=0")
    page.wait_for_selector("#evidence mark")
    yield "evidence"
    page.keyboard.press("Escape")
    page.wait_for_selector("#evidence", state="hidden")
    page.click("#show-runs")
    person.sees(WIDE_QUESTION, "#runs-list li")
    yield "runs"
    page.click("#show-setup")
    person.sees("Model", "#setup")
    yield "setup"
    person.open()
    yield from running(person, there)
    page.keyboard.press("Escape")
    person.finished()


def running(person: Watched, there: Stage) -> Iterator[str]:
    """A deep run with researchers at work."""
    page = person.page
    there.model.hold("scrape")
    page.select_option("#effort", "deep")
    person.ask(DEEP)
    person.sees("1.2", "#run")
    page.evaluate("() => document.querySelectorAll('#run details').forEach((d) => { d.open = true; })")
    page.wait_for_selector("#timeline svg", state="attached")
    yield "running"
    there.model.release()


def test_nothing_sticks_out_of_a_phone_in_any_state_and_what_scrolls_is_reached(served: Stage, look: Look, axe: str) -> None:
    person = look(served, viewport=PHONE, is_mobile=True, has_touch=True)
    wide: dict[str, Any] = {}
    for state in states(person, served):
        wide[state] = person.page.evaluate("() => document.documentElement.scrollWidth")
        wide[f"{state}, sticking out"] = person.page.evaluate(STICKING_OUT, 360)
        if state == "finished":
            person.page.evaluate(axe)
            wide["scanned"] = person.page.evaluate(SCAN, TAGS)
    assert {name: value for name, value in wide.items() if value not in (360, [])} == {}
    assert len(wide) == 13
    assert person.trouble == []


def test_the_scanner_finds_nothing_serious_in_any_state_by_day_and_by_night(served: Stage, look: Look, axe: str) -> None:
    person = look(served)
    found: dict[str, list[str]] = {}
    for state in states(person, served):
        person.page.evaluate(axe)
        for scheme in ("light", "dark"):
            person.page.emulate_media(color_scheme=scheme)
            found[f"{state}, {scheme}"] = person.page.evaluate(SCAN, TAGS)
    assert {state: findings for state, findings in found.items() if findings} == {}
    assert len(found) == 12


def test_the_scanner_sees_what_is_wrong(served: Stage, look: Look, axe: str) -> None:
    person = look(served)
    page = person.open()
    page.evaluate("() => { document.querySelector('label[for=question]').remove(); document.body.append(new Image()); }")
    page.evaluate(axe)
    assert [finding.split(":")[0] for finding in page.evaluate(SCAN, TAGS)] == ["critical image-alt"]


def test_it_is_dark_where_the_person_likes_it_dark(served: Stage, look: Look) -> None:
    shade = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) => a + b)"
    dark, light = look(served, color_scheme="dark"), look(served, color_scheme="light")
    assert dark.open().evaluate(shade) < 150
    assert light.open().evaluate(shade) > 700


def test_arabic_is_read_from_the_right_and_english_beside_it_from_the_left(served: Stage, look: Look) -> None:
    person = look(served, viewport=PHONE)
    page = person.open()
    person.ask(ARABIC)
    person.finished()
    direction = "(s) => getComputedStyle(document.querySelector(s)).direction"
    assert page.evaluate(direction, "#asked") == "rtl"
    assert page.evaluate(direction, "#answer") == "rtl"
    assert page.evaluate(direction, "#source-list a") == "rtl"
    assert page.evaluate(direction, "#figures") == "ltr"
    words, screen = page.locator("#answer p").first.bounding_box(), page.evaluate("() => document.documentElement.scrollWidth")
    assert words is not None
    assert screen == 360
    page.click("#answer .cite")
    page.wait_for_selector("#evidence mark")
    assert page.evaluate(direction, "#evidence .passage") == "rtl"
    assert person.trouble == []


def test_nothing_moves_where_the_person_wants_less_motion(served: Stage, look: Look) -> None:
    person = look(served, reduced_motion="reduce")
    page = person.open()
    for _ in running(person, served):
        assert page.evaluate("() => document.getAnimations().map((a) => a.effect.target.id)") == []
    slow = """() => [...document.querySelectorAll("*")].filter((e) => {
      const s = getComputedStyle(e);
      return [s.transitionDuration, s.animationDuration].some((d) => d.split(",").some((one) => parseFloat(one) > 0.001));
    }).length"""
    assert page.evaluate(slow) == 0
    person.finished()


def test_what_is_being_read_stays_where_it_is_while_more_is_written(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    served.model.hold("middle")
    person.ask(QUESTION)
    person.sees("384,400 km")
    page.evaluate(
        """() => {
          window.shifts = [];
          new PerformanceObserver((list) => window.shifts.push(...list.getEntries().map((e) => e.value)))
            .observe({ type: "layout-shift" });
        }"""
    )
    before = page.locator("#answer p").first.bounding_box()
    served.model.release()
    person.finished()
    after = page.locator("#answer p").first.bounding_box()
    assert before is not None
    assert after is not None
    assert (after["x"], after["y"]) == (before["x"], before["y"])
    assert sum(page.evaluate("() => window.shifts")) < 0.1  # what browsers' makers call good
