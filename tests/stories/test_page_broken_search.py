"""Stories of the page whose search service is broken: the card names the cause and the fix that `nexi doctor` knows."""

from __future__ import annotations

import subprocess

import pytest

from tests.stories.visit import PHONE, Visit, axe, browser, visit
from tests.stories.world import QUESTION, World, free_port

__all__ = ["axe", "browser", "visit"]

FIXES = {
    "json off": "Add `json` to search.formats in its settings.yml and restart it.",
    "html": "Set SEARXNG_URL to the start page of the instance, like http://127.0.0.1:PORT.",
    "limiter": "Set server.limiter to false in its settings.yml, or wait.",
    "no engines": "Wait for the suspension to end, enable other engines in its settings.yml, or check its network.",
}


@pytest.mark.parametrize("trouble", FIXES)
def test_a_search_service_that_is_broken_is_told_with_its_own_fix(world: World, visit: Visit, axe: str, trouble: str) -> None:
    world.web.trouble = trouble
    person = visit(**PHONE)
    person.ask(QUESTION)
    lines = person.wait_for_problem().split("\n")
    assert lines[2:] == [f"What to do: {FIXES[trouble]}", "Retry", "Check setup"]
    assert (person.text("#status"), person.sticking_out(), person.scan(axe)) == ("No answer", [], [])


def test_the_fix_of_a_broken_search_service_is_told_in_the_language_of_the_page(world: World, visit: Visit) -> None:
    world.web.trouble = "json off"
    person = visit(locale="de-DE", **PHONE)
    person.ask(QUESTION)
    person.page.get_by_text(
        "Ergänzen Sie `json` unter search.formats in seiner settings.yml und starten Sie es neu."
    ).wait_for()
    assert person.sticking_out() == []


def test_a_search_service_that_is_down_is_told_with_its_address(world: World, visit: Visit) -> None:
    world.env["SEARXNG_URL"] = f"http://127.0.0.1:{free_port()}"
    person = visit(**PHONE)
    person.ask(QUESTION)
    assert person.wait_for_problem().split("\n")[1:] == [
        "SearXNG refused the connection: nothing listens at http://127.0.0.1:PORT/search.",
        "What to do: Start the service, or correct its URL.",
        "Retry",
        "Check setup",
    ]
    assert person.sticking_out() == []


def test_nothing_found_is_no_failure_of_the_search_service(world: World, visit: Visit) -> None:
    world.web.trouble = "nothing"
    person = visit(**PHONE)
    person.ask(QUESTION)
    card = person.wait_for_problem()
    assert "Check the connection" not in card, card
    person.page.wait_for_selector("#work-queries li")
    rows = person.page.locator("#work-queries li").evaluate_all("(all) => all.map((row) => [row.className, row.innerText])")
    assert [name for name, _ in rows if "failed" in name] == []
    assert all(text.endswith("0 results") for _, text in rows), rows
    assert person.page.locator("#timeline .lane-failed").count() == 0


def test_no_network_is_told_in_one_sentence(world: World, visit: Visit) -> None:
    names = world.folder / "resolv.conf"
    names.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    apart = ["unshare", "-rm", "sh", "-c", f'mount --bind {names} /etc/resolv.conf && exec "$@"', "sh"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a mount namespace: names are looked up where nobody answers")
    del world.env["SEARXNG_URL"]
    person = visit(world.serve(prefix=apart), **PHONE)
    person.ask(QUESTION)
    assert person.wait_for_problem().split("\n") == [
        "No internet connection",
        "None of 6 search services could be reached, DuckDuckGo and Wikipedia among them.",
        "What to do: Check the connection and the search service.",
        "Retry",
        "Check setup",
    ]
    assert person.sticking_out() == []


def test_what_is_stored_is_offered_once_something_is(world: World, visit: Visit) -> None:
    person = visit()
    person.ask(QUESTION)
    person.finished()
    world.web.trouble = "json off"
    person.open()
    person.ask("Who painted the Mona Lisa?")
    person.page.wait_for_selector(".problem button:nth-child(3)")
    assert person.text(".problem .tools") == "Retry\nCheck setup\nUse the knowledge store"
