"""Stories of the page whose search service is broken: the card names the cause and the fix that `nexi doctor` knows."""

from __future__ import annotations

import subprocess

import pytest

from tests.stories.visit import PHONE, Visit, browser, visit
from tests.stories.world import QUESTION, World

__all__ = ["browser", "visit"]


def test_nothing_found_is_no_failure_of_the_search_service(world: World, visit: Visit) -> None:
    world.web.trouble = "nothing"
    person = visit(**PHONE)
    person.ask(QUESTION)
    person.wait_for_problem()
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
        "Neither DuckDuckGo nor Wikipedia could be reached.",
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
