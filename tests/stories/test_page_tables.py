"""Stories of answers whose evidence is a row of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stories.visit import Visit, browser, visit
from tests.stories.world import World, make_world, page

__all__ = ["browser", "visit"]

ROWS = (("City", "Population"), ("Krakow", "804,237"), ("Warsaw", "1,861,975"), ("Gdansk", "486,022"))
TABLE = "".join(f"<tr><td>{city}</td><td>{people}</td></tr>" for city, people in ROWS)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    cities = page("http://cities.test/poland", "Cities of Poland", f"The largest ones are:</p><table>{TABLE}</table><p>")
    with make_world(tmp_path, [cities]) as made:
        yield made


def test_a_citation_of_a_row_shows_the_row_and_leads_to_it(visit: Visit) -> None:
    person = visit()
    person.ask("What is the population of Warsaw?")
    person.finished()
    person.page.click("#answer .cite")
    person.page.wait_for_selector("#evidence mark")
    link = person.page.locator("#evidence .found a").first.get_attribute("href") or ""
    assert (person.text("#answer"), person.text("#evidence mark"), link.partition("#")[2], person.trouble) == (
        "City: Warsaw – Population: 1,861,975 [1]",
        "| Warsaw | 1,861,975 |",
        ":~:text=Warsaw,1%2C861%2C975",
        [],
    )
