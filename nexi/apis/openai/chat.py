"""Passes as OpenAI: `POST /v1/chat/completions`, whole or streamed, and `GET /v1/models`.

The last user message is the question, those before it a conversation, a system message one's own instructions. Streamed text
has passed the check of its citations. `citations` lists the sources' URLs by number, and a `url_citation` stands for every
`[n]`. A completion ends with its request: a client that leaves pays for nothing more. Below are `openai_shapes` and `hosting`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.answers.streaming import find_rest
from nexi.apis.openai.shapes import (
    BEAT_S,
    CREATED,
    ERROR,
    MODELS,
    TAG,
    ClientTools,
    ListsSources,
    MessageContent,
    ModelName,
    ModelRequest,
    OneChoice,
    OutputTokens,
    ReplacedModelNote,
    TextLimit,
    ToolChoice,
    build_run,
    citation_urls,
    content_to_text,
    earlier_messages,
    failure_body,
    format_comment,
    format_event,
    has_function_tools,
    join_instructions,
    marks_in,
    nexi_field,
    openai_error,
    parse_forced_function,
    parse_schema,
    progress_line,
    unknown_model,
    usage_of,
    wants_source_list,
)
from nexi.app import Nexi, RunResult, Session
from nexi.app.hosting import HostedRun, RunHost
from nexi.errors import NexiError
from nexi.events import RunFailed, RunFinished, TextDelta
from nexi.types import Answer, Reply, StopReason, Usage
from nexi.web.fences import FenceRenamer, rename_fences
from nexi.web.payload import build_operation, json_reply, read_body
from nexi.web.problems import bad_request, build_refusal, problem_of
from nexi.web.schemas import build_parameters
from nexi.web.streams import EventStream, wait_for_disconnect

__all__ = ["wait_while_connected"]


class ChatMessage(Struct, frozen=True):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: MessageContent = None


class StreamOptions(Struct, frozen=True):
    """What a stream has besides its text."""

    include_usage: bool | None = None


class ChatBody(Struct, frozen=True, kw_only=True):
    """A conversation whose last message is to be answered."""

    model: ModelName
    messages: Annotated[tuple[ChatMessage, ...], Meta(min_length=1, max_length=2000)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: OutputTokens = None
    max_completion_tokens: OutputTokens = None
    n: OneChoice = None
    response_format: dict[str, Any] | None = None
    tools: ClientTools = None
    tool_choice: ToolChoice = None
    sources: ListsSources = None
    search: Annotated[bool | None, Meta(description="false: the plain model replies, for tasks about a chat.")] = None


def routes() -> list[Route]:
    return [
        Route("/v1/chat/completions", _create_completion, methods=["POST"]),
        Route("/v1/models", list_models, methods=["GET"]),
        Route("/v1/models/{model}", _show_model, methods=["GET"]),
    ]


async def list_models(request: Request) -> Response:
    return json_reply({"object": "list", "data": [_model_entry(name) for name in MODELS]})


async def _show_model(request: Request) -> Response:
    name = request.path_params["model"]
    if name not in MODELS:
        raise unknown_model(name)
    return json_reply(_model_entry(name))


def _model_entry(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "nexi"}


# one completion


class _ChatRequest(ModelRequest, frozen=True, kw_only=True):
    """A completion as a client asks for it."""

    streams: bool
    includes_usage: bool


async def _create_completion(request: Request) -> Response:
    host: RunHost = request.app.state.host
    chat = parse_chat_request(await read_body(request, ChatBody), request.headers.get("user-agent", ""))
    created = int(host.nexi.clock.now().timestamp())
    if reply := await chat.reply_without_search(host.nexi):
        return _reply_at_once(reply, chat, created)
    chat.require_writer(host.nexi)
    hosted = await host.start(chat.run, chat.session)
    if chat.streams:
        return EventStream(_stream_chunks(host.nexi, hosted, chat, created))
    result = await wait_while_connected(request, hosted)
    return json_reply(await build_completion(host.nexi, result, chat, created))


def parse_chat_request(body: ChatBody, user_agent: str = "") -> _ChatRequest:
    """The run and the conversation that a body stands for. Raises Refused."""
    turns = [(message.role, content_to_text(message.content)) for message in body.messages]
    most = body.max_completion_tokens or body.max_tokens
    run = build_run(body.model, turns[-1][1], instructions=join_instructions(turns), max_output_tokens=most)
    if turns[-1][0] != "user":
        raise bad_request("the last message must be the user's", parameter="messages")
    function, parameters = parse_forced_function(body.tools, body.tool_choice)
    return _ChatRequest(
        body.model,
        run,
        Session(earlier_messages(turns[:-1])),
        parameters if function else parse_schema(body.response_format),
        wants_source_list(body.sources, user_agent),
        body.search is not False,
        function,
        not function and has_function_tools(body.tools),
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


async def build_completion(nexi: Nexi, result: RunResult, chat: _ChatRequest, created: int) -> dict[str, Any]:
    """The object of a finished run. Raises LLMError where its JSON could not be written."""
    answer = result.answer
    reply = await chat.finish_text(nexi, answer.text, result.finished)
    limit = chat.open_limit()
    visible = limit.feed(rename_fences(reply.text) if chat.schema is None else reply.text)
    marks = marks_in(visible, answer.sources if chat.schema is None else ())
    usage = result.finished.usage + reply.usage
    text = visible + ("" if limit.is_cut else chat.closing_text(answer.sources, ReplacedModelNote(result.facts).text))
    stop = StopReason.CONTEXT_LIMIT if limit.is_cut else answer.stop
    body = _completion_body(result.id, chat, created, text, marks, replace(answer, stop=stop), usage)
    return {**body, "nexi": nexi_field(result.finished, chat)}


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
        "usage": usage_of(usage),
        "citations": citation_urls(answer.sources),
    }


def _function_call(run_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{run_id}", "type": "function", "function": {"name": name, "arguments": arguments}}


def finish_reason(stop: StopReason) -> str:
    """A limit that was reached still gave an answer; only what was cut off by length says so."""
    return "length" if stop is StopReason.CONTEXT_LIMIT else "stop"


def _reply_at_once(reply: Reply, chat: _ChatRequest, created: int) -> Response:
    """The completion of a message that needed no run."""
    name, answer = uuid.uuid4().hex[:12], Answer(rename_fences(reply.text))
    if chat.streams:
        return EventStream(_stream_reply(_ChunkWriter(name, chat, created), answer.text, reply.usage, chat))
    return json_reply(_completion_body(name, chat, created, answer.text, [], answer, reply.usage))


# streaming


class _ChunkWriter:
    """The chunks of one completion."""

    def __init__(self, run_id: str, chat: _ChatRequest, created: int) -> None:
        self._run_id = run_id
        self._head = {"id": f"chatcmpl-{run_id}", "object": "chat.completion.chunk", "created": created, "model": chat.model}

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return format_event({**self._head, "choices": [choice], **more})

    def function_chunk(self, name: str, arguments: str) -> bytes:
        return self.chunk({"tool_calls": [{"index": 0, **_function_call(self._run_id, name, arguments)}]})

    def closing_chunk(self, **more: Any) -> bytes:
        return format_event({**self._head, "choices": [], **more})


async def _stream_reply(stream: _ChunkWriter, text: str, usage: Usage, chat: _ChatRequest) -> AsyncGenerator[bytes, None]:
    yield stream.chunk({"role": "assistant", "content": ""})
    yield stream.chunk({"content": text})
    yield stream.chunk({"annotations": []}, "stop", citations=[])
    if chat.includes_usage:
        yield stream.closing_chunk(usage=usage_of(usage))
    yield b"data: [DONE]\n\n"


async def _stream_chunks(nexi: Nexi, hosted: HostedRun, chat: _ChatRequest, created: int) -> AsyncGenerator[bytes, None]:
    stream, streamed_text, is_research = _ChunkWriter(hosted.id, chat, created), "", chat.run.mode == "research"
    note, fences, limit = ReplacedModelNote(), FenceRenamer(), chat.open_limit()
    try:
        yield stream.chunk({"role": "assistant", "content": ""})
        async for item in hosted.feed.follow(beat_s=BEAT_S):
            if item:
                note.observe(item.event)
            match item.event if item else None:
                case None:
                    yield format_comment("working")
                case TextDelta(text=text):
                    if chat.schema is None:
                        streamed_text += text
                        if visible := limit.feed(fences.feed(text)):
                            yield stream.chunk({"content": visible})
                case RunFinished() as end:
                    for frame in await _last_frames(nexi, stream, streamed_text, end, chat, note.text, fences, limit):
                        yield frame
                case RunFailed():
                    yield format_event(failure_body(hosted))
                case event if event is not None and (line := progress_line(event)):
                    yield stream.chunk({"reasoning_content": f"{line}\n"}) if is_research else format_comment(line)
                case _:
                    pass
        yield b"data: [DONE]\n\n"
    finally:
        await hosted.cancel()


async def _last_frames(
    nexi: Nexi,
    stream: _ChunkWriter,
    streamed_text: str,
    end: RunFinished,
    chat: _ChatRequest,
    note: str,
    fences: FenceRenamer,
    limit: TextLimit,
) -> list[bytes]:
    """What the streamed text left out, the annotations, and the usage."""
    try:
        reply = await chat.finish_text(nexi, end.answer, end)
    except NexiError as error:
        return [format_event(openai_error(problem_of(error)))]
    rest = find_rest(streamed_text, reply.text)
    visible = limit.feed(fences.feed(rest) + fences.finish()) if chat.schema is None else rest
    marks = marks_in(limit.shown, end.sources) if chat.schema is None else []
    if not limit.is_cut:
        visible += chat.closing_text(end.sources, note)
    frames = [stream.chunk({"content": visible})] if visible and not chat.function else []
    if chat.function:
        frames = [stream.function_chunk(chat.function, reply.text)]
    more = {"citations": citation_urls(end.sources), "nexi": nexi_field(end, chat)}
    finish = "tool_calls" if chat.function else "length" if limit.is_cut else finish_reason(end.stop)
    frames.append(stream.chunk({"annotations": marks}, finish, **more))
    usage = usage_of(end.usage + reply.usage)
    return [*frames, stream.closing_chunk(usage=usage)] if chat.includes_usage else frames


def openapi() -> dict[str, Any]:
    some = {"type": "object", "required": ["id", "object"]}
    models = {"type": "object", "required": ["object", "data"], "properties": {"data": {"type": "array", "items": some}}}
    whole = {"type": "object", "required": ["id", "object", "choices", "usage", "citations"]}
    one = build_operation(
        "One model.", TAG, ok=some, error=ERROR, parameters=build_parameters({"model": ("Its name.", {"type": "string"})})
    )
    return {
        "/v1/chat/completions": {
            "post": build_operation("Answer a conversation.", TAG, body=ChatBody, ok=whole, error=ERROR, streams=True)
        },
        "/v1/models": {"get": build_operation("The models.", TAG, ok=models, error=ERROR)},
        "/v1/models/{model}": {"get": one},
    }
