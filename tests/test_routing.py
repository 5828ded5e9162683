"""Which open services are asked, how their hits become one list, and what happens when some of them are dead."""

from __future__ import annotations

import asyncio
import json
from itertools import combinations
from pathlib import Path

import pytest

from nexi.app import Nexi, QuietEmit, RunRequest
from nexi.backends.sender import BackendRequest, BackendResponse
from nexi.config import Config
from nexi.errors import BackendError, ConfigError
from nexi.events import RunFinished
from nexi.net.suspensions import FileBreaker
from nexi.routing.fusion import fuse_hits
from nexi.routing.route import MAX_SERVICES, Choice, Route, ask_services, phrase_query, route_query
from nexi.routing.table import SERVICES
from nexi.searcher import Searcher
from nexi.testing import FakeClock, FakeWeb
from nexi.types import Failure, Hit, Paper, Query, SearchOutcome
from rig import miniweb
from rig.services import StandIns, search_corpus, serve_services
from tests.contract.pages import HTML, TEXTS

QUESTIONS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "evals" / "routing_questions.jsonl").read_text(encoding="utf-8").splitlines()
]
CORPUS = miniweb.Corpus(HTML)
FIND = search_corpus(CORPUS)


def names(query: Query) -> list[str]:
    return [choice.service for choice in route_query(query, SERVICES).first]


# the route


def test_by_words_alone_a_right_service_is_among_the_first_two() -> None:
    rows = [row for row in QUESTIONS if row["set"] == "before"]
    right = [row for row in rows if set(names(Query(row["question"]))[:2]) & set(row["services"])]
    assert len(rows) == 120
    assert len(right) >= 0.9 * len(rows)


@pytest.mark.parametrize("row", QUESTIONS, ids=lambda row: row["question"][:30])
def test_no_question_asks_more_than_four_services_and_each_has_others_in_reserve(row: dict[str, str]) -> None:
    route = route_query(Query(row["question"]), SERVICES)
    first, reserve = ({choice.service for choice in part} for part in (route.first, route.reserve))
    assert 2 <= len(first) <= MAX_SERVICES
    assert not first & reserve
    assert "duckduckgo" in first | reserve


def test_the_meaning_of_a_question_counts_where_it_has_no_telling_word() -> None:
    question = Query("my ankle is swollen, what could it be")
    assert names(question) == ["duckduckgo", "wikipedia"]
    route = route_query(question, SERVICES, {"medicine": 0.9, "encyclopedia": 0.1})
    assert [choice.service for choice in route.first] == ["europepmc", "pubmed", "duckduckgo"]
    assert route.first[0].reason == "medicine, by its meaning"


def test_the_general_web_is_asked_beside_a_guess_where_duckduckgo_may_not_be() -> None:
    allowed = [name for name in SERVICES if name != "duckduckgo"]
    assert [choice.service for choice in route_query(Query("papers on tides"), allowed).first] == [
        "crossref",
        "semanticscholar",
        "marginalia",
    ]


@pytest.mark.parametrize(
    ("focus", "first"),
    [
        ("papers", "crossref"),
        ("news", "gdelt"),
        ("places", "nominatim"),
        ("discussions", "hackernews"),
        ("code", "stackexchange"),
    ],
)
def test_a_focus_chooses_by_hand(focus: str, first: str) -> None:
    assert names(Query("tides in small harbours", focus=focus))[0] == first


def test_of_a_query_for_a_site_only_who_can_search_it_is_asked() -> None:
    assert names(Query("tides", sites=("example.org",))) == ["duckduckgo"]
    assert set(names(Query("how to sort in python", sites=("stackoverflow.com",)))) == {"stackexchange", "duckduckgo"}


@pytest.mark.parametrize(
    ("question", "service", "text"),
    [
        ("papers on graph neural networks for traffic forecasting", "crossref", "graph neural networks traffic forecasting"),
        ("Wer hat die Zauberflöte komponiert?", "wikipedia", "Zauberflöte komponiert"),
        ("latest version of the httpx package on PyPI", "pypi", "httpx"),
        ("cargo add tokio", "crates", "tokio"),
        ("old version of https://python.org/doc/ in 2005", "wayback", "https://python.org/doc/ 2005"),
        ("Who was Ada Lovelace?", "wikidata", "Ada Lovelace"),
        ("Where is the town of Hallstatt?", "duckduckgo", "Where is the town of Hallstatt?"),
    ],
)
def test_each_service_is_asked_in_the_words_it_understands(question: str, service: str, text: str) -> None:
    assert phrase_query(Query(question), service).text == text


def test_wikipedia_is_asked_in_the_language_of_the_question() -> None:
    assert (
        phrase_query(Query("Wie hoch ist der höchste Berg von Österreich und wer hat ihn bestiegen?"), "wikipedia").language
        == "de"
    )
    assert phrase_query(Query("How high is the highest mountain of Austria?"), "wikipedia").language == ""


# one list


def paper(url: str, doi: str = "", *, versions: tuple[str, ...] = (), standing: str = "", open_url: str = "") -> Hit:
    return Hit(url, "Tides", "tides", paper=Paper(doi, versions=versions, standing=standing, open_url=open_url))


def test_a_preprint_and_its_published_version_are_one_hit_with_what_both_say() -> None:
    published = paper("https://doi.org/10.5/a", "10.5/a", versions=("10.48550/arxiv.1",))
    preprint = paper("https://arxiv.org/abs/1", "10.48550/arxiv.1", open_url="https://arxiv.org/pdf/1")
    retracted = paper("https://publisher.example/a", "10.5/a", standing="retracted")
    (hit,) = fuse_hits({"crossref": [published], "arxiv": [preprint], "openalex": [retracted]}, "tides")
    assert hit.url == "https://doi.org/10.5/a"
    assert hit.paper == Paper(
        "10.5/a", open_url="https://arxiv.org/pdf/1", standing="retracted", versions=("10.48550/arxiv.1",)
    )


def test_copies_of_a_page_are_one_hit_and_count_for_each_service() -> None:
    both, one, other = (Hit(f"https://{name}.example/", "Tides") for name in ("both", "one", "other"))
    copy = Hit("http://both.example/", "Tides", "a longer text")
    assert [hit.url for hit in fuse_hits({"a": [one, both], "b": [other, copy]}, "tides")] == [both.url, one.url, other.url]
    assert fuse_hits({"a": [both], "b": [copy]}, "tides")[0].snippet == "a longer text"


def test_a_hit_without_a_word_of_the_question_comes_last() -> None:
    off, on = Hit("https://off.example/", "Cooking"), Hit("https://on.example/", "Harbour tides")
    assert fuse_hits({"a": [off], "b": [Hit("https://x.example/", "Baking"), on]}, "tide tables of a harbour")[0] == on


# asking


def outcome(*hits: Hit, code: str = "") -> SearchOutcome:
    failures = (Failure("x", code, "it is so"),) if code else ()
    return SearchOutcome("q", hits, "" if code else "x", failures)


async def asked(route: Route, answers: dict[str, SearchOutcome]) -> dict[str, str]:
    async def ask(choice: Choice) -> SearchOutcome:
        return answers[choice.service]

    return {answer.service: answer.code or str(answer.hits) for answer, _ in await ask_services(route, ask)}


def route(first: str, reserve: str = "") -> Route:
    return Route(tuple(Choice(n, "") for n in first.split()), tuple(Choice(n, "") for n in reserve.split()))


HIT = Hit("https://a.example/", "A")


async def test_a_service_that_fails_is_replaced_at_once() -> None:
    answers = {
        "a": outcome(code="rate_limit"),
        "b": outcome(HIT),
        "c": outcome(code="dns"),
        "d": outcome(HIT),
        "e": outcome(HIT),
    }
    assert await asked(route("a b", "c d e"), answers) == {"a": "rate_limit", "b": "1", "c": "dns", "d": "1"}


async def test_a_service_is_replaced_by_one_that_was_chosen_for_the_same_reason() -> None:
    first = (Choice("a", "papers"), Choice("b", "the general web"))
    reserve = (Choice("c", "papers"), Choice("d", "papers"), Choice("e", "the general web"))
    answers = {"a": outcome(HIT), "b": outcome(code="dns"), "e": outcome(code="dns"), "c": outcome(HIT)}
    assert await asked(Route(first, reserve), answers) == {"a": "1", "b": "dns", "e": "dns", "c": "1"}


async def test_a_service_that_has_nothing_is_replaced_only_while_there_is_nothing() -> None:
    assert await asked(route("a b", "c"), {"a": outcome(HIT), "b": outcome(), "c": outcome(HIT)}) == {"a": "1", "b": "0"}
    assert await asked(route("a b", "c"), {"a": outcome(), "b": outcome(), "c": outcome(HIT)}) == {"a": "0", "b": "0", "c": "1"}


async def test_a_late_service_is_not_waited_for_once_there_are_hits() -> None:
    async def ask(choice: Choice) -> SearchOutcome:
        if choice.service == "late":
            await asyncio.Event().wait()
        return outcome(HIT)

    answers = await ask_services(route("quick late"), ask, max_late_s=0.0)
    assert [(answer.service, answer.code) for answer, _ in answers] == [("quick", ""), ("late", "late")]


# the searcher over stand-ins


def searcher(stand_ins: StandIns, breaker: FileBreaker | None = None) -> Searcher:
    federation = stand_ins.federation()
    return Searcher(lambda: [federation], emit=QuietEmit(), clock=FakeClock(), breaker=breaker)


async def test_the_user_is_told_nothing_of_a_dead_service_while_others_answer() -> None:
    stand_ins = StandIns(FIND, dead=["duckduckgo"])
    found = await searcher(stand_ins).search(Query("moons of Mars"))
    assert (found.backend, found.failures) == ("services", ())
    assert found.hits[0].title == "Mars facts"
    assert {answer.service: answer.code for answer in found.asked}["duckduckgo"] == "network"
    assert len(found.asked) > 2  # somebody stands in for it


async def test_a_suspended_service_is_not_asked_and_replaced(tmp_path: Path) -> None:
    breaker = FileBreaker(tmp_path / "backends.json", clock=FakeClock())
    await breaker.record_failure("wikipedia", BackendError("too many", code="rate_limit"))
    stand_ins = StandIns(FIND)
    found = await searcher(stand_ins, breaker).search(Query("moons of Mars"))
    assert "wikipedia" not in stand_ins.called
    assert {answer.service: answer.code for answer in found.asked}["wikipedia"] == "suspended"
    assert found.hits


@pytest.mark.parametrize(
    "pair", list(combinations(("duckduckgo", "wikipedia", "marginalia", "mwmbl", "crossref"), 2)), ids="+".join
)
async def test_with_any_two_services_dead_a_question_still_has_its_page(pair: tuple[str, str]) -> None:
    found = await searcher(StandIns(FIND, dead=pair)).search(Query("moons of Mars Phobos Deimos"))
    assert found.hits[0].title == "Mars facts"


async def test_with_all_services_dead_each_reason_is_given() -> None:
    found = await searcher(StandIns(FIND, dead=SERVICES)).search(Query("moons of Mars"))
    assert (found.hits, found.backend) == ((), "")
    assert {failure.provider for failure in found.failures} >= {"duckduckgo", "wikipedia"}
    assert all(failure.code and failure.message for failure in found.failures)


class Misbehaving(StandIns):
    """Stand-ins of which one sends something else than its documented answer."""

    def __init__(self, service: str, status: int, headers: dict[str, str], body: bytes) -> None:
        super().__init__(FIND)
        self._service, self._sent = service, BackendResponse(status, headers, body)

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        return self._sent if service == self._service else await super().send(service, request)


BAD_ANSWERS = {
    "a web page": (200, {}, b"<!doctype html><html><body>Just a moment</body></html>", "web_page"),
    "an error inside": (200, {}, b'{"error": {"code": "internal", "info": "database locked"}}', "error_inside"),
    "10 MB": (200, {}, b'{"query": "' + b"x" * 10_000_000, "too_large"),
    "another schema": (200, {}, b'{"version": 9, "rows": []}', "bad_schema"),
    "a login": (302, {"location": "https://login.example/"}, b"", "redirect"),
    "a limit with a time": (429, {"retry-after": "30"}, b"", "rate_limit"),
    "a limit without a time": (429, {}, b"", "rate_limit"),
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
async def test_a_service_that_sends_something_else_is_named_and_the_others_answer(kind: str) -> None:
    status, headers, body, code = BAD_ANSWERS[kind]
    found = await searcher(Misbehaving("crossref", status, headers, body)).search(Query("papers on the moons of Mars"))
    assert {answer.service: answer.code for answer in found.asked}["crossref"] == code
    assert (found.hits[0].title, found.failures) == ("Mars facts", ())


# the whole engine


ASKED = [
    "What are the moons of Mars?",
    "papers on the moons of Mars",
    "latest news about Mars",
    "Where is Olympus Mons on Mars?",
    "github repository about the planet Mars",
    "what do people think about Mars",
    "books about Mars",
    "Which moons of Mars are in the paper of 1877?",
    "npm package about Mars moons",
    "Welche Monde hat der Mars?",
]


@pytest.mark.parametrize("question", [*ASKED[:3], *(pytest.param(question, marks=pytest.mark.long) for question in ASKED[3:])])
async def test_without_a_key_and_a_container_a_question_of_any_kind_is_answered(question: str, tmp_path: Path) -> None:
    with serve_services(FIND) as urls:
        config = Config(home=tmp_path, services="-duckduckgo", service_urls=urls, model="extractive")
        assert config.search_chain() == ("services",)
        async with Nexi(config, fetchers=[FakeWeb(TEXTS)]) as nexi, nexi.run(RunRequest(question)) as run:
            end = [event async for event in run][-1]
    assert isinstance(end, RunFinished)
    assert "Mars" in end.answer


async def test_a_local_question_reaches_none_of_them(tmp_path: Path) -> None:
    calls: list[str] = []

    def note(words: str) -> list[Hit]:
        calls.append(words)
        return []

    with serve_services(note) as urls:
        async with Nexi(Config(home=tmp_path, service_urls=urls, model="extractive")) as nexi:
            async with nexi.run(RunRequest("What are the moons of Mars?", scope="local")) as run:
                [event async for event in run]
            assert nexi.ports.with_config(nexi.config, is_offline=True).backends() == ()
    assert calls == []


def test_services_are_chosen_and_left_out_by_the_settings(tmp_path: Path) -> None:
    def chosen(value: str) -> set[str]:
        ports = Nexi(Config(home=tmp_path, services=value)).ports
        return set(ports._search_chain()["services"].members)

    assert chosen("") == set(SERVICES) - {"yacy", "unpaywall"}
    assert chosen("-gdelt,-github") == set(SERVICES) - {"yacy", "unpaywall", "gdelt", "github"}
    assert chosen("crossref,wikipedia") == {"crossref", "wikipedia"}
    with pytest.raises(ConfigError, match="no open service called 'gogle'"):
        chosen("gogle")
