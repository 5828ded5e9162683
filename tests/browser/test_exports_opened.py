"""Every export, saved by the page as a person saves it, and opened."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.app import SystemClock
from nexi.events import RunFinished, RunStarted
from nexi.exports import export_run, print_to_pdf
from nexi.runs.directory import RunDirectory
from nexi.types import Verdict
from nexi.web.page.export import Exported, export_html
from nexi.web.page.view import AnsweredRun
from rig.served import Stage, stage
from tests.browser.scene import PAGES, QUESTION, Telling, Watched
from tests.web import samples

Look = Callable[..., Watched]
TABLE = """The Moon is 384,400 km from Earth on average [1].

| moon | width in km |
|---|---|
| Phobos | 22 |
| Deimos | 12 |
"""
FORMS = {f.title: f.suffix.rpartition(".")[2] for f in EXPORT_FORMATS.values() if f.name != "docx"}  # which needs pandoc
HEADINGS = ("Sizes", "Temperature", "Where sources disagree", "the moons of Saturn", "Sources", "Evidence", "Left out")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("exports"), PAGES, Telling({QUESTION: TABLE})) as there:
        yield there


@pytest.fixture(scope="module")
def files(shared: Stage, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files a person gets who presses every export of one answer."""
    folder = tmp_path_factory.mktemp("saved")
    profile = browser.new_context(accept_downloads=True)
    profile.add_cookies(shared.server.cookies)
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
    assert "384,400 km from Earth on average [\\[1\\]](http" in told
    assert told.startswith(f'---\nquestion: "{QUESTION}"\n')
    whole = json.loads(files["JSON"].read_text())
    assert whole["schema"].startswith("nexi-answer-")
    assert "384,400 km" in json.dumps(whole)
    assert "TI  - Moon facts" in files["RIS"].read_text()
    assert "title = {{Moon facts}}" in files["BibTeX"].read_text()


def test_the_pdf_is_one(files: dict[str, Path]) -> None:
    made = files["PDF"].read_bytes()
    assert made.startswith(b"%PDF-")
    assert made.rstrip().endswith(b"%%EOF")


def test_no_heading_and_no_head_of_evidence_is_the_last_line_of_a_printed_page(tmp_path: Path) -> None:
    """However much stands above it: the same report after one to twelve lines more."""
    import pypdfium2

    runs = RunDirectory(tmp_path / "runs", tmp_path / "pages", clock=SystemClock())
    started, *others, end = samples.planets()
    assert isinstance(end, RunFinished)
    signs = ("✓ ", "○ ", "✗ ", "? ")

    async def print_report(lines: int) -> bytes:
        longer = replace(end, answer=end.answer + "\n\nThe end." * lines)
        return await export_run(runs, runs.pages, await samples.keep(runs, [started, *others, longer]), "pdf")

    for lines in range(0, 13, 3):
        with ThreadPoolExecutor(1) as apart:  # the browser of these tests has a loop in this thread
            document = pypdfium2.PdfDocument(apart.submit(asyncio.run, print_report(lines)).result())
        last = [document[at].get_textpage().get_text_bounded().strip().splitlines()[-2] for at in range(len(document))]
        assert [line for line in last if line in HEADINGS or line.startswith(signs) or line.endswith("more found.")] == [], (
            lines,
            last,
        )


def test_no_block_of_evidence_is_torn_between_two_printed_pages() -> None:
    import pypdfium2

    sentences = [f"Bridge {n} carries a road across the water [1]." for n in range(14)]
    quotes = [
        f"opening-{n} {'Its builders kept a record of every day of the work. ' * (n % 5 + 20)}closing-{n}" for n in range(14)
    ]
    page, answer = "\n\n".join(quotes), "\n\n".join(sentences)
    cited = samples.sources(("https://bridges.example/", "Bridges", page))
    claims = [
        samples.claim(n, sentence, answer, Verdict.FOUND, (cited[0], page, quotes[n])) for n, sentence in enumerate(sentences)
    ]
    facts = samples.finished("Which bridges are there?", answer, cited, claims)
    start, end = facts[0], facts[-1]
    assert isinstance(start, RunStarted)
    assert isinstance(end, RunFinished)
    made = export_html(Exported(AnsweredRun("1", start, end, tuple(facts)), opened=True))
    with ThreadPoolExecutor(1) as apart:
        document = pypdfium2.PdfDocument(apart.submit(asyncio.run, print_to_pdf(made)).result())
    pages = [document[at].get_textpage().get_text_bounded() for at in range(len(document))]
    places = [
        [at for at, text in enumerate(pages) if mark in text] for n in range(14) for mark in (f"opening-{n} ", f"closing-{n}\r")
    ]
    assert len(pages) > 3
    assert places[::2] == places[1::2]


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
