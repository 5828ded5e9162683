"""The record of a paper on its way: from a hit to the page that is read, the citation, the warning and the exports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from nexi.answers.bibliography import FORMS
from nexi.answers.papers import count_works, group_works
from nexi.app import Nexi
from nexi.backends import Settings, create_backend
from nexi.backends.arxiv import Arxiv
from nexi.backends.sender import BackendRequest, BackendResponse, Sender
from nexi.backends.services import find_record
from nexi.checking.origins import group_origins
from nexi.config import Config
from nexi.errors import BackendError, FetchError
from nexi.events import PageFailed, PageFetched, SourceNumbered, decode, encode
from nexi.exports import export_run
from nexi.output.proof import source_json
from nexi.testing import FakeWeb
from nexi.types import Answer, FetchLimits, Hit, Imprint, Page, Paper, Query, Source
from tests.retractions import CASES, DOI, SOUND_CASES, Case

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
    volume="7",
    issue="1",
    pages="12–19",
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
BIBTEX += ("volume = {7}", "number = {1}", "pages = {12--19}")
RIS = ("TY  - JOUR", "AU  - Cole, Ben", "JO  - Sleep Letters", "DO  - 10.5555/salt.2", f"N1  - {NOTICE}", "C1  - cc-by")
RIS += ("VL  - 7", "IS  - 1", "SP  - 12", "EP  - 19")
CSL = ('"type": "article-journal"', '"DOI": "10.5555/salt.2"', '"container-title": "Sleep Letters"', f'"note": "{NOTICE}"')
CSL += ('"volume": "7"', '"issue": "1"', '"page": "12-19"')


@pytest.mark.parametrize(("form", "parts"), [("bibtex", BIBTEX), ("ris", RIS), ("csl", CSL)])
def test_references_have_everything_that_is_known(form: str, parts: tuple[str, ...]) -> None:
    source = Source(1, OPEN_COPY, "RETRACTED: Salt and sleep", imprint=Imprint(published="2020", paper=RECORD))
    text = FORMS[form]([source], "2026-11-17")
    assert [part for part in parts if part not in text] == []
    assert "RETRACTED: Salt and sleep" in text


# papers that a search engine found, which has no records


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


MARKS = {"retracted": "RETRACTED: ", "concern": "EXPRESSION OF CONCERN: "}
CITES = {"retracted": "cites a retracted paper", "concern": "cites a paper with an expression of concern"}


async def cite_case(case: Case, home: Path) -> tuple[Answer, dict[str, str]]:
    """The answer to a question that only this paper answers, and its exports."""
    backend = create_backend(case.service, Settings(), Answering(case.answers))
    (hit,) = await backend.search(Query("salt sleep"))
    web = FakeWeb({hit.url: TEXT, f"https://doi.org/{DOI}": TEXT})
    async with (
        Nexi(Config(home=home, model="extractive"), backends=[backend], fetchers=[web]) as nexi,
        nexi.search(QUESTION) as run,
    ):
        async for _ in run:
            pass
        result = run.result()
        forms = ("md", "html", "bibtex", "ris", "csl")
        exports = {form: (await export_run(nexi.runs(), nexi.runs().pages, result.id, form)).decode() for form in forms}
    return result.answer, exports


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.service}: {case.name}")
async def test_thirty_retracted_papers_are_marked_at_the_citation_in_the_verdict_and_in_every_export(
    case: Case, tmp_path: Path
) -> None:
    answer, exports = await cite_case(case, tmp_path)
    (source,) = answer.sources
    paper = source.imprint.paper or Paper()
    assert (paper.standing, paper.notice) == (case.standing, case.notice)
    assert source.title == f"{MARKS[case.standing]}Salt and sleep"
    assert answer.review
    assert answer.review.proof.figures() == f"1 of 1 sentence found in the cited pages, 1 {CITES[case.standing]}"
    assert [warning for warning in answer.warnings if warning.startswith("[1] ")] == [
        {"retracted": "[1] was retracted", "concern": "[1] has an expression of concern"}[case.standing]
        + (f" ({case.notice})" if case.notice else "")
    ]
    assert [form for form, text in exports.items() if MARKS[case.standing].strip(": ") not in text] == []
    assert [form for form in ("md", "html") if CITES[case.standing] not in exports[form]] == []


@pytest.mark.parametrize("case", SOUND_CASES, ids=lambda case: f"{case.service}: {case.name}")
async def test_a_corrected_or_reinstated_paper_and_a_notice_have_no_mark(case: Case, tmp_path: Path) -> None:
    answer, _ = await cite_case(case, tmp_path)
    (source,) = answer.sources
    assert not source.title.startswith(tuple(MARKS.values()))
    assert answer.review
    assert answer.review.proof.figures() == "1 of 1 sentence found in the cited pages"


def test_there_are_thirty_cases() -> None:
    assert (len(CASES), len(SOUND_CASES)) == (30, 5)


class Answering(Sender):
    """A service that answers by the last part of the address."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        super().__init__(user_agent="test")
        self._answers = answers

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        return BackendResponse(200, {}, json.dumps(self._answers[request.url.rpartition("/")[2]]).encode())


async def test_a_local_run_looks_up_no_record(tmp_path: Path) -> None:
    async with Nexi(Config(home=tmp_path)) as nexi:
        assert await nexi.ports.with_config(nexi.config, is_offline=True).find_paper("10.5555/salt.2") is None


async def test_a_service_that_is_left_out_is_not_asked_for_a_record_and_a_wrong_name_stops_no_page(tmp_path: Path) -> None:
    for services in ("-crossref,-openalex,-europepmc", "gogle"):
        async with Nexi(Config(home=tmp_path, services=services, searxng_url="http://127.0.0.1:9")) as nexi:
            assert await nexi.ports.find_paper("10.5555/salt.2") is None
            assert nexi.ports.shared.extra_backends == {}


# a preprint and its published version


def source_of(number: int, url: str, *dois: str) -> Source:
    return Source(number, url, imprint=Imprint(paper=Paper(dois[0], versions=dois[1:]) if dois else None))


PREPRINT, PUBLISHED = "https://arxiv.org/abs/2101.00001v2", "https://journal.example/doi/full/10.5555/tides.1"
PREPRINT_DOI = "10.48550/arxiv.2101.00001"


@pytest.mark.parametrize(
    ("sources", "works"),
    [
        ([source_of(1, PREPRINT), source_of(2, PUBLISHED, "10.5555/tides.1", PREPRINT_DOI)], {1: 1, 2: 1}),
        ([source_of(1, PUBLISHED), source_of(2, "https://repo.example/7", "10.5555/Tides.1")], {1: 1, 2: 1}),
        ([source_of(1, PREPRINT), source_of(2, PUBLISHED)], {1: 1, 2: 2}),
        (
            [
                source_of(1, PREPRINT),
                source_of(2, PUBLISHED),
                source_of(3, "https://a.example", "10.5555/tides.1", PREPRINT_DOI),
            ],
            {1: 1, 2: 1, 3: 1},
        ),
        ([source_of(1, "https://a.example/"), source_of(2, "https://b.example/")], {1: 1, 2: 2}),
    ],
)
def test_versions_of_a_paper_are_one_work(sources: list[Source], works: dict[int, int]) -> None:
    assert group_works(sources) == works
    assert count_works(sources) == len(set(works.values()))


def test_versions_of_a_paper_are_one_origin_whatever_their_hosts_and_words() -> None:
    pages = {1: ("arxiv.org", "Tides rise twice."), 2: ("journal.example", "Other words."), 3: ("third.example", "More words.")}
    assert group_origins(pages) == {1: 1, 2: 2, 3: 3}
    assert group_origins(pages, {1: 1, 2: 1, 3: 3}) == {1: 1, 2: 1, 3: 3}


def test_the_second_version_names_the_first() -> None:
    assert source_json(source_of(2, PUBLISHED), 1)["same_work_as"] == 1
    assert "same_work_as" not in source_json(source_of(1, PREPRINT), 1)


@pytest.mark.parametrize(
    ("extra", "paper"),
    [
        ("", Paper("10.48550/arxiv.2101.00001", ("Ada Byron",), "arXiv", "2021")),
        (
            "<arxiv:doi>10.5555/Tides.1</arxiv:doi>",
            Paper("10.48550/arxiv.2101.00001", ("Ada Byron",), "arXiv", "2021", versions=("10.5555/tides.1",)),
        ),
        (
            "<arxiv:comment>This paper has been withdrawn by the author due to an error</arxiv:comment>",
            Paper("10.48550/arxiv.2101.00001", ("Ada Byron",), "arXiv", "2021", standing="retracted"),
        ),
    ],
)
def test_a_preprint_of_arxiv_has_a_record_with_its_published_version(extra: str, paper: Paper) -> None:
    feed = f"""<feed><entry><id>http://arxiv.org/abs/2101.00001v2</id><title>Tides</title><published>2021-01-01T00:00:00Z</published>
    <author><name>Ada Byron</name></author>{extra}</entry></feed>"""
    (hit,) = Arxiv().parse(200, {}, feed.encode())
    assert hit.paper == paper


# open copies


async def test_a_preprint_is_read_where_neither_the_open_copy_nor_the_publisher_lets_us(tmp_path: Path) -> None:
    paper = Paper("10.5555/salt.2", open_url=OPEN_COPY, versions=(PREPRINT_DOI, "10.5555/other"))
    web, events, _ = await answer(tmp_path, paper, "https://arxiv.org/pdf/2101.00001")
    assert web.fetched == [OPEN_COPY, DOI_PAGE, "https://arxiv.org/pdf/2101.00001"]
    (page,) = [event for event in events if isinstance(event, PageFetched)]
    assert (page.url, page.imprint.paper) == (DOI_PAGE, paper)


async def test_where_no_copy_can_be_read_the_failure_is_that_of_the_page(tmp_path: Path) -> None:
    class Refusing(FakeWeb):
        async def fetch(self, url: str, limits: FetchLimits) -> Page:
            raise FetchError(f"{url} was refused", status=403)

    backend = Index(Paper("10.5555/salt.2", open_url=OPEN_COPY, versions=(PREPRINT_DOI,)))
    async with (
        Nexi(Config(home=tmp_path, model="extractive"), backends=[backend], fetchers=[Refusing({})]) as nexi,
        nexi.search(QUESTION) as run,
    ):
        failures = {(event.url, event.message) async for event in run if isinstance(event, PageFailed)}
    assert failures == {(DOI_PAGE, f"{DOI_PAGE} was refused")}


async def test_unpaywall_is_asked_only_where_an_address_was_set(tmp_path: Path) -> None:
    for contact, is_asked in (("", False), ("ada@example.org", True)):
        async with Nexi(Config(home=tmp_path, contact=contact)) as nexi:
            assert ("unpaywall" in nexi.ports._open_services()) is is_asked


async def test_the_open_copy_that_unpaywall_knows_fills_the_record() -> None:
    unknown = {"HTTP_status_code": 404, "error": True, "message": "not in Unpaywall"}
    found = {"doi": "10.5555/salt.2", "title": "Salt", "oa_locations": [{"url": OPEN_COPY, "host_type": "repository"}]}
    for said, copy in ((found, OPEN_COPY), (unknown, "")):
        backend = create_backend("unpaywall", Settings(contact="ada@example.org"), Answering({"salt.2": said}))
        record = await find_record("10.5555/salt.2", [Saying(SOUND), backend])
        assert record == Paper("10.5555/salt.2", ("Ada Byron",), "Sleep Letters", "2020", open_url=copy)


async def test_a_doi_that_resolves_to_nothing_is_said_and_the_others_go_on(tmp_path: Path) -> None:
    web, other = (
        FakeWeb({"https://other.example/salt": TEXT}),
        Hit("https://other.example/salt", "Salt and sleep", "sleep longer"),
    )

    class Two(Index):
        async def search(self, query: Query) -> list[Hit]:
            return [Hit("https://doi.org/10.5555/nothing", "Salt and sleep", "sleep with less salt"), other]

    async with (
        Nexi(Config(home=tmp_path, model="extractive"), backends=[Two(SOUND)], fetchers=[web]) as nexi,
        nexi.search(QUESTION) as run,
    ):
        events = [event async for event in run]
    assert {event.url for event in events if isinstance(event, PageFailed)} == {"https://doi.org/10.5555/nothing"}
    assert [source.url for source in run.result().answer.sources] == [other.url]
