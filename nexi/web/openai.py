"""Passes as OpenAI: `POST /v1/chat/completions`, whole or streamed, and `GET /v1/models`.

The last user message is the question, those before it a conversation, a system message one's own instructions. Streamed text
has passed the check of its citations. `citations` lists the sources' URLs by number, and a `url_citation` stands for every
`[n]`. A completion ends with its request: a client that leaves pays for nothing more. Below is `hosting`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.app import RunLimits, RunRequest, RunResult, Session
from nexi.app.request import RunMode
from nexi.errors import NexiError
from nexi.events import RunFailed, RunFinished, StatusDelta, TextDelta
from nexi.types import Message, Source, StopReason, Usage
from nexi.web.hosting import HostedRun, RunHost
from nexi.web.payload import build_operation, json_reply, read_json, with_error_shape
from nexi.web.problems import Problem, bad_request, build_refusal, problem_of
from nexi.web.schemas import build_parameters, build_responses
from nexi.web.streams import EventStream, wait_for_disconnect

__all__ = ["openai_error"]


TAG = "OpenAI"
BEAT_S = 10.0
LOCAL = "nexi-local"
MODELS: Mapping[str, tuple[RunMode, str]] = {
    "nexi-s": ("search", "s"),
    "nexi-m": ("search", "m"),
    "nexi-l": ("search", "l"),
    "nexi-deep": ("research", ""),
    LOCAL: ("search", "m"),
}
TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
_CITATION = re.compile(r"\[([0-9]{1,6})\]")
_PART: dict[str, Any] = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string"}, "text": {"type": "string"}},
}
_CONTENT: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "array", "items": _PART}]}
BODY: dict[str, Any] = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {
        "model": {"type": "string", "minLength": 1, "maxLength": 200},
        "messages": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2000,
            "items": {
                "type": "object",
                "required": ["role"],
                "properties": {
                    "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
                    "content": _CONTENT,
                },
            },
        },
        "stream": {"type": ["boolean", "null"]},
        "stream_options": {"type": ["object", "null"], "properties": {"include_usage": {"type": ["boolean", "null"]}}},
        "max_tokens": {"type": ["integer", "null"], "minimum": 1, "maximum": 1_000_000},
        "max_completion_tokens": {"type": ["integer", "null"], "minimum": 1, "maximum": 1_000_000},
        "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 1},
    },
}


def openai_error(problem: Problem) -> dict[str, Any]:
    """OpenAI's own error object."""
    kind = TYPES.get(problem.status, "server_error" if problem.status >= 500 else "invalid_request_error")
    message = f"{problem.message}. {problem.fix}" if problem.fix else problem.message
    return {"error": {"message": message, "type": kind, "param": problem.parameter or None, "code": problem.code}}


def routes() -> list[Route]:
    return [
        Route("/v1/chat/completions", create_completion, methods=["POST"]),
        Route("/v1/models", list_models, methods=["GET"]),
        Route("/v1/models/{model}", show_model, methods=["GET"]),
    ]


@with_error_shape(openai_error)
async def list_models(request: Request) -> Response:
    return json_reply({"object": "list", "data": [_model_entry(name) for name in MODELS]})


@with_error_shape(openai_error)
async def show_model(request: Request) -> Response:
    name = request.path_params["model"]
    if name not in MODELS:
        raise _no_model(name)
    return json_reply(_model_entry(name))


def _model_entry(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1767225600, "owned_by": "nexi"}


def _no_model(name: str) -> Exception:
    message = f"there is no model {name[:100]!r}"
    return build_refusal(404, "model_not_found", message, fix=f"use one of {', '.join(MODELS)}", parameter="model")


# one completion


class ChatRequest(Struct, frozen=True):
    """A completion as a client asks for it."""

    model: str
    run: RunRequest
    session: Session
    streams: bool
    includes_usage: bool


@with_error_shape(openai_error)
async def create_completion(request: Request) -> Response:
    host: RunHost = request.app.state.host
    chat = parse_chat_request(await read_json(request, BODY))
    hosted = await host.start(chat.run, chat.session)
    created = int(host.nexi.clock.now().timestamp())
    if chat.streams:
        return EventStream(_stream_chunks(hosted, chat, created))
    result = await _while_connected(request, hosted)
    return json_reply(build_completion(result, chat.model, created))


def parse_chat_request(body: Mapping[str, Any]) -> ChatRequest:
    """The run and the conversation that a body stands for. Raises Refused."""
    name = body["model"]
    if name not in MODELS:
        raise _no_model(name)
    mode, effort = MODELS[name]
    told = [(m["role"], _content_text(m.get("content"))) for m in body["messages"]]
    if told[-1][0] != "user":
        raise bad_request("the last message must be the user's", parameter="messages")
    instructions = "\n\n".join(text for role, text in told if role in ("system", "developer") and text.strip())
    max_output_tokens = body.get("max_completion_tokens") or body.get("max_tokens")
    run = RunRequest(
        told[-1][1],
        mode=mode,
        effort=effort,
        limits=RunLimits(max_output_tokens=max_output_tokens),
        scope="local" if name == LOCAL else "both",
        system_prompt=instructions,
        door="openai",
    )
    includes_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    return ChatRequest(name, run, Session(_earlier_messages(told[:-1])), bool(body.get("stream")), includes_usage)


def _earlier_messages(told: Sequence[tuple[str, str]]) -> list[Message]:
    """What was said before. Numbers in earlier answers name sources this run does not have, so they are left out."""
    said = [(role, text) for role, text in told if role in ("user", "assistant") and text.strip()]
    return [Message("user", t) if role == "user" else Message("assistant", _CITATION.sub("", t)) for role, t in said]


def _content_text(content: object) -> str:
    if isinstance(content, list):
        for part in content:
            if part.get("type") not in ("text", "input_text"):
                raise bad_request("only text can be asked", fix="leave other parts out", parameter="messages")
        return "\n".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else ""


async def _while_connected(request: Request, hosted: HostedRun) -> RunResult:
    """The result; a client that leaves ends the run. Raises the run's error."""
    ending = asyncio.create_task(hosted.wait_for_result())
    leaving = asyncio.create_task(wait_for_disconnect(request.receive))
    try:
        await asyncio.wait((ending, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            raise build_refusal(499, "cancelled", "the client left")
        return ending.result()
    finally:
        leaving.cancel()
        await hosted.cancel()
        await asyncio.gather(ending, leaving, return_exceptions=True)  # how the run of one who left ended is in its log


def build_completion(result: RunResult, name: str, created: int) -> dict[str, Any]:
    text = result.answer.text
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": marks_in(text, result.answer.sources)}
    return {
        "id": f"chatcmpl-{result.id}",
        "object": "chat.completion",
        "created": created,
        "model": name,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(result.answer.stop)}],
        "usage": usage_of(result.finished.usage),
        "citations": citation_urls(result.answer.sources),
    }


def marks_in(text: str, sources: Sequence[Source]) -> list[dict[str, Any]]:
    """One for each `[n]` in the text; `text[start_index:end_index]` is that mark."""
    by_number = {source.number: source for source in sources}
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "url": source.url,
                "title": source.title or source.url,
                "start_index": found.start(),
                "end_index": found.end(),
            },
        }
        for found in _CITATION.finditer(text)
        if (source := by_number.get(int(found[1])))
    ]


def citation_urls(sources: Sequence[Source]) -> list[str]:
    """URLs such that `[n]` is the n-th; a number that is not cited has an empty place."""
    by_number = {source.number: source.url for source in sources}
    return [by_number.get(number, "") for number in range(1, max(by_number, default=0) + 1)]


def usage_of(usage: Usage) -> dict[str, Any]:
    return {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": usage.total}


def _finish_reason(stop: StopReason) -> str:
    """A limit that was reached still gave an answer; only what was cut off by length says so."""
    return "length" if stop is StopReason.CONTEXT_LIMIT else "stop"


# streaming


class _ChunkWriter:
    """The chunks of one completion."""

    def __init__(self, run_id: str, chat: ChatRequest, created: int) -> None:
        self._head = {"id": f"chatcmpl-{run_id}", "object": "chat.completion.chunk", "created": created, "model": chat.model}

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return format_event({**self._head, "choices": [choice], **more})

    def closing_chunk(self, **more: Any) -> bytes:
        return format_event({**self._head, "choices": [], **more})


def format_event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data, separators=(',', ':'))}\n\n".encode("ascii")


async def _stream_chunks(hosted: HostedRun, chat: ChatRequest, created: int) -> AsyncGenerator[bytes, None]:
    stream, said = _ChunkWriter(hosted.id, chat, created), ""
    try:
        yield stream.chunk({"role": "assistant", "content": ""})
        async for item in hosted.feed.follow(beat_s=BEAT_S):
            match item.event if item else None:
                case None:
                    yield b": working\n\n"
                case StatusDelta(text=text):
                    yield f": {_one_line(text)}\n\n".encode()
                case TextDelta(text=text):
                    said += text
                    yield stream.chunk({"content": text})
                case RunFinished() as end:
                    for frame in _last_frames(stream, said, end, chat):
                        yield frame
                case RunFailed():
                    yield format_event(_failure_body(hosted))
                case _:
                    pass
        yield b"data: [DONE]\n\n"
    finally:
        await hosted.cancel()


def _last_frames(stream: _ChunkWriter, said: str, end: RunFinished, chat: ChatRequest) -> list[bytes]:
    """What the streamed text left out, the annotations, and the usage."""
    rest = end.answer[len(said) :] if end.answer.startswith(said) else ""
    whole = said + rest
    frames = [stream.chunk({"content": rest})] if rest else []
    marks = marks_in(whole, end.sources)
    frames.append(stream.chunk({"annotations": marks}, _finish_reason(end.stop), citations=citation_urls(end.sources)))
    return [*frames, stream.closing_chunk(usage=usage_of(end.usage))] if chat.includes_usage else frames


def _failure_body(hosted: HostedRun) -> dict[str, Any]:
    try:
        hosted.run.result()
    except NexiError as error:
        return openai_error(problem_of(error))
    return openai_error(Problem(500, "internal", "the run ended without an answer"))


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n]+", " ", text)[:200]


def openapi() -> dict[str, Any]:
    """The paths of this module."""
    error = {
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"type": "object", "required": ["message", "type"]}},
    }
    some = {"type": "object", "required": ["id", "object"]}
    listed = {"type": "object", "required": ["object", "data"], "properties": {"data": {"type": "array", "items": some}}}
    whole = {"type": "object", "required": ["id", "object", "choices", "usage", "citations"]}
    one = build_operation(
        "One model.", TAG, ok=some, error=error, parameters=build_parameters({"model": ("Its name.", {"type": "string"})})
    )
    both = build_responses({200: whole}, error)
    both["200"]["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    return {
        "/v1/chat/completions": {
            "post": build_operation("Answer a conversation.", TAG, body=BODY, ok=whole, error=error, responses=both)
        },
        "/v1/models": {"get": build_operation("The models.", TAG, ok=listed, error=error)},
        "/v1/models/{model}": {"get": one},
    }
