"""An ordinary search offers the extra tools that are set up, and a run that is played again has those it began with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexi.app import Nexi
from nexi.config import Config
from nexi.events import RunStarted
from nexi.testing import FakeWeb, ScriptedLLM
from nexi.types import Reply, ToolCall

BASE = ("web_search", "web_get", "final_answer")


def reply_with(tool: str, **arguments: Any) -> Reply:
    return Reply("", (ToolCall(f"call-{tool}", tool, json.dumps(arguments)),))


@pytest.mark.parametrize(
    ("settings", "tools"),
    [
        ({"searxng_url": "http://127.0.0.1:9"}, ()),
        ({"searxng_url": "http://127.0.0.1:9", "api_keys": {"stackexchange": "k"}}, ("stackexchange",)),
        ({"search_backend": ("wikipedia", "security")}, ("security_search",)),
        ({"searxng_url": "http://127.0.0.1:9", "grep_root": "/srv/moon"}, ("grep",)),
        ({"searxng_url": "http://127.0.0.1:9", "grep_root": "/srv/moon", "model": "tiny-1b"}, ()),
        ({"searxng_url": "http://127.0.0.1:9", "grep_root": "/srv/moon", "model": "extractive"}, ()),
    ],
)
async def test_a_search_offers_the_tools_that_are_set_up(
    make_config: Callable[..., Config], settings: dict[str, Any], tools: tuple[str, ...]
) -> None:
    async with Nexi(make_config(**settings)) as nexi, nexi.search("How far is the Moon?") as run:
        run.stop()
        async for _ in run:
            pass
        started = next(fact for fact in run.facts if isinstance(fact, RunStarted))
    assert tuple(started.settings.get("tools", ())) == tools


@pytest.mark.skipif(not (shutil.which("rg") or shutil.which("grep")), reason="neither rg nor grep is installed")
async def test_code_is_found_read_and_cited_in_an_ordinary_search_and_played_again(
    make_config: Callable[..., Config], tmp_path: Path
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "limits.py").write_text("MAX_RETRIES = 7  # a request is retried at most 7 times\n")
    llm = ScriptedLLM(
        reply_with("grep", query=r"MAX_\w+ ="),
        reply_with("web_get", urls=["file:///limits.py#L1"], get_full=True),
        reply_with("final_answer", answer="A request is retried at most 7 times [1]."),
    )
    config = make_config(searxng_url="http://127.0.0.1:9", grep_root=str(code))
    async with Nexi(config, llms=dict.fromkeys(("answer", "extract", "judge"), llm), fetchers=[FakeWeb({})]) as nexi:
        result = await nexi.answer("How often is a request retried?")
        (code / "limits.py").unlink()
        played = await nexi.replay(result.id)
    assert llm.offered == [("grep", *BASE)] * 3
    assert result.answer.text == "A request is retried at most 7 times [1]."
    assert [source.url for source in result.answer.sources] == ["file:///limits.py#L1"]
    assert played.is_same
