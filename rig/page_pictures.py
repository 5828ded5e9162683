"""page_pictures - docs/pictures/*.png: the page in its main states, as a browser shows it; and every state on every screen.

A real server answers over a small web in memory and a scripted model; headless Chromium looks at it. Every picture is of what
came over the wire, nothing is painted in; a quota, which only a team server has, is said in the words of one. `--states` draws
every state at three widths by day and by night, to be looked at.

  .venv-browser/bin/python -m rig.page_pictures [docs/pictures]
  .venv-browser/bin/python -m rig.page_pictures --states [build/pictures]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from rig import held_model
from rig.held_model import HELD, HeldModel
from rig.research_script import Reply, ResearchScript

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "docs" / "pictures"
MOST_BYTES = 250_000
TOKEN = "the-token-of-these-pictures"
SCREEN = {"width": 1280, "height": 860}
SCREENS, PHONE = ((1440, 900), (768, 1024), (390, 844)), 500
STATES = ROOT / "build" / "pictures"
NOWHERE, OFFLINE, GUARDED = "http://127.0.0.1:9", "offline", "guarded"
LANGUAGES = ("de", "ar")
QUOTA = {"code": "quota_reached", "message": "you have reached your quota of runs a day: 20 of 20 are used"}
QUOTA["fix"] = "ask again tomorrow, or ask an administrator for more"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUESTION = "How long is the Forth Bridge, and how many people died building it?"
ANSWER = f"""The Forth Bridge is **2,467 metres** long, and each of its two main spans measures 521 metres [1].
It was opened on 4 March 1890 [1].

The bridge's first historians counted 57 deaths among the builders [2].
A later search of the records found at least 73 names [3].

| bridge | main span, metres | opened |
|---|---|---|
| Brooklyn Bridge [4] | 486 | 1883 |
| Forth Bridge [1] | 521 | 1890 |
| Quebec Bridge [5] | 549 | 1917 |

Its red paint is renewed every single{HELD} year.
"""
DEEP = "How was the Forth Bridge built and which bridges took its record?"
PAGES = {
    "https://bridges.example/forth": (
        "# The Forth Bridge\n\nThe Forth Bridge is 2,467 metres long, and each of its two main spans measures 521 metres. "
        "It was opened on 4 March 1890 by the Prince of Wales. The bridge was built of steel, which was new for a work of its "
        "size: about 54,000 tonnes of it stand on three great towers. Its designers were John Fowler and Benjamin Baker."
    ),
    "https://queensferry-museum.example/builders": (
        "# The builders of the bridge\n\nAt the height of the work 4,600 people were employed on the Forth Bridge. "
        "The bridge's first historians counted 57 deaths among the builders. Boats kept below the towers saved at least eight "
        "men who fell."
    ),
    "https://briggers.example/names": (
        "# The names of the briggers\n\nA later search of the records of the Forth Bridge found at least 73 names of people "
        "who died building it. A memorial to them was unveiled in 2012."
    ),
    "https://spans.example/brooklyn": (
        "# Brooklyn Bridge\n\nThe Brooklyn Bridge has a main span of 486 metres. It was opened in 1883 and held the record for "
        "the longest span until the Forth Bridge took it in 1890."
    ),
    "https://spans.example/quebec": (
        "# Quebec Bridge\n\nThe Quebec Bridge has a main span of 549 metres, which took the record for the longest span from "
        "the Forth Bridge when it was opened in 1917. It had fallen twice while it was built."
    ),
}


class Told(ResearchScript):
    """Reads all there is, and tells the one answer; a deep question is worked on by rules."""

    def __init__(self) -> None:
        super().__init__(rounds=2, read=5)

    def agent(self, messages: list[dict[str, Any]], question: str) -> Reply:
        text, calls = super().agent(messages, question)
        return (None, [("final_answer", {"answer": ANSWER})]) if calls and calls[0][0] == "final_answer" else (text, calls)


# the server


def child(home: str, model: str) -> None:
    """Serve on a free port, and say which."""
    from nexi.app import Nexi
    from nexi.config import Config
    from nexi.errors import BackendError
    from nexi.testing import FakeWeb
    from nexi.web import create_app
    from nexi.web.guard import GuardRules
    from rig.served import serve_here

    class Slow(FakeWeb):
        """A web that takes its time, each page its own."""

        async def search(self, query: Any) -> Any:
            await asyncio.sleep(0.25)
            if model == OFFLINE:
                raise BackendError(f"{self.name} cannot be reached", code="dns")
            return await super().search(query)

        async def fetch(self, url: str, limits: Any) -> Any:
            await asyncio.sleep(0.15 + len(url) % 7 * 0.08)
            return await super().fetch(url, limits)

    web, second = Slow(PAGES, name="duckduckgo"), Slow(PAGES, name="wikipedia")
    given: dict[str, Any] = {"base_url": f"{model}/v1", "model": "scripted"} if ":" in model else {"model": "extractive"}
    given |= {"token": "secret"} if model == GUARDED else {"share": True}
    config = Config(home=Path(home), prices={"scripted": {"input": 0.4, "output": 1.6}}, verify_judge=False, **given)
    often = GuardRules(per_minute=1e9, burst=1e9, token=config.token)
    app = create_app(config, nexi=Nexi(config, backends=(web, second), fetchers=(web,)), rules=often)
    serve_here(app, config)


def link_to(base: str) -> str:
    """What the owner opens."""
    return f"{base}/?token={TOKEN}"


@contextmanager
def serving(model: HeldModel, address: str | None = None) -> Iterator[str]:
    """A server that uses this model, one out of reach, or none: OFFLINE, GUARDED by a token, or as is."""
    with tempfile.TemporaryDirectory() as home, held_model.serve(model) as root:
        used = root if address is None else address
        (Path(home) / "state").mkdir(mode=0o700)
        (Path(home) / "state" / "token").write_text(TOKEN)
        command = [sys.executable, "-m", "rig.page_pictures", "--child", home, "--model", used]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout
            base = f"http://127.0.0.1:{int(running.stdout.readline())}"
            urllib.request.urlopen(f"{base}/healthz", timeout=30).close()
            try:
                yield base
            finally:
                model.release()
                running.terminate()


# the pictures


def ask(page: Any, question: str) -> None:
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.wait_for_url("**/runs/*")


def end(page: Any) -> None:
    page.wait_for_selector("#tools", state="visible")
    page.wait_for_selector("#stop", state="hidden")


def take(page: Any, place: Path) -> None:
    """The screen as it stands, without the cursor in it."""
    page.evaluate("() => { if (!document.querySelector('dialog[open]')) document.activeElement.blur(); scrollTo(0, 0); }")
    page.screenshot(path=place, animations="disabled")
    size = place.stat().st_size
    assert size < MOST_BYTES, f"{place.name} has {size:,} bytes"
    print(place.relative_to(ROOT) if place.is_relative_to(ROOT) else place, f"{size:,} bytes")


def draw(new_page: Callable[..., Any], base: str, model: HeldModel, place: Path) -> None:
    page = new_page(viewport=SCREEN)
    page.goto(link_to(base))
    ask(page, QUESTION)
    end(page)
    take(page, place / "page-answer.png")
    at = page.url
    page.click("#answer .cite >> nth=0")
    page.wait_for_selector("#evidence mark")
    take(page, place / "page-evidence.png")
    contexts: dict[str, dict[str, Any]] = {
        "page-dark.png": {"color_scheme": "dark", "viewport": SCREEN},
        "page-phone.png": {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
    }
    for name, context in contexts.items():
        other = new_page(**context)
        other.goto(at)
        end(other)
        take(other, place / name)
    draw_research(new_page(viewport=SCREEN), base, model, place / "page-research.png")


def draw_research(page: Any, base: str, model: HeldModel, place: Path) -> None:
    """A deep run whose second round is under way."""
    page.goto(link_to(base))
    page.select_option("#effort", "deep")
    before = model.reached["judge"]
    ask(page, DEEP)
    model.wait_for("judge", before + 1)
    model.hold("answer")
    page.wait_for_function("() => document.getElementById('run').innerText.includes('2.1')")
    page.evaluate("() => document.querySelectorAll('#run details').forEach((d) => { d.open = true; })")
    page.wait_for_selector("#timeline svg")
    take(page, place)


# every state on every screen


def states(page: Any, base: str, model: HeldModel) -> Iterator[str]:
    """The page in each of its states, one after the other; the run that is asked first is looked at again later."""
    page.goto(link_to(base))
    page.wait_for_selector("#hello")
    yield "start"
    page.click("#more")
    yield "options"
    page.goto(link_to(base))
    model.hold("answer")
    ask(page, QUESTION)
    page.wait_for_selector("#work-pages li")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Thinking')")
    yield "working"
    model.hold("middle")
    model.release("answer")
    page.wait_for_selector("#answer table")
    page.fill("#question", "And who designed it?")
    page.press("#question", "Enter")
    page.wait_for_selector("#queued", state="visible")
    yield "writing"
    page.click("#queued-no")
    model.release()
    end(page)
    yield "answer"
    page.click("#work > summary")
    page.click("#cost > summary")
    page.wait_for_selector("#timeline svg")
    yield "answer-opened"
    page.reload()
    end(page)
    page.wait_for_selector("#source-list li")
    page.locator("#answer .cite").first.scroll_into_view_if_needed()
    page.click("#answer .cite >> nth=1")
    page.wait_for_selector("#evidence mark")
    yield "evidence"
    page.keyboard.press("Escape")
    page.focus("#question")
    page.fill("#question", "And who designed it?")
    page.press("#question", "Enter")
    page.wait_for_selector("#thread li")
    end(page)
    yield "follow-up"
    yield from stopped_states(page, base, model)
    page.goto(f"{base}/runs/zzzzzz")
    page.wait_for_selector("#missing", state="visible")
    yield "missing"
    yield from deep_states(page, base, model)
    yield from panel_states(page, base)
    yield from language_states(page, base)


def stopped_states(page: Any, base: str, model: HeldModel) -> Iterator[str]:
    """An answer after Stop, from what was read by then."""
    page.goto(link_to(base))
    model.hold("answer")
    ask(page, QUESTION)
    page.wait_for_selector("#work-pages li")
    page.click("#stop")
    end(page)
    model.release()
    yield "stopped"
    page.goto(base)
    model.hold("search")
    ask(page, DEEP)
    model.wait_for("search")
    page.click("#stop")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Stopped')")
    model.release()
    yield "stopped-early"
    page.goto(f"{base}/history")
    page.wait_for_selector("#runs-list .is-stopped")
    yield "history-stopped"


def shared_states(page: Any, base: str) -> Iterator[str]:
    """An answer as a link for others: a page without scripts."""
    page.goto(f"{base}/history")
    page.wait_for_selector("#runs-list li")
    run = page.locator("#runs-list a", has_text=QUESTION).last.get_attribute("href").rpartition("/")[2]
    path = page.evaluate(
        "(id) => fetch(`/page/runs/${id}/share`, {method: 'POST'}).then((r) => r.json()).then((r) => r.path)", run
    )
    page.goto(base + path)
    yield "shared"


def language_states(page: Any, base: str) -> Iterator[str]:
    """The same page for readers of other languages."""
    page.goto(f"{base}/history")
    page.wait_for_selector("#runs-list li")
    answered = page.locator("#runs-list a", has_text=QUESTION).last.get_attribute("href")
    for language in LANGUAGES:
        page.context.add_cookies([{"name": "nexi-language", "value": language, "url": base}])
        page.goto(link_to(base))
        page.wait_for_selector("#hello")
        yield f"{language}-start"
        page.goto(base + answered)
        end(page)
        page.wait_for_selector("#source-list li")
        page.click("#answer .cite >> nth=1")
        page.wait_for_selector("#evidence mark")
        page.wait_for_load_state("networkidle")
        yield f"{language}-evidence"
        page.goto(f"{base}/setup")
        page.wait_for_selector("#setup-list dt")
        page.wait_for_load_state("networkidle")
        page.locator("#setup-list").scroll_into_view_if_needed()
        yield f"{language}-setup"
    page.context.clear_cookies(name="nexi-language")


def deep_states(page: Any, base: str, model: HeldModel) -> Iterator[str]:
    page.goto(link_to(base))
    page.select_option("#effort", "deep")
    page.click("#more")
    page.check("#planned")
    ask(page, DEEP)
    page.wait_for_selector("#plan-tasks li")
    while page.is_enabled("#plan-add"):
        page.click("#plan-add")
    yield "plan"
    while page.locator("#plan-tasks li").count() > len(("one", "two", "three")):
        page.click("#plan-tasks li:last-child button:last-child")
    before = model.reached["judge"]
    page.click("#plan-go")
    model.wait_for("judge", before + 1)
    model.hold("answer")
    page.wait_for_function("() => document.getElementById('run').innerText.includes('2.1')")
    yield "research"
    model.release()
    end(page)
    page.reload()
    end(page)
    page.wait_for_function("() => document.getElementById('work-sum').textContent.includes('tasks')")
    page.click("#work > summary")
    page.click("#researchers > li:first-child summary")
    page.wait_for_selector("#researchers .report h2")
    yield "researcher"


def panel_states(page: Any, base: str) -> Iterator[str]:
    page.goto(f"{base}/history")
    page.wait_for_selector("#runs-list li")
    page.check("#runs-list > .day > ul > li:first-child > input")
    yield "history"
    page.click("#runs-delete")
    page.wait_for_selector("#confirm[open]")
    yield "confirm"
    page.keyboard.press("Escape")
    for name in ("knowledge", "setup"):
        page.goto(f"{base}/{name}")
        page.wait_for_function("(name) => document.querySelector(`#${name} li, #${name} dt`)", arg=name)
        yield name
    page.goto(link_to(base))
    page.wait_for_selector("#keys-list dt", state="attached")
    page.evaluate("document.getElementById('keys').showModal()")
    yield "keys"


def first_states(page: Any, model: HeldModel) -> Iterator[str]:
    """A server without a model, and one whose model does not answer."""
    with serving(model, "") as base:
        page.goto(link_to(base))
        page.wait_for_selector("#welcome", state="visible")
        yield "first-run"
        page.click("#welcome-model-set")
        page.wait_for_selector("#settings-save")
        yield "first-run-settings"
    with serving(model, NOWHERE) as base:
        page.goto(link_to(base))
        ask(page, QUESTION)
        page.wait_for_selector(".problem")
        yield "failure"
        yield from failing_setup_states(page, base)
    with serving(model, OFFLINE) as base:
        for language in ("en", *LANGUAGES):
            page.context.add_cookies([{"name": "nexi-language", "value": language, "url": base}])
            page.goto(link_to(base))
            ask(page, QUESTION)
            page.wait_for_selector(".problem")
            page.wait_for_load_state("networkidle")
            yield f"{language}-offline"
        page.context.clear_cookies()
        page.goto(link_to(base))
        page.route("**/v1/runs", lambda route: route.fulfill(status=429, json={"error": QUOTA}))
        page.fill("#question", QUESTION)
        page.press("#question", "Enter")
        page.wait_for_selector(".problem")
        yield "quota"
        page.unroute("**/v1/runs")
    with serving(model, GUARDED) as base:
        page.goto(link_to(base))
        page.wait_for_selector("#token[open]")
        yield "sign-in"


def failing_setup_states(page: Any, base: str) -> Iterator[str]:
    """A test of settings none of which works."""
    page.goto(f"{base}/setup")
    page.wait_for_selector("#settings-test")
    page.fill("#settings-searxng_url", NOWHERE)
    page.click("#settings-test")
    page.wait_for_selector("#settings-checks li")
    page.locator("#settings-checks").scroll_into_view_if_needed()
    yield "setup-fails"


def draw_states(new_page: Callable[..., Any], base: str, model: HeldModel, place: Path) -> None:
    for width, height in SCREENS:
        page = new_page(viewport={"width": width, "height": height}, is_mobile=width < PHONE, has_touch=width < PHONE)
        page.set_default_timeout(60_000)
        for name in chain(states(page, base, model), shared_states(page, base), first_states(page, model)):
            for scheme, light in (("light", "day"), ("dark", "night")):
                page.emulate_media(color_scheme=scheme)
                page.screenshot(path=place / f"{name}-{width}-{light}.png", animations="disabled")
        page.context.close()
        print(f"{width} px: every state by day and by night in {place}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("place", nargs="?", type=Path)
    parser.add_argument("--states", action="store_true", help="every state at three widths, by day and by night")
    parser.add_argument("--child", metavar="HOME", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.child, given.model)
    if BROWSER is None:
        return print("no Chromium here: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    place = (given.place or (STATES if given.states else PLACE)).resolve()
    place.mkdir(parents=True, exist_ok=True)
    model = HeldModel(Told(), latency_s=0.35)
    with serving(model) as base, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        (draw_states if given.states else draw)(lambda **context: browser.new_context(**context).new_page(), base, model, place)
        browser.close()
    return None


if __name__ == "__main__":
    main()
