"""The page on the Search API says what the server does: its examples run, its tables are complete, its file is read."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nexi.apis.search.assembly import CacheSettings, SearcherSettings, read_settings
from nexi.apis.search.schema import SearchBody, SearchBudget, SearchConstraints
from nexi.testing import FakeWeb
from tests.apis.search.support import nexi
from tests.web.doors import DOORS, application
from tests.web.world import PAGES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "search-api.md").read_text(encoding="utf-8")
BASE = "http://127.0.0.1:8000"
CURLS = [line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]
PACK, RANKED = (json.loads(block) for block in re.findall(r"^```jsonc\n(.*?)^```$", PAGE, re.M | re.S))


def curl(http: TestClient, line: str) -> Any:
    """What curl would send, sent."""
    words = shlex.split(line)
    assert words[:2] == ["curl", "-s"]
    url = next(word for word in words if word.startswith(BASE)).removeprefix(BASE)
    data = words[words.index("-d") + 1] if "-d" in words else None
    form = {"content-type": "application/x-www-form-urlencoded"}  # what curl says of -d
    return http.post(url, content=data, headers=form) if data or "-X" in words else http.get(url)


@pytest.fixture
def http(tmp_path: Path) -> TestClient:
    web = FakeWeb(PAGES, name="searxng")
    return TestClient(application(nexi(tmp_path, web, fetcher=web)))


def test_there_are_examples_for_every_path() -> None:
    described = {path for contract in DOORS for path in contract.openapi()} - {
        "/searxng",
        "/searxng/config",
        "/searxng/healthz",
        "/tavily/crawl",
        "/tavily/map",
        "/tavily/research",
        "/tavily/research/{id}",
    }
    named = {re.split(r"[?' ]", line.split(BASE)[1])[0] for line in CURLS}
    assert named == described


@pytest.mark.parametrize("line", CURLS, ids=lambda line: line[8:60])
def test_every_example_is_answered(http: TestClient, line: str) -> None:
    got = curl(http, line)
    assert got.status_code == 200, got.text
    assert got.json()
    assert "moon" in got.text.lower() or "cleared" in got.text or "pick" in got.text


def test_the_documented_pack_has_the_form_of_a_real_one(http: TestClient) -> None:
    real = curl(http, CURLS[0]).json()
    assert shape(PACK) == shape({**real, "items": real["items"][:1]})
    assert PACK["rendered_text"].removesuffix("…") in real["rendered_text"]


def test_the_documented_ranking_is_the_real_one(http: TestClient) -> None:
    assert next(curl(http, line).json() for line in CURLS if "snippet_rank" in line) == RANKED


def shape(value: object) -> object:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items() if key != "request"}
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


def rows(head: str) -> set[str]:
    table = PAGE.split(f"| {head} |")[1].split("\n\n")[0]
    return set(re.findall(r"^\| `([^`]+)`", table, re.M))


def test_every_part_of_a_request_and_every_limit_is_explained() -> None:
    top = set(SearchBody.__struct_fields__) - {"constraints"}
    assert rows("part of a request") == top | {f"constraints.{name}" for name in SearchConstraints.__struct_fields__} - {
        "constraints.lang"
    }
    assert rows("limit") == set(SearchBudget.__struct_fields__)


def test_every_setting_of_the_file_is_explained_and_its_example_is_read() -> None:
    cache = {f"service.cache.{name}" for name in CacheSettings.__struct_fields__}
    assert rows("setting") == cache | {f"service.{name}" for name in SearcherSettings.__struct_fields__ if name != "cache"}
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
    cached = CacheSettings(True, "~/.cache/searcher", 86400, 3600)
    assert read_settings(example) == SearcherSettings(cached, ("searxng", "duckduckgo"), True)
