"""The knowledge evals measure what they say, on a web of three pages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from evals import agentic, retrieval
from nexi.types import Page

PAGES = [
    {"url": f"http://birds.test/{name}", "title": name.title(), "html": f"<title>{name}</title><h1>{name}</h1><p>{text}</p>"}
    for name, text in (
        ("owl", "The owl hunts voles by night."),
        ("fox", "The fox sleeps in its den all day long."),
        ("vole", "A vole eats grass and roots in the meadow."),
    )
]
QUESTION = {"id": "q", "question": "When does the owl hunt voles?", "gold_urls": [PAGES[0]["url"]], "kind": "single"}


@pytest.fixture
def web(tmp_path: Path) -> Path:
    folder = tmp_path / "dev"
    folder.mkdir()
    (folder / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in PAGES), encoding="utf-8")
    (folder / "questions.jsonl").write_text(json.dumps(QUESTION) + "\n", encoding="utf-8")
    return folder


def test_retrieval_is_measured_through_indexer_store_and_retriever(tmp_path: Path) -> None:
    pages = [Page(str(p["url"]), f"# {p['title']}\n\n{p['html']}", title=str(p["title"])) for p in PAGES]
    asked = [retrieval.Asked("When does the owl hunt voles?", {"http://birds.test/owl": 1.0})]
    row = asyncio.run(retrieval.measure("dev", pages, asked, None, tmp_path))
    assert (row.way, row.figure, row.pages, row.chunks) == ("words", 100.0, 3, 3)
    again = asyncio.run(retrieval.measure("dev", pages, asked, None, tmp_path))
    assert (again.figure, again.pages, len(list(tmp_path.glob("*.db")))) == (100.0, 3, 1)


def test_a_store_of_other_pages_is_not_measured_again(tmp_path: Path) -> None:
    pages = [Page(str(p["url"]), f"# {p['title']}\n\n{p['html']}", title=str(p["title"])) for p in PAGES]
    asyncio.run(retrieval.measure("dev", pages, [], None, tmp_path))
    assert asyncio.run(retrieval.measure("dev", pages[:2], [], None, tmp_path)).pages == 2


def test_graded_pages_are_scored_by_ndcg() -> None:
    assert retrieval.ndcg(["a", "b"], {"a": 3.0, "b": 1.0}) == 1.0
    assert 0 < retrieval.ndcg(["b", "a"], {"a": 3.0, "b": 1.0}) < 1
    assert retrieval.ndcg(["c"], {"a": 3.0}) == 0.0


def test_a_figure_below_its_floor_is_named() -> None:
    row = retrieval.Row("dev", "words", 10, 90.0, 3, 3, 0.1, 1.0)
    assert retrieval.below_floor(row, {"words": {"dev": 95.0}}) == "dev by words: 90.00 is below its floor 95.00"
    assert retrieval.below_floor(row, {"words": {"dev": 90.0}}) == ""


def test_the_agentic_search_is_measured_twice_and_with_hints(web: Path) -> None:
    first, second, hinted = agentic.measure("dev", web, 0)
    assert (first.way, first.complete, first.gold, first.pages > 0) == ("first time", 100.0, 100.0, True)
    assert (second.way, second.pages, second.complete) == ("second time", 0.0, 100.0)
    assert (hinted.way, hinted.complete) == ("with hints", 100.0)
    assert agentic.missed(second) == []


def test_a_missed_target_is_said() -> None:
    row = agentic.Row("dev", "first time", 10, 80.0, 90.0, 31.0, 40.0, 3.0, 1.0, 0.1)
    assert agentic.missed(row) == [
        "dev, first time: complete in 80.0 % of questions, wanted 90",
        "dev, first time: 31.0 % of results crawled, wanted under 30",
        "dev, first time: 40.0 % of pages saved, wanted 50 or more",
    ]
