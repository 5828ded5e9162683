"""A request and a config become one resolved run: model, window, budget, parallel researchers and scope."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.app import RunLimits, RunRequest
from nexi.app.request import request_of_run, request_to_dict
from nexi.app.resolve import LocalModelProbe, resolve
from nexi.budget import Budget
from nexi.config import Config, load_config
from nexi.events import RunStarted, decode, encode
from nexi.testing import FakeClock
from nexi.types import Query
from tests.stub import OLLAMA_ROUTES, serving

Make = Callable[..., Config]


async def window(config: Config, model: str = "") -> int:
    resolved = await resolve(RunRequest("q", model=model), config, LocalModelProbe(FakeClock()))
    return resolved.config.endpoint("answer").max_context


async def test_the_window_of_a_local_model_is_what_its_server_gives(make_config: Make) -> None:
    with serving(OLLAMA_ROUTES) as port:
        config = make_config(base_url=f"http://127.0.0.1:{port}/v1", model="qwen2.5:7b")
        assert (await window(config), await window(config, model="llama3.2")) == (16384, 131072)


async def test_a_window_the_user_chose_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text('{"max_context": 5000}')
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    monkeypatch.setenv("NEXI_MODEL", "qwen2.5:7b")
    with serving(OLLAMA_ROUTES) as port:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
        assert await window(load_config()) == 5000


async def test_a_server_that_says_nothing_leaves_the_setting(make_config: Make) -> None:
    with serving({}) as port:
        assert await window(make_config(base_url=f"http://127.0.0.1:{port}/v1", model="m")) == 128_000
    assert await window(make_config(model="extractive")) == 128_000


async def test_a_server_of_this_machine_gets_one_researcher_at_a_time(make_config: Make) -> None:
    request = RunRequest("q", mode="research")
    with serving(OLLAMA_ROUTES) as port:
        config = make_config(base_url=f"http://127.0.0.1:{port}/v1", model="qwen2.5:7b")
        here = await resolve(request, config, LocalModelProbe(FakeClock()))
    elsewhere = await resolve(request, make_config(base_url="http://192.0.2.1/v1"), LocalModelProbe(FakeClock()))
    assert (here.max_parallel_researchers, elsewhere.max_parallel_researchers) == (1, 0)


async def test_a_server_is_asked_again_only_after_a_minute() -> None:
    clock = FakeClock()
    probe = LocalModelProbe(clock)
    with serving(OLLAMA_ROUTES) as port:
        first = await probe.server_at(f"http://127.0.0.1:{port}/v1")
    assert first is not None
    assert await probe.server_at(f"http://127.0.0.1:{port}/v1") is first  # the server is gone by now
    clock.advance(61)
    assert await probe.server_at(f"http://127.0.0.1:{port}/v1") is None


async def test_the_limits_of_a_request_win_over_the_config(make_config: Make) -> None:
    config = make_config(max_cost=5.0, max_tokens=1000, max_pages=7, max_model_calls=9, time_target=50)
    limits = RunLimits(max_iterations=3, max_cost=1.0, max_tokens=200)
    resolved = await resolve(RunRequest("q", effort="l", limits=limits), config, None)
    assert resolved.budget == Budget(3, 50, 200, max_cost=1.0, max_model_calls=9, max_pages=7)
    assert (resolved.config.max_cost, resolved.config.max_tokens) == (1.0, 200)


async def test_research_counts_iterations_for_each_researcher_and_not_for_the_run(make_config: Make) -> None:
    resolved = await resolve(RunRequest("q", mode="research"), make_config(), None)
    assert resolved.budget.max_iterations is None


async def test_the_scope_web_leaves_the_knowledge_base_alone(make_config: Make) -> None:
    web, both = [await resolve(RunRequest("q", scope=s), make_config(), None) for s in ("web", "both")]
    assert (web.config.knowledge, both.config.knowledge) == (False, True)


def test_a_request_survives_its_log() -> None:
    request = RunRequest(
        "How far is the Moon?",
        mode="research",
        effort="l",
        limits=RunLimits(4, 60.0, 900, 0.5, 9000),
        query=Query("", 7, ("moon.example",), ("mars.example",), "y", "de", "papers"),
        model="other",
        scope="local",
        system_prompt="Answer briefly.",
        attachments=("notes.md",),
        continues="abc123",
        holds_plan=True,
        depth=2,
        strict=True,
        agentic={"max_iterations": 2},
        door="http",
    )
    started = RunStarted(request.question, "l", "other", "research", 4, {}, request_to_dict(request))
    assert request_of_run(decode(encode(started))) == request
