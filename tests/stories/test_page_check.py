"""The story of a person who was given a report and wants to know whether it is true."""

from __future__ import annotations

from tests.stories.visit import Visit, browser, visit
from tests.stories.world import FACT, World

__all__ = ["browser", "visit"]


def test_a_report_of_somebody_else_is_audited_in_the_terminal_and_on_the_page(world: World, visit: Visit) -> None:
    moon = f"http://{world.web.address}/moon.test/facts"
    report = f"{FACT[:-1]} ([Moon facts]({moon})). The Moon is 12 km wide [2](http://{world.web.address}/gone.test/x).\n"
    (world.folder / "report.md").write_text(report)
    screen = world.run("verify", "--audit", str(world.folder / "report.md"))
    assert screen.code == 5
    assert "Precision 50%: the page supports the sentence for 1 of 2 citations." in screen.out
    assert "(dead: HTTP 404)" in screen.out
    person = visit()
    person.page.click("#show-check")
    person.page.wait_for_selector("#check-text")
    person.page.fill("#check-text", report)
    person.page.check("#check-audit")
    person.page.click("#check-go")
    person.page.wait_for_selector("#check-claims > li")
    assert "Precision 50 %" in person.text("#check-figures")
    assert FACT in person.text("#check-claims")
    assert (person.text("#check-message"), person.trouble) == ("", [])
