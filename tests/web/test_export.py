"""A run as a file: nothing of it runs or loads, and its evidence, conflicts, timeline and charts are inside."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace

from nexi.answers.document import read_markdown
from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.answers.safe_markdown import _is_inert
from nexi.app import SystemClock
from nexi.errors import NexiError
from nexi.events import Fact, RunFinished, RunStarted
from nexi.exports import export_run, print_to_pdf
from nexi.runs.directory import RunDirectory
from nexi.types import StopReason, Usage
from nexi.web.page.timeline import timeline_svg, totals_of
from tests.raising import has_code
from tests.web import samples
from tests.web.world import MOON, QUESTION, serving

TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "section", "article", "footer", "h1", "h2", "h3", "p", "a", "br",
    "ol", "ul", "li", "span", "bdi", "mark", "blockquote", "details", "summary", "div", "table", "thead", "tbody", "tr", "th",
    "td", "code", "pre", "em", "strong", "figure", "figcaption", "svg", "text", "rect", "line", "desc",
}  # fmt: skip


class Tags(HTMLParser):
    """Every tag of a document, and every address in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: list[str] = []
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        self.ids += [value or "" for name, value in attrs if name == "id"]


@pytest.fixture
def runs(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "runs", tmp_path / "pages", clock=SystemClock())


async def made(runs: RunDirectory, facts: list[Fact], form: str = "html") -> str:
    return (await export_run(runs, runs.pages, await samples.keep(runs, facts), form)).decode()


CONTROLS = "\x1b]52;c;aGk=\x07\x1b[31m\x9b2J\u202e\u2066\x00"


@pytest.mark.parametrize("form", ["html", "md", "json", "ris", "bibtex", "csl"])
async def test_no_file_holds_what_a_terminal_would_execute(runs: RunDirectory, form: str) -> None:
    facts = samples.hostile()
    start, end = facts[0], facts[-1]
    assert isinstance(start, RunStarted)
    assert isinstance(end, RunFinished)
    bad = tuple(replace(s, title=CONTROLS + s.title) for s in end.sources)
    facts = [replace(start, query=CONTROLS + start.query), *facts[1:-1]]
    text = await made(runs, [*facts, replace(end, answer=CONTROLS + end.answer, sources=bad)], form)
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text) == []


async def test_the_name_that_a_page_gives_itself_never_stands_without_its_host(runs: RunDirectory) -> None:
    facts = samples.right_to_left()
    end = facts[-1]
    assert isinstance(end, RunFinished)
    renamed = tuple(replace(s, imprint=replace(s.imprint, site="Acme Bank Official")) for s in end.sources)
    for form, shown in (("html", "<bdi>moon.example</bdi> · <bdi>Acme Bank"), ("md", "moon.example · Acme Bank")):
        assert shown in await made(runs, [*facts[:-1], replace(end, sources=renamed)], form)


async def test_a_question_is_no_markup_for_a_reader_without_front_matter(runs: RunDirectory) -> None:
    facts = samples.planets()
    start = facts[0]
    assert isinstance(start, RunStarted)
    text = await made(runs, [replace(start, query="<img src=x> ![a](http://b)"), *facts[1:]], "md")
    assert '"\\u003cimg src=x\\u003e !\\u005ba\\u005d(http://b)"' in text
    assert _is_inert(text)


# html


@pytest.mark.parametrize("sample", samples.SAMPLES.values(), ids=samples.SAMPLES)
async def test_nothing_in_the_file_runs_or_loads_anything(runs: RunDirectory, sample: Callable[[], list[Fact]]) -> None:
    text = await made(runs, sample())
    tags = Tags(text)
    assert tags.names <= TAGS
    assert [name for name in tags.attributes if name.startswith("on") or name in ("src", "style", "srcdoc")] == []
    assert [a for a in tags.addresses if not a.startswith(("https://", "http://", "#"))] == []
    assert "default-src 'none'" in text
    assert re.findall(r"@import|url\(", text[text.index("<style>") : text.index("</style>")]) == []


@pytest.mark.parametrize("sample", samples.SAMPLES.values(), ids=samples.SAMPLES)
async def test_every_link_within_the_file_leads_somewhere_and_names_are_unique(
    runs: RunDirectory, sample: Callable[[], list[Fact]]
) -> None:
    tags = Tags(await made(runs, sample()))
    inside = {address[1:] for address in tags.addresses if address.startswith("#")}
    assert (inside - set(tags.ids), len(tags.ids)) == (set(), len(set(tags.ids)))


async def test_a_report_holds_its_evidence_conflicts_gaps_and_timeline(runs: RunDirectory) -> None:
    text = await made(runs, samples.planets())
    assert "<mark>Pluto counted as a planet until 2006, when the term was defined.</mark>" in text
    assert "✗\u00a0contradicted</a>" in text
    assert '<h2>Where sources disagree</h2><h3><bdi>the moons of Saturn</bdi></h3><ul class="sides">' in text
    assert "Saturn, with 146 moons, leads." in text
    assert "Saturn would sink in water." in text
    assert "0 of 1 sentence found, 1 contradicted" in text
    assert "Timeline of the run" in text
    assert "https://planets.example/facts#:~:text=The%20outer%20planets" in text
    assert "<summary>" in text
    assert "Mercury · 4,879 km [1] · 0 · 1631" in text


async def test_the_file_of_a_printer_has_everything_unfolded(runs: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def keep(text: str) -> bytes:
        seen.append(text)
        return b"%PDF-"

    monkeypatch.setattr("nexi.exports.print_to_pdf", keep)
    run_id = await samples.keep(runs, samples.planets())
    assert await export_run(runs, runs.pages, run_id, "pdf") == b"%PDF-"
    assert (seen[0].count('<div class="unfolded"><p class="head">'), seen[0].count("<details")) == (5, 0)


async def test_a_file_says_its_date_and_model_at_the_top_and_its_question_once(runs: RunDirectory) -> None:
    started, *others = samples.planets()
    assert isinstance(started, RunStarted)
    about = r'<p class="soft about"><bdi>\d{4}-\d\d-\d\d</bdi> · <bdi>moon-1</bdi></p>\n<article'
    asked = '<p class="asked" dir="auto">How large are the planets?</p>'
    text = await made(runs, [started, *others])
    assert re.search(re.escape(f"<main>\n{asked}") + about, text)
    text = await made(runs, [replace(started, query="how large the planets are?"), *others])
    assert re.search("<main>\n" + about, text)


async def test_the_headings_of_a_stored_page_are_quoted_without_their_marks(runs: RunDirectory) -> None:
    text = await made(runs, samples.planets())
    assert 'dir="auto">Planetary facts\n\n' in text
    assert "# Planetary facts" not in text


async def test_a_run_without_sources_is_exported_without_what_it_lacks(runs: RunDirectory) -> None:
    text = await made(runs, samples.bare())
    assert re.findall(r"<h\d[^>]*>(.*?)</h\d>", text) == ["What is known?"]
    assert "ended: time target" in text
    run_id = await samples.keep(runs, samples.bare())
    for form in ("ris", "bibtex", "csl"):
        with pytest.raises(NexiError, check=has_code("no_references")):
            await export_run(runs, runs.pages, run_id, form)


async def test_the_passages_of_an_agentic_search_are_shown_as_passages(runs: RunDirectory) -> None:
    answer = {"completeness": 0.9, "status": "complete", "results": [{"content": "A **ring**.", "url": MOON}]}
    start = RunStarted("atoll", "m", "x", "agentic")
    end = RunFinished(json.dumps(answer), (), StopReason.FINAL_ANSWER, 1, Usage(), 1.0, 1, 0)
    text = await made(runs, [start, end])
    assert "<strong>ring</strong>" in text
    assert f'href="{MOON}"' in text
    assert "completeness&quot;" not in text


async def test_half_of_a_character_does_not_keep_a_run_from_its_file(runs: RunDirectory) -> None:
    broken = RunFinished("a \ud83d b", (), StopReason.FINAL_ANSWER, 1, Usage(), 1.0, 1, 0, ("\udc00",))
    for form in ("html", "md", "json"):
        assert len(await made(runs, [RunStarted("q \ud83d", "m", "x"), broken], form)) > 4


# other forms


@pytest.mark.parametrize("sample", samples.SAMPLES.values(), ids=samples.SAMPLES)
async def test_the_markdown_is_tame(runs: RunDirectory, sample: Callable[[], list[Fact]]) -> None:
    text = await made(runs, sample(), "md")
    assert _is_inert(text.partition("\n---\n")[2] if text.startswith("---\n") else text)


async def test_the_markdown_of_an_answer_has_its_question_conflicts_sources_and_figures(runs: RunDirectory) -> None:
    text = await made(runs, samples.right_to_left(), "md")
    assert text.startswith('---\nquestion: "كم يبعد القمر عن الأرض؟"\nmodel: "moon-1"\n')
    assert "\n---\n\n# كم يبعد القمر عن الأرض؟\n\nالقمر يبعد" in text
    about = "moon.example · The Almanac · Ada Moon · 2031-04-05 · read 2031-05-06"
    assert f"- [1] [القمر: حقائق وأرقام](https://moon.example/ar) · {about}" in text
    assert text.endswith("\n\n*Checked: 1 of 1 sentence found in the cited pages.*\n")


@pytest.mark.parametrize("form", ["md", "html"])
async def test_what_only_older_sources_say_is_no_disagreement_of_an_export(runs: RunDirectory, form: str) -> None:
    started, *facts, end = samples.planets()
    assert isinstance(started, RunStarted)
    assert isinstance(end, RunFinished)
    facts = [replace(started, mode="search"), *facts]
    settled = tuple(replace(conflict, is_settled=True) for conflict in end.conflicts)
    assert "Where sources disagree" in await made(runs, [*facts, end], form)
    assert "Where sources disagree" not in await made(runs, [*facts, replace(end, conflicts=settled)], form)


@pytest.mark.parametrize("mode", ["search", "research"])
async def test_exported_markdown_can_be_verified_again(runs: RunDirectory, mode: str) -> None:
    started, *others = samples.planets()
    assert isinstance(started, RunStarted)
    document = read_markdown(await made(runs, [replace(started, mode=mode), *others], "md"))
    assert {s.number: (s.url, s.title) for s in document.sources} == {
        1: ("https://planets.example/facts", "Planetary facts"),
        2: ("https://pluto.example/", "Pluto"),
    }
    assert (document.lost, len(document.run)) == ((), 6)


async def test_references_carry_no_address_that_could_run(runs: RunDirectory) -> None:
    run_id = await samples.keep(runs, samples.hostile())
    for form, field in (("ris", "UR  - "), ("bibtex", "url = {"), ("csl", '"URL": "')):
        text = (await export_run(runs, runs.pages, run_id, form)).decode()
        assert [text[at.end() : at.end() + 8] for at in re.finditer(re.escape(field), text)] == ["https://"] * 10


async def test_every_form_but_the_printed_one_is_made_without_help(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.events(run_id)
        for form in set(EXPORT_FORMATS) - {"pdf", "docx"}:
            reply = await served.client.get(f"/page/runs/{run_id}/export?format={form}")
            name = f'attachment; filename="nexi-{run_id}.{EXPORT_FORMATS[form].suffix}"'
            assert (reply.status_code, reply.headers["content-disposition"]) == (200, name)
            assert "384,400" in reply.text or MOON in reply.text
        assert json.loads((await served.client.get(f"/page/runs/{run_id}/export?format=json")).text)["question"] == QUESTION
        assert (await served.client.get(f"/page/runs/{run_id}/export?format=exe")).status_code == 400


async def test_what_cannot_be_exported_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    async with serving(tmp_path) as served:
        runs = served.app.state.nexi.runs()
        bare = await samples.keep(runs, samples.bare())
        unfinished = await samples.keep(runs, [RunStarted("q", "m", "x")])
        asked = [(bare, "pdf"), (bare, "ris"), (unfinished, "md"), ("aaaaaa", "md")]
        replies = [await served.client.get(f"/page/runs/{run}/export?format={form}") for run, form in asked]
        errors = [reply.json()["error"] for reply in replies]
        assert [(r.status_code, e["code"]) for r, e in zip(replies, errors, strict=True)] == [
            (501, "no_browser"), (404, "no_references"), (409, "not_ended"), (404, "no_such_run"),
        ]  # fmt: skip
        assert errors[0]["message"] == "no PDF can be made here: Chromium is not installed"
        assert "apt install chromium" in errors[0]["fix"]


# printing


def program(tmp_path: Path, script: str) -> str:
    path = tmp_path / "browser"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


WRITES = 'for a in "$@"; do case $a in --print-to-pdf=*) out=${a#*=};; esac; done; '


async def test_a_browser_that_prints_gives_its_pdf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: program(tmp_path, f"{WRITES}printf %%PDF-1.7 > $out"))
    assert await print_to_pdf("<p>x</p>") == b"%PDF-1.7"


@pytest.mark.parametrize(
    ("script", "why"),
    [("exit 3", "status 3"), (f"{WRITES}echo x > $out", "status 0"), ("sleep 600 & sleep 600", "more than 0.2 s")],
)
async def test_a_browser_that_does_not_print_is_told_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: program(tmp_path, script))
    with pytest.raises(NexiError, check=has_code("not_printed")) as told:
        await print_to_pdf("<p>x</p>", patience_s=0.2 if "sleep" in script else 120.0)
    assert why in told.value.cause


async def test_whoever_leaves_takes_the_browser_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "begun"
    os.mkfifo(pipe)
    monkeypatch.setattr("shutil.which", lambda _: program(tmp_path, f"echo $$ > {pipe}; sleep 60"))
    task = asyncio.create_task(print_to_pdf("<p>x</p>"))
    process = (await asyncio.to_thread(pipe.read_text)).strip()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{process}").exists()


# the timeline


def test_names_in_the_timeline_are_escaped_and_failures_told_in_words() -> None:
    bar = {"who": "<b>", "lane": "page", "label": '"><script>', "start": 0.0, "end": 1.0, "failed": True}
    drawn = timeline_svg([bar])
    assert "<script>" not in drawn
    assert "<b>" not in drawn
    assert "<title>failed: &quot;&gt;&lt;script&gt; (1.00 s)</title>" in drawn
    assert totals_of([bar, {**bar, "failed": False}]) == "2 pages, 1 failed, in 1.0 s"


def test_lanes_stand_in_the_order_of_researchers_and_kinds() -> None:
    bar = {"label": "", "start": 0.0, "end": 1.0, "failed": False}
    order = [("1.10", "page"), ("1.2", "search"), ("", "model"), ("1.2", "model")]
    drawn = timeline_svg([{**bar, "who": who, "lane": lane} for who, lane in order])
    assert re.findall(r'<text x="0"[^>]*>(.*?)</text>', drawn) == ["model", "1.2 model", "1.2 search", "1.10 page"]
