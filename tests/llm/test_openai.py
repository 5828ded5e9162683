"""The adapter against a real loopback endpoint that answers well, badly, or not at all."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from nexi.app.emit import QuietEmit
from nexi.budget import Budget, Meter
from nexi.errors import ContextOverflowError, LLMError
from nexi.llm.openai.client import OpenAICompatible
from nexi.llm.openai.prices import Price
from nexi.model import MeteredLLM
from nexi.token_counter import TokenCounter
from nexi.types import Message, Reply, ToolCall, ToolSpec, Usage
from tests.llm.server import USAGE, Canned, Server, call_delta, data, delta, plain, refused, said, serving, sse

SEARCH = ToolSpec(
    "web_search",
    "Search the web.",
    {
        "type": "object",
        "properties": {"queries": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 5}},
        "required": ["queries"],
    },
)
FINISH = ToolSpec(
    "final_answer", "Answer.", {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
)
TOOLS = (SEARCH, FINISH)
QUESTION = (Message("system", "Be brief."), Message("user", "Why?"))
CALL = ToolCall("call_a", "web_search", '{"queries": ["x"]}')
SEEN = Usage(10, 5, False, None)
KEY = "sk-secret-0123456789"


class InstantClock:
    """Sleeping takes no time but is written down."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.time = 100.0

    def monotonic(self) -> float:
        return self.time

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


class Heard:
    """Everything the callbacks were told, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    @property
    def callbacks(self) -> dict[str, Callable[..., None]]:
        return {
            "on_text": lambda text: self.events.append(("text", text)),
            "on_call": lambda call: self.events.append(("call", call)),
            "on_arguments": lambda name, piece: self.events.append(("arguments", name, piece)),
        }

    @property
    def text(self) -> str:
        return "".join(event[1] for event in self.events if event[0] == "text")

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(event[1] for event in self.events if event[0] == "call")

    def arguments(self, name: str) -> str:
        return "".join(event[2] for event in self.events if event[:2] == ("arguments", name))


@asynccontextmanager
async def model(*script: Canned, **options: Any) -> AsyncIterator[tuple[OpenAICompatible, Server]]:
    async with serving(script) as server:
        options = {"clock": InstantClock(), "rng": lambda: 1.0, **options}
        llm = OpenAICompatible(options.pop("base_url", server.url), "some-model", **options)
        try:
            yield llm, server
        finally:
            await llm.aclose()


async def ask(llm: OpenAICompatible, tools: Sequence[ToolSpec] = (), heard: Heard | None = None, **options: Any) -> Reply:
    callbacks = heard.callbacks if heard else {}
    return await llm.complete(options.pop("messages", QUESTION), tools, max_tokens=100, **callbacks, **options)


async def ask_metered(
    llm: OpenAICompatible, tools: Sequence[ToolSpec] = (), heard: Heard | None = None, **options: Any
) -> Reply:
    """Ask as the gate does, which has an unreadable reply written again."""
    clock = InstantClock()
    metered = MeteredLLM(llm, "answer", Meter(Budget()), QuietEmit(), clock, TokenCounter(), 10_000)
    callbacks = heard.callbacks if heard else {}
    return await metered.complete(QUESTION, tools, max_tokens=100, **callbacks, **options)


async def failure(*script: Canned, tools: Sequence[ToolSpec] = (), heard: Heard | None = None, **options: Any) -> LLMError:
    options = {"max_retries": 0, **options}
    async with model(*script, **options) as (llm, _):
        with pytest.raises(LLMError) as caught:
            await ask(llm, tools, heard)
    return caught.value


# --- asking and reading


async def test_a_streamed_text_reaches_the_listener_in_pieces_and_the_reply_whole() -> None:
    heard = Heard()
    script = sse(delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), delta("stop"))
    async with model(script, api_keys=[KEY]) as (llm, server):
        reply = await ask(llm, heard=heard, temperature=0.3)
    assert reply == Reply("Hello", (), SEEN, "stop")
    assert heard.events == [("text", "Hel"), ("text", "lo")]
    assert llm.name == "some-model"
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert (server.asked[0].method, server.asked[0].path) == ("POST", "/v1/chat/completions")
    assert server.bodies == [
        {
            "model": "some-model",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
            "max_tokens": 100,
            "temperature": 0.3,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


async def test_without_a_key_no_authorization_is_sent_and_without_streaming_none_is_asked_for() -> None:
    async with model(plain({"content": "Hi"}, usage=USAGE["usage"]), stream=False) as (llm, server):
        assert await ask(llm) == Reply("Hi", (), SEEN, "stop")
    assert "authorization" not in server.asked[0].headers
    assert "stream" not in server.bodies[0]
    assert "stream_options" not in server.bodies[0]


@pytest.mark.parametrize("ending", ["/", "//", "/chat/completions", "/chat/completions/", "?api-version=1", "/?api-version=1"])
async def test_a_base_url_may_be_given_with_more_or_less_at_its_end(ending: str) -> None:
    async with serving([said("ok")]) as server:
        llm = OpenAICompatible(f" {server.url}{ending} ", "m", clock=InstantClock())
        await ask(llm)
        await llm.aclose()
    query = "?api-version=1" if "?" in ending else ""
    assert server.asked[0].path == f"/v1/chat/completions{query}"


async def test_a_server_that_ignores_streaming_and_answers_at_once_is_understood() -> None:
    message = {
        "content": None,
        "tool_calls": [{"id": "call_a", "function": {"name": "web_search", "arguments": '{"queries": ["x"]}'}}],
    }
    heard = Heard()
    async with model(plain(message, "tool_calls", usage=USAGE["usage"])) as (llm, _):
        assert await ask(llm, TOOLS, heard) == Reply("", (CALL,), SEEN, "tool_calls")
    assert heard.calls == (CALL,)


async def test_the_connection_is_used_again() -> None:
    async with model(said("one"), said("two")) as (llm, server):
        assert [(await ask(llm)).text, (await ask(llm)).text] == ["one", "two"]
    assert server.connections == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_a_stream_may_be_cut_anywhere_and_have_any_line_ends_and_comments(size: int) -> None:
    body = (
        b": hello\r\n\r\nevent: message\r\nid: 1\r\n"
        + b"data: " + json.dumps(delta(content="Grüße 😀 "), ensure_ascii=False).encode() + b"\r\n\r\n"
        + b": ping\r\n\r\n"
        + b'data:{"choices":\r\ndata: [{"delta": {"content": "und\\n"}}]}\r\n\r\n'
        + b"data: garbage\n\n"
        + b"data: " + json.dumps(delta("stop", content="Ende")).encode() + b"\r\r"
        + b"data: [DONE]\n\n"
    )  # fmt: skip
    chunks = tuple(body[i : i + size] for i in range(0, len(body), size))
    async with model(Canned(200, chunks, "text/event-stream")) as (llm, _):
        assert (await ask(llm)).text == "Grüße 😀 und\nEnde"


async def test_events_without_blank_lines_and_without_an_event_content_type_are_read() -> None:
    body = (
        b"data: "
        + json.dumps(delta(content="a")).encode()
        + b"\ndata: "
        + json.dumps(delta("stop", content="b")).encode()
        + b"\n"
    )
    async with model(Canned(200, (body,), "text/plain")) as (llm, _):
        assert (await ask(llm)).text == "ab"


async def test_a_character_split_over_two_deltas_is_whole_and_half_a_character_is_replaced() -> None:
    heard = Heard()
    async with model(sse(delta(content="a\ud83d"), delta(content="\ude00 \ud83d!"), delta("stop"))) as (llm, _):
        assert (await ask(llm, heard=heard)).text == "a😀 \ufffd!"
    assert heard.text == "a😀 \ufffd!"


async def test_a_stream_that_ends_after_its_finish_needs_no_end_mark() -> None:
    async with model(sse(delta(content="ok"), delta("length"), done=False, usage=False)) as (llm, _):
        reply = await ask(llm)
    assert (reply.text, reply.finish) == ("ok", "length")


async def test_a_server_that_keeps_the_line_open_after_its_end_mark_is_not_waited_for() -> None:
    async with model(sse(delta(content="ok"), delta("stop"), then="hang")) as (llm, _):
        assert await ask(llm) == Reply("ok", (), SEEN, "stop")


async def test_a_connection_lost_after_the_finish_loses_nothing() -> None:
    async with model(sse(delta(content="ok"), delta("stop"), done=False, usage=False, then="abort")) as (llm, _):
        assert (await ask(llm)).text == "ok"


# --- tool calls


async def test_a_call_is_told_as_soon_as_its_arguments_are_whole() -> None:
    heard = Heard()
    script = sse(
        call_delta(0, "call_a", "web_", ""),
        call_delta(0, None, "search"),
        call_delta(0, None, None, '{"queries"'),
        call_delta(0, None, None, ': ["x"]}'),
        delta(content="later"),
        call_delta(1, "call_b", "final_answer", '{"answer": "}\\"'),
        call_delta(1, None, None, '{"}'),
        delta("tool_calls"),
    )
    second = ToolCall("call_b", "final_answer", '{"answer": "}\\"{"}')
    async with model(script) as (llm, _):
        assert await ask(llm, TOOLS, heard) == Reply("later", (CALL, second), SEEN, "tool_calls")
    assert heard.events == [
        ("arguments", "web_search", '{"queries"'),
        ("arguments", "web_search", ': ["x"]}'),
        ("call", CALL),
        ("text", "later"),
        ("arguments", "final_answer", '{"answer": "}\\"'),
        ("arguments", "final_answer", '{"}'),
        ("call", second),
    ]


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        pytest.param(
            [call_delta(0, "a", "web_search", '{"queries": ["1"]}'), call_delta(0, "b", "web_search", '{"queries": ["2"]}')],
            [("a", "web_search", '{"queries": ["1"]}'), ("b", "web_search", '{"queries": ["2"]}')],
            id="always index 0 with other ids",
        ),
        pytest.param(
            [call_delta(0, "", "web_search", '{"queries": ["1"]}'), call_delta(0, "", "web_search", '{"queries": ["2"]}')],
            [("call00001", "web_search", '{"queries": ["1"]}'), ("call00002", "web_search", '{"queries": ["2"]}')],
            id="always index 0 without ids",
        ),
        pytest.param(
            [call_delta(None, None, "web_search", {"queries": ["1"]}), call_delta(None, None, "final_answer", {"answer": "2"})],
            [("call00001", "web_search", '{"queries": ["1"]}'), ("call00002", "final_answer", '{"answer": "2"}')],
            id="objects as arguments, no index, no id",
        ),
        pytest.param(
            [
                call_delta(0, "same", "web_search", '{"queries": ["1"]}'),
                call_delta(1, "same", "web_search", '{"queries": ["2"]}'),
            ],
            [("same", "web_search", '{"queries": ["1"]}'), ("call00001", "web_search", '{"queries": ["2"]}')],
            id="one id for two calls",
        ),
        pytest.param(
            [call_delta(0, "a", "web_search", '{"que'), call_delta(0, "a", "web_search", 'ries": []}')],
            [("a", "web_search", '{"queries": []}')],
            id="id and name repeated in every piece",
        ),
        pytest.param(
            [call_delta(0, "a", "web_search", '{"queries": ["1"]}')] * 2,
            [("a", "web_search", '{"queries": ["1"]}')],
            id="the whole call repeated",
        ),
        pytest.param(
            [call_delta(0, "a", "web_search", "{}"), call_delta(0, None, None, '{"queries": ["1"]}')],
            [("a", "web_search", '{"queries": ["1"]}')],
            id="empty arguments as a placeholder",
        ),
        pytest.param([call_delta(0, "a", "web_search")], [("a", "web_search", "{}")], id="no arguments"),
        pytest.param(
            [call_delta(0, "a", "web_search", '{"queries": [')], [("a", "web_search", '{"queries": [')], id="half of them"
        ),
        pytest.param([call_delta(0, "a", "functions.web_search", "{}")], [("a", "web_search", "{}")], id="a namespaced name"),
        pytest.param([call_delta(0, "a", "rm -rf", "{}")], [("a", "rm_-rf", "{}")], id="a name nobody offered"),
        pytest.param([call_delta(0, "a", None, '{"a": 1}')], [("a", "unknown", '{"a": 1}')], id="no name"),
        pytest.param(
            [delta(function_call={"name": "web_search", "arguments": "{}"})],
            [("call00001", "web_search", "{}")],
            id="the old function_call",
        ),
        pytest.param(
            [delta(tool_calls=[None, 3, {"function": None, "index": 0}, "x"]), call_delta(0, "a", "web_search", "{}")],
            [("a", "web_search", "{}")],
            id="rubbish between",
        ),
    ],
)
async def test_calls_are_put_together_however_a_server_sends_them(
    events: list[dict[str, Any]], wanted: list[tuple[str, str, str]]
) -> None:
    heard = Heard()
    async with model(sse(*events, delta("tool_calls"))) as (llm, _):
        reply = await ask(llm, TOOLS, heard)
    assert reply.tool_calls == tuple(ToolCall(*call) for call in wanted)
    assert heard.calls == reply.tool_calls
    assert reply.finish == "tool_calls"


async def test_an_id_that_the_conversation_already_has_is_replaced() -> None:
    before = (*QUESTION, Message("assistant", "", (CALL,)), Message("tool", "found", tool_call_id="call_a"))
    async with model(sse(call_delta(0, "call_a", "web_search", '{"queries": ["x"]}'), delta("tool_calls"))) as (llm, _):
        reply = await ask(llm, TOOLS, messages=before)
    assert [call.id for call in reply.tool_calls] == ["call00002"]


async def test_thirty_calls_come_back_whole() -> None:
    events = [call_delta(i, f"id{i}", "web_search", json.dumps({"queries": [str(i)]})) for i in range(30)]
    async with model(sse(*events, delta("tool_calls"))) as (llm, _):
        reply = await ask(llm, TOOLS)
    assert [call.id for call in reply.tool_calls] == [f"id{i}" for i in range(30)]


async def test_tools_are_offered_and_broken_arguments_of_the_past_are_made_sendable() -> None:
    broken = ToolCall("a", "web_search", '{"queries": [')
    before = (*QUESTION, Message("assistant", "", (broken,)), Message("tool", "bad", tool_call_id="a"))
    async with model(said("ok")) as (llm, server):
        await ask(llm, (SEARCH,), messages=before)
    function = {"name": "web_search", "description": "Search the web.", "parameters": SEARCH.parameters}
    assert server.bodies[0]["tools"] == [{"type": "function", "function": function}]
    sent = server.bodies[0]["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"unreadable": '{"queries": ['}


# --- thoughts


@pytest.mark.parametrize(
    "pieces",
    [
        ["<think>no</think>\n\nyes"],
        ["<th", "ink>n", "o</thi", "nk>", "ye", "s"],
        ["ye", "<THINKING>no</thinking>s"],
        ["yes<think>no and no end"],
        ["yes", "<think>", "no"],
        ["no</think>yes"],
        [*"<think>n<o</think>yes"],
    ],
)
async def test_thoughts_never_reach_the_text(pieces: list[str]) -> None:
    heard = Heard()
    async with model(sse(*(delta(content=p) for p in pieces), delta("stop"))) as (llm, _):
        reply = await ask(llm, heard=heard)
    assert reply.text == "yes"
    assert heard.text == "yes" or pieces == ["no</think>yes"]


async def test_reasoning_fields_and_thinking_parts_never_reach_the_text() -> None:
    heard = Heard()
    script = sse(
        delta(reasoning="no"),
        delta(reasoning_content="no", content=""),
        delta(content=[{"type": "thinking", "thinking": "no"}, {"type": "text", "text": "yes"}]),
        delta("stop"),
    )
    async with model(script) as (llm, _):
        assert (await ask(llm, heard=heard)).text == "yes"
    assert heard.events == [("text", "yes")]


async def test_a_tag_in_backquotes_and_a_lonely_angle_are_words() -> None:
    text = "Use `<think>` if a < b and c <"
    async with model(sse(*(delta(content=c) for c in text), delta("stop"))) as (llm, _):
        assert (await ask(llm)).text == text


async def test_a_reply_cut_while_thinking_says_so() -> None:
    fault = await failure(sse(delta(reasoning="hm"), delta("length")))
    assert (fault.code, fault.retryable, fault.usage) == ("empty_reply", False, SEEN)
    assert "max_output_tokens" in fault.fix


# --- usage and cost


async def test_usage_is_estimated_where_the_server_sends_none() -> None:
    async with model(sse(delta(content="x" * 40), delta("stop"), usage=False), count=lambda text: len(text)) as (llm, _):
        reply = await ask(llm)
    assert reply.usage == Usage(len("Be brief.") + len("Why?") + 6, 40, True, None)


async def test_cost_comes_from_the_server_before_the_prices_and_is_unknown_without_either() -> None:
    dear = {"some-model": Price(1_000_000, 2_000_000)}
    told = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.25}}
    async with model(said("a"), sse(delta(content="b"), delta("stop"), told, usage=False), prices=dear) as (llm, _):
        assert (await ask(llm)).usage == Usage(10, 5, False, 20.0)
        assert (await ask(llm)).usage == Usage(10, 5, False, 0.25)


@pytest.mark.parametrize("usage", [None, [], "much", {"prompt_tokens": "10"}, {"prompt_tokens": -1, "completion_tokens": True}])
async def test_usage_that_makes_no_sense_is_estimated(usage: object) -> None:
    async with model(plain({"content": "12345678"}, usage=usage)) as (llm, _):
        assert (await ask(llm)).usage == Usage(9, 2, True, None)


# --- failures


@pytest.mark.parametrize(
    ("canned", "code", "words", "fix"),
    [
        (refused(400, "messages: wrong"), "bad_request", "messages: wrong", "-m MODEL"),
        (refused(401, f"Incorrect API key provided: {KEY}"), "auth", "Incorrect API key provided: [key]", "nexi config setup"),
        (refused(402, "no credits"), "payment", "no credits", "top up"),
        (refused(403, {"detail": "forbidden"}), "auth", "forbidden", "-m MODEL"),
        (refused(404, {"error": "model 'x' not found"}), "not_found", "model 'x' not found", "nexi models"),
        (refused(408, "slow"), "timeout", "slow", "time target"),
        (refused(429, "slow down"), "rate_limit", "slow down", "-m MODEL"),
        (refused(429, {"error": {"message": "no money", "code": "insufficient_quota"}}), "payment", "no money", "top up"),
        (refused(500, {"error": {"message": "oops\x00\n" + "x" * 999}}), "server", "oops xxx", "wait"),
        (Canned(502, (b"<html><title>502 Bad Gateway</title>",), "text/html"), "server", "502 Bad Gateway", "wait"),
        (Canned(200, (b"\n<!doctype html><p>Sign in",), "text/html"), "html_reply", "Sign in", "base_url"),
        (Canned(200, (b'{"choices": [{"message": {"con',)), "bad_reply", '{"choices"', "base_url"),
        (Canned(200, (b'{"hello": "world"}',)), "bad_reply", "hello", "base_url"),
        (Canned(200, (b"[1, 2, 3]",)), "bad_reply", "[1, 2", "base_url"),
        (Canned(200, (b'{"choices": null}',)), "bad_reply", "choices", "base_url"),
        (Canned(200, ()), "empty_reply", "no text", "-m MODEL"),
        (plain({}), "empty_reply", "no text", "-m MODEL"),
        (plain({"content": " \n"}), "empty_reply", "no text", "-m MODEL"),
        (sse(usage=False), "empty_reply", "no text", "-m MODEL"),
        (Canned(200, (b'{"error": {"message": "overloaded", "code": 503}}',)), "server", "overloaded", "wait"),
        (sse(delta(content="a"), {"error": {"message": "died", "code": 429}}, done=False), "rate_limit", "died", "wait"),
        (sse(delta(content="a"), {"error": "died"}), "server", "died", "wait"),
        (sse({"object": "error", "message": "died", "code": 500}), "server", "died", "wait"),
        (sse(delta(content="a"), delta("error"), done=False), "server", "provider", "wait"),
        (sse(delta(content="a"), done=False), "stream_closed", "no end", "-m MODEL"),
        (Canned(200, (b'data: {"choices": [{"del',), "text/event-stream"), "stream_closed", "no end", "-m MODEL"),
        (sse(delta(content="a"), done=False, then="abort"), "stream_closed", "", "-m MODEL"),
        (Canned(then="refuse"), "stream_closed", "", "-m MODEL"),
        (Canned(307, headers=(("location", "https://new.example/v1"),)), "not_found", "https://new.example/v1", "base_url"),
        (Canned(200, (b"not compressed at all",), headers=(("content-encoding", "gzip"),)), "bad_reply", "", "base_url"),
    ],
)  # fmt: skip
async def test_each_failure_says_what_happened_why_and_what_to_do(canned: Canned, code: str, words: str, fix: str) -> None:
    fault = await failure(canned, api_keys=[KEY])
    assert fault.code == code
    assert words in fault.cause
    assert fix in fault.fix
    assert len(fault.cause) <= 300
    assert KEY not in f"{fault} {fault.fix} {fault!r} {fault.__cause__}"
    assert "127.0.0.1" in fault.message


async def test_nobody_listening_is_a_connect_failure_that_is_tried_again() -> None:
    async with serving([]) as server:
        pass
    clock = InstantClock()
    llm = OpenAICompatible(server.url, "m", clock=clock, max_retries=2, rng=lambda: 0.0)
    with pytest.raises(LLMError) as caught:
        await ask(llm)
    await llm.aclose()
    assert (caught.value.code, "start the model server" in caught.value.fix) == ("connect", True)
    assert clock.slept == [0.25, 0.5]


@pytest.mark.parametrize(
    ("base_url", "code"),
    [
        ("localhost:1/v1", "connect"),
        ("", "connect"),
        ("http://\x00", "connect"),
        ("http://nowhere.invalid/v1", "dns"),
        ("ftp://x", "connect"),
    ],
)
async def test_an_address_that_cannot_be_called_is_said_to_be_one(
    base_url: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    llm = OpenAICompatible(base_url, "m", clock=InstantClock())
    with pytest.raises(LLMError) as caught:
        await ask(llm)
    await llm.aclose()
    assert (caught.value.code, "base_url" in caught.value.fix) == (code, True)


async def test_plain_http_behind_a_tls_address_is_a_tls_failure() -> None:
    async def speak_no_tls(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(speak_no_tls, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        llm = OpenAICompatible(f"https://127.0.0.1:{port}/v1", "m", clock=InstantClock(), max_retries=0)
        with pytest.raises(LLMError) as caught:
            await ask(llm)
        await llm.aclose()
    assert caught.value.code == "tls"


async def test_no_certificates_are_loaded_for_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("certificates were loaded")

    monkeypatch.setattr(ssl, "create_default_context", refuse)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", refuse)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", refuse)
    async with model(said("ok")) as (llm, _):
        assert (await ask(llm)).text == "ok"


@pytest.mark.parametrize("key", ["sk-line\nbreak", "schlüssel-lang"])
async def test_a_key_that_cannot_be_sent_is_named_as_the_fault_but_not_shown(key: str) -> None:
    fault = await failure(api_keys=[key])
    assert fault.code == "auth"
    assert key not in f"{fault!r} {fault}"


@pytest.mark.parametrize("proxy", ["nonsense", "socks9://x"])
async def test_a_proxy_that_cannot_be_used_is_named_as_the_fault(proxy: str) -> None:
    fault = await failure(proxy=proxy)
    assert (fault.code, "PROXY" in fault.fix) == ("connect", True)


async def test_requests_go_through_a_proxy_that_is_passed_in() -> None:
    async with serving([said("via")]) as proxy:
        address = proxy.url.removesuffix("/v1")
        llm = OpenAICompatible("http://model.example/v1", "m", clock=InstantClock(), proxy=address)
        assert (await ask(llm)).text == "via"
        await llm.aclose()
    assert proxy.asked[0].path == "http://model.example/v1/chat/completions"


async def test_a_client_that_was_passed_in_is_used_and_left_open() -> None:
    async with serving([said("ok")]) as server, httpx2.AsyncClient(trust_env=False) as client:
        llm = OpenAICompatible(server.url, "m", clock=InstantClock(), client=client)
        assert (await ask(llm)).text == "ok"
        await llm.aclose()
        assert not client.is_closed


# --- context overflow


def _error(message: str, **more: object) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("status", "error", "window"),
    [
        (400, _error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded"), 8192),
        (400, _error("the request exceeds the available context size", type="exceed_context_size_error", n_ctx=4096), 4096),
        (400, {"object": "error", "message": "maximum context length is 2,048 tokens. However, you requested 9000"}, 2048),
        (400, {"error": "The number of tokens to keep from the initial prompt is greater than the context length"}, None),
        (400, {"error": "loaded with context length of only 4096 tokens, greater than the context"}, 4096),
        (400, _error("Provider returned error", metadata={"raw": "maximum context length is 32768 tokens"}), 32768),
        (400, {"type": "error", **_error("prompt is too long: 208310 tokens > 200000 maximum")}, 200000),
        (400, _error("The input token count (1234567) exceeds the maximum number of tokens allowed (1048576)."), 1048576),
        (500, {"error": "input length exceeds the context length"}, None),
        (413, {"error": "payload too large"}, None),
    ],
)
async def test_an_overflow_is_recognised_in_every_wording(status: int, error: dict[str, Any], window: int | None) -> None:
    fault = await failure(refused(status, error), max_retries=3)
    assert isinstance(fault, ContextOverflowError)
    assert (fault.code, fault.window, fault.status) == ("context_overflow", window, status)


async def test_an_overflow_inside_a_stream_is_recognised() -> None:
    fault = await failure(sse({"error": {"message": "context size has been exceeded", "n_ctx": 512}}))
    assert isinstance(fault, ContextOverflowError)
    assert fault.window == 512


async def test_a_prompt_that_fits_is_sent_again_with_less_room_for_the_answer() -> None:
    message = (
        "max_tokens is too large: 900. This model's maximum context length is 1024 tokens and your request has 500 input tokens"
    )
    async with model(refused(400, message), said("ok"), said("ok")) as (llm, server):
        await llm.complete(QUESTION, max_tokens=900)
        await llm.complete(QUESTION, max_tokens=900)
    assert [body["max_tokens"] for body in server.bodies] == [900, 508, 900]


# --- patience


async def test_a_server_that_is_busy_is_asked_again_with_growing_jittered_waits() -> None:
    clock = InstantClock()
    script = (refused(500), refused(503), refused(429), said("ok"))
    async with model(*script, clock=clock, rng=lambda: 0.5) as (llm, server):
        assert (await ask(llm)).text == "ok"
    assert clock.slept == [0.375, 0.75, 1.5]
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("header", "waits"),
    [
        (("Retry-After", "7"), [7.0]),
        (("Retry-After", "Fri, 02 Jan 2026 03:04:15 GMT"), [10.0]),
        (("retry-after-ms", "1500"), [1.5]),
        (("Retry-After", "soon"), [0.5]),
    ],
)
async def test_the_wish_of_the_server_is_honoured(header: tuple[str, str], waits: list[float]) -> None:
    clock = InstantClock()
    async with model(refused(429, "wait", header), said("ok"), clock=clock) as (llm, _):
        await ask(llm)
    assert clock.slept == waits


async def test_a_wish_longer_than_the_deadline_ends_the_asking_at_once() -> None:
    clock = InstantClock()
    async with model(refused(429, "wait", ("retry-after", "60")), clock=clock) as (llm, server):
        with pytest.raises(LLMError) as caught:
            await ask(llm, deadline=130.0)
    assert (caught.value.code, caught.value.retry_after, clock.slept, len(server.asked)) == ("rate_limit", 60.0, [], 1)


async def test_retries_end_at_their_limit_and_the_last_failure_stands() -> None:
    async with model(refused(500, "a"), refused(500, "b"), refused(503, "c"), max_retries=2) as (llm, server):
        with pytest.raises(LLMError) as caught:
            await ask(llm)
    assert (caught.value.cause, caught.value.status, len(server.asked)) == ("c", 503, 3)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
async def test_what_will_not_mend_itself_is_not_asked_again(status: int) -> None:
    async with model(refused(status), said("never"), api_keys=[KEY]) as (llm, server):
        with pytest.raises(LLMError):
            await ask(llm)
    assert len(server.asked) == 1


@pytest.mark.parametrize("broken", [sse(usage=False), sse(delta(content="a"), done=False), Canned(then="refuse"), refused(409)])
async def test_empty_and_broken_replies_are_asked_for_again_while_nothing_was_told(broken: Canned) -> None:
    async with model(broken, said("ok")) as (llm, _):
        assert (await ask(llm)).text == "ok"


async def test_what_failed_attempts_cost_is_in_the_usage() -> None:
    async with model(sse(delta("stop")), said("ok")) as (llm, _):
        assert (await ask(llm)).usage == Usage(20, 10, False, None)


@pytest.mark.parametrize("status", [401, 402, 403, 429])
async def test_the_next_key_is_tried_first_and_the_one_that_works_is_kept(status: int) -> None:
    clock = InstantClock()
    async with model(refused(status), said("a"), said("b"), api_keys=["key-one", "key-two"], clock=clock) as (llm, server):
        await ask(llm)
        await ask(llm)
    sent = [asked.headers["authorization"] for asked in server.asked]
    assert sent == ["Bearer key-one", "Bearer key-two", "Bearer key-two"]
    assert clock.slept == []


async def test_when_every_key_is_refused_the_failure_stands() -> None:
    async with model(refused(401), refused(401), said("no"), api_keys=["key-one", "key-two"]) as (llm, server):
        with pytest.raises(LLMError) as caught:
            await ask(llm)
    assert (caught.value.code, len(server.asked)) == ("auth", 2)


async def test_a_stream_closed_after_text_was_told_is_not_repeated_and_keeps_the_text() -> None:
    heard = Heard()
    script = (sse(delta(content="Half an an"), done=False, usage=False), said("never"))
    async with model(*script) as (llm, server):
        with pytest.raises(LLMError) as caught:
            await ask(llm, heard=heard)
    fault = caught.value
    assert (fault.code, fault.retryable, fault.partial, len(server.asked)) == ("stream_closed", False, "Half an an", 1)
    assert fault.usage == Usage(9, 2, True, None)
    assert heard.text == "Half an an"


async def test_a_call_that_was_not_whole_when_the_stream_closed_is_never_told() -> None:
    heard = Heard()
    fault = await failure(sse(call_delta(0, "a", "web_search", '{"que'), done=False), tools=TOOLS, heard=heard)
    assert (fault.code, heard.calls) == ("stream_closed", ())


# --- time and size


async def test_a_reply_that_never_finishes_ends_at_the_deadline_with_what_came() -> None:
    heard = Heard()
    async with model(sse(delta(content="Once upon"), done=False, usage=False, then="hang")) as (llm, server):
        with pytest.raises(LLMError) as caught:
            await ask(llm, heard=heard, deadline=101.0)
        await asyncio.wait_for(server.gone.wait(), 300)
    assert (caught.value.code, caught.value.retryable, caught.value.partial) == ("timeout", False, "Once upon")
    assert "time" in caught.value.fix


async def test_after_the_deadline_nothing_is_sent() -> None:
    async with model(said("no")) as (llm, server):
        with pytest.raises(LLMError) as caught:
            await ask(llm, deadline=99.0)
    assert (caught.value.code, server.asked) == ("timeout", [])


async def test_a_server_that_falls_silent_is_left_and_asked_again() -> None:
    script = (sse(delta(content="a"), done=False, then="hang"), Canned(then="hang"), said("ok"))
    async with model(*script, idle_timeout_s=2.0) as (llm, server):
        assert (await ask(llm)).text == "ok"
    assert len(server.asked) == 3


async def test_cancelling_closes_the_connection() -> None:
    started = asyncio.Event()
    async with model(sse(delta(content="a"), done=False, then="hang")) as (llm, server):
        task = asyncio.create_task(llm.complete(QUESTION, max_tokens=9, on_text=lambda _: started.set()))
        await asyncio.wait_for(started.wait(), 300)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), 300)


def _ten_megabytes() -> dict[str, Canned]:
    piece = data(delta(content="x" * 50_000))
    call = data(call_delta(0, "a", "web_search", "y" * 50_000))
    return {
        "streamed text": Canned(200, (piece,) * 200, "text/event-stream"),
        "streamed thoughts": Canned(
            200, (data(delta(content="a")), *(data(delta(reasoning="x" * 50_000)),) * 200), "text/event-stream"
        ),
        "streamed arguments": Canned(200, (call,) * 200, "text/event-stream"),
        "one event": sse(delta("stop", content="x" * 10_000_000)),
        "one body": plain({"content": "x" * 10_000_000}),
    }


@pytest.mark.parametrize("kind", list(_ten_megabytes()))
async def test_ten_megabytes_are_cut(kind: str) -> None:
    async with model(_ten_megabytes()[kind]) as (llm, _):
        reply = await ask(llm, TOOLS)
    assert reply.finish == "length"
    assert len(reply.text) + sum(len(call.arguments) for call in reply.tool_calls) < 4_300_000
    assert reply.text or reply.tool_calls


async def test_an_error_page_of_ten_megabytes_is_cut() -> None:
    fault = await failure(Canned(500, (b"x" * 100_000,) * 100))
    assert (fault.code, len(fault.cause)) == ("server", 300)


# --- what a server refuses, and what is learned


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("Unknown parameter: 'stream_options'", "stream_options"),
        ("extra fields not permitted", "stream_options"),
        ("'temperature' does not support 0.5 with this model", "temperature"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
        ("streaming is not supported", "stream"),
    ],
)
async def test_a_refused_field_is_left_out_and_stays_out(message: str, field: str) -> None:
    async with model(refused(400, message), said("a"), said("b")) as (llm, server):
        await ask(llm, temperature=0.5)
        await ask(llm, temperature=0.5)
    assert [field in body for body in server.bodies] == [True, False, False]
    assert [body.get("max_tokens") or body["max_completion_tokens"] for body in server.bodies] == [100] * 3


async def test_a_limit_on_output_is_learned() -> None:
    message = "max_tokens is too large: 100. This model supports at most 64 completion tokens"
    async with model(refused(400, message), said("a"), said("b")) as (llm, server):
        await ask(llm)
        await ask(llm)
    assert [body["max_tokens"] for body in server.bodies] == [100, 64, 64]


async def test_several_refusals_in_a_row_are_all_learned() -> None:
    script = (
        refused(400, "stream_options: unknown"),
        refused(400, "use max_completion_tokens"),
        refused(422, "temperature must be 1"),
        said("ok"),
    )
    async with model(*script) as (llm, server):
        await ask(llm, temperature=0.5)
    assert set(server.bodies[3]) == {"model", "messages", "stream", "max_completion_tokens"}


# --- the ladder for tools


NO_TOOLS = [
    refused(400, {"error": "registry.ollama.ai/library/x does not support tools"}),
    refused(404, "No endpoints found that support tool use."),
    refused(500, "tools param requires --jinja flag"),
    refused(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    refused(422, {"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]}),
]


@pytest.mark.parametrize("no_tools", NO_TOOLS)
async def test_a_server_without_tools_is_asked_for_a_call_by_schema(no_tools: Canned) -> None:
    heard = Heard()
    wanted = '{"tool": "web_search", "arguments": {"queries": ["x"]}}'
    async with model(no_tools, said(wanted), said(wanted)) as (llm, server):
        reply = await ask(llm, TOOLS, heard)
        await ask(llm, TOOLS)
    call = ToolCall("call00001", "web_search", '{"queries": ["x"]}')
    assert reply == Reply("", (call,), SEEN, "tool_calls")
    assert heard.events == [("arguments", "web_search", call.arguments), ("call", call)]
    assert ["tools" in body for body in server.bodies] == [True, False, False]
    schema = server.bodies[1]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["tool"] == {"type": "string", "enum": ["web_search", "final_answer"]}
    assert schema["properties"]["arguments"] == {"anyOf": [SEARCH.parameters, FINISH.parameters]}
    system = server.bodies[1]["messages"][0]["content"]
    assert system.startswith("Be brief.")
    assert "web_search: Search the web." in system


async def test_a_server_without_schemas_too_is_told_of_the_tools_in_words() -> None:
    fenced = 'I will look.\n```json\n{"tool": "web_search", "arguments": {"queries": ["x"]}}\n```'
    before = (
        *QUESTION,
        Message("assistant", "Let me see.", (CALL, ToolCall("b", "final_answer", "{"))),
        Message("tool", "first", tool_call_id="call_a"),
        Message("tool", "second", tool_call_id="b"),
    )
    async with model(NO_TOOLS[0], refused(400, "response_format is not supported"), said(fenced), said(fenced)) as (
        llm,
        server,
    ):
        heard = Heard()
        reply = await ask(llm, TOOLS, heard, messages=before)
        await ask(llm, TOOLS)
    assert reply.text == "I will look."
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("web_search", '{"queries": ["x"]}')]
    assert heard.text.strip() == "I will look."
    assert "response_format" not in server.bodies[2]
    assert [message["role"] for message in server.bodies[2]["messages"]] == ["system", "user", "assistant", "user"]
    assert server.bodies[2]["messages"][2]["content"] == (
        'Let me see.\n\n```json\n{"tool": "web_search", "arguments": {"queries": ["x"]}}\n```\n\n'
        '```json\n{"tool": "final_answer", "arguments": {"unreadable": "{"}}\n```'
    )
    assert server.bodies[2]["messages"][3]["content"] == "Result of web_search:\nfirst\n\nResult of final_answer:\nsecond"
    assert len(server.bodies) == 4


async def test_a_model_that_writes_its_calls_as_text_is_understood_without_leaving_native_tools() -> None:
    text = 'Sure.\n<tool_call>\n{"name": "web_search", "arguments": {"queries": ["x"]}}\n</tool_call>'
    heard = Heard()
    async with model(sse(*(delta(content=c) for c in text), delta("stop")), said("done")) as (llm, server):
        reply = await ask(llm, TOOLS, heard)
        await ask(llm, TOOLS)
    assert (reply.text, reply.finish) == ("Sure.", "tool_calls")
    assert heard.text.strip() == "Sure."
    assert heard.calls == reply.tool_calls == (ToolCall("call00001", "web_search", '{"queries": ["x"]}'),)
    assert "tools" in server.bodies[1]


async def test_text_that_is_no_call_is_told_whole_although_it_looked_like_one() -> None:
    text = 'Look:\n```json\n{"a": 1}\n```\nor [TOOL] or <b> or\n{braces} and [1].'
    heard = Heard()
    async with model(sse(*(delta(content=c) for c in text), delta("stop"))) as (llm, _):
        reply = await ask(llm, TOOLS, heard)
    assert reply == Reply(text, (), SEEN, "stop")
    assert heard.text == text


async def test_a_call_that_does_not_fit_is_repaired_once() -> None:
    bad, good = (
        '{"tool": "web_search", "arguments": {"queries": []}}',
        '{"tool": "web_search", "arguments": {"queries": ["x"]}}',
    )
    heard = Heard()
    async with model(said(bad), said(good)) as (llm, server):
        reply = await ask_metered(llm, TOOLS, heard)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("web_search", '{"queries": ["x"]}')]
    assert reply.usage == Usage(20, 10, False, None)
    assert heard.text == ""
    *_, shown, told = server.bodies[1]["messages"]
    assert shown == {"role": "assistant", "content": bad}
    assert "web_search: queries: expected 1 to 5 items, got 0" in told["content"]


async def test_a_reply_that_cannot_be_read_is_one_request_and_says_what_is_wrong_with_it() -> None:
    bad = 'Let me look.\n<tool_call>{"name": "rm", "arguments": {}}</tool_call>'
    heard = Heard()
    async with model(said(bad), said("never")) as (llm, server):
        reply = await ask(llm, TOOLS, heard)
    assert (reply.text, reply.usage, len(server.bodies)) == (bad, SEEN, 1)
    assert reply.defect
    assert ("rm" in reply.defect.problems[0], heard.text) == (True, reply.defect.shown)


async def test_a_call_that_does_not_fit_twice_is_given_up_as_text() -> None:
    bad = '<tool_call>{"name": "rm", "arguments": {}}</tool_call>'
    heard = Heard()
    async with model(said(bad), said(bad), said("never")) as (llm, server):
        reply = await ask_metered(llm, TOOLS, heard)
    assert reply == Reply(bad, (), Usage(20, 10, False, None), "stop")
    assert heard.text == bad
    assert len(server.asked) == 2


async def test_a_repair_that_fails_leaves_the_first_reply_as_text() -> None:
    bad = '{"tool": "web_search", "arguments": {"queries": 3}}'
    async with model(said(bad), refused(400), said("never")) as (llm, _):
        assert await ask_metered(llm, TOOLS) == Reply(bad, (), SEEN, "stop")


# --- structured output


WANTED = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


async def test_structured_output_is_asked_for_by_schema_and_comes_back_as_json() -> None:
    async with model(said('{"ok": true}')) as (llm, server):
        assert (await ask(llm, schema=WANTED)).text == '{"ok": true}'
    assert server.bodies[0]["response_format"] == {"type": "json_schema", "json_schema": {"name": "reply", "schema": WANTED}}


async def test_structured_output_falls_back_to_any_json_and_then_to_words() -> None:
    loose = "Here you are:\n```json\n{'ok': True,}\n```"
    script = (refused(400, "json_schema is not supported"), refused(400, "unsupported"), said(loose), said(loose))
    heard = Heard()
    async with model(*script) as (llm, server):
        assert (await ask(llm, heard=heard, schema=WANTED)).text == '{"ok": true}'
        await ask(llm, schema=WANTED)
    assert heard.text == '{"ok": true}'
    formats = [body.get("response_format", {}).get("type") for body in server.bodies]
    assert formats == ["json_schema", "json_object", None, None]
    assert '"required": ["ok"]' in server.bodies[2]["messages"][0]["content"]


async def test_structured_output_that_does_not_fit_is_repaired_once_and_then_returned_as_it_is() -> None:
    async with model(said('{"ok": 1}'), said('{"ok": false}'), said("no"), said("no JSON")) as (llm, server):
        assert (await ask_metered(llm, schema=WANTED)).text == '{"ok": false}'
        assert (await ask_metered(llm, schema=WANTED)).text == "no JSON"
    assert "ok: expected a boolean, got an integer" in server.bodies[1]["messages"][-1]["content"]


@pytest.mark.parametrize("text", ['{"ok": 1}', "no JSON"])
async def test_without_retries_a_reply_that_does_not_fit_is_returned_as_it_came(text: str) -> None:
    heard = Heard()
    async with model(said(text), said('{"ok": true}')) as (llm, server):
        assert (await ask_metered(llm, heard=heard, schema=WANTED, retries=False)).text == text
    assert (heard.text, len(server.bodies)) == (text, 1)


async def test_without_retries_a_failure_that_may_pass_stands() -> None:
    async with model(refused(503), said("late")) as (llm, server):
        with pytest.raises(LLMError):
            await ask(llm, retries=False)
    assert len(server.bodies) == 1


# --- models


async def test_the_models_are_listed() -> None:
    listing = {"object": "list", "data": [{"id": "a"}, {"id": "b"}, {"id": 3}, None]}
    async with model(Canned(200, (json.dumps(listing).encode(),)), Canned(200, (b'{"data": null}',))) as (llm, server):
        assert await llm.models() == ["a", "b"]
        assert await llm.models() == []
    assert (server.asked[0].method, server.asked[0].path) == ("GET", "/v1/models")


@pytest.mark.parametrize(
    ("canned", "code"),
    [
        (Canned(200, (b"<html>",)), "html_reply"),
        (Canned(200, (b"nothing",)), "bad_reply"),
        (Canned(200, (b"{}",)), "bad_reply"),
        (refused(401), "auth"),
        (Canned(then="hang"), "timeout"),
    ],
)
async def test_a_list_of_models_that_cannot_be_had_is_a_failure(canned: Canned, code: str) -> None:
    async with model(canned, idle_timeout_s=0.5 if code == "timeout" else 120.0) as (llm, _):
        with pytest.raises(LLMError) as caught:
            await llm.models()
    assert caught.value.code == code


async def test_odd_characters_and_a_megabyte_can_be_asked() -> None:
    text = "\ud800\x00\x1b é😀" + "x" * 1_000_000
    async with model(said("ok")) as (llm, server):
        await ask(llm, messages=(Message("user", text),))
    assert server.bodies[0]["messages"][0]["content"] == "?" + text[1:]
