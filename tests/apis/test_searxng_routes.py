"""Passing as a SearXNG: what clients send, and every field they look for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from nexi.apis import searxng
from nexi.backends.searxng import Searxng
from nexi.types import Hit
from tests.apis.search.support import HITS, Backend, Stuck, down, nexi
from tests.web.doors import client

FORM = "application/x-www-form-urlencoded"
EMPTY: dict[str, Any] = {"answers": [], "corrections": [], "infoboxes": [], "suggestions": [], "unresponsive_engines": []}
MANY = [Hit(f"https://site{n}.example/", f"Site {n}", f"Snippet {n}") for n in range(25)]


def test_an_answer_has_every_field(tmp_path: Path) -> None:
    with client(tmp_path, Backend(hits=HITS[2:3])) as http:
        got = http.get("/searxng/search", params={"q": "bm25", "format": "json"})
    assert (got.status_code, got.headers["content-type"]) == (200, "application/json")
    assert got.json() == {
        "query": "bm25",
        "number_of_results": 1,
        "results": [
            {
                "url": "https://docs.example/similarity",
                "title": "Similarity settings",
                "content": "The default algorithm is BM25.",
                "engine": "searxng",
                "engines": ["searxng"],
                "category": "general",
                "score": 1.0,
                "positions": [1],
                "publishedDate": "2025-11-02",
                "thumbnail": "",
                "img_src": "",
                "template": "default.html",
                "parsed_url": ["https", "docs.example", "/similarity", "", "", ""],
            }
        ],
        **EMPTY,
    }


@pytest.mark.parametrize("path", ["/searxng/search", "/searxng/", "/searxng"])
@pytest.mark.parametrize(
    "asked",
    [
        {"format": "json"},
        {},
        {"format": "html"},
        {"format": "json", "engines": "google,nobody", "categories": "science", "time_range": "", "language": "all"},
        {"format": "json", "safesearch": "1", "time_range": "None", "language": "auto", "pageno": "", "theme": "simple"},
    ],
)
def test_json_comes_whatever_else_is_asked(tmp_path: Path, path: str, asked: dict[str, str]) -> None:
    with client(tmp_path) as http:
        got = http.get(path, params={"q": "bm25", **asked}, headers={"Accept": "text/html"})
        posted = http.post(path, data={"q": "bm25", **asked})
    assert (got.status_code, [r["url"] for r in got.json()["results"]]) == (200, [hit.url for hit in HITS])
    assert posted.json() == got.json()


def test_language_and_time_reach_the_backend(tmp_path: Path) -> None:
    backend = Backend()
    with client(tmp_path, backend) as http:
        http.get("/searxng/search", params={"q": "!g bm25", "language": "pt-BR", "time_range": "month"})
    (asked,) = backend.asked
    assert (asked.text, asked.language, asked.time_range) == ("!g bm25", "pt-BR", "month")


def test_pages_follow_one_another_and_end(tmp_path: Path) -> None:
    backend = Backend(hits=MANY)
    with client(tmp_path, backend) as http:
        pages = [http.get("/searxng/search", params={"q": "x", "pageno": n}).json()["results"] for n in (1, 2, 3, 4, 999_999)]
    assert [len(page) for page in pages] == [10, 10, 5, 0, 0]
    assert [r["url"] for page in pages for r in page] == [hit.url for hit in MANY]
    assert pages[1][0]["positions"] == [11]


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({}, "query"),
        ({"q": "  "}, "query"),
        ({"q": "\x00"}, "query"),
        ({"q": "x" * 2001}, "2000"),
        ({"q": "x", "time_range": "hour"}, "time_range"),
        ({"q": "x", "pageno": "0"}, "pageno"),
        ({"q": "x", "pageno": "two"}, "pageno"),
        ({"q": "x", "pageno": "٣"}, "pageno"),
        ({"q": "x", "language": "../etc"}, "language"),
    ],
)
def test_refusals_have_the_shape_of_a_searxng(tmp_path: Path, asked: dict[str, str], named: str) -> None:
    with client(tmp_path) as http:
        for got in (http.get("/searxng/search", params=asked), http.post("/searxng/search", data=asked)):
            assert (got.status_code, list(got.json()), named in got.json()["error"]) == (400, ["error"], True)


def test_a_form_that_is_no_form_is_refused(tmp_path: Path) -> None:
    with client(tmp_path) as http:
        statuses = [
            http.post("/searxng/search", json={"q": "x"}).status_code,
            http.post("/searxng/search", data={f"f{n}": "x" for n in range(200)}).status_code,
            http.post(
                "/searxng/search", content=b"q=%FF%FEx", headers={"content-type": "application/x-www-form-urlencoded"}
            ).status_code,
        ]
    assert statuses == [400, 400, 200]


def test_backends_that_fail_are_unresponsive_engines(tmp_path: Path) -> None:
    with client(tmp_path, Backend(errors=[down("searxng")]), Backend("wikipedia", hits=())) as http:
        got = http.get("/searxng/search", params={"q": "x"})
    assert (got.status_code, got.json()) == (
        200,
        {
            "query": "x",
            "number_of_results": 0,
            "results": [],
            **EMPTY,
            "unresponsive_engines": [["searxng", "searxng is down"]],
        },
    )


def test_an_answer_comes_before_clients_give_up(tmp_path: Path) -> None:
    assert searxng.ANSWER_TIMEOUT_S < 10
    app = Starlette(routes=searxng.CONTRACT.routes)
    app.state.nexi, app.state.answer_timeout_s = nexi(tmp_path, Stuck()), 0.02
    with TestClient(app) as http:
        got = http.get("/searxng/search", params={"q": "x"}).json()
    assert [name for name, _ in got["unresponsive_engines"]] == ["searxng"]


def test_nexi_itself_reads_it_as_a_searxng(tmp_path: Path) -> None:
    with client(tmp_path) as http:
        got = http.get("/searxng/search", params={"q": "bm25", "format": "json"})
    hits = Searxng("http://127.0.0.1/searxng").parse(got.status_code, dict(got.headers), got.content)
    assert [(h.url, h.title, h.snippet, h.published) for h in hits] == [(h.url, h.title, h.snippet, h.published) for h in HITS]


def test_what_clients_look_at_first_is_there(tmp_path: Path) -> None:
    with client(tmp_path) as http:
        assert http.get("/searxng/healthz").text == "OK"
        about = http.get("/searxng/config").json()
    assert (about["categories"], [engine["name"] for engine in about["engines"]]) == (["general"], ["nexi"])
