"""What a chat program asks about a conversation goes to the plain model and starts no search; small talk gets a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexi.apis.openai.chat_tasks import is_chat_task, is_small_talk
from nexi.config import Config
from nexi.testing import ScriptedLLM
from nexi.types import Message, Reply, Usage
from tests.web.world import QUESTION, serving

PATH = "/v1/chat/completions"
HISTORY = (
    "### Chat History:\n<chat_history>\nUSER: How far is the Moon from Earth?\nASSISTANT: 384,400 km [1].\n</chat_history>"
)


def task(words: str, output: str) -> str:
    return f"### Task:\n{words}\n\n### Output:\nJSON format: {output}\n\n{HISTORY}"


TITLE = task("Name this chat in a few words.", '{ "title": "Some title" }')
TAGS = task("Name the themes of this chat.", '{ "tags": ["tag1", "tag2"] }')
FOLLOW_UPS = task("Suggest what the user may ask next.", '{ "follow_ups": ["Question 1?"] }')
QUERIES = task("Write queries that help with the last message.", '{ "queries": ["query1", "query2"] }')
AUTOCOMPLETE = (
    "### Task:\nYou are an autocompletion system.\n<type>General</type>\n<text>The Moon is</text>\n" + '{ "text": "" }'
)
TASKS = {"title": TITLE, "tags": TAGS, "follow-ups": FOLLOW_UPS, "queries": QUERIES, "autocomplete": AUTOCOMPLETE}


def body(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "nexi-deep", "messages": [{"role": "user", "content": text}], **more}


@pytest.mark.parametrize("text", TASKS.values(), ids=TASKS)
async def test_a_task_is_one_call_of_the_model_and_no_run(tmp_path: Path, text: str) -> None:
    model = ScriptedLLM(Reply('{"title": "The Moon"}', (), Usage(40, 8)))
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    async with serving(tmp_path, config=config, llms={"answer": model, "extract": model, "judge": model}) as served:
        told = (await served.client.post(PATH, json=body(text))).json()
        assert told["choices"][0]["message"]["content"] == '{"title": "The Moon"}'
        assert told["usage"] == {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48}
        assert model.requests == [(Message("user", text),)]
        assert (served.web.queries, (await served.client.get("/v1/runs")).json()) == ([], {"runs": []})


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        (TITLE, {"title": "How far is the Moon from"}),
        (TAGS, {"tags": ["General"]}),
        (FOLLOW_UPS, {"follow_ups": []}),
        (QUERIES, {"queries": ["How far is the Moon from Earth?"]}),
        (AUTOCOMPLETE, {"text": ""}),
    ],
    ids=TASKS,
)
async def test_a_task_without_a_model_has_a_simple_reply(tmp_path: Path, text: str, reply: dict[str, Any]) -> None:
    async with serving(tmp_path) as served:
        told = (await served.client.post(PATH, json=body(text))).json()
        assert json.loads(told["choices"][0]["message"]["content"]) == reply
        assert served.web.queries == []


async def test_a_local_model_sends_no_task_to_the_configured_one(tmp_path: Path) -> None:
    model = ScriptedLLM()
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    async with serving(tmp_path, config=config, llms={"answer": model, "extract": model, "judge": model}) as served:
        told = (await served.client.post(PATH, json=body(TAGS, model="nexi-local"))).json()
        assert json.loads(told["choices"][0]["message"]["content"]) == {"tags": ["General"]}
        assert model.requests == []


async def test_a_task_that_the_budget_has_no_room_for_is_refused_with_429_and_never_sent(tmp_path: Path) -> None:
    model = ScriptedLLM()
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False, max_tokens=10)
    async with serving(tmp_path, config=config, llms={"answer": model, "extract": model, "judge": model}) as served:
        replies = [await served.client.post(PATH, json=body(text)) for text in (TITLE, TAGS)]
    assert [(reply.status_code, reply.json()["error"]["code"]) for reply in replies] == [(429, "budget_spent")] * 2
    assert "the model was not asked" in replies[0].json()["error"]["message"]
    assert model.requests == []


async def test_a_client_can_say_that_its_message_is_a_task(tmp_path: Path) -> None:
    model = ScriptedLLM(Reply("Lunar distance", (), Usage(40, 8)))
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    async with serving(tmp_path, config=config, llms={"answer": model, "extract": model, "judge": model}) as served:
        told = (await served.client.post(PATH, json=body(QUESTION, search=False))).json()
        assert told["choices"][0]["message"]["content"] == "Lunar distance"
        assert served.web.queries == []


@pytest.mark.parametrize(
    ("text", "instructions", "expected"),
    [
        ("Provide a concise, 5-word-or-less title for the conversation, in its language.", "", True),
        ("Generate a title for this chat", "", True),
        ("Your task is to show the mood of the message with one emoji.\n\nMessage: ```hello```", "", True),
        ("Query: what is the weather", 'Available Tools: []\nReturn {"tool_calls": []} if none fits.', True),
        ("Who wrote the title song of the film?", "", False),
        ("What is the task of the liver?", "", False),
        ("### Task:\nAnswer the question with the context.\n<context>\nThe Moon.\n</context>\nHow far is it?", "", False),
        ("Which tools are available for bookbinding?", "Be brief.", False),
        ("Write about the title of the latest Pope", "", False),
    ],
)
def test_the_words_of_a_message_say_whether_it_is_a_task(text: str, instructions: str, expected: bool) -> None:
    assert is_chat_task(text, instructions) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello!", True),
        ("hi there", True),
        ("Good morning, nexi.", True),
        ("Hey, how are you doing today?", True),
        ("Thank you so much!", True),
        ("Danke", True),
        ("你好", True),
        ("ok great, thanks", True),
        ("", False),
        ("Hello, how far is the Moon?", False),
        ("hi-fi", False),
        ("What is up quark?", False),
        ("Who are you named after, Nexi?", False),
        ("Good night lyrics", False),
        ("Hello Kitty", False),
        ("thanks giving date 2026", False),
    ],
)
def test_small_talk_is_nothing_but_small_talk(text: str, expected: bool) -> None:
    assert is_small_talk(text) is expected
