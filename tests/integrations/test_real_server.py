"""The plug-ins against `nexi serve` itself, over a loopback web."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nexi.web import create_app
from rig import miniweb
from tests.cli.command import PAGES
from tests.integrations import test_open_webui, test_text_generation_webui
from tests.mcp.world import ANSWER, QUESTION, config_for, listening


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with miniweb.serve(miniweb.Corpus(PAGES)) as base:
        yield base


@asynccontextmanager
async def serving(web: str, home: Path, token: str = "") -> AsyncIterator[str]:
    async with listening(create_app(config_for(web, home, token=token))) as address:
        yield address


@pytest.mark.parametrize(
    "settings", [{}, {"search_mode": "full"}, {"snippet_rank": True, "want_n": 1}], ids=["simple", "full", "rank"]
)
async def test_the_extension_gets_its_evidence(web: str, tmp_path: Path, settings: dict[str, object]) -> None:
    async with serving(web, tmp_path, token="secret-token") as address:
        module = test_text_generation_webui.loaded(base_url=address, token="secret-token", **settings)
        model, user = await asyncio.to_thread(test_text_generation_webui.said, module, f"??? {QUESTION}")
    assert user == QUESTION
    assert "[CONTEXT_PACK ucp-1]" in model
    assert "384,400 km" in model
    assert f"{web}/moon.test/facts" in model


async def test_the_extension_says_that_a_token_is_wanted(web: str, tmp_path: Path) -> None:
    async with serving(web, tmp_path, token="secret-token") as address:
        module = test_text_generation_webui.loaded(base_url=address)
        _, user = await asyncio.to_thread(test_text_generation_webui.said, module, f"??? {QUESTION}")
    assert "requires a token" in user


async def test_the_tool_answers_searches_and_reads(web: str, tmp_path: Path) -> None:
    async with serving(web, tmp_path) as address:
        tool, screen = test_open_webui.set_up("tool", address, token=""), test_open_webui.Screen()
        answer = await tool.ask_the_web(QUESTION, __event_emitter__=screen)
        found = await tool.search_the_web("moon")
        page = await tool.read_web_page(f"{web}/moon.test/facts")
    assert answer == f"{ANSWER}\n\nSources:\n[1] Moon facts: {web}/moon.test/facts"
    assert screen.cited == [f"{web}/moon.test/facts"]
    assert "Moon facts" in found
    assert "384,400 km" in page


async def test_the_filter_and_the_pipe_work(web: str, tmp_path: Path) -> None:
    async with serving(web, tmp_path) as address:
        made = test_open_webui.set_up("filter", address, token="")
        user = {"valves": made.UserValves(snippet_rank=True, full=True)}
        body = await made.inlet({"messages": [{"role": "user", "content": f"???{QUESTION}"}]}, __user__=user)
        pipe, screen = test_open_webui.set_up("pipe", address, token=""), test_open_webui.Screen()
        models = await asyncio.to_thread(pipe.pipes)
        asked = {"model": "nexi.nexi-s", "messages": [{"role": "user", "content": QUESTION}], "stream": True}
        streamed = "".join([part async for part in await pipe.pipe(asked, __event_emitter__=screen)])
    assert "384,400 km" in body["messages"][0]["content"]
    assert "nexi-s" in [model["id"] for model in models]
    assert streamed == ANSWER
    assert screen.cited == [f"{web}/moon.test/facts"]
