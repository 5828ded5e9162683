"""Hostile titles, snippets, pages, questions and answers: nothing of them runs, and nothing is loaded."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rig.research_script import Reply
from rig.served import Stage, stage
from tests.browser.hostile import OURS, strings
from tests.browser.scene import Telling, Watched, web_page
from tests.browser.stored import stored_run

Look = Callable[..., Watched]
TOPIC = "The Moon is 384,400 km from Earth on average."
READ = 8
# What an answer, a title or a passage may never have become.
MADE = """() => {
  const parts = ["#asked", "#answer", "#notes", "#status", "#work", "#peek", "#working", "#runs"];
  const found = [];
  for (const part of parts) for (const e of document.querySelectorAll(`${part} *`)) {
    if (e.matches("script, img, image, iframe, object, embed, link, meta, base, style, video, audio, math, form[action]"))
      found.push(`${part} ${e.outerHTML.slice(0, 200)}`);
    for (const a of e.attributes)
      if (/^on|^style$|^srcdoc$/i.test(a.name) || (/href$|^src$|^action$/i.test(a.name) && !/^(https?:|#|[/])/i.test(a.value)))
        found.push(`${part} ${a.name}=${a.value.slice(0, 100)}`);
  }
  return [...found, ...(window.pwned ? ["pwned"] : [])];
}"""


class Obedient(Telling):
    """A model that says whatever its pages want it to, and cites each of them."""

    def __init__(self, payloads: Sequence[str]) -> None:
        super().__init__()
        self.read = READ
        self.payloads = payloads

    def agent(self, messages: Sequence[dict[str, Any]], question: str) -> Reply:
        text, calls = super().agent(messages, question)
        if calls and calls[0][0] == "final_answer":
            lines = [f"{TOPIC[:-1]} [{n % READ + 1}]. {payload} [{n % READ + 1}]" for n, payload in enumerate(self.payloads)]
            return None, [("final_answer", {"answer": f"{TOPIC[:-1]} [1].\n\n" + "\n\n".join(lines)})]
        return text, calls


def hostile_web() -> list[dict[str, str]]:
    """Every title and every text is an attack, once as markup and once as text that looks like it."""
    pages = []
    for n, payload in enumerate(OURS):
        page = web_page(
            f"http://host{n}.test/moon", html.escape(payload), f"{TOPIC} {html.escape(payload)}", f"{TOPIC} {payload}"
        )
        pages.append({**page, "title": f"Moon {payload}"})
    return pages


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("hostile"), hostile_web(), Obedient(OURS[:8])) as there:
        yield there


def test_a_model_that_obeys_hostile_pages_runs_and_loads_nothing(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    person.ask(f"How far is the Moon from Earth? {OURS[0]}")
    person.sees("384,400 km")
    assert page.evaluate(MADE) == []
    person.finished()
    page.wait_for_selector("#source-list a")
    assert page.evaluate(MADE) == []
    assert OURS[0] in page.inner_text("#asked")
    assert person.trouble == []


def test_every_hostile_string_in_every_place_of_a_run_is_only_shown(served: Stage, look: Look, tmp_path: Path) -> None:
    person = look(served)
    page = person.open(f"/runs/{stored_run(served.home, strings())}")
    person.finished()
    page.wait_for_selector("#source-list a")
    page.evaluate("() => document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate(MADE) == []
    cites = page.locator("#answer .cite[data-claim]")
    drawn = set(cites.evaluate_all("(buttons) => buttons.map((button) => Number(button.dataset.claim))"))
    # Markdown leaves out what follows the last cell of a table's row.
    assert [text for number, text in enumerate(OURS) if number not in drawn] == [text for text in OURS if text.startswith("|")]
    for number in range(0, cites.count(), cites.count() // 5):
        cites.nth(number).evaluate("(button) => button.click()")
        page.wait_for_selector("#evidence mark")
        assert page.evaluate(MADE) == []
        page.keyboard.press("Escape")
        page.wait_for_selector("#evidence", state="hidden")
    page.click("#show-runs")
    person.sees("<script>", "#runs")
    assert page.evaluate(MADE) == []
    assert person.trouble == []
    page.click("#show-runs")
    exported(page, tmp_path / "answer.html")
    file = look("file://")
    file.page.goto((tmp_path / "answer.html").as_uri())
    assert "384,400 km" in file.page.inner_text("article")
    assert file.page.evaluate("() => document.querySelectorAll('script, img, iframe, object, embed, link, form').length") == 0
    assert file.page.evaluate("() => window.pwned || null") is None
    assert file.trouble == []


def exported(page: Any, place: Path) -> None:
    with page.expect_download() as download:
        page.click("#exports >> text='HTML'")
    download.value.save_as(place)


def test_a_hostile_question_of_a_deep_run_is_only_shown(served: Stage, look: Look) -> None:
    question = " ".join(OURS[:3])
    person = look(served)
    page = person.open()
    page.select_option("#effort", "deep")
    person.ask(f"How far is the Moon? {question} and {question}")
    person.finished()
    page.evaluate("() => document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate(MADE) == []
    assert "How far is the Moon?" in page.inner_text("#asked")
    page.reload()
    person.finished()
    assert page.evaluate(MADE) == []
    assert person.trouble == []


def test_the_policy_stops_what_the_page_itself_would_let_in(served: Stage, look: Look) -> None:
    """The second wall: markup that got into the page all the same runs and loads nothing."""
    person = look(served)
    page = person.open()
    loaded: list[str] = []
    page.on("requestfinished", lambda request: loaded.append(request.url))
    markup = "<img src=http://evil.test/i.png onerror='window.pwned=1'><iframe src='http://evil.test/f'></iframe>"
    blocked = page.evaluate(
        """(markup) => new Promise((done) => {
          const blocked = [];
          addEventListener("securitypolicyviolation", (e) => {
            blocked.push(e.effectiveDirective);
            if (blocked.length === 3) done(blocked.sort());
          });
          document.getElementById("answer").innerHTML = markup;
        })""",
        markup,
    )  # fmt: skip
    assert blocked == ["frame-src", "img-src", "script-src-attr"]
    assert page.evaluate("() => window.pwned || null") is None
    assert [url for url in loaded if "evil" in url] == []
