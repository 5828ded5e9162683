"""Passes as OpenAI's Responses API: items for searches and pages, annotations, streams, follow-ups and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexi.apis.openai.responses import parse_response_request
from nexi.config import Config
from nexi.errors import LLMError
from nexi.testing import ScriptedLLM, answering, reading, searching
from nexi.token_counter import count_tokens
from nexi.types import Reply, Usage
from tests.web.world import MARS, MOON, QUESTION, GatedWeb, Served, serving

PATH = "/v1/responses"
SAID = "The Moon is 384,400 km from Earth on average [1]."


def body(**more: Any) -> dict[str, Any]:
    return {"model": "nexi-s", "input": QUESTION, **more}


def scripted(home: Path, *steps: Any) -> dict[str, Any]:
    """A config with a model, and the model, which replies in this order."""
    model = ScriptedLLM(*steps)
    config = Config(home=home, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False, prefetch=False)
    return {"config": config, "llms": {"answer": model, "extract": model, "judge": model}}


async def events(served: Served, **more: Any) -> list[dict[str, Any]]:
    async with served.client.stream("POST", PATH, json=body(stream=True, **more)) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") async for line in stream.aiter_lines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines]


async def test_a_response_has_the_searches_the_pages_and_the_cited_answer(tmp_path: Path) -> None:
    async with serving(tmp_path, **scripted(tmp_path, searching("moon"), reading(MOON), answering(SAID))) as served:
        told = (await served.client.post(PATH, json=body(include=["web_search_call.action.sources"]))).json()
    assert (told["object"], told["status"], told["model"], told["error"]) == ("response", "completed", "nexi-s", None)
    search, opened, message = told["output"]
    assert search["type"] == opened["type"] == "web_search_call"
    assert search["action"]["query"] == "moon"
    assert {"type": "url", "url": MOON} in search["action"]["sources"]
    assert opened["action"] == {"type": "open_page", "url": MOON}
    (part,) = message["content"]
    assert (message["role"], message["status"], part["type"], part["text"]) == ("assistant", "completed", "output_text", SAID)
    place = SAID.index("[1]")
    assert part["annotations"] == [
        {"type": "url_citation", "url": MOON, "title": "Moon facts", "start_index": place, "end_index": place + 3}
    ]
    usage = told["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


async def test_a_stream_announces_every_item_and_ends_with_the_whole_response(tmp_path: Path) -> None:
    async with serving(tmp_path, **scripted(tmp_path, searching("moon"), reading(MOON), answering(SAID))) as served:
        streamed = await events(served)
    kinds = [event["type"] for event in streamed]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert [event["sequence_number"] for event in streamed] == list(range(len(streamed)))
    assert kinds.count("response.web_search_call.completed") == 2
    assert "".join(e["delta"] for e in streamed if e["type"] == "response.output_text.delta") == SAID
    assert kinds[-5:] == [
        "response.output_text.annotation.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    whole = streamed[-1]["response"]
    added = [e["item"]["id"] for e in streamed if e["type"] == "response.output_item.added"]
    done = [e["item"] for e in streamed if e["type"] == "response.output_item.done"]
    assert added == [item["id"] for item in whole["output"]]
    assert done == whole["output"]


async def test_a_follow_up_goes_on_with_the_conversation_and_its_numbers(tmp_path: Path) -> None:
    steps = [searching("moon"), reading(MOON), answering(SAID)]
    steps += [searching("mars"), reading(MARS), answering("Mars has two moons, Phobos and Deimos [2].")]
    world = scripted(tmp_path, *steps)
    async with serving(tmp_path, **world) as served:
        first = (await served.client.post(PATH, json=body())).json()
        asked = body(input="And Mars?", previous_response_id=first["id"])
        second = (await served.client.post(PATH, json=asked)).json()
    assert second["previous_response_id"] == first["id"]
    assert QUESTION in [message.content for message in world["llms"]["answer"].requests[3]]
    assert [a["url"] for a in second["output"][-1]["content"][0]["annotations"]] == [MARS]
    assert [i["action"]["url"] for i in second["output"] if i.get("action", {}).get("type") == "open_page"] == [MARS]


async def test_small_talk_is_answered_without_a_search_and_can_be_followed_up(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        hello = (await served.client.post(PATH, json=body(input="Hello!"))).json()
        assert [item["type"] for item in hello["output"]] == ["message"]
        assert served.web.queries == []
        told = await served.client.post(PATH, json=body(previous_response_id=hello["id"]))
        assert told.status_code == 200
        assert "384,400 km" in told.json()["output"][-1]["content"][0]["text"]


async def test_research_shows_its_progress_as_reasoning(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        streamed = await events(served, model="nexi-deep")
    thought = "".join(e["delta"] for e in streamed if e["type"] == "response.reasoning_summary_text.delta")
    assert "Searched: " in thought
    whole = streamed[-1]["response"]
    assert (streamed[-1]["type"], whole["output"][0]["type"]) == ("response.completed", "reasoning")
    assert whole["output"][0]["summary"] == [{"type": "summary_text", "text": thought}]


async def test_an_answer_fits_the_schema_it_is_asked_in(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"km": {"type": "integer"}}, "required": ["km"], "additionalProperties": False}
    form = {"format": {"type": "json_schema", "name": "distance", "schema": schema}}
    steps = [searching("moon"), reading(MOON), answering(SAID), Reply('```json\n{"km": 384400}\n```', (), Usage(50, 5))]
    async with serving(tmp_path, **scripted(tmp_path, *steps)) as served:
        told = (await served.client.post(PATH, json=body(text=form))).json()
    (part,) = told["output"][-1]["content"]
    assert (json.loads(part["text"]), part["annotations"]) == ({"km": 384400}, [])


async def test_a_function_that_is_forced_is_an_item_with_the_answer_as_its_arguments(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"km": {"type": "integer"}}, "required": ["km"], "additionalProperties": False}
    tools = [{"type": "function", "name": "final_result", "parameters": schema, "strict": True}]
    steps = [searching("moon"), reading(MOON), answering(SAID), Reply('{"km": 384400}', (), Usage(50, 5))]
    async with serving(tmp_path, **scripted(tmp_path, *steps)) as served:
        told = (await served.client.post(PATH, json=body(tools=tools, tool_choice="required"))).json()
    item = told["output"][-1]
    assert (item["type"], item["name"], item["status"]) == ("function_call", "final_result", "completed")
    assert (json.loads(item["arguments"]), told["status"]) == ({"km": 384400}, "completed")
    assert [item["type"] for item in told["output"]] == ["web_search_call", "web_search_call", "function_call"]


async def test_json_without_a_model_that_can_write_it_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post(PATH, json=body(text={"format": {"type": "json_object"}}))
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "response_format")
        assert served.web.queries == []


async def test_a_list_of_sources_follows_the_text_where_it_is_asked_for(tmp_path: Path) -> None:
    async with serving(tmp_path, **scripted(tmp_path, searching("moon"), reading(MOON), answering(SAID))) as served:
        told = (await served.client.post(PATH, json=body(sources=True))).json()
    (part,) = told["output"][-1]["content"]
    assert part["text"].startswith(f"{SAID}\n\nSources:\n")
    assert part["text"].endswith(MOON)
    assert len(part["annotations"]) == 1


async def test_a_run_without_an_answer_fails_the_response(tmp_path: Path) -> None:
    world = scripted(tmp_path, *[LLMError("the model is away", status=500)] * 20)
    async with serving(tmp_path, web=GatedWeb(), **world) as served:
        last = (await events(served))[-1]
        assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
        assert set(last["response"]["error"]) == {"code", "message"}


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (body(model="gpt-5"), 404, "model_not_found"),
        ({"model": "nexi-s"}, 400, "bad_request"),
        (body(input=[]), 400, "bad_request"),
        (body(input=""), 400, "bad_request"),
        (body(input=[{"role": "assistant", "content": "x"}]), 400, "bad_request"),
        (body(input=[{"role": "user", "content": [{"type": "input_image", "image_url": "https://x"}]}]), 400, "bad_request"),
        (body(input=[{"type": "item_reference", "id": "x"}]), 400, "bad_request"),
        (body(background=True, store=False), 400, "bad_request"),
        (body(background=True, text={"format": {"type": "json_object"}}), 400, "bad_request"),
        (body(background=True, input=[{"role": "user", "content": "x"}] * 2), 400, "bad_request"),
        (body(conversation="conv_1"), 400, "bad_request"),
        (body(tool_choice="required"), 400, "bad_request"),
        (body(text={"format": {"type": "grammar"}}), 400, "bad_request"),
        (body(previous_response_id="resp_ffffff"), 404, "no_such_run"),
        (body(previous_response_id="other"), 404, "previous_response_not_found"),
    ],
)
async def test_what_cannot_be_asked_is_refused_in_openais_shape(tmp_path: Path, sent: Any, status: int, code: str) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post(PATH, json=sent)
        assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
        assert set(reply.json()["error"]) == {"message", "type", "param", "code"}


def test_items_of_an_earlier_response_are_a_conversation() -> None:
    items = [
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which moon?"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "moon"}},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ours [1].", "annotations": []}]},
        {"role": "user", "content": QUESTION},
    ]
    tools = [{"type": "web_search", "filters": {"allowed_domains": ["moon.example"]}}, {"type": "function", "name": "f"}]
    asked = parse_response_request(body(input=items, instructions="In English.", tools=tools, max_output_tokens=300))
    assert (asked.run.question, asked.run.system_prompt) == (QUESTION, "In English.\n\nBe brief.")
    assert [(m.role, m.content) for m in asked.session.messages] == [("user", "Which moon?"), ("assistant", "Ours .")]
    assert (asked.run.query.sites, asked.run.limits.max_output_tokens, asked.max_tokens) == (("moon.example",), 1024, 300)


async def test_a_response_ends_at_its_token_limit_and_says_so(tmp_path: Path) -> None:
    config = Config(home=tmp_path, model="extractive", verify_judge=False)
    async with serving(tmp_path, config=config) as served:
        told = (await served.client.post(PATH, json=body(max_output_tokens=6))).json()
        streamed = await events(served, max_output_tokens=6)
    text = told["output"][-1]["content"][0]["text"]
    assert (told["status"], told["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert 0 < count_tokens(text) <= 6
    assert (streamed[-1]["type"], streamed[-1]["response"]["output"][-1]["content"][0]["text"]) == ("response.incomplete", text)
