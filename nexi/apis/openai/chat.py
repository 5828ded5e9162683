"""Passes as OpenAI: `POST /v1/chat/completions`, whole or streamed, and `GET /v1/models`.

The last user message is the question, those before it a conversation, a system message one's own instructions. Streamed text
has passed the check of its citations. `citations` lists the sources' URLs by number, and a `url_citation` stands for every
`[n]`. A completion ends with its request: a client that leaves pays for nothing more. Below are `shapes` and `hosting`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from nexi.apis.openai import shapes
from nexi.apis.openai.chat_tasks import reply_without_search
from nexi.app import Nexi, RunResult, Session
from nexi.app.hosting import HostedRun, RunHost
from nexi.errors import NexiError
from nexi.events import RunFailed, RunFinished
from nexi.types import Answer, StopReason, Usage
from nexi.web.contract import Contract
from nexi.web.fences import rename_fences
from nexi.web.payload import json_reply, read_body
from nexi.web.problems import bad_request, build_refusal, problem_of
from nexi.web.streams import EventStream, send_frames, wait_for_disconnect

__all__ = ["COMPLETION", "CONTRACT", "DONE", "finish_reason", "wait_while_connected"]

DONE = b"data: [DONE]\n\n"  # the last frame of every stream


class ChatMessage(Struct, frozen=True):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: shapes.MessageContent = None


class StreamOptions(Struct, frozen=True):
    """What a stream has besides its text."""

    include_usage: bool | None = None


class ChatBody(Struct, frozen=True, kw_only=True):
    """A conversation whose last message is to be answered."""

    model: shapes.ModelName
    messages: Annotated[tuple[ChatMessage, ...], Meta(min_length=1, max_length=2000)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: shapes.OutputTokens = None
    max_completion_tokens: shapes.OutputTokens = None
    n: shapes.OneChoice = None
    response_format: dict[str, Any] | None = None
    tools: shapes.ClientTools = None
    tool_choice: shapes.ToolChoice = None
    sources: shapes.ListsSources = None
    search: Annotated[bool | None, Meta(description="false: the plain model replies, for tasks about a chat.")] = None


CONTRACT = Contract("OpenAI", error=shapes.ERROR, path={"model": ("Its name.", {"type": "string"})})
MODEL = {"type": "object", "required": ["id", "object"]}
MODELS = {"type": "object", "required": ["object", "data"], "properties": {"data": {"type": "array", "items": MODEL}}}
COMPLETION = {"type": "object", "required": ["id", "object", "choices", "usage", "citations"]}


@CONTRACT.serve("GET /v1/models", "The models.", ok=MODELS)
async def list_models(request: Request) -> Response:
    return json_reply({"object": "list", "data": [_model_entry(name) for name in shapes.MODELS]})


@CONTRACT.serve("GET /v1/models/{model}", "One model.", ok=MODEL)
async def _show_model(request: Request) -> Response:
    name = request.path_params["model"]
    if name not in shapes.MODELS:
        raise shapes.unknown_model(name)
    return json_reply(_model_entry(name))


def _model_entry(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": shapes.CREATED, "owned_by": "nexi"}


class _ChatRequest(shapes.ModelRequest, frozen=True, kw_only=True):
    """A completion as a client asks for it."""

    streams: bool
    includes_usage: bool


@CONTRACT.serve("POST /v1/chat/completions", "Answer a conversation.", body=ChatBody, ok=COMPLETION, streams=True)
async def _create_completion(request: Request) -> Response:
    host: RunHost = request.app.state.host
    chat = parse_chat_request(await read_body(request, ChatBody), request.headers.get("user-agent", ""))
    created = int(host.nexi.clock.now().timestamp())
    if reply := await reply_without_search(host.nexi, chat):
        name, text = uuid.uuid4().hex[:12], rename_fences(reply.text)
        if not chat.streams:
            return json_reply(_completion_body(name, chat, created, text, [], Answer(text), reply.usage))
        stream = _ChunkWriter(name, chat, created)
        frames = [stream.chunk({"role": "assistant", "content": ""}), stream.chunk({"content": text})]
        frames.append(stream.chunk({"annotations": []}, "stop", citations=[]))
        if chat.includes_usage:
            frames.append(stream.closing_chunk(usage=shapes.usage_of(reply.usage)))
        return EventStream(send_frames([*frames, DONE]))
    chat.require_writer(host.nexi)
    hosted = await host.start(chat.run, chat.session)
    if chat.streams:
        return EventStream(_stream_chunks(host.nexi, hosted, chat, created))
    result = await wait_while_connected(request, hosted)
    answer, shown = result.answer, shapes.AnswerText(chat, result.facts)
    written = await chat.finish_text(host.nexi, answer.text, result.finished)
    text, usage = shown.finish(written.text), result.finished.usage + written.usage
    marks = _nest_marks(shown.cite(answer.sources))
    answer = replace(answer, stop=StopReason.CONTEXT_LIMIT if shown.limit.is_cut else answer.stop)
    body = _completion_body(result.id, chat, created, text + shown.close(answer.sources), marks, answer, usage)
    return json_reply({**body, "nexi": shapes.nexi_field(result.finished, chat)})


def parse_chat_request(body: ChatBody, user_agent: str = "") -> _ChatRequest:
    """The run and the conversation that a body stands for. Raises Refused."""
    turns = [(message.role, shapes.content_to_text(message.content)) for message in body.messages]
    most = body.max_completion_tokens or body.max_tokens
    run = shapes.build_run(body.model, turns[-1][1], instructions=shapes.join_instructions(turns), max_output_tokens=most)
    if turns[-1][0] != "user":
        raise bad_request("the last message must be the user's", parameter="messages")
    function, parameters = shapes.parse_forced_function(body.tools, body.tool_choice)
    return _ChatRequest(
        body.model,
        run,
        Session(shapes.earlier_messages(turns[:-1])),
        parameters if function else shapes.parse_schema(body.response_format),
        user_agent.lower().startswith(shapes.CLIENTS_WITHOUT_ANNOTATIONS) if body.sources is None else body.sources,
        body.search is not False,
        function,
        not function and bool(shapes.list_functions(body.tools)),
        most,
        streams=bool(body.stream),
        includes_usage=bool(body.stream_options and body.stream_options.include_usage),
    )


async def wait_while_connected(request: Request, hosted: HostedRun) -> RunResult:
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


def _completion_body(
    run_id: str, chat: _ChatRequest, created: int, text: str, marks: list[dict[str, Any]], answer: Answer, usage: Usage
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": marks}
    finish = finish_reason(answer.stop)
    if chat.function:
        message |= {"content": None, "tool_calls": [_function_call(run_id, chat.function, text)]}
        finish = "tool_calls"
    return {
        "id": f"chatcmpl-{run_id}",
        "object": "chat.completion",
        "created": created,
        "model": chat.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": shapes.usage_of(usage),
        "citations": shapes.citation_urls(answer.sources),
    }


def _function_call(run_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{run_id}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _nest_marks(citations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "url_citation", "url_citation": dict(citation)} for citation in citations]


def finish_reason(stop: StopReason) -> str:
    """A limit that was reached still gave an answer; only what was cut off by length says so."""
    return "length" if stop is StopReason.CONTEXT_LIMIT else "stop"


class _ChunkWriter:
    """The chunks of one completion."""

    def __init__(self, run_id: str, chat: _ChatRequest, created: int) -> None:
        self.run_id = run_id
        self._head = {"id": f"chatcmpl-{run_id}", "object": "chat.completion.chunk", "created": created, "model": chat.model}

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return shapes.format_event({**self._head, "choices": [choice], **more})

    def closing_chunk(self, **more: Any) -> bytes:
        return shapes.format_event({**self._head, "choices": [], **more})


async def _stream_chunks(nexi: Nexi, hosted: HostedRun, chat: _ChatRequest, created: int) -> AsyncGenerator[bytes, None]:
    stream, text, is_research = _ChunkWriter(hosted.id, chat, created), shapes.AnswerText(chat), chat.run.mode == "research"
    try:
        yield stream.chunk({"role": "assistant", "content": ""})
        async for item in hosted.feed.follow(beat_s=shapes.BEAT_S):
            if item is None:
                yield shapes.format_comment("working")
                continue
            if visible := text.feed(item.event):
                yield stream.chunk({"content": visible})
            match item.event:
                case RunFinished() as end:
                    for frame in await _last_frames(nexi, stream, text, end, chat):
                        yield frame
                case RunFailed():
                    yield shapes.format_event(shapes.openai_error(shapes.problem_of_run(hosted)))
                case event if line := shapes.progress_line(event):
                    yield stream.chunk({"reasoning_content": f"{line}\n"}) if is_research else shapes.format_comment(line)
        yield DONE
    finally:
        await hosted.cancel()


async def _last_frames(
    nexi: Nexi, stream: _ChunkWriter, text: shapes.AnswerText, end: RunFinished, chat: _ChatRequest
) -> list[bytes]:
    """What the streamed text left out, the annotations, and the usage."""
    try:
        reply = await chat.finish_text(nexi, end.answer, end)
    except NexiError as error:
        return [shapes.format_event(shapes.openai_error(problem_of(error)))]
    rest = text.finish(reply.text)
    marks = _nest_marks(text.cite(end.sources))
    rest += text.close(end.sources)
    if chat.function:
        frames = [stream.chunk({"tool_calls": [{"index": 0, **_function_call(stream.run_id, chat.function, reply.text)}]})]
    else:
        frames = [stream.chunk({"content": rest})] if rest else []
    finish = finish_reason(StopReason.CONTEXT_LIMIT if text.limit.is_cut else end.stop)
    more = {"citations": shapes.citation_urls(end.sources), "nexi": shapes.nexi_field(end, chat)}
    frames.append(stream.chunk({"annotations": marks}, "tool_calls" if chat.function else finish, **more))
    usage = shapes.usage_of(end.usage + reply.usage)
    return [*frames, stream.closing_chunk(usage=usage)] if chat.includes_usage else frames
