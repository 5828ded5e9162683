"""A space on the page: made there, given instructions and a file, asked in, and left."""

from __future__ import annotations

from tests.stories.visit import PHONE, Visit, axe, browser, visit
from tests.stories.world import QUESTION, World

__all__ = ["axe", "browser", "visit"]

LEASE = "The rent of the flat is 812 euros a month. The notice period of the flat is three months.\n"
RENT = "What is the rent of the flat a month?"


def test_a_space_is_made_asked_in_and_left(world: World, visit: Visit, axe: str) -> None:
    person = visit(**PHONE)
    page = person.page
    page.goto(f"{person.base}/spaces/flat")
    person.sees("There is no space flat yet.", "#space-name")
    page.click("#space-add")
    person.sees("In the space flat", "#space-name")
    page.click("#space-settings summary")
    page.fill("#instructions", "Quote the clause.")
    page.click("#space-save")
    person.sees("Saved.", "#space-status")
    assert (person.sticking_out(), person.scan(axe)) == ([], [])
    (world.folder / "lease.txt").write_text(LEASE * 3)
    page.set_input_files("#picker", str(world.folder / "lease.txt"))
    page.wait_for_selector("#files .done")
    person.ask(RENT)
    person.finished()
    assert "812 euros" in person.text("#answer")
    page.reload()
    person.sees("In the space flat", "#space-name")
    assert person.sticking_out() == []
    page.goto(f"{person.base}/spaces/flat")
    person.sees(RENT, "#recent-list")
    person.sees("lease.txt", "#examples")
    assert page.input_value("#instructions") == "Quote the clause."
    page.click("#space a")
    person.sees("flat", "#space-list")
    person.ask(QUESTION)
    person.finished()
    page.goto(f"{person.base}/spaces/flat")
    person.sees(RENT, "#recent-list")
    assert (QUESTION in person.text("#recent-list"), [entry.get("space", "") for entry in world.history()]) == (
        False,
        ["flat", ""],
    )


def test_a_space_is_made_on_the_start_page_and_a_run_survives_its_removal(world: World, visit: Visit, axe: str) -> None:
    person = visit()
    page = person.page
    person.ask(QUESTION)
    person.finished()
    page.goto(person.base)
    page.click("#spaces summary")
    page.fill("#space-new-name", "no blanks, please")
    page.press("#space-new-name", "Enter")
    person.sees("cannot be the name of a space", "#space-problem")
    assert person.scan(axe) == []
    page.fill("#space-new-name", "law")
    page.press("#space-new-name", "Enter")
    page.wait_for_url("**/spaces/law")
    person.sees("In the space law", "#space-name")
    person.ask(QUESTION)
    person.finished()
    world.run("spaces", "rm", "law")
    page.reload()
    person.finished()
    page.wait_for_selector("#space", state="hidden")
    assert (person.text("#asked"), [entry.get("space", "") for entry in world.history()]) == (QUESTION, ["", "law"])
