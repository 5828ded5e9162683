"""The window of a local model is the one its server gives; 128,000 is assumed for none."""

from __future__ import annotations

import pytest

from nexi.cli.ask import measured
from nexi.config import Config, load_config
from tests.cli.command import Command
from tests.stub import OLLAMA_ROUTES, serving


async def window(monkeypatch: pytest.MonkeyPatch, model: str, port: int) -> int:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
    monkeypatch.setenv("NEXI_MODEL", model)
    return (await measured(load_config())).endpoint("answer").max_context


async def test_the_servers_window_is_used_where_nobody_chose_one(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(OLLAMA_ROUTES) as port:
        assert await window(monkeypatch, "qwen2.5:7b", port) == 16384
        again = (await measured(load_config())).override(model="llama3.2")
        assert (await measured(again)).max_context == 131072


async def test_what_the_user_chose_stays(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    nexi.home.mkdir()
    (nexi.home / "config.json").write_text('{"max_context": 5000}')
    with serving(OLLAMA_ROUTES) as port:
        assert await window(monkeypatch, "qwen2.5:7b", port) == 5000


async def test_a_server_that_says_nothing_leaves_the_setting(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({}) as port:
        assert await window(monkeypatch, "m", port) == 128_000
    assert await measured(Config(model="extractive")) == Config(model="extractive")
