"""Passing as Tavily: requests as its client makes them, responses and errors in its shapes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from nexi.apis import tavily
from nexi.errors import FetchError
from nexi.types import Hit
from tests.apis.search.support import HITS, PAGES, Backend, Fetcher, down, nexi
from tests.web.doors import client

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def ask(tmp_path: Path, body: Any, *backends: Any, **world: Any) -> dict[str, Any]:
    with client(tmp_path, *backends, **world) as http:
        got = http.post("/tavily/search", json=body)
    assert got.status_code == 200, got.text
    answer: dict[str, Any] = got.json()
    assert UUID.fullmatch(answer.pop("request_id"))
    assert answer.pop("response_time") >= 0
    return answer


def test_a_search_has_every_field(tmp_path: Path) -> None:
    assert ask(tmp_path, {"query": "bm25", "max_results": 1}) == {
        "query": "bm25",
        "follow_up_questions": None,
        "answer": None,
        "images": [],
        "results": [
            {
                "url": HITS[0].url,
                "title": HITS[0].title,
                "content": HITS[0].snippet,
                "score": 1.0,
                "raw_content": None,
            }
        ],
    }


def test_scores_fall_and_results_keep_their_order(tmp_path: Path) -> None:
    results = ask(tmp_path, {"query": "similarity settings bm25"})["results"]
    scores = [r["score"] for r in results]
    assert [r["url"] for r in results] == [hit.url for hit in HITS]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


def test_raw_content_is_the_page_and_null_where_it_could_not_be_read(tmp_path: Path) -> None:
    pages = {**PAGES, HITS[1].url: FetchError("gone", status=404)}
    answer = ask(tmp_path, {"query": "bm25", "max_results": 2, "include_raw_content": True}, fetcher=Fetcher(pages))
    assert [r["raw_content"] for r in answer["results"]] == [PAGES[HITS[0].url], None]
    assert [r["content"] for r in answer["results"]] == [HITS[0].snippet, HITS[1].snippet]


def test_an_advanced_search_gives_passages_of_the_pages(tmp_path: Path) -> None:
    body = {"query": "probabilistic retrieval framework", "search_depth": "advanced", "chunks_per_source": 2, "max_results": 1}
    content = ask(tmp_path, body)["results"][0]["content"]
    assert content == (
        "In information retrieval, Okapi BM25 is a ranking function. [...] "
        "It is based on the probabilistic retrieval framework developed in the 1970s and 1980s."
    )


@pytest.mark.parametrize("wanted", [True, "basic", "advanced"])
def test_an_answer_is_written_by_the_engine_without_numbers_of_sources(tmp_path: Path, wanted: object) -> None:
    answer = ask(tmp_path, {"query": "what is Okapi BM25 based on?", "include_answer": wanted})["answer"]
    assert "probabilistic retrieval framework" in answer
    assert "[1]" not in answer


def test_an_answer_that_cannot_be_had_is_null(tmp_path: Path) -> None:
    nothing = Fetcher({})
    assert ask(tmp_path, {"query": "what is bm25?", "include_answer": True}, fetcher=nothing)["answer"] is None


@pytest.mark.parametrize(
    ("asked", "period"),
    [
        ({"time_range": "week"}, "w"),
        ({"time_range": "y"}, "y"),
        ({"days": 3}, "w"),
        ({"days": 30}, "m"),
        ({"days": 9999}, ""),
        ({}, ""),
    ],
)
def test_a_time_range_reaches_the_backend(tmp_path: Path, asked: dict[str, Any], period: str) -> None:
    backend = Backend()
    ask(tmp_path, {"query": "bm25", "topic": "news", **asked}, backend)
    assert backend.asked[0].time_range == period


def test_domains_narrow_the_results(tmp_path: Path) -> None:
    backend = Backend()
    body = {"query": "bm25", "include_domains": ["wikipedia.org", "shop.example"], "exclude_domains": ["shop.example"]}
    answer = ask(tmp_path, body, backend)
    assert [r["url"] for r in answer["results"]] == [HITS[0].url]
    assert (backend.asked[0].sites, backend.asked[0].excluded_sites) == (("wikipedia.org", "shop.example"), ("shop.example",))


def test_results_of_a_known_day_outside_the_dates_are_left_out(tmp_path: Path) -> None:
    hits = [Hit(f"https://s{day}.example/", published=f"2026-01-{day}T10:00:00Z") for day in (10, 20, 30)]
    hits.append(Hit("https://undated.example/"))
    body = {"query": "x", "start_date": "2026-01-15", "end_date": "2026-01-20"}
    answer = ask(tmp_path, body, Backend(hits=hits))
    assert [r["url"] for r in answer["results"]] == ["https://s20.example/", "https://undated.example/"]
    assert answer["results"][0]["published_date"] == "2026-01-20T10:00:00Z"


def test_whatever_else_tavily_knows_is_accepted(tmp_path: Path) -> None:
    body = {
        "api_key": "tvly-x",
        "query": "bm25",
        "search_depth": "ultra-fast",
        "include_images": True,
        "include_image_descriptions": True,
        "include_favicon": True,
        "include_usage": True,
        "country": "germany",
        "auto_parameters": True,
        "exact_match": False,
        "language": "de",
        "fetch_timeout": 3.5,
    }
    answer = ask(tmp_path, body)
    assert (answer["images"], len(answer["results"])) == ([], 4)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "x", "max_results": 21}, "max_results"),
        ({"query": "x", "start_date": "soon"}, "start_date"),
        ({"query": "x", "start_date": "2026-02-01", "end_date": "2026-01-01"}, "end_date"),
    ],
)
def test_errors_have_the_shape_of_tavily(tmp_path: Path, body: Any, named: str) -> None:
    with client(tmp_path) as http:
        got = http.post("/tavily/search", json=body)
    detail = got.json()["detail"]
    assert (got.status_code, list(got.json()), list(detail), named in detail["error"]) == (400, ["detail"], ["error"], True)


def test_a_search_that_nobody_answered_is_an_error(tmp_path: Path) -> None:
    with client(tmp_path, Backend(errors=[down("searxng")])) as http:
        got = http.post("/tavily/search", json={"query": "x"})
    assert (got.status_code, "searxng is down" in got.json()["detail"]["error"]) == (502, True)


def test_a_search_without_results_is_an_answer(tmp_path: Path) -> None:
    assert ask(tmp_path, {"query": "x"}, Backend(hits=()))["results"] == []


# Extract


def extracted(tmp_path: Path, body: Any, **world: Any) -> dict[str, Any]:
    with client(tmp_path, **world) as http:
        got = http.post("/tavily/extract", json=body)
    assert got.status_code == 200, got.text
    answer: dict[str, Any] = got.json()
    assert UUID.fullmatch(answer.pop("request_id"))
    assert answer.pop("response_time") >= 0
    return answer


@pytest.mark.parametrize("urls", [HITS[0].url, [HITS[0].url], [HITS[0].url, HITS[0].url]])
def test_pages_are_extracted(tmp_path: Path, urls: object) -> None:
    page = {"url": HITS[0].url, "raw_content": PAGES[HITS[0].url], "images": []}
    assert extracted(tmp_path, {"urls": urls}) == {"results": [page], "failed_results": []}


def test_pages_that_cannot_be_read_are_named_with_their_reason(tmp_path: Path) -> None:
    answer = extracted(tmp_path, {"urls": [HITS[2].url, "https://nowhere.example/", "not a url"]})
    assert [r["url"] for r in answer["results"]] == [HITS[2].url]
    assert answer["failed_results"] == [
        {"url": "https://nowhere.example/", "error": "the page does not exist"},
        {"url": "not a url", "error": "'not a url' is not the address of a web page"},
    ]


def test_a_query_asks_for_passages(tmp_path: Path) -> None:
    body = {"urls": [HITS[0].url], "query": "probabilistic framework", "chunks_per_source": 1}
    assert extracted(tmp_path, body)["results"][0]["raw_content"] == PAGES[HITS[0].url].split("\n\n")[2]


def test_a_page_that_takes_too_long_is_a_failed_result(tmp_path: Path) -> None:
    app = Starlette(routes=tavily.CONTRACT.routes)
    app.state.extract_timeouts_s = {"basic": 0.02}
    app.state.nexi = nexi(tmp_path, fetcher=Fetcher({"https://slow.example/": None}))
    with TestClient(app) as http:
        answer = http.post("/tavily/extract", json={"urls": ["https://slow.example/"]}).json()
    assert answer["results"] == []
    assert [f["url"] for f in answer["failed_results"]] == ["https://slow.example/"]


@pytest.mark.parametrize("body", [{}, {"urls": []}, {"urls": ["x"] * 21}, {"urls": 7}, {"urls": ["x"], "timeout": 0}, []])
def test_a_request_for_pages_that_cannot_be_used_is_refused(tmp_path: Path, body: Any) -> None:
    with client(tmp_path) as http:
        got = http.post("/tavily/extract", json=body)
    assert (got.status_code, list(got.json()), list(got.json()["detail"])) == (400, ["detail"], ["error"])
