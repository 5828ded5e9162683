"""`nexi doctor`: every part is ok, or has a cause and the command that mends it; no key is ever said."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexi.app.local_models import server_time
from nexi.checking.quiz import packaged_quiz
from nexi.config import Config, load_config
from nexi.doctor import Check, DoctorReport, _DoctorEnvironment, examine_settings, examine_setup
from nexi.errors import FetchError
from rig import miniweb
from tests.stub import OLLAMA_ROUTES, completion, serving

KEY = "sk-secret-0123456789"
NOW = datetime(2031, 5, 6, 12, 0, tzinfo=UTC)
PAGES = [{"url": "http://a.test/", "title": "Encyclopedia", "html": "<p>encyclopedia of all</p>"}]


@pytest.fixture
def make(make_config: Callable[..., Config]) -> Callable[..., Config]:
    """A config that searches nobody's service unless a test names one."""
    return lambda **values: make_config(**{"search_backend": "searxng", **values})


class Clock:
    """A clock whose hands do not move."""

    def __init__(self, now: datetime = NOW) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


async def resolved(host: str, port: int) -> list[str]:
    return ["192.0.2.1"]


async def no_time(url: str, **_: Any) -> datetime | None:
    return None


def around(**values: Any) -> _DoctorEnvironment:
    return _DoctorEnvironment(**{"clock": Clock(), "ports": {}, "resolve": resolved, "read_time": no_time, **values})


async def checks(config: Config, **values: Any) -> dict[str, Check]:
    report = await examine_setup(lambda: config, around(**values))
    return {check.name: check for check in report.checks}


def test_a_search_could_work_where_one_of_each_needed_part_does() -> None:
    parts = [Check(name, True, "") for name in ("config", "model", "search searxng", "fetch")]
    assert DoctorReport(tuple(parts)).ok
    assert DoctorReport((*parts, Check("search jina", False, ""), Check("disk", False, ""))).ok
    assert [DoctorReport(tuple(p for p in parts if p is not gone)).ok for gone in parts] == [False] * 4


async def test_all_is_well(make: Callable[..., Config]) -> None:
    with miniweb.serve(miniweb.Corpus(PAGES)) as web:
        config = make(model="extractive", searxng_url=web)
        report = await examine_setup(lambda: config, around())
    assert (report.ok, [c.name for c in report.checks if not c.ok]) == (True, [])
    assert [c.name for c in report.checks] == [
        "config", "model", "search searxng", "fetch", "documents", "fetch DNS", "store", "runs", "knowledge", "embedder",
        "reading model", "proof judge", "proof model", "disk",
        "clock", "versions",
    ]  # fmt: skip
    by_name = {c.name: c for c in report.checks}
    assert "nexi config setup" in by_name["model"].fix
    assert by_name["search searxng"].message == "1 result for a test query"
    assert by_name["clock"].message == "2031-05-06 12:00 UTC"


@pytest.mark.parametrize(
    ("in_force", "message"),
    [
        ({"network", "files"}, "without the network and your files"),
        ({"network"}, "without the network; this system cannot take your files from it"),
        (set(), "this system cannot take the network or your files from it"),
    ],
)
async def test_what_the_reader_of_documents_cannot_reach_is_said(
    make: Callable[..., Config], monkeypatch: pytest.MonkeyPatch, in_force: set[str], message: str
) -> None:
    async def find_protections() -> set[str]:
        return in_force

    monkeypatch.setattr("nexi.doctor.find_protections", find_protections)
    found = await checks(make(model="extractive"))
    assert found["documents"].message == f"read in a process of their own, without keys; {message}"


async def test_no_model_names_what_runs_on_this_machine(make: Callable[..., Config]) -> None:
    with serving(OLLAMA_ROUTES) as port:
        found = await checks(make(model="extractive"), ports={"Ollama": port})
    assert found["model"].ok
    assert found["model"].message.endswith("; available: qwen2.5:7b (Ollama)")


async def test_without_a_search_service_a_search_cannot_work(make: Callable[..., Config]) -> None:
    config = make(model="extractive", search_backend="searxng")
    report = await examine_setup(lambda: config, around())
    search = next(c for c in report.checks if c.area == "search")
    assert (report.ok, search.ok) == (False, False)
    assert "nexi config set searxng_url" in search.fix


async def test_a_search_service_that_is_down_is_a_problem_with_its_cause(make: Callable[..., Config]) -> None:
    search = (await checks(make(model="extractive", searxng_url="http://127.0.0.1:9")))["search searxng"]
    assert (search.ok, "http://127.0.0.1:9/search" in search.cause, bool(search.fix)) == (False, True, True)


# the judge


def reply_as_judge(body: dict[str, Any]) -> tuple[int, Any]:
    """A model that calls the test tool, and as a judge knows the labels of the quiz."""
    task = body["messages"][-1]["content"]
    claims = [json.loads(line.partition(": ")[2]) for line in task.splitlines() if line.startswith("Sentence ")]
    if not claims:
        return completion()(body)
    labels = {pair.hypothesis: pair.is_true for pair in packaged_quiz().pairs}
    items = [
        {"n": n, "passages": [1], "differs": "", "verdict": "supported" if labels[claim] else "contradicted"}
        for n, claim in enumerate(claims, 1)
    ]
    return 200, {"choices": [{"message": {"content": json.dumps({"items": items})}, "finish_reason": "stop"}]}


async def test_trying_settings_tests_the_judge_in_one_request_and_keeps_its_grade(make: Callable[..., Config]) -> None:
    asked: list[str] = []

    def count_requests(body: dict[str, Any]) -> tuple[int, Any]:
        asked.append(body["messages"][-1]["content"])
        return reply_as_judge(body)

    with serving({"POST /v1/chat/completions": count_requests}) as port:
        config = make(base_url=f"http://127.0.0.1:{port}/v1", model="moon-70b", verify_judge=True)
        judges = [{c.name: c for c in await examine_settings(config, around())}["proof judge"] for _ in range(2)]
    said = f"moon-70b at 127.0.0.1:{port}: right in 100% of a test of 24 pairs: it may raise and lower"
    assert [(judge.ok, judge.message.startswith(said)) for judge in judges] == [(True, True)] * 2
    assert sum("Sentence 1: " in content for content in asked) == 1
    assert (await checks(config))["proof judge"].message.startswith(said)


async def test_settings_work_with_a_judge_that_cannot_be_tested(make: Callable[..., Config]) -> None:
    with serving({"POST /v1/chat/completions": completion()}) as port:
        config = make(base_url=f"http://127.0.0.1:{port}/v1", model="moon-70b", verify_judge=True)
        judge = {c.name: c for c in await examine_settings(config, around())}["proof judge"]
    assert (judge.ok, "0% of a test of 24 pairs: it is not asked" in judge.message) == (True, True)


async def test_a_limit_of_one_call_leaves_the_judge_untested(make: Callable[..., Config]) -> None:
    with serving({"POST /v1/chat/completions": completion()}) as port:
        config = make(base_url=f"http://127.0.0.1:{port}/v1", model="moon-70b", verify_judge=True, max_model_calls=1)
        found = await examine_settings(config, around())
    assert "proof judge" not in [check.name for check in found]


async def test_a_small_model_that_would_judge_itself_is_not_tested(make: Callable[..., Config]) -> None:
    with serving({"POST /v1/chat/completions": completion()}) as port:
        config = make(base_url=f"http://127.0.0.1:{port}/v1", model="moon-1b", verify_judge=True)
        found = await examine_settings(config, around())
    assert "proof judge" not in [check.name for check in found]


# the model


@pytest.mark.parametrize(
    ("chat", "says"),
    [
        (completion(), "tool calls work"),
        (
            completion(calls=False),
            "reachable, but it does not use tools: nexi searches for it and hands it passages to answer from",
        ),
    ],
    ids=["tools", "text"],
)
async def test_a_model_is_asked_once_and_its_real_window_told(make: Callable[..., Config], chat: Any, says: str) -> None:
    with serving({**OLLAMA_ROUTES, "POST /v1/chat/completions": chat}) as port:
        config = make(base_url=f"http://127.0.0.1:{port}/v1", model="qwen2.5:7b")
        found = await checks(config)
    assert found["model"] == Check("model", True, f"qwen2.5:7b at 127.0.0.1:{port}: {says}")
    assert found["window"] == Check(
        "window",
        False,
        "max_context is 128000, more than the model has",
        "Ollama gives qwen2.5:7b 16384",
        "nexi config set max_context 16384",
    )


async def test_a_server_without_tools_is_asked_by_schema(make: Callable[..., Config]) -> None:
    def chat(body: dict[str, Any]) -> tuple[int, Any]:
        if "tools" in body:
            return 400, {"error": {"message": "tools are not supported by this model"}}
        content = json.dumps({"tool": "report", "arguments": {"ready": True}})
        return 200, {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]}

    with serving({**OLLAMA_ROUTES, "POST /v1/chat/completions": chat}) as port:
        found = await checks(make(base_url=f"http://127.0.0.1:{port}/v1", model="qwen2.5:7b", max_context=8000))
    assert "no tool calls, but JSON schema output works" in found["model"].message
    assert found["window"] == Check("window", True, "16384 tokens at Ollama, max_context is 8000")


async def test_a_model_that_is_down_means_no_search(make: Callable[..., Config]) -> None:
    with miniweb.serve(miniweb.Corpus(PAGES)) as web:
        config = make(searxng_url=web)
        report = await examine_setup(lambda: config, around())
    model = next(c for c in report.checks if c.name == "model")
    assert (report.ok, model.ok, model.message) == (False, False, "127.0.0.1:9/v1 cannot be reached")
    assert model.fix


async def test_a_refused_key_is_a_problem_and_is_not_printed(make: Callable[..., Config]) -> None:
    def refuse(_: dict[str, Any]) -> tuple[int, Any]:
        return 401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}

    with serving({"GET /v1/models": refuse}) as port:
        config = make(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, searxng_url=f"http://u:{KEY}@127.0.0.1:9")
        report = await examine_setup(lambda: config, around())
    assert next(c for c in report.checks if c.name == "model").message.endswith("refused the API key")
    assert KEY not in json.dumps(report.as_json())


async def test_a_slow_model_is_no_reason_to_give_up(make: Callable[..., Config]) -> None:
    release = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET /v1/models"):
            body = json.dumps({"data": [{"id": "slow"}]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body))
        elif head.startswith(b"POST"):
            await release.wait()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        found = await checks(make(base_url=f"http://127.0.0.1:{port}/v1", model="slow"), deadline_s=3.0)
    finally:
        release.set()
        server.close()
        await server.wait_closed()
    assert found["model"] == Check("model", True, f"slow at 127.0.0.1:{port}: reachable")
    assert (found["model speed"].ok, found["model speed"].fix) == (False, "run nexi doctor again")


async def test_a_check_that_hangs_ends_at_its_deadline(make: Callable[..., Config]) -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    found = await checks(make(model="extractive"), resolve=never, deadline_s=0.05)
    assert found["fetch DNS"] == Check("fetch DNS", False, "timed out", "no answer within 0.05 s", "run nexi doctor again")


# this machine


async def test_a_config_that_cannot_be_used_says_so_and_nothing_else_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"max_context": "large"}')
    report = await examine_setup(lambda: load_config(path, {}), around())
    assert [(c.name, c.ok) for c in report.checks] == [("config", False), ("versions", True)]
    assert (report.ok, report.checks[0].cause) == (False, 'max_context must be a positive integer (got "large")')
    assert "nexi --edit-config" in report.checks[0].fix


async def test_a_config_with_keys_that_others_can_read_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"api_key": KEY, "model": "extractive", "modle": "m", "search_backend": "searxng"}))
    path.chmod(0o644)
    report = await examine_setup(lambda: load_config(path, {}), around())
    notes = [(c.ok, c.fix) for c in report.checks if c.name == "config note"]
    assert notes == [(False, "nexi --edit-config"), (False, f"chmod 600 {path}")]


async def test_public_names_that_are_not_resolved_are_told(make: Callable[..., Config]) -> None:
    async def offline(host: str, port: int) -> list[str]:
        raise FetchError("the host was not found", cause="Name or service not known")

    found = await checks(make(model="extractive"), resolve=offline)
    assert (found["fetch DNS"].ok, found["fetch DNS"].cause) == (False, "Name or service not known")


async def test_behind_a_proxy_addresses_cannot_be_pinned_and_that_is_said(make: Callable[..., Config]) -> None:
    found = await checks(make(model="extractive", https_proxy="http://127.0.0.1:9"))
    assert "cannot be pinned" in found["fetch"].message
    assert found["fetch DNS"].ok


@pytest.mark.parametrize(("lack", "ok"), [("crawl4ai is not installed", False), ("", True)])
async def test_a_browser_is_looked_for_where_it_is_configured(
    lack: str, ok: bool, make: Callable[..., Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexi.fetchers.browser.missing_parts", lambda: lack)
    monkeypatch.setattr("nexi.fetchers.browser.installed_browser", lambda: "/usr/bin/chromium")
    found = (await checks(make(model="extractive", content_fetcher=("http", "crawl4ai"))))["fetch crawl4ai"]
    assert (found.ok, found.cause, bool(found.fix)) == (ok, lack, not ok)


async def test_a_wide_exception_is_a_problem_and_nothing_is_fetched(make: Callable[..., Config]) -> None:
    found = await checks(make(model="extractive", allow_private=("10.0.0.0/8",)))
    assert (found["fetch"].ok, found["fetch guard"].ok, found["fetch guard"].cause) == (True, False, "http://10.0.0.1/")


async def test_damaged_lines_of_the_history_are_counted(make: Callable[..., Config], tmp_path: Path) -> None:
    config = make(model="extractive")
    config.root.mkdir(parents=True)
    config.history_path.write_bytes(b"\xff\x00\n{}\n")
    store = (await checks(config))["store"]
    assert (store.ok, store.cause) == (False, "2 damaged lines were skipped")
    assert "nexi --clear-history" in store.fix


async def test_a_store_that_cannot_be_written_is_a_problem(
    make: Callable[..., Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    config = make(model="extractive")
    store = (await checks(config))["store"]
    assert (store.ok, store.message) == (False, "answers cannot be saved")
    assert str(config.runs_dir) in store.cause


async def test_a_full_disk_is_a_problem(make: Callable[..., Config], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 5_000_000))  # type: ignore[attr-defined]
    disk = (await checks(make(model="extractive")))["disk"]
    assert (disk.ok, disk.message) == (False, "only 5 MB free")


async def test_a_year_that_cannot_be_is_a_problem(make: Callable[..., Config]) -> None:
    clock = (await checks(make(model="extractive"), clock=Clock(datetime(1970, 1, 1, tzinfo=UTC))))["clock"]
    assert (clock.ok, clock.message, clock.cause) == (False, "the clock says 1970-01-01", "that year is implausible")


async def test_the_clock_is_compared_with_a_server_that_is_asked_anyway(make: Callable[..., Config]) -> None:
    with serving({}, date="Tue, 06 May 2031 10:00:00 GMT") as port:
        config = make(model="extractive", searxng_url=f"http://127.0.0.1:{port}")
        late = (await checks(config, read_time=server_time))["clock"]
        right = (await checks(config, read_time=server_time, clock=Clock(NOW.replace(hour=10))))["clock"]
    assert (late.ok, late.message) == (False, "the clock is 120 minutes ahead of a server's")
    assert (right.ok, right.message) == (True, "2031-05-06 10:00 UTC, matches a server's clock")


async def test_a_missing_library_is_named_with_what_installs_it(make: Callable[..., Config]) -> None:
    versions = (await checks(make(model="extractive"), libraries=("click", "no-such-library")))["versions"]
    assert (versions.ok, versions.cause) == (False, "not installed: no-such-library")
    assert versions.fix.endswith("-m pip install no-such-library")


def test_the_json_has_the_documented_form() -> None:
    report = DoctorReport((Check("disk", False, "full", "no room", "make some"),))
    assert report.as_json() == {
        "schema": "nexi-doctor-1",
        "ok": False,
        "checks": [{"name": "disk", "ok": False, "message": "full", "cause": "no room", "fix": "make some"}],
    }


async def test_a_damaged_knowledge_store_has_its_fix_and_stops_no_search(make: Callable[..., Config]) -> None:
    config = make(model="extractive")
    config.knowledge_path.parent.mkdir(parents=True, exist_ok=True)
    config.knowledge_path.write_bytes(b"no database" * 1000)
    found = (await checks(config))["knowledge"]
    assert (found.ok, "damaged" in found.message, "nexi doctor --repair" in found.fix) == (False, True, True)


async def test_what_the_store_holds_is_said_and_one_that_is_off_or_empty_is_not_made(make: Callable[..., Config]) -> None:
    from nexi.app import Nexi
    from nexi.types import Page

    config = make(model="extractive")
    assert (await checks(config))["knowledge"].message.startswith("empty: ")
    assert (await checks(config.override(knowledge=False)))["knowledge"].message.startswith("off: ")
    assert not config.knowledge_path.exists()
    async with Nexi(config) as nexi:
        await (await nexi.knowledge().indexer(nexi.gate(), embeds=False)).index(Page("https://a.example/", "Some words.", "A"))
    assert (await checks(config))["knowledge"].message.startswith("1 sources, 1 passages, ")


async def test_an_embedder_that_cannot_be_reached_says_which_variable_mends_it(make: Callable[..., Config]) -> None:
    found = (await checks(make(model="extractive", embedding_base_url="http://127.0.0.1:9/v1")))["embedder"]
    assert (found.ok, "NEXI_EMBEDDING_BASE_URL" in found.fix) == (False, True)
