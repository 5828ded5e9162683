"""A table of values on the page: columns, documents of the web and of this machine, quotes, and the forms it is saved in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from rig.served import Stage
from tests.browser.scene import Watched
from tests.browser.test_looks import SCAN, STICKING_OUT, TAGS, axe

__all__ = ["axe"]

Look = Callable[..., Watched]


def test_a_page_and_a_file_become_a_table_with_quotes_and_are_saved(
    served: Stage, look: Look, axe: str, tmp_path: Path
) -> None:
    note = tmp_path / "gauge.md"
    note.write_text("---\ndate: 2024-03-05\n---\n# Tide gauge\n\nKeeper: Ada Byron\n", encoding="utf-8")
    person = look(served, viewport={"width": 390, "height": 844})
    page = person.open()
    page.set_input_files("#picker", note)
    page.wait_for_selector("#files li.done")
    page.click("#show-table")
    page.wait_for_selector("#table-columns")
    assert page.evaluate("location.pathname") == "/table"
    page.click("#table-stored")
    expect(page.locator("#table-documents")).to_have_value(re.compile("^file:"), timeout=30_000)
    page.fill("#table-documents", page.input_value("#table-documents") + f"\n{served.web}/moon.test/facts")
    page.fill("#table-columns", "keeper\nHow far is the Moon from Earth on average?")
    page.click("#table-go")
    page.wait_for_selector("#table-values tbody tr")
    cells = [[cell.split("\n")[0] for cell in row.locator("td").all_inner_texts()] for row in page.locator("tbody tr").all()]
    assert cells == [["Ada Byron", "not stated"], ["not stated", "384,400 km"]]
    assert "2024-03-05" in page.locator("tbody tr").nth(0).inner_text()
    with page.expect_download() as saved:
        page.click("#table-csv")
    assert saved.value.suggested_filename == "nexi-table.csv"
    assert "Ada Byron" in Path(saved.value.path()).read_text(encoding="utf-8")
    page.evaluate(axe)
    assert (page.evaluate(SCAN, TAGS), page.evaluate(STICKING_OUT, 390), person.trouble) == ([], [], [])


def test_the_panel_speaks_the_language_of_the_reader(served: Stage, look: Look) -> None:
    person = look(served, locale="de-DE")
    page = person.open("/table")
    page.wait_for_selector("#table-columns")
    assert page.inner_text("#table-head") == "Tabelle von Werten"
    page.fill("#table-columns", "Preis")
    page.fill("#table-documents", f"{served.web}/gone.test/")
    page.click("#table-go")
    page.wait_for_selector("#table-values tbody tr")
    assert page.inner_text("#table-values td") == "nicht gelesen"
