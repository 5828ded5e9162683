"""The open services: how each is asked, how its documented answer reads, and what is said when an answer is not one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexi.backends import BACKENDS, Settings, create_backend, require_backend
from nexi.backends.sender import MAX_BODY, BackendRequest, BackendResponse, Sender
from nexi.backends.services import FORMS, Caller, ServiceDialect
from nexi.errors import BackendError, ConfigError
from nexi.routing.table import SERVICES
from nexi.types import Hit, Query
from nexi.urls import is_web_url
from tests.backends.service_answers import CASES

every_service = pytest.mark.parametrize("name", FORMS)


def dialect(name: str, *, key: str = "", contact: str = "") -> ServiceDialect:
    return ServiceDialect(name, FORMS[name], Caller(FORMS[name].base, key, contact))


def body(value: object) -> bytes:
    return json.dumps(value).encode()


def test_every_service_has_a_row_in_the_table_and_a_documented_answer() -> None:
    assert sorted(CASES) == sorted(FORMS)
    assert sorted({*FORMS, *(name for name in SERVICES if name in BACKENDS)}) == sorted(SERVICES)
    assert len(SERVICES) >= 20


def test_the_handbook_says_of_every_service_its_use_its_terms_and_when_it_was_last_called() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "sources.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| [`")]
    assert [[cells[0].split("`")[1], *cells[1:4], cells[-1]] for cells in rows] == [
        [name, service.good_for, service.terms, _describe_rate(service.interval_s), service.last_called or "never"]
        for name, service in SERVICES.items()
    ]


def _describe_rate(interval_s: float) -> str:
    return f"one request in {interval_s:g} s" if interval_s else "as you like"


@every_service
def test_the_documented_answer_becomes_hits(name: str) -> None:
    answer, hits = CASES[name]
    assert dialect(name).parse(200, {}, body(answer)) == hits
    assert all(is_web_url(hit.url) for hit in hits)


@every_service
def test_a_request_goes_to_the_service_with_the_words_of_the_query(name: str) -> None:
    request = dialect(name).request(Query("harbour", count=7))
    assert request.url.startswith(FORMS[name].base)
    assert "harbour" in request.url + str(request.params)
    assert request.timeout_s == 10.0


@every_service
def test_a_web_page_in_the_place_of_data_is_said_to_be_one(name: str) -> None:
    with pytest.raises(BackendError, match="sent a web page instead of data") as caught:
        dialect(name).parse(200, {}, b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>...</body></html>")
    assert (caught.value.code, caught.value.cause) == ("web_page", "a login, a challenge or a notice: 'Sign in'")


@every_service
def test_an_error_inside_a_200_is_an_error(name: str) -> None:
    with pytest.raises(BackendError, match="reports an error: the index is being rebuilt") as caught:
        dialect(name).parse(200, {}, body({"error": {"message": "the index is being rebuilt"}}))
    assert caught.value.code == "error_inside"


@every_service
def test_a_limit_that_is_told_inside_a_200_is_a_limit(name: str) -> None:
    for answer in (body({"error": "API rate limit exceeded"}), b"Please limit requests to one every 5 seconds."):
        with pytest.raises(BackendError, match="limits how often it may be asked") as caught:
            dialect(name).parse(200, {}, answer)
        assert caught.value.code == "rate_limit"


@every_service
def test_an_answer_of_10_megabytes_is_not_read_to_its_end_and_said_to_be_too_large(name: str) -> None:
    with pytest.raises(BackendError, match="sent too much") as caught:
        dialect(name).parse(200, {}, (b'{"results": ["' + b"x" * 10_000_000)[:MAX_BODY])
    assert caught.value.code == "too_large"


@every_service
def test_an_answer_of_another_version_is_said_to_be_one(name: str) -> None:
    with pytest.raises(BackendError, match="in a form that nexi does not know") as caught:
        dialect(name).parse(200, {}, body({"schema": 9, "payload": {"documents": []}}))
    assert caught.value.code == "bad_schema"


@every_service
def test_a_redirect_to_a_login_is_not_followed_and_said(name: str) -> None:
    with pytest.raises(BackendError, match="sends us elsewhere") as caught:
        dialect(name).parse(302, {"location": "https://login.example/"}, b"")
    assert (caught.value.code, caught.value.cause) == ("redirect", "HTTP 302 to https://login.example/")


@every_service
@pytest.mark.parametrize(("headers", "wait"), [({"retry-after": "30"}, 30.0), ({}, None)])
def test_too_many_requests_are_a_limit_with_the_time_that_the_service_asks_for(
    name: str, headers: dict[str, str], wait: float | None
) -> None:
    with pytest.raises(BackendError) as caught:
        dialect(name).parse(429, headers, b"")
    assert (caught.value.code, caught.value.retry_after) == ("rate_limit", wait)


@every_service
@pytest.mark.parametrize("junk", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null", b"3", b'"text"'])
def test_no_answer_makes_a_reader_crash(name: str, junk: bytes) -> None:
    with pytest.raises(BackendError):
        dialect(name).parse(200, {}, junk)


@every_service
def test_rows_of_odd_values_are_left_out(name: str) -> None:
    answer, _ = CASES[name]
    spoiled = json.loads(body(answer).decode(), object_hook=lambda row: dict.fromkeys(row, 3) if len(row) > 3 else row)
    try:
        hits = dialect(name).parse(200, {}, body(spoiled))
    except BackendError:
        return
    assert all(is_web_url(hit.url) for hit in hits)


@pytest.mark.parametrize(
    ("name", "text", "url", "params"),
    [
        ("crossref", "10.5555/Tides.1", "https://api.crossref.org/works/10.5555%2Ftides.1", (("mailto", "a@b.example"),)),
        ("wayback", "tides.example 19990101", "https://archive.org/wayback/available",
         (("url", "tides.example"), ("timestamp", "19990101"))),
        ("openalex", "10.5555/Tides.1", "https://api.openalex.org/works/doi:10.5555/tides.1", (("mailto", "a@b.example"),)),
        ("pypi", "HTTPX", "https://pypi.org/pypi/httpx/json", ()),
        ("doaj", "open/wells", "https://doaj.org/api/search/articles/open%20wells", (("pageSize", "10"),)),
    ],
)  # fmt: skip
def test_a_query_that_names_something_is_asked_by_its_name(
    name: str, text: str, url: str, params: tuple[tuple[str, str], ...]
) -> None:
    request = dialect(name, contact="a@b.example").request(Query(text))
    assert (request.url, request.params) == (url, params)


@pytest.mark.parametrize("name", ["openalex", "crossref", "europepmc", "pubmed", "nominatim"])
def test_a_contact_is_told_to_services_that_ask_for_one(name: str) -> None:
    assert "a@b.example" in str(dialect(name, contact="a@b.example").request(Query("x")).params)
    assert "mail" not in str(dialect(name).request(Query("x")).params)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("openalex", ("api_key", "secret")),
        ("pubmed", ("api_key", "secret")),
        ("semanticscholar", ("x-api-key", "secret")),
        ("github", ("Authorization", "Bearer secret")),
        ("marginalia", ("API-Key", "secret")),
    ],
)
def test_a_key_goes_where_the_documentation_says(name: str, place: tuple[str, str]) -> None:
    request = dialect(name, key="secret").request(Query("x"))
    assert place in [*request.params, *request.headers.items()]
    assert "secret" not in str(dialect(name).request(Query("x")))


@pytest.mark.parametrize(
    ("name", "answer"),
    [("semanticscholar", {"total": 0, "offset": 0}), ("gdelt", {}), ("wayback", {"url": "x", "archived_snapshots": {}})],
)
def test_an_answer_without_results_is_empty(name: str, answer: object) -> None:
    assert dialect(name).parse(200, {}, body(answer)) == []


@pytest.mark.parametrize("name", ["pypi", "crossref", "openalex"])
def test_a_name_that_leads_nowhere_is_empty_and_no_failure(name: str) -> None:
    assert dialect(name).parse(404, {}, b'{"message": "Not Found"}') == []


def test_code_is_searched_with_a_key_alone() -> None:
    symbol = Query("where is json.loads used")
    assert dialect("github").request(symbol).url == "https://api.github.com/search/repositories"
    assert dialect("github", key="k").request(symbol).url == "https://api.github.com/search/code"
    assert dict(dialect("github").request(Query("licence of ada/tides")).params)["q"] == "repo:ada/tides"


class Scripted(Sender):
    def __init__(self, *answers: object) -> None:
        super().__init__(user_agent="test")
        self.answers, self.requests = list(answers), list[BackendRequest]()

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        self.requests.append(request)
        return BackendResponse(200, {}, body(self.answers.pop(0)))


async def test_pubmed_is_asked_for_numbers_and_then_for_their_summaries() -> None:
    sender = Scripted({"esearchresult": {"count": "1", "idlist": ["100"]}}, CASES["pubmed"][0])
    hits = await create_backend("pubmed", Settings(), sender).search(Query("salt sleep"))
    assert hits == CASES["pubmed"][1]
    assert [request.url.rpartition("/")[2] for request in sender.requests] == ["esearch.fcgi", "esummary.fcgi"]
    assert ("id", "100") in sender.requests[1].params


async def test_pubmed_without_numbers_is_empty_and_asks_no_further() -> None:
    sender = Scripted({"esearchresult": {"count": "0", "idlist": []}})
    assert await create_backend("pubmed", Settings(), sender).search(Query("xyzzy")) == []
    assert len(sender.requests) == 1


async def test_an_error_in_pubmeds_first_answer_is_said() -> None:
    with pytest.raises(BackendError, match="PubMed limits how often"):
        await create_backend("pubmed", Settings(), Scripted({"error": "API rate limit exceeded"})).search(Query("x"))


async def test_a_service_can_be_asked_at_another_address() -> None:
    sender = Scripted(CASES["openlibrary"][0])
    hits = await create_backend("openlibrary", Settings("http://127.0.0.1:9/mirror/"), sender).search(Query("tide"))
    assert sender.requests[0].url == "http://127.0.0.1:9/mirror/search.json"
    assert [hit.title for hit in hits] == ["The Tide Book"]


def test_a_yacy_peer_is_asked_only_at_an_address_that_is_set() -> None:
    with pytest.raises(ConfigError, match="yacy backend has no address"):
        require_backend("yacy", Settings())
    assert require_backend("yacy", Settings("http://127.0.0.1:8090"))


def test_no_hit_without_an_address_or_a_title() -> None:
    nothing: list[Hit] = []
    assert (
        dialect("openalex").parse(200, {}, body({"results": [{"display_name": "No address"}, {"id": "https://x.example"}]}))
        == nothing
    )
