"""The record of a paper on its way: from a hit to the page that is read, the citation, the warning and the exports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexi.answers.bibliography import FORMS
from nexi.app import Nexi
from nexi.backends import Settings, create_backend
from nexi.backends.sender import BackendRequest, BackendResponse, Sender
from nexi.backends.services.records import find_record
from nexi.config import Config
from nexi.errors import BackendError
from nexi.events import PageFetched, SourceNumbered, decode, encode
from nexi.output._sources import source_json
from nexi.reader import describe_paper
from nexi.testing import FakeWeb
from nexi.types import Hit, Imprint, Page, Paper, Query, Source
from nexi.urls import find_doi

DOI_PAGE, OPEN_COPY = "https://doi.org/10.5555/salt.2", "https://repo.example/salt"
TEXT = "# Salt and sleep\n\nEating less salt lets people sleep 40 minutes longer each night.\n"
QUESTION = "How much longer do people sleep with less salt?"
RECORD = Paper(
    "10.5555/salt.2",
    ("Ada Byron", "Ben Cole"),
    "Sleep Letters",
    "2020",
    "cc-by",
    OPEN_COPY,
    "retracted",
    "https://doi.org/10.5555/salt.r",
)
SOUND = Paper("10.5555/salt.2", ("Ada Byron",), "Sleep Letters", "2020")


class Index:
    """An index of papers with one of them."""

    name = "index"

    def __init__(self, paper: Paper) -> None:
        self.paper = paper

    async def search(self, query: Query) -> list[Hit]:
        return [Hit(DOI_PAGE, "Salt and sleep", "sleep longer with less salt", "2020", paper=self.paper)]


async def answer(tmp_path: Path, paper: Paper, *pages: str) -> tuple[FakeWeb, list[object], object]:
    web = FakeWeb(dict.fromkeys(pages, TEXT))
    async with (
        Nexi(Config(home=tmp_path, model="extractive"), backends=[Index(paper)], fetchers=[web]) as nexi,
        nexi.search(QUESTION) as run,
    ):
        events = [event async for event in run]
    return web, list(events), events[-1]


async def test_the_open_copy_is_read_instead_of_the_publishers_page(tmp_path: Path) -> None:
    web, events, _ = await answer(tmp_path, RECORD, OPEN_COPY)
    assert web.fetched == [OPEN_COPY]
    (page,) = [event for event in events if isinstance(event, PageFetched)]
    assert (page.url, page.final_url, page.imprint.paper) == (DOI_PAGE, OPEN_COPY, RECORD)


async def test_where_the_open_copy_is_gone_the_page_itself_is_read(tmp_path: Path) -> None:
    web, _, _ = await answer(tmp_path, RECORD, DOI_PAGE)
    assert web.fetched == [OPEN_COPY, DOI_PAGE]


async def test_a_retracted_paper_is_marked_at_its_citation_and_in_a_warning(tmp_path: Path) -> None:
    _, events, _ = await answer(tmp_path, RECORD, OPEN_COPY)
    (source,) = [event.source for event in events if isinstance(event, SourceNumbered)]
    assert source.title == "RETRACTED: Salt and sleep"
    assert "[1] was retracted (https://doi.org/10.5555/salt.r)" in str(events)
    assert source_json(source)["paper"]["standing"] == "retracted"


async def test_a_paper_in_good_standing_has_no_mark(tmp_path: Path) -> None:
    _, events, _ = await answer(tmp_path, SOUND, DOI_PAGE)
    (source,) = [event.source for event in events if isinstance(event, SourceNumbered)]
    assert (source.title, source.imprint.author, source.imprint.site) == ("Salt and sleep", "Ada Byron", "Sleep Letters")
    assert "retracted" not in str(events)


def test_a_record_survives_the_log() -> None:
    fact = PageFetched(DOI_PAGE, DOI_PAGE, "Salt", "d", 1, 1, 0.1, False, imprint=Imprint(paper=RECORD))
    assert decode(json.loads(json.dumps(encode(fact)))) == fact
    assert "paper" not in encode(PageFetched(DOI_PAGE, DOI_PAGE, "Salt", "d", 1, 1, 0.1, False))["imprint"]


NOTICE = "Retracted https://doi.org/10.5555/salt.r"
BIBTEX = ("@article{byron2020,", "journal = {Sleep Letters}", "doi = {10.5555/salt.2}", "{Byron, Ada and Cole, Ben}", NOTICE)
RIS = ("TY  - JOUR", "AU  - Cole, Ben", "JO  - Sleep Letters", "DO  - 10.5555/salt.2", f"N1  - {NOTICE}", "C1  - cc-by")
CSL = ('"type": "article-journal"', '"DOI": "10.5555/salt.2"', '"container-title": "Sleep Letters"', f'"note": "{NOTICE}"')


@pytest.mark.parametrize(("form", "parts"), [("bibtex", BIBTEX), ("ris", RIS), ("csl", CSL)])
def test_references_have_everything_that_is_known(form: str, parts: tuple[str, ...]) -> None:
    source = Source(1, OPEN_COPY, "RETRACTED: Salt and sleep", imprint=Imprint(published="2020", paper=RECORD))
    text = FORMS[form]([source], "2026-11-17")
    assert [part for part in parts if part not in text] == []
    assert "RETRACTED: Salt and sleep" in text


# papers that a search engine found, which has no records


@pytest.mark.parametrize(
    ("url", "doi"),
    [
        ("https://doi.org/10.5555/Salt.2", "10.5555/salt.2"),
        ("https://link.publisher.example/article/10.1007/s00-1?error=cookies", "10.1007/s00-1"),
        ("https://journals.example/doi/full/10.1177/12.pdf", "10.1177/12"),
        ("https://journals.example/doi/10.1177/12/abstract", "10.1177/12"),
        ("https://example.org/10.5", ""),
    ],
)
def test_the_doi_in_an_address_is_found(url: str, doi: str) -> None:
    assert find_doi(url) == doi


class Saying:
    def __init__(self, answer: Paper | BackendError | None) -> None:
        self.name, self.answer = "index", answer

    async def search(self, query: Query) -> list[Hit]:
        if isinstance(self.answer, BackendError):
            raise self.answer
        return [Hit(DOI_PAGE, "Salt", paper=self.answer)] if self.answer else []


async def test_what_one_index_leaves_out_another_says_and_a_failure_says_nothing() -> None:
    retracted = Paper("10.5555/salt.2", standing="retracted", notice="https://doi.org/10.5555/salt.r")
    dead, empty, sound = Saying(BackendError("down")), Saying(None), Saying(SOUND)
    record = await find_record("10.5555/salt.2", [dead, empty, sound, Saying(retracted)])
    assert record == Paper("10.5555/salt.2", ("Ada Byron",), "Sleep Letters", "2020", "", "", "retracted", retracted.notice)
    assert await find_record("10.5555/salt.2", [dead, empty]) is None
    assert await find_record("10.5555/other", [sound]) is None


async def test_thirty_retracted_papers_of_a_search_engine_are_all_marked(tmp_path: Path) -> None:
    """The records stand in the form of Crossref and of OpenAlex by turns, as a notice, a title or a flag."""
    notices = [
        {"updated-by": [{"type": kind, "DOI": "10.5555/n"}]} for kind in ("retraction", "withdrawal", "expression_of_concern")
    ]
    unmarked = []
    for number in range(30):
        doi = f"10.5555/case.{number}"
        crossref: dict[str, object] = {"DOI": doi, "title": ["A case"], **notices[number % 3]}
        openalex = {"doi": f"https://doi.org/{doi}", "display_name": "A case", "is_retracted": number % 3 != 2}
        crossref = crossref if number % 2 else {"DOI": doi, "title": ["A case"]} | (notices[2] if number % 3 == 2 else {})
        sender = Answering({"crossref": {"message": crossref}, "openalex": openalex})
        record = await find_record(doi, [create_backend(name, Settings(), sender) for name in ("crossref", "openalex")])
        page = describe_paper(Page(f"https://doi.org/{doi}", "text", title="A case"), record or Paper())
        if not page.title.startswith(("RETRACTED: ", "EXPRESSION OF CONCERN: ")):
            unmarked.append(number)
    assert unmarked == []


class Answering(Sender):
    def __init__(self, answers: dict[str, object]) -> None:
        super().__init__(user_agent="test")
        self._answers = answers

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        return BackendResponse(200, {}, json.dumps(self._answers[service]).encode())


async def test_a_local_run_looks_up_no_record(tmp_path: Path) -> None:
    async with Nexi(Config(home=tmp_path)) as nexi:
        assert await nexi.ports.with_config(nexi.config, is_offline=True).find_paper("10.5555/salt.2") is None


async def test_a_service_that_is_left_out_is_not_asked_for_a_record_and_a_wrong_name_stops_no_page(tmp_path: Path) -> None:
    for services in ("-crossref,-openalex", "gogle"):
        async with Nexi(Config(home=tmp_path, services=services, searxng_url="http://127.0.0.1:9")) as nexi:
            assert await nexi.ports.find_paper("10.5555/salt.2") is None
            assert nexi.ports.shared.extra_backends == {}
