"""The Search API over HTTP: packs as the service gives them, refusals in nexi's own shape."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nexi.apis.search.service import SearchService
from nexi.app.owner_token import OwnerToken
from nexi.testing import ScriptedLLM
from nexi.types import Reply
from nexi.web import create_app
from tests.apis.search.support import GOLDEN, HITS, config, nexi
from tests.raising import has_code
from tests.web.doors import client

QUERY = "bm25 ranking algorithm"


def test_a_pack_over_http_is_the_services_own(tmp_path: Path) -> None:
    request = {
        "query": {"text": QUERY},
        "intent": "fresh_data",
        "constraints": {"backend": "searxng", "search_mode": "simple", "lang": "en"},
        "context_hint": {"known_topics": ["bm25", "information retrieval"]},
    }
    with client(tmp_path) as http:
        got = http.post("/v1/search", json=request)
    expected = json.loads((GOLDEN / "simple.json").read_text(encoding="utf-8"))
    pack = got.json()
    expected["producer"]["version"] = pack["producer"]["version"]
    assert (got.status_code, got.headers["content-type"], pack) == (200, "application/json", expected)


def test_the_flow_of_a_thin_plugin_goes_through(tmp_path: Path) -> None:
    with client(tmp_path, llm=ScriptedLLM(Reply('{"pick":[2,0]}'))) as http:
        items = http.post("/v1/search", json={"query": QUERY, "want": {"rendered_text": False}}).json()["items"]
        candidates = [{"i": i, **{k: item[k] for k in ("title", "snippet", "url")}} for i, item in enumerate(items)]
        pick = http.post("/v1/snippet_rank", json={"query": QUERY, "candidates": candidates, "want_n": 2}).json()
        constraints = {"search_mode": "full", "pick_ids": pick["pick"], "seed_items": items}
        pack = http.post("/v1/search", json={"query": QUERY, "constraints": constraints}).json()
    assert pick == {"pick": [2, 0], "urls": [HITS[2].url, HITS[0].url], "fallback_used": False, "reason": ""}
    assert [item["url"] for item in pack["items"]] == pick["urls"]
    assert [item["fetch"]["status"] for item in pack["items"]] == ["fetched", "fetched"]
    assert pack["rendered_text"].index(HITS[2].url) < pack["rendered_text"].index(HITS[0].url)


def test_the_cache_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "nexi").mkdir()
    (tmp_path / "nexi" / "searcher.yaml").write_text(f"service: {{cache: {{dir: '{tmp_path / 'kept'}'}}}}\n")
    with client(tmp_path) as http:
        http.post("/v1/search", json={"query": QUERY, "constraints": {"search_mode": "full"}})
        assert [http.post("/v1/cache/clear").json() for _ in range(2)] == [{"cleared": 3}, {"cleared": 0}]


def test_the_server_sweeps_the_cache_until_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended = threading.Event(), threading.Event()

    async def wait_until_cancelled(service: SearchService) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(SearchService, "sweep_cache_regularly", wait_until_cancelled)
    with TestClient(create_app(config(tmp_path), nexi=nexi(tmp_path))):
        assert began.wait(300)
        assert not ended.is_set()
    assert ended.is_set()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"{", "the body is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"\xff\xfe", "the body is not UTF-8"),
        (b"[" * 100_000, "the body is not JSON: nested too deeply"),
        (b'{"query": NaN}', "the body is not JSON: NaN is not JSON"),
        (b"[]", "the request cannot be used: expected an object, got an array"),
        (b"{}", "the request cannot be used: query: required, but missing"),
    ],
)
def test_a_body_that_cannot_be_used_is_refused(tmp_path: Path, body: bytes, message: str) -> None:
    with client(tmp_path) as http:
        for path in ("/v1/search", "/v1/snippet_rank"):
            got = http.post(path, content=body)
            error: dict[str, Any] = got.json()["error"]
            assert (got.status_code, error["code"]) == (400, "bad_request")
            assert error["message"].startswith(message[:40])


def test_half_a_character_is_no_reason_to_fail(tmp_path: Path) -> None:
    with client(tmp_path) as http:
        got = http.post("/v1/search", content=b'{"query": "bm25 \\ud800", "context_hint": {"x": "\\ud83d"}}')
    assert (got.status_code, got.json()["request"]) == (200, {"query": "bm25 \ufffd", "context_hint": {"x": "\ufffd"}})


@pytest.mark.parametrize("path", ["/v1/search", "/v1/snippet_rank", "/v1/cache/clear"])
def test_only_post_is_served(tmp_path: Path, path: str) -> None:
    with client(tmp_path) as http:
        assert http.get(path).status_code == 405


def test_the_server_refuses_a_file_it_cannot_use_before_it_listens(tmp_path: Path) -> None:
    from nexi.errors import ConfigError
    from nexi.web.server import ServerOptions, serve

    for named, text in (("missing.yaml", None), ("broken.yaml", "service: {cash: 1}")):
        if text:
            (tmp_path / named).write_text(text)
        with pytest.raises(ConfigError, check=has_code("config", named)):
            serve(config(tmp_path), ServerOptions(port=0, searcher_config=str(tmp_path / named)))


def test_the_server_uses_the_file_it_was_given_and_counts_what_it_did(tmp_path: Path) -> None:
    from nexi.web.server import ServerOptions, build_app

    own = tmp_path / "own.yaml"
    own.write_text(f"service: {{cache: {{dir: '{tmp_path / 'kept'}'}}}}\n")
    shared = nexi(tmp_path)
    app = build_app(shared.config, ServerOptions(searcher_config=str(own)))
    app.state.nexi = shared
    headers = {"authorization": f"Bearer {OwnerToken(shared.config.state_dir).ensure()}"}
    with TestClient(app, base_url="http://127.0.0.1:8000", headers=headers) as http:
        assert http.post("/v1/search", json={"query": QUERY, "constraints": {"search_mode": "full"}}).status_code == 200
        counted = {name: app.state.metrics.value(f"nexi_urls_{name}_total") for name in ("found", "crawled")}
    assert (counted, len(list((tmp_path / "kept").iterdir()))) == ({"found": 4, "crawled": 3}, 3)


def test_picks_are_logged_for_who_debugs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    candidates = [{"url": "https://a.example/"}, {"url": "https://b.example/"}]
    with client(tmp_path, llm=ScriptedLLM(Reply('{"pick":[1]}'), Reply("?"))) as http, caplog.at_level("DEBUG", "nexi.web"):
        for _ in range(2):
            http.post("/v1/snippet_rank", json={"query": QUERY, "candidates": candidates, "want_n": 1})
    told = [(vars(r)["about"], vars(r)["by"], vars(r)["items"]) for r in caplog.records if r.getMessage() == "judged"]
    assert told == [("snippets", "model", ("1 https://b.example/",)), ("snippets", "fallback", ("0 https://a.example/",))]


def test_a_whole_number_may_be_written_with_a_point(tmp_path: Path) -> None:
    body = b'{"query": "bm25", "constraints": {"pick_ids": [2.0, 1e0, 0.5]}, "budget": {"max_results": 5.0}}'
    with client(tmp_path) as http:
        pack = http.post("/v1/search", content=body).json()
    assert (pack["meta"]["pick_ids"], len(pack["items"])) == ([2, 1], 2)
