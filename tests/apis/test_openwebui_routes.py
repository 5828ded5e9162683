"""Open WebUI's external engine and loader: plain lists, and failures as a status with a detail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.apis.search.support import HITS, PAGES, Backend, down
from tests.web.doors import client


@pytest.mark.parametrize(("count", "found"), [(2, 2), (None, 4), (0, 0), (10**9, 4)])
def test_a_search_is_a_plain_list(tmp_path: Path, count: int | None, found: int) -> None:
    with client(tmp_path) as http:
        got = http.post("/openwebui/search", json={"query": "bm25", "count": count})
    hits = [{"link": hit.url, "title": hit.title, "snippet": hit.snippet} for hit in HITS]
    assert (got.status_code, got.json()) == (200, hits[:found])


def test_pages_are_loaded_with_what_they_say_of_themselves(tmp_path: Path) -> None:
    with client(tmp_path) as http:
        got = http.post("/openwebui/load", json={"urls": [HITS[0].url, "https://nowhere.example/", HITS[2].url]})
    assert (got.status_code, got.json()) == (
        200,
        [
            {"page_content": PAGES[hit.url], "metadata": {"source": hit.url, "title": title}}
            for hit, title in ((HITS[0], "Okapi BM25"), (HITS[2], "Similarity"))
        ],
    )


def test_where_no_page_can_be_read_the_refusal_says_why(tmp_path: Path) -> None:
    with client(tmp_path) as http:
        got = http.post("/openwebui/load", json={"urls": ["https://nowhere.example/", "file:///etc/passwd"]})
        nothing = http.post("/openwebui/load", json={"urls": []})
    assert (got.status_code, list(got.json()), nothing.json()) == (422, ["detail"], [])
    assert "'file:///etc/passwd'" in got.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("search", {}),
        ("search", {"query": ""}),
        ("search", {"query": "x", "count": "many"}),
        ("search", {"query": "x", "count": -1}),
        ("load", {}),
        ("load", {"urls": "https://a.example/"}),
        ("load", {"urls": ["x"] * 51}),
        ("load", []),
    ],
)
def test_refusals_have_a_detail(tmp_path: Path, path: str, body: Any) -> None:
    with client(tmp_path) as http:
        got = http.post(f"/openwebui/{path}", json=body)
    assert (got.status_code, list(got.json())) == (400, ["detail"])


def test_a_search_that_nobody_answered_is_an_error(tmp_path: Path) -> None:
    with client(tmp_path, Backend(errors=[down("searxng")])) as http:
        got = http.post("/openwebui/search", json={"query": "x"})
    assert (got.status_code, "searxng is down" in got.json()["detail"]) == (502, True)
