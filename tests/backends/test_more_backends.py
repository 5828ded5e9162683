"""The backends beside SearXNG: how they are asked and how their documented answers and refusals read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nexi.backends import BACKENDS, Settings, create_backend
from nexi.backends.arxiv import Arxiv
from nexi.backends.duckduckgo import DuckDuckGo
from nexi.backends.jina import Jina
from nexi.backends.keyed import KeyedService
from nexi.backends.sender import BackendDialect, BackendRequest, BackendResponse, Sender
from nexi.backends.stackexchange import StackExchange
from nexi.backends.wikipedia import Wikipedia
from nexi.errors import BackendError, ConfigError
from nexi.types import Hit, Paper, Query
from tests.raising import has_code

DIALECTS: list[BackendDialect] = [
    Wikipedia(),
    Jina("key"),
    StackExchange(),
    Arxiv(),
    KeyedService("tavily", "key"),
    KeyedService("brave", "key"),
    KeyedService("exa", "key"),
    KeyedService("serper", "key"),
    KeyedService("firecrawl", "key"),
]


def body(value: object) -> bytes:
    return json.dumps(value).encode()


# every dialect


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize(
    ("status", "retryable"), [(401, False), (403, False), (429, True), (500, True), (503, True), (404, False)]
)
def test_a_refusal_has_a_code_a_cause_and_a_fix(dialect: BackendDialect, status: int, retryable: bool) -> None:
    with pytest.raises(BackendError) as caught:
        dialect.parse(status, {"retry-after": "7"}, b'{"message": "because"}')
    error = caught.value
    assert (bool(error.code), f"HTTP {status}: because" in error.cause, bool(error.fix)) == (True, True, True)
    assert error.retryable is retryable
    assert error.retry_after == (7.0 if status == 429 or status >= 500 else None)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("junk", [b"", b"<html>hello</html>", b"[1, 2]", b"{", b"\xff\xfe", b"[" * 100_000])
def test_an_answer_that_cannot_be_read_is_a_failure_or_empty_and_never_a_crash(dialect: BackendDialect, junk: bytes) -> None:
    code = "none"
    try:
        hits = dialect.parse(200, {}, junk)
    except BackendError as error:
        hits, code = [], error.code
    assert (hits, code in ("none", "bad_json")) == ([], True)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("odd", [{}, {"data": None}, {"query": []}, {"items": [1, {"link": 3}]}, {"data": [{"url": 1}]}])
def test_json_of_another_shape_gives_no_hits(dialect: BackendDialect, odd: dict[str, Any]) -> None:
    if dialect.name != "arxiv":
        assert dialect.parse(200, {}, body(odd)) == []


async def test_every_name_of_the_table_can_be_made() -> None:
    sender = Sender(user_agent="test")
    made = [create_backend(name, Settings("http://127.0.0.1:9", "key", root="."), sender).name for name in BACKENDS]
    await sender.aclose()
    assert made == list(BACKENDS)


# Wikipedia


def test_wikipedia_is_asked_in_the_language_of_the_query() -> None:
    request = Wikipedia().request(Query("Mond", count=5, language="de-DE"))
    assert request.url == "https://de.wikipedia.org/w/api.php"
    assert dict(request.params)["gsrsearch"] == "Mond"
    assert dict(request.params)["gsrlimit"] == "5"


def test_a_strange_language_means_english() -> None:
    assert Wikipedia().request(Query("x", language="../evil")).url == "https://en.wikipedia.org/w/api.php"


def test_wikipedia_pages_come_in_the_order_of_their_index() -> None:
    pages = [
        {
            "pageid": 2,
            "title": "Far",
            "index": 2,
            "fullurl": "https://en.wikipedia.org/wiki/Far",
            "extract": "Far  is &amp; far.",
        },
        {"pageid": 1, "title": "Moon", "index": 1, "fullurl": "https://en.wikipedia.org/wiki/Moon"},
    ]
    assert Wikipedia().parse(200, {}, body({"batchcomplete": True, "query": {"pages": pages}})) == [
        Hit("https://en.wikipedia.org/wiki/Moon", "Moon", "", "", "wikipedia"),
        Hit("https://en.wikipedia.org/wiki/Far", "Far", "Far is & far.", "", "wikipedia"),
    ]


def test_no_wikipedia_page_is_empty_on_purpose() -> None:
    assert Wikipedia().parse(200, {}, body({"batchcomplete": True})) == []


def test_an_error_of_wikipedia_in_a_good_status_is_told() -> None:
    with pytest.raises(BackendError, check=has_code("bad_query")):
        Wikipedia().parse(200, {}, body({"error": {"code": "cirrussearch-query-too-long", "info": "The query is too long"}}))


# Jina


def test_jina_gets_its_key_and_sites_as_operators() -> None:
    request = Jina("secret").request(Query("bots", sites=("core.telegram.org",), excluded_sites=("x.com",)))
    assert request.headers["Authorization"] == "Bearer secret"
    assert dict(request.params)["q"] == "bots site:core.telegram.org -site:x.com"


def test_jina_answers_in_json() -> None:
    data = {"code": 200, "data": [{"title": "T", "url": "https://a.example", "description": "D", "date": "2024-01-01"}]}
    assert Jina("k").parse(200, {}, body(data)) == [Hit("https://a.example", "T", "D", "2024-01-01", "jina")]


def test_jina_answers_in_text() -> None:
    text = "[1] Title: T\n[1] URL Source: https://a.example\n[1] Description: D\n\n[2] Title: no url\n"
    assert Jina("k").parse(200, {}, text.encode()) == [Hit("https://a.example", "T", "D", "", "jina")]


def test_jina_without_results_is_empty_on_purpose() -> None:
    assert Jina("k").parse(422, {}, b'{"message": "No search results available for query x"}') == []


def test_a_wrong_jina_key_names_the_setting() -> None:
    with pytest.raises(BackendError) as caught:
        Jina("bad").parse(401, {}, b'{"message": "Invalid API key"}')
    assert (caught.value.code, "JINA_API_KEY" in caught.value.fix) == ("wrong_key", True)


# Stack Exchange


def test_stack_exchange_asks_the_site_of_the_query() -> None:
    assert dict(StackExchange().request(Query("x", sites=("unix.stackexchange.com",))).params)["site"] == "unix"
    assert dict(StackExchange().request(Query("x")).params)["site"] == "stackoverflow"
    assert dict(StackExchange().request(Query("x", sites=("mathoverflow.net",))).params)["site"] == "mathoverflow.net"


def test_stack_exchange_questions_tell_how_well_they_were_answered() -> None:
    item = {
        "title": "A &lt;b&gt;",
        "link": "https://stackoverflow.com/q/1",
        "score": 5,
        "answer_count": 2,
        "body": "<p>Why?</p>",
        "creation_date": 0,
    }
    assert StackExchange().parse(200, {}, body({"items": [item]})) == [
        Hit("https://stackoverflow.com/q/1", "A <b>", "2 answers, score 5. Why?", "1970-01-01", "stackexchange")
    ]


class StackExchangeReplies(Sender):
    """A sender with two questions, and the accepted answer of the first unless it fails."""

    def __init__(self, answers: BackendResponse) -> None:
        super().__init__(user_agent="test")
        self.answers = answers
        self.sent: list[BackendRequest] = []

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        self.sent.append(request)
        if "/answers/" in request.url:
            return self.answers
        first = {"title": "A", "link": "https://superuser.com/q/1", "answer_count": 2, "score": 3, "accepted_answer_id": 11}
        second = {"title": "B", "link": "https://superuser.com/q/2"}
        return BackendResponse(200, {}, body({"items": [first, second]}))


async def test_stack_exchange_hits_hold_the_text_of_the_accepted_answer() -> None:
    items = [{"answer_id": 11, "body": "<p>Use &lt;Alt&gt;.</p>"}, {"answer_id": "x"}, {"answer_id": 12, "body": "other"}]
    sender = StackExchangeReplies(BackendResponse(200, {}, body({"items": items})))
    hits = await create_backend("stackexchange", Settings(api_key="k"), sender).search(Query("x", sites=("superuser.com",)))
    assert hits == [
        Hit("https://superuser.com/q/1", "A", "2 answers, score 3. \nAccepted answer: Use <Alt>.", "", "stackexchange"),
        Hit("https://superuser.com/q/2", "B", "0 answers, score 0. ", "", "stackexchange"),
    ]
    asked = sender.sent[1]
    assert asked.url == "https://api.stackexchange.com/2.3/answers/11"
    assert dict(asked.params) == {"pagesize": "1", "site": "superuser", "filter": "withbody", "key": "k"}


@pytest.mark.parametrize("answers", [BackendResponse(500, {}, b""), BackendResponse(200, {}, b"no JSON")])
async def test_stack_exchange_questions_stand_alone_where_their_answers_cannot_be_had(answers: BackendResponse) -> None:
    hits = await create_backend("stackexchange", Settings(), StackExchangeReplies(answers)).search(Query("x"))
    assert [hit.snippet for hit in hits] == ["2 answers, score 3. ", "0 answers, score 0. "]


def test_a_throttled_stack_exchange_says_so() -> None:
    with pytest.raises(BackendError) as caught:
        StackExchange().parse(400, {}, b'{"error_id": 502, "error_name": "throttle_violation"}')
    assert caught.value.code == "rate_limit"


# arXiv


def test_arxiv_is_a_feed() -> None:
    feed = (
        '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/abs/1706.03762v7</id>'
        "<published>2017-06-12T17:57:34Z</published>"
        "<title>Attention\n  Is All You Need</title><summary> We  propose </summary></entry></feed>"
    )
    assert Arxiv().parse(200, {}, feed.encode()) == [
        Hit(
            "https://arxiv.org/abs/1706.03762v7",
            "Attention Is All You Need",
            "We propose",
            "2017-06-12T17:57:34Z",
            "arxiv",
            Paper("10.48550/arxiv.1706.03762", (), "arXiv", "2017"),
        )
    ]


# DuckDuckGo


async def test_duckduckgo_rows_become_hits() -> None:
    asked: list[Any] = []

    def ask(text: str, **options: Any) -> list[dict[str, Any]]:
        asked.append((text, options))
        return [{"title": "T", "href": "https://a.example", "body": "B"}, {"title": "no link"}]

    hits = await DuckDuckGo(ask=ask).search(Query("q", count=3, time_range="w", language="de-AT", sites=("a.example",)))
    assert hits == [Hit("https://a.example", "T", "B", "", "duckduckgo")]
    assert asked == [("q site:a.example", {"region": "at-de", "timelimit": "w", "max_results": 3, "backend": "duckduckgo"})]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("No results found."), "empty_or_blocked"),
        (type("RatelimitException", (Exception,), {})("202"), "rate_limit"),
        (type("TimeoutException", (Exception,), {})("slow"), "timeout"),
        (
            type("TimeoutException", (Exception,), {})("DNSError('error sending request > error resolving DNS > timed out')"),
            "dns",
        ),
        (OSError("no route"), "network"),
    ],
)
async def test_duckduckgo_failures_are_told_apart_as_far_as_they_can_be(error: Exception, code: str) -> None:
    def ask(text: str, **options: Any) -> list[dict[str, Any]]:
        raise error

    with pytest.raises(BackendError) as caught:
        await DuckDuckGo(ask=ask).search(Query("q"))
    assert (caught.value.code, bool(caught.value.fix)) == (code, True)


# the services with a key, from their documentation


@pytest.mark.parametrize(
    ("dialect", "answer", "hit"),
    [
        (
            KeyedService("tavily", "k"),
            {"query": "q", "results": [{"title": "T", "url": "https://a.example", "content": "C", "score": 0.9}]},
            Hit("https://a.example", "T", "C", "", "tavily"),
        ),
        (
            KeyedService("brave", "k"),
            {
                "web": {
                    "results": [{"title": "T", "url": "https://a.example", "description": "<strong>C</strong>", "age": "2024"}]
                }
            },
            Hit("https://a.example", "T", "C", "2024", "brave"),
        ),
        (
            KeyedService("exa", "k"),
            {"results": [{"title": "T", "url": "https://a.example", "publishedDate": "2024-01-01", "text": "C"}]},
            Hit("https://a.example", "T", "C", "2024-01-01", "exa"),
        ),
        (
            KeyedService("serper", "k"),
            {"organic": [{"title": "T", "link": "https://a.example", "snippet": "C", "date": "1 Jan 2024", "position": 1}]},
            Hit("https://a.example", "T", "C", "1 Jan 2024", "serper"),
        ),
        (
            KeyedService("firecrawl", "k"),
            {"success": True, "data": {"web": [{"title": "T", "url": "https://a.example", "description": "C"}]}},
            Hit("https://a.example", "T", "C", "", "firecrawl"),
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_documented_answer_becomes_a_hit(dialect: BackendDialect, answer: dict[str, Any], hit: Hit) -> None:
    assert dialect.parse(200, {}, body(answer)) == [hit]


@pytest.mark.parametrize(
    "dialect",
    [
        KeyedService("tavily", "sk-1"),
        KeyedService("brave", "sk-1"),
        KeyedService("exa", "sk-1"),
        KeyedService("serper", "sk-1"),
        KeyedService("firecrawl", "sk-1"),
        Jina("sk-1"),
    ],
    ids=lambda d: d.name,
)
def test_the_key_goes_into_a_header_and_filters_into_the_request(dialect: BackendDialect) -> None:
    request = dialect.request(Query("q", count=7, sites=("a.example",), time_range="w"))
    sent = json.dumps([request.json, request.params])
    assert any("sk-1" in value for value in request.headers.values())
    assert ("sk-1" in request.url + sent, "a.example" in sent) == (False, True)


def test_a_backend_without_its_key_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, check=has_code("config", "TAVILY_API_KEY")):
        create_backend("tavily", Settings(), Sender(user_agent="test"))
