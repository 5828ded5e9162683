"""Stories of the page in which something ends early: a person stops, a server is killed, a model or a disk gives out."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.research_script import ResearchScript
from tests.stories.visit import PHONE, Visit, axe, browser, visit
from tests.stories.world import KEY, QUESTION, World, free_port

__all__ = ["axe", "browser", "visit"]

ANSWER = "The Moon is 384,400 km from Earth on average. [1]"
DEEP = "How far is the Moon from Earth, and what raises the tides?"
# Whether all of the text of a line is seen.
WHOLE = "(line) => line.scrollWidth <= line.clientWidth && line.scrollHeight <= line.clientHeight"


def test_an_early_stop_is_no_failure_in_the_run_and_in_the_history(world: World, visit: Visit, axe: str) -> None:
    world.web.is_open.clear()
    person = visit(**PHONE)
    person.ask(QUESTION)
    person.page.wait_for_selector("#work-queries li")
    person.page.click("#stop")
    person.sees("Stopped before anything was read", "#status")
    world.web.is_open.set()
    assert (person.text("#notes"), person.sticking_out(), person.scan(axe)) == ("", [], [])
    person.open_history()
    state = person.page.locator("#runs-list .state span")
    assert (state.inner_text(), state.get_attribute("class")) == ("■ stopped", "is-stopped")
    assert person.page.evaluate(
        "(e) => getComputedStyle(e).color === getComputedStyle(e.parentElement).color", state.element_handle()
    )


def test_a_late_stop_answers_from_what_was_read_and_says_so_in_full(world: World, visit: Visit, axe: str) -> None:
    model = world.use_model()
    model.hold("answer")
    person = visit(**PHONE)
    person.ask(QUESTION)
    model.wait_for("answer")
    person.page.click("#stop")
    person.finished()
    assert person.text("#status") == "Stopped: this answer comes from what was read by then"
    assert person.page.evaluate(WHOLE, person.page.query_selector("#status"))
    assert "384,400 km" in person.text("#answer")
    assert (person.sticking_out(), person.scan(axe)) == ([], [])
    person.open_history()
    assert person.page.locator("#runs-list .state span").inner_text() == "✓ finished"


def test_a_plan_is_approved_and_the_research_then_stopped(world: World, visit: Visit, axe: str) -> None:
    model = world.use_model(ResearchScript(rounds=1, read=2))
    person = visit(**PHONE)
    page = person.page
    page.click("#more")
    page.select_option("#effort", "deep")
    page.check("#planned")
    person.ask(DEEP)
    page.wait_for_selector("#plan-tasks li")
    assert (person.sticking_out(), person.scan(axe)) == ([], [])
    model.hold("scrape")
    page.click("#plan-go")
    page.wait_for_selector("#researchers li")
    assert person.scan(axe) == []
    page.click("#stop")
    page.wait_for_selector("#stop", state="hidden")
    model.release()
    assert page.locator(".problem").count() == 0, person.text("#notes")
    person.open_history()
    assert "failed" not in person.text("#runs-list")


def test_a_plan_that_is_not_wanted_is_listed_as_stopped(world: World, visit: Visit) -> None:
    world.use_model(ResearchScript(rounds=1, read=2))
    person = visit()
    page = person.page
    page.click("#more")
    page.select_option("#effort", "deep")
    page.check("#planned")
    person.ask(DEEP)
    page.wait_for_selector("#plan-tasks li")
    page.click("#plan-no")
    person.sees("Cancelled: the research was not started", "#status")
    assert person.text("#notes") == ""
    person.open_history()
    assert person.page.locator("#runs-list .state span").inner_text() == "■ stopped"


def test_a_server_that_is_killed_and_started_again_goes_on_with_the_run(world: World, visit: Visit) -> None:
    world.web.is_open.clear()
    server = world.serve()
    person = visit(server)
    person.ask(QUESTION)
    person.page.wait_for_selector("#work-queries li")
    server.kill()
    world.web.is_open.set()
    person.sees("Connection lost: reconnecting", "#status")
    server.start()
    person.finished()
    if not person.text("#answer"):
        person.sees("This run stopped half-way. Resume it", "#notes")
        person.page.click("text='Resume this run'")
        person.sees(ANSWER)
    assert person.text("#answer") == ANSWER


def test_a_model_that_is_down_is_told_and_leads_to_the_setup(world: World, visit: Visit, axe: str) -> None:
    world.env |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1", "NEXI_MODEL": "scripted"}
    person = visit(**PHONE)
    person.ask(QUESTION)
    lines = person.wait_for_problem().split("\n")
    assert lines[-3:] == ["What to do: Start the model server, or correct its address in Setup.", "Retry", "Check setup"]
    assert (person.sticking_out(), person.scan(axe)) == ([], [])
    person.page.click(".problem >> text='Check setup'")
    person.page.wait_for_selector("#settings-base_url")


def test_a_wrong_key_is_told_and_never_shown(world: World, visit: Visit) -> None:
    world.use_broken_model("wrong key")
    person = visit(**PHONE)
    person.ask(QUESTION)
    card = person.wait_for_problem()
    assert card.split("\n")[0] == "127.0.0.1:PORT/v1 refused the API key"
    assert (KEY in person.page.content(), person.sticking_out()) == (False, [])


@pytest.fixture
def small_disk(world: World) -> Iterator[Path]:
    """The home of the world on a disk of 4 MB."""
    if os.geteuid():
        pytest.skip("needs root: a disk that is full is mounted")
    settings = (world.home / "config.json").read_bytes()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", world.home], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("needs a file system that can be mounted here")
    (world.home / "config.json").write_bytes(settings)
    yield world.home
    subprocess.run(["umount", "-l", world.home], check=False)


def test_a_full_disk_still_answers_and_says_it_once(world: World, small_disk: Path, visit: Visit) -> None:
    person = visit(**PHONE)
    person.ask("How long does the Moon take to go round the Earth?")
    person.finished()
    with (small_disk / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass
    person.open()
    person.ask(QUESTION)
    person.finished()
    assert "384,400 km" in person.text("#answer")
    notes = person.text("#notes").split("\n")
    assert [note for note in notes if "No space left" in note] == notes[:1]
    assert person.sticking_out() == []
