"""SearXNG's answers and refusals, read without a network. The bodies have the shape of a real instance's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nexi.backends.searxng import Searxng
from nexi.backends.sender import BackendRequest
from nexi.errors import BackendError
from nexi.types import Hit, Query

SEARXNG = Searxng("http://search.test:8080/", timeout_s=7.0)
JSON = {"content-type": "application/json"}
HTML = {"content-type": "text/html; charset=utf-8"}


def answer(results: list[Any], **more: Any) -> bytes:
    empty: dict[str, Any] = {"answers": [], "corrections": [], "infoboxes": [], "suggestions": [], "unresponsive_engines": []}
    return json.dumps({"query": "q", "results": results, **empty, **more}).encode()


def refusal(status: int, body: bytes = b"", headers: dict[str, str] = HTML) -> BackendError:
    with pytest.raises(BackendError) as caught:
        SEARXNG.parse(status, headers, body)
    assert caught.value.message
    assert caught.value.cause
    assert caught.value.fix
    return caught.value


def test_a_query_becomes_one_request() -> None:
    assert SEARXNG.request(Query("bm25 ranking")) == BackendRequest(
        url="http://search.test:8080/search",
        params=(("q", "bm25 ranking"), ("format", "json"), ("pageno", "1")),
        headers={"Accept": "application/json, text/html;q=0.5", "Accept-Language": "en"},
        timeout_s=7.0,
    )


def test_sites_time_and_language_go_where_searxng_has_them() -> None:
    query = Query("x", sites=("a.test", "b.test"), excluded_sites=("c.test",), time_range="w", language="de")
    assert dict(SEARXNG.request(query).params) == {
        "q": "x site:a.test OR site:b.test -site:c.test",
        "format": "json",
        "pageno": "1",
        "language": "de",
        "time_range": "week",
    }


@pytest.mark.parametrize(("given", "sent"), [("day", "day"), ("Y", "year"), ("decade", None), ("", None)])
def test_a_time_range_it_does_not_know_is_left_out(given: str, sent: str | None) -> None:
    assert dict(SEARXNG.request(Query("x", time_range=given)).params).get("time_range") == sent


def test_a_focus_becomes_categories_or_a_word_of_the_query() -> None:
    papers, docs = (dict(SEARXNG.request(Query("heat", focus=focus)).params) for focus in ("papers", "docs"))
    assert (papers["q"], papers["categories"]) == ("heat", "science")
    assert (docs["q"], "categories" in docs) == ("heat documentation", False)


def test_a_query_cannot_be_a_command_that_leads_away() -> None:
    assert dict(SEARXNG.request(Query("!!w bm25")).params)["q"] == "w bm25"


@pytest.mark.parametrize(
    "base",
    ["http://s.test", "http://s.test/", "http://s.test/search", "http://s.test/search/", "http://s.test/search?q=<query>"],
)
def test_an_instance_may_be_named_by_any_of_its_urls(base: str) -> None:
    assert Searxng(base).request(Query("x")).url == "http://s.test/search"


def test_an_instance_below_a_path_stays_there() -> None:
    assert Searxng("http://s.test/searxng/").request(Query("x")).url == "http://s.test/searxng/search"


def test_results_become_hits_in_their_order() -> None:
    body = answer(
        [
            {
                "url": "https://docs.test/bm25",
                "title": "Okapi  BM25",
                "content": "A ranking\nfunction.",
                "engine": "one",
                "publishedDate": None,
                "pubdate": "2026-01-05 10:00:00+0000",
            },
            {"url": "https://b.test/", "title": "B", "content": "", "publishedDate": "2026-03-11T12:00:00+00:00", "score": 1.0},
        ]
    )
    assert SEARXNG.parse(200, JSON, body) == [
        Hit("https://docs.test/bm25", "Okapi BM25", "A ranking function.", "2026-01-05 10:00:00+0000", "searxng"),
        Hit("https://b.test/", "B", "", "2026-03-11T12:00:00+00:00", "searxng"),
    ]


def test_searx_1_1_reads_the_same() -> None:
    body = answer(
        [{"url": "https://a.test/", "title": "A", "publishedDate": "Jan 5, 2026", "pretty_url": "x"}], number_of_results=0
    )
    assert SEARXNG.parse(200, JSON, body) == [Hit("https://a.test/", "A", "", "Jan 5, 2026", "searxng")]


def test_results_that_are_no_results_are_skipped() -> None:
    body = answer([None, "x", {}, {"url": None}, {"url": ""}, {"url": "https://a.test/", "title": 5, "content": None}])
    assert SEARXNG.parse(200, JSON, body) == [Hit("https://a.test/", backend="searxng")]


def test_no_results_and_no_complaint_is_empty_on_purpose() -> None:
    assert SEARXNG.parse(200, JSON, answer([])) == []


def test_hits_count_although_some_engines_failed() -> None:
    body = answer([{"url": "https://a.test/", "title": "A"}], unresponsive_engines=[["slow", "timeout"]])
    assert len(SEARXNG.parse(200, JSON, body)) == 1


def test_all_engines_failing_is_said_with_their_reasons() -> None:
    error = refusal(200, answer([], unresponsive_engines=[["b", "timeout"], ["a", "HTTP error"]]), JSON)
    assert (error.code, error.cause, error.retryable) == ("engines_suspended", "a: HTTP error, b: timeout", True)


def test_suspended_engines_are_not_asked_again_at_once() -> None:
    error = refusal(200, answer([], unresponsive_engines=[["a", "Suspended: too many requests"]]), JSON)
    assert (error.code, error.retryable) == ("engines_suspended", False)


def test_captchas_have_their_own_code() -> None:
    body = answer([], unresponsive_engines=[["a", "CAPTCHA"], ["b", "Suspended: CAPTCHA"]])
    assert refusal(200, body, JSON).code == "captcha"


@pytest.mark.parametrize(
    ("status", "body", "headers", "code"),
    [
        (403, b"<!doctype html><title>403 Forbidden</title>", HTML, "json_disabled"),
        (429, b"Too Many Requests", HTML, "limiter"),
        (404, b"nothing here", HTML, "wrong_url"),
        (302, b"", HTML, "wrong_url"),
        (200, b"<html>a web page</html>", HTML, "wrong_url"),
        (200, b" <html>", {}, "wrong_url"),
        (200, b"[]", JSON, "wrong_url"),
        (200, b'{"hello": "world"}', JSON, "wrong_url"),
        (200, b'{"results": [', JSON, "bad_json"),
        (200, b"\xff\xfe", JSON, "bad_json"),
        (200, b"[" * 100_000, JSON, "bad_json"),
        (200, b"", JSON, "bad_json"),
        (500, b"oops", HTML, "server_error"),
        (502, b"", HTML, "server_error"),
        (400, b'{"error": "Invalid value decade for parameter time_range"}', JSON, "bad_query"),
        (400, b"<html>", HTML, "bad_query"),
    ],
)
def test_every_failure_has_a_code_a_cause_and_a_fix(status: int, body: bytes, headers: dict[str, str], code: str) -> None:
    assert refusal(status, body, headers).code == code


def test_the_reason_of_a_bad_query_is_passed_on() -> None:
    error = refusal(400, b'{"error": "No query"}', JSON)
    assert (error.cause, error.actor) == ("HTTP 400: No query", "model")


AT = "Fri, 02 Jan 2026 03:04:05 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:09 GMT", "date": AT}, 4.0),
        ({"retry-after-ms": "300"}, 0.3),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_limiters_own_wish_is_kept_and_may_be_granted(headers: dict[str, str], seconds: float | None) -> None:
    error = refusal(429, headers=headers)
    assert (error.retry_after, error.retryable) == (seconds, seconds is not None)
