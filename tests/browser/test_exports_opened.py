"""Every export, saved by the page as a person saves it, and opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rig.served import Stage, stage
from tests.browser.scene import PAGES, QUESTION, Telling, Watched

Look = Callable[..., Watched]
TABLE = """The Moon is 384,400 km from Earth on average [1].

| moon | width in km |
|---|---|
| Phobos | 22 |
| Deimos | 12 |
"""
FORMS = {"Markdown": "md", "HTML": "html", "PDF": "pdf", "JSON": "json", "RIS": "ris", "BibTeX": "bib", "CSL": "json"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("exports"), PAGES, Telling({QUESTION: TABLE})) as there:
        yield there


@pytest.fixture(scope="module")
def files(shared: Stage, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files a person gets who presses every export of one answer."""
    folder = tmp_path_factory.mktemp("saved")
    profile = browser.new_context(accept_downloads=True)
    person = Watched(profile.new_page(), shared.base)
    page = person.open()
    person.ask(QUESTION)
    person.finished()
    saved = {}
    for name, suffix in FORMS.items():
        with page.expect_download() as download:
            page.click(f"#exports >> text='{name}'")
        saved[name] = folder / download.value.suggested_filename
        download.value.save_as(saved[name])
        assert saved[name].suffix == f".{suffix}"
    assert person.trouble == []
    profile.close()
    return saved


def test_markdown_json_and_references_hold_the_answer_and_its_source(files: dict[str, Path]) -> None:
    told = files["Markdown"].read_text()
    assert "384,400 km from Earth on average [1]" in told
    whole = json.loads(files["JSON"].read_text())
    assert whole["schema"].startswith("nexi-answer-")
    assert "384,400 km" in json.dumps(whole)
    assert "TI  - Moon facts" in files["RIS"].read_text()
    assert "title = {{Moon facts}}" in files["BibTeX"].read_text()


def test_the_pdf_is_one(files: dict[str, Path]) -> None:
    made = files["PDF"].read_bytes()
    assert made.startswith(b"%PDF-")
    assert made.rstrip().endswith(b"%%EOF")


def test_the_html_opens_from_disk_with_the_network_off_and_asks_for_nothing(files: dict[str, Path], look: Look) -> None:
    person = look("file://", offline=True)
    page = person.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(files["HTML"].as_uri())
    assert asked == [files["HTML"].as_uri()]
    assert "384,400 km" in page.inner_text("article")
    assert page.locator("article svg[role=img] rect").count() == 2  # the table's chart
    assert page.locator("svg[aria-label^='Timeline'] rect").count() >= 3
    page.locator("details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
    assert page.inner_text("mark >> nth=0") == "The Moon is 384,400 km from Earth on average."
    assert page.locator("script").count() == 0
    assert person.trouble == []
