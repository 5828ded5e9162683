"""An answer that the built-in model gave in place of the configured one says so where OpenAI's clients look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexi.apis.openai.shapes import ReplacedModelNote, earlier_messages
from nexi.config import Config
from nexi.errors import LLMError
from nexi.events import RunStarted, Warned
from nexi.testing import ScriptedLLM, answering, reading, searching
from nexi.types import Reply
from tests.web.world import MOON, QUESTION, Served, serving

BABBLE = Reply("The Moon is far and far and far away. " * 40)
NOTE = "\n\n> Note: scripted wrote the same words over and over, so the built-in model answered."
SAID = "The Moon is 384,400 km from Earth on average [1]."
CHAT = {"model": "nexi-s", "messages": [{"role": "user", "content": QUESTION}]}
RESPONSE = {"model": "nexi-s", "input": QUESTION}
PROMPT = {"model": "nexi-s", "prompt": QUESTION, "sources": False}


def scripted(home: Path, *steps: Any) -> dict[str, Any]:
    model = ScriptedLLM(*steps)
    config = Config(home=home, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False, prefetch=False)
    return {"config": config, "llms": {"answer": model, "extract": model, "judge": model}}


def babbling(home: Path) -> dict[str, Any]:
    return scripted(home, searching("moon"), reading(MOON), BABBLE)


async def stream(served: Served, path: str, sent: dict[str, Any]) -> list[dict[str, Any]]:
    async with served.client.stream("POST", path, json={**sent, "stream": True}) as opened:
        lines = [line.removeprefix("data: ") async for line in opened.aiter_lines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


async def test_a_completion_by_the_built_in_model_ends_with_a_note_and_has_the_warnings(tmp_path: Path) -> None:
    async with serving(tmp_path, **babbling(tmp_path)) as served:
        told = (await served.client.post("/v1/chat/completions", json=CHAT)).json()
    content = told["choices"][0]["message"]["content"]
    assert content.endswith(NOTE)
    assert "384,400 km" in content
    assert told["nexi"]["answered"] == "yes"
    assert told["nexi"]["warnings"][0] == "scripted wrote the same words over and over, so the built-in model answered"


async def test_a_streamed_completion_says_the_same(tmp_path: Path) -> None:
    async with serving(tmp_path, **babbling(tmp_path)) as served:
        chunks = await stream(served, "/v1/chat/completions", CHAT)
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks).endswith(NOTE)
    assert chunks[-1]["nexi"]["warnings"][0] == "scripted wrote the same words over and over, so the built-in model answered"


async def test_a_response_by_the_built_in_model_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path / "whole", **babbling(tmp_path / "whole")) as served:
        whole = (await served.client.post("/v1/responses", json=RESPONSE)).json()
    async with serving(tmp_path / "streamed", **babbling(tmp_path / "streamed")) as served:
        last = (await stream(served, "/v1/responses", RESPONSE))[-1]["response"]
    for told in (whole, last):
        assert told["output"][-1]["content"][0]["text"].endswith(NOTE)
        assert told["nexi"]["warnings"][0] == "scripted wrote the same words over and over, so the built-in model answered"


async def test_a_prompt_answered_by_the_built_in_model_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path / "whole", **babbling(tmp_path / "whole")) as served:
        whole = (await served.client.post("/v1/completions", json=PROMPT)).json()
    async with serving(tmp_path / "streamed", **babbling(tmp_path / "streamed")) as served:
        chunks = await stream(served, "/v1/completions", PROMPT)
    assert whole["choices"][0]["text"].endswith(NOTE)
    assert "".join(c["choices"][0]["text"] for c in chunks).endswith(NOTE)


async def test_a_model_that_hangs_before_it_has_read_is_named_in_the_note(tmp_path: Path) -> None:
    hung = LLMError("scripted did not answer in time", code="timeout")
    async with serving(tmp_path, **scripted(tmp_path, hung, hung, hung)) as served:
        told = (await served.client.post("/v1/chat/completions", json=CHAT)).json()
    note = told["choices"][0]["message"]["content"].rpartition("\n\n")[2]
    assert note.startswith("> Note: scripted did not answer in time before any page was read, so the built-in model")


async def test_the_sources_follow_the_note(tmp_path: Path) -> None:
    async with serving(tmp_path, **babbling(tmp_path)) as served:
        told = (await served.client.post("/v1/chat/completions", json={**CHAT, "sources": True})).json()
    before, note, after = told["choices"][0]["message"]["content"].partition(NOTE)
    assert (bool(before), bool(note), MOON in after) == (True, True, True)


async def test_an_answer_of_the_model_itself_has_no_note(tmp_path: Path) -> None:
    async with serving(tmp_path, **scripted(tmp_path, searching("moon"), reading(MOON), answering(SAID))) as served:
        told = (await served.client.post("/v1/chat/completions", json=CHAT)).json()
    assert told["choices"][0]["message"]["content"] == SAID
    assert told["nexi"] == {"warnings": [], "answered": "yes"}


@pytest.mark.parametrize(
    ("model", "warned", "note"),
    [
        ("m", [Warned("extractive", "the answer was assembled from passages without a model")],
         "\n\n> Note: the built-in model assembled this from passages, without the configured model."),
        ("m", [Warned("extractive", "x"), Warned("model_failed", "m is gone. Start it.")],
         "\n\n> Note: the built-in model assembled this from passages, without the configured model (m is gone. Start it)."),
        ("m", [Warned("replaced", "what m wrote is not found in the pages, so passages of them stand here")],
         "\n\n> Note: what m wrote is not found in the pages, so passages of them stand here."),
        ("m", [Warned("babble", "researcher", agent="1.1"), Warned("stored_pages", "old")], ""),
        ("extractive", [Warned("extractive", "the report was assembled without a model")], ""),
    ],
)  # fmt: skip
def test_the_note_names_the_clearest_reason(model: str, warned: list[Warned], note: str) -> None:
    assert ReplacedModelNote([RunStarted(QUESTION, "m", model), *warned]).text == note


def test_a_note_in_an_earlier_answer_is_left_out() -> None:
    before = earlier_messages([("assistant", f"The Moon is far [1].{NOTE}\n\n## Sources\n\n[1] https://moon.example")])
    assert [m.content for m in before] == ["The Moon is far ."]
