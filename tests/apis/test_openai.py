"""Passes as OpenAI: completions, streams of checked text, citations with right indexes, and its errors."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexi.apis.openai.chat_tasks import SMALL_TALK_REPLY
from nexi.apis.openai.completions import ChatBody, parse_chat_request
from nexi.apis.openai.shapes import MODELS, TextLimit, citation_urls, citations_in
from nexi.config import Config
from nexi.errors import LLMError
from nexi.testing import ScriptedLLM, answering, reading, searching
from nexi.token_counter import count_tokens
from nexi.types import Reply, Source, Usage
from nexi.web.payload import Refused, parse_body
from tests.web.world import MOON, QUESTION, GatedWeb, Served, serving

PATH = "/v1/chat/completions"


def body(*messages: tuple[str, Any], model: str = "nexi-s", **more: Any) -> dict[str, Any]:
    said = messages or (("user", QUESTION),)
    return {"model": model, "messages": [{"role": role, "content": text} for role, text in said], **more}


async def chunks(served: Served, **more: Any) -> list[dict[str, Any]]:
    async with served.client.stream("POST", PATH, json={**body(stream=True), **more}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") async for line in stream.aiter_lines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


async def test_the_models_are_listed_and_found_by_name(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        listed = (await served.client.get("/v1/models")).json()
        assert [m["id"] for m in listed["data"]] == list(MODELS)
        assert (await served.client.get("/v1/models/nexi-m")).json() == listed["data"][1]
        missing = await served.client.get("/v1/models/gpt-4o")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


async def test_a_completion_has_the_answer_its_citations_and_its_usage(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        told = (await served.client.post(PATH, json=body())).json()
        message = told["choices"][0]["message"]
        assert (told["object"], told["model"], told["choices"][0]["finish_reason"]) == ("chat.completion", "nexi-s", "stop")
        assert "384,400 km" in message["content"]
        assert told["citations"][0] == MOON
        assert message["annotations"]
        for mark in message["annotations"]:
            cited = mark["url_citation"]
            number = int(message["content"][cited["start_index"] : cited["end_index"]].strip("[]"))
            assert told["citations"][number - 1] == cited["url"]
        assert told["usage"]["total_tokens"] == told["usage"]["prompt_tokens"] + told["usage"]["completion_tokens"]


async def test_a_stream_says_what_the_whole_answer_says(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        whole = (await served.client.post(PATH, json=body())).json()
        streamed = await chunks(served, stream_options={"include_usage": True})
        assert streamed[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        text = "".join(c["choices"][0]["delta"].get("content", "") for c in streamed if c["choices"])
        assert text == whole["choices"][0]["message"]["content"]
        last = streamed[-2]
        assert last["choices"][0]["finish_reason"] == "stop"
        assert last["choices"][0]["delta"]["annotations"] == whole["choices"][0]["message"]["annotations"]
        assert last["citations"] == whole["citations"]
        assert (streamed[-1]["choices"], streamed[-1]["usage"]) == ([], whole["usage"])
        assert {c["object"] for c in streamed} == {"chat.completion.chunk"}


async def test_deep_is_research(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        told = (await served.client.post(PATH, json=body(model="nexi-deep"))).json()
        run_id = told["id"].removeprefix("chatcmpl-")
        assert (await served.client.get(f"/v1/runs/{run_id}")).json()["mode"] == "research"


async def test_a_conversation_reaches_the_model_with_ones_own_instructions(tmp_path: Path) -> None:
    model = ScriptedLLM(searching("moon"), reading(MOON), answering("The Moon is 384,400 km from Earth on average [1]."))
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    web = GatedWeb()
    async with serving(tmp_path, config=config, web=web, llms={"answer": model, "extract": model, "judge": model}) as served:
        said = [("system", "Answer in one sentence."), ("user", "Which moon?"), ("assistant", "Ours [3]."), ("user", QUESTION)]
        told = (await served.client.post(PATH, json=body(*said))).json()
        assert "384,400 km" in told["choices"][0]["message"]["content"]
        first = model.requests[0]
        assert [m.role for m in first] == ["system", "user", "assistant", "user"]
        assert "Answer in one sentence." in first[0].content
        assert [m.content for m in first[1:3]] == ["Which moon?", "Ours ."]
        assert QUESTION in first[3].content


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (body(model="gpt-4o"), 404, "model_not_found"),
        ({"model": "nexi-s"}, 400, "bad_request"),
        ({"messages": []}, 400, "bad_request"),
        (body(("system", "hello")), 400, "bad_request"),
        (body(("user", "x"), ("assistant", "y")), 400, "bad_request"),
        (body(("robot", "x")), 400, "bad_request"),
        (body(("user", None)), 400, "question"),
        (body(("user", [])), 400, "question"),
        (body(("user", [{"type": "image_url", "image_url": {"url": "https://x"}}])), 400, "bad_request"),
        (body(n=2), 400, "bad_request"),
        (body(max_tokens=0), 400, "bad_request"),
        (body(stream="yes"), 400, "bad_request"),
        (body(tool_choice={"type": "function", "function": "f"}), 400, "bad_request"),
        ([], 400, "bad_request"),
    ],
)
async def test_what_cannot_be_asked_is_refused_in_openais_shape(tmp_path: Path, sent: Any, status: int, code: str) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post(PATH, json=sent)
        assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
        assert set(reply.json()["error"]) == {"message", "type", "param", "code"}


async def test_text_in_parts_is_text(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "How far is the Moon"}, {"type": "text", "text": "from Earth on average?"}]
    assert (
        parse_chat_request(parse_body(body(("user", parts)), ChatBody)).run.question
        == "How far is the Moon\nfrom Earth on average?"
    )


async def test_a_failure_while_streaming_is_an_error_event(tmp_path: Path) -> None:
    model = ScriptedLLM(*[LLMError("the model is away", status=500)] * 20)
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    async with serving(tmp_path, config=config, llms={"answer": model, "extract": model, "judge": model}) as served:
        streamed = await chunks(served)
        assert streamed[-1]["error"]["type"] in ("server_error", "invalid_request_error")
        reply = await served.client.post(PATH, json=body())
        assert reply.status_code in (422, 502)


async def test_a_client_that_leaves_ends_its_completion(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        async with served.client.stream("POST", PATH, json=body(stream=True)) as stream:
            async for _ in stream.aiter_lines():
                break
        waiting = asyncio.create_task(served.client.post(PATH, json=body()))
        await served.web.asked.wait()
        while served.app.state.host.active < 1:
            await asyncio.sleep(0.01)
        waiting.cancel()
        while served.app.state.host.active:
            await asyncio.sleep(0.01)
        listed = (await served.client.get("/v1/runs")).json()["runs"]
        assert {run["state"] for run in listed} == {"stopped"}


@given(st.lists(st.one_of(st.text(max_size=20), st.integers(0, 9).map(lambda n: f"[{n}]"))), st.sets(st.integers(1, 9)))
@settings(deadline=None)
def test_every_mark_stands_where_its_indexes_say(pieces: list[str], numbers: set[int]) -> None:
    text = "".join(pieces)
    sources = [Source(n, f"https://{n}.example/") for n in numbers]
    for cited in citations_in(text, sources):
        number = int(text[cited["start_index"] + 1 : cited["end_index"] - 1])
        assert (text[cited["start_index"]], text[cited["end_index"] - 1]) == ("[", "]")
        assert cited["url"] == f"https://{number}.example/" == citation_urls(sources)[number - 1]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
    )
)
@settings(deadline=None, max_examples=60)
def test_any_content_is_text_or_refused(content: Any) -> None:
    assert status_of(body(("user", content))) in (0, 400)


def status_of(sent: dict[str, Any]) -> int:
    try:
        parse_chat_request(parse_body(sent, ChatBody))
    except Refused as refusal:
        return refusal.problem.status
    return 0


async def test_small_talk_gets_a_sentence_and_no_search(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        told = (await served.client.post(PATH, json=body(("user", "Hello there!")))).json()
        assert told["choices"][0]["message"]["content"] == SMALL_TALK_REPLY
        streamed = await chunks(served, messages=[{"role": "user", "content": "Thanks a lot"}])
        assert "".join(c["choices"][0]["delta"].get("content", "") for c in streamed) == SMALL_TALK_REPLY
        assert served.web.queries == []


@pytest.mark.parametrize(
    ("agent", "more", "lists"),
    [
        ("OpenAI/Python 3.49.0", {}, True),
        ("AsyncOpenAI/Python 3.49.0", {}, True),
        ("OpenAI/Python 3.49.0", {"sources": False}, False),
        ("Python/3.11 aiohttp/3.13", {}, False),
        ("Python/3.11 aiohttp/3.13", {"sources": True}, True),
    ],
)
async def test_the_text_ends_with_its_sources_for_clients_that_show_none(
    tmp_path: Path, agent: str, more: dict[str, Any], lists: bool
) -> None:
    async with serving(tmp_path) as served:
        served.client.headers["user-agent"] = agent
        whole = (await served.client.post(PATH, json=body(**more))).json()["choices"][0]["message"]
        streamed = await chunks(served, **more)
        text = "".join(c["choices"][0]["delta"].get("content", "") for c in streamed)
        answer, _, listed = text.partition("\n\nSources:\n")
        assert (whole["content"], MOON in listed) == (text, lists)
        assert all(mark["url_citation"]["end_index"] <= len(answer) for mark in whole["annotations"])
        assert streamed[-1]["choices"][0]["delta"]["annotations"] == whole["annotations"]


def test_a_list_of_sources_in_an_earlier_answer_is_left_out() -> None:
    said = f"Ours [1].\n\nSources:\n[1] Moon facts - {MOON}"
    chat = parse_chat_request(parse_body(body(("user", "Which moon?"), ("assistant", said), ("user", QUESTION)), ChatBody))
    assert [m.content for m in chat.session.messages] == ["Which moon?", "Ours ."]


async def test_research_streams_its_progress_as_reasoning(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        streamed = await chunks(served, model="nexi-deep")
        thought = "".join(c["choices"][0]["delta"].get("reasoning_content", "") for c in streamed)
        assert "Searched: " in thought
        assert all("reasoning_content" not in c["choices"][0]["delta"] for c in await chunks(served))


DISTANCE = {"type": "object", "properties": {"km": {"type": "integer"}}, "required": ["km"]}
JSON_FORM = {"type": "json_schema", "json_schema": {"name": "distance", "schema": DISTANCE, "strict": True}}


async def test_a_completion_fits_the_schema_it_is_asked_in(tmp_path: Path) -> None:
    steps = [searching("moon"), reading(MOON), answering("The Moon is 384,400 km from Earth on average [1].")]
    steps.append(Reply('{"km": 384400}', (), Usage(50, 5)))
    model = ScriptedLLM(*steps, *steps)
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    async with serving(tmp_path, config=config, llms={"answer": model, "extract": model, "judge": model}) as served:
        whole = (await served.client.post(PATH, json=body(response_format=JSON_FORM, sources=True))).json()
        assert json.loads(whole["choices"][0]["message"]["content"]) == {"km": 384400}
        assert (whole["choices"][0]["message"]["annotations"], whole["citations"]) == ([], [MOON])
        streamed = await chunks(served, response_format=JSON_FORM)
        text = "".join(c["choices"][0]["delta"].get("content", "") for c in streamed)
        assert json.loads(text) == {"km": 384400}


FUNCTION = {"type": "function", "function": {"name": "final_result", "parameters": JSON_FORM["json_schema"]["schema"]}}


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "final_result"}}])
async def test_a_function_that_is_forced_is_called_with_the_answer_as_its_arguments(tmp_path: Path, choice: Any) -> None:
    steps = [searching("moon"), reading(MOON), answering("The Moon is 384,400 km from Earth on average [1].")]
    steps.append(Reply('{"km": 384400}', (), Usage(50, 5)))
    model = ScriptedLLM(*steps, *steps)
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    asked = {"tools": [FUNCTION], "tool_choice": choice}
    async with serving(tmp_path, config=config, llms={"answer": model, "extract": model, "judge": model}) as served:
        (whole,) = (await served.client.post(PATH, json=body(**asked))).json()["choices"]
        streamed = [c["choices"][0] for c in await chunks(served, **asked)]
    (call,) = whole["message"]["tool_calls"]
    assert (whole["finish_reason"], whole["message"]["content"], call["type"]) == ("tool_calls", None, "function")
    assert call["function"] == {"name": "final_result", "arguments": '{"km": 384400}'}
    (part,) = [call for c in streamed for call in c["delta"].get("tool_calls", ())]
    assert (part["index"], part["function"], streamed[-1]["finish_reason"]) == (0, call["function"], "tool_calls")
    assert "".join(c["delta"].get("content") or "" for c in streamed) == ""


async def test_tools_that_are_not_forced_are_not_called_and_a_warning_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        told = (await served.client.post(PATH, json=body(tools=[FUNCTION]))).json()
        plain = (await served.client.post(PATH, json=body())).json()
    assert "384,400 km" in told["choices"][0]["message"]["content"]
    assert [any("tools of the client" in w for w in t["nexi"]["warnings"]) for t in (told, plain)] == [True, False]


async def test_json_that_does_not_fit_is_an_error_of_the_model(tmp_path: Path) -> None:
    steps = [searching("moon"), reading(MOON), answering("The Moon is 384,400 km from Earth on average [1].")]
    model = ScriptedLLM(*steps, Reply('{"miles": 238855}', (), Usage(50, 5)))
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    async with serving(tmp_path, config=config, llms={"answer": model, "extract": model, "judge": model}) as served:
        reply = await served.client.post(PATH, json=body(response_format=JSON_FORM))
        assert (reply.status_code, reply.json()["error"]["code"]) == (502, "bad_json")


@pytest.mark.parametrize(
    "more",
    [
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "xml"}},
        {"tool_choice": "required"},
        {"tool_choice": "required", "tools": [{"type": "function", "function": {"name": name}} for name in "fg"]},
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
    ],
)
async def test_forms_that_cannot_be_kept_are_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post(PATH, json=body(**more))
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, next(iter(more)))
        assert served.web.queries == []


async def test_an_answer_ends_at_the_token_limit_of_its_client_and_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        told = (await served.client.post(PATH, json=body(max_tokens=6, sources=True))).json()["choices"][0]
        streamed = await chunks(served, max_completion_tokens=6, sources=True)
    text = told["message"]["content"]
    assert (told["finish_reason"], "Sources:" in text, 0 < count_tokens(text) <= 6) == ("length", False, True)
    deltas = [chunk["choices"][0] for chunk in streamed]
    assert ("".join(d["delta"].get("content") or "" for d in deltas), deltas[-1]["finish_reason"]) == (text, "length")


@given(st.lists(st.text(alphabet="ab \n.,é", max_size=20), max_size=8), st.integers(1, 12))
def test_what_a_limit_lets_through_is_the_beginning_of_the_text_within_the_limit(parts: list[str], most: int) -> None:
    limit = TextLimit(most)
    shown = "".join(map(limit.feed, parts))
    assert "".join(parts).startswith(shown)
    assert count_tokens(shown) <= most
    assert limit.shown == shown
    assert limit.is_cut == (shown != "".join(parts))
