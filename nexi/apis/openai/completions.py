"""Passes as OpenAI: `POST /v1/chat/completions` and, for older clients, `/v1/completions`, whole or streamed; the models, and
embeddings where an embedder is set up.

The last user message is the question, those before it a conversation, a system message one's own instructions; a prompt is a
question without a conversation. Streamed text has passed the check of its citations. `citations` lists the sources' URLs by
number; in a chat a `url_citation` stands for every `[n]`, and the text of a prompt ends with its sources. A completion ends
with its request: a client that leaves pays for nothing more. Below are `shapes` and `hosting`.
"""

from __future__ import annotations

import asyncio
import base64
import struct
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
from nexi.web.payload import (
    EventStream,
    bad_request,
    build_refusal,
    json_reply,
    problem_of,
    read_body,
    send_frames,
    wait_for_disconnect,
)

__all__ = ["CONTRACT", "wait_while_connected"]

CONTRACT = Contract("OpenAI", error=shapes.ERROR, path={"model": ("Its name.", {"type": "string"})})
MODEL = {"type": "object", "required": ["id", "object"]}
MODELS = {"type": "object", "required": ["object", "data"], "properties": {"data": {"type": "array", "items": MODEL}}}
COMPLETION = {"type": "object", "required": ["id", "object", "choices", "usage", "citations"]}
VECTORS = {"type": "object", "required": ["object", "data", "model", "usage"]}
DONE = b"data: [DONE]\n\n"  # the last frame of every stream
EMBEDDING_MODEL = "nexi-embed"
MAX_TEXTS = 2048
MAX_TEXT_CHARS = 100_000
PromptText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)]


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


class _CompletionBody(Struct, frozen=True):
    """A prompt to answer."""

    model: shapes.ModelName
    prompt: PromptText | Annotated[tuple[PromptText, ...], Meta(min_length=1, max_length=1)]
    stream: bool | None = None
    max_tokens: shapes.OutputTokens = None
    n: shapes.OneChoice = None
    sources: shapes.ListsSources = None


class _EmbeddingBody(Struct, frozen=True):
    """Texts whose vectors are wanted."""

    model: shapes.ModelName
    input: PromptText | Annotated[tuple[PromptText, ...], Meta(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Meta(ge=1)] | None = None


class _CompletionRequest(shapes.ModelRequest, frozen=True, kw_only=True):
    """A completion as a client asks for it, of a chat or of a prompt."""

    is_chat: bool
    streams: bool
    includes_usage: bool = False


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


@CONTRACT.serve("POST /v1/chat/completions", "Answer a conversation.", body=ChatBody, ok=COMPLETION, streams=True)
async def _complete_chat(request: Request) -> Response:
    chat = parse_chat_request(await read_body(request, ChatBody), request.headers.get("user-agent", ""))
    return await _answer_completion(request, chat)


@CONTRACT.serve("POST /v1/completions", "Answer a prompt.", body=_CompletionBody, ok=COMPLETION, streams=True)
async def _complete_prompt(request: Request) -> Response:
    body = await read_body(request, _CompletionBody)
    prompt = body.prompt if isinstance(body.prompt, str) else body.prompt[0]
    question = _CompletionRequest(
        body.model,
        shapes.build_run(body.model, prompt, max_output_tokens=body.max_tokens),
        Session(),
        lists_sources=body.sources is not False,
        max_tokens=body.max_tokens,
        is_chat=False,
        streams=bool(body.stream),
    )
    return await _answer_completion(request, question)


def parse_chat_request(body: ChatBody, user_agent: str = "") -> _CompletionRequest:
    """The run and the conversation that a body stands for. Raises Refused."""
    turns = [(message.role, shapes.content_to_text(message.content)) for message in body.messages]
    most = body.max_completion_tokens or body.max_tokens
    run = shapes.build_run(body.model, turns[-1][1], instructions=shapes.join_instructions(turns), max_output_tokens=most)
    if turns[-1][0] != "user":
        raise bad_request("the last message must be the user's", parameter="messages")
    function, parameters = shapes.parse_forced_function(body.tools, body.tool_choice)
    return _CompletionRequest(
        body.model,
        run,
        Session(shapes.earlier_messages(turns[:-1])),
        parameters if function else shapes.parse_schema(body.response_format),
        user_agent.lower().startswith(shapes.CLIENTS_WITHOUT_ANNOTATIONS) if body.sources is None else body.sources,
        body.search is not False,
        function,
        not function and bool(shapes.list_functions(body.tools)),
        most,
        is_chat=True,
        streams=bool(body.stream),
        includes_usage=bool(body.stream_options and body.stream_options.include_usage),
    )


async def _answer_completion(request: Request, question: _CompletionRequest) -> Response:
    host: RunHost = request.app.state.host
    created = int(host.nexi.clock.now().timestamp())
    if reply := await reply_without_search(host.nexi, question):
        writer, text = _CompletionWriter(uuid.uuid4().hex[:12], question, created), rename_fences(reply.text)
        if question.streams:
            frames = [*writer.begin(), writer.chunk({"content": text})]
            return EventStream(send_frames([*frames, *writer.end([], "stop", reply.usage, citations=[]), DONE]))
        return json_reply(writer.body(text, [], Answer(text), reply.usage))
    question.require_writer(host.nexi)
    hosted = await host.start(question.run, question.session)
    writer = _CompletionWriter(hosted.id, question, created)
    if question.streams:
        return EventStream(_stream_chunks(host.nexi, hosted, question, writer))
    result = await wait_while_connected(request, hosted)
    answer, shown = result.answer, shapes.AnswerText(question, result.facts)
    written = await question.finish_text(host.nexi, answer.text, result.finished)
    text, usage = shown.finish(written.text), result.finished.usage + written.usage
    marks = _nest_marks(shown.cite(answer.sources))
    answer = replace(answer, stop=StopReason.CONTEXT_LIMIT if shown.limit.is_cut else answer.stop)
    body = writer.body(text + shown.close(answer.sources), marks, answer, usage)
    return json_reply({**body, **({"nexi": shapes.nexi_field(result.finished, question)} if question.is_chat else {})})


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


class _CompletionWriter:
    """The objects of one completion; for a prompt they have a text where those of a chat have a message or a part of one."""

    def __init__(self, run_id: str, question: _CompletionRequest, created: int) -> None:
        self._run_id, self._question = run_id, question
        prefix, self._kind = ("chatcmpl", "chat.completion") if question.is_chat else ("cmpl", "text_completion")
        self._head = {"id": f"{prefix}-{run_id}", "object": self._kind, "created": created, "model": question.model}

    def body(self, text: str, marks: list[dict[str, Any]], answer: Answer, usage: Usage) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": marks}
        if self._question.function:
            message |= {"content": None, "tool_calls": [self.function_call(text)]}
        choice = {"index": 0, **({"message": message} if self._question.is_chat else {"text": text}), "logprobs": None}
        return {
            **self._head,
            "choices": [{**choice, "finish_reason": self.finish_reason(answer.stop)}],
            "usage": shapes.usage_of(usage),
            "citations": shapes.citation_urls(answer.sources),
        }

    def function_call(self, arguments: str) -> dict[str, Any]:
        function = {"name": self._question.function, "arguments": arguments}
        return {"id": f"call_{self._run_id}", "type": "function", "function": function}

    def finish_reason(self, stop: StopReason) -> str:
        """A limit that was reached still gave an answer; only what was cut off by length says so."""
        if self._question.function:
            return "tool_calls"
        return "length" if stop is StopReason.CONTEXT_LIMIT else "stop"

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        part = {"delta": delta} if self._question.is_chat else {"text": delta.get("content", "")}
        return self._format_chunk([{"index": 0, **part, "logprobs": None, "finish_reason": finish}], **more)

    def _format_chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        kind = f"{self._kind}.chunk" if self._question.is_chat else self._kind
        return shapes.format_event({**self._head, "object": kind, "choices": choices, **more})

    def begin(self) -> list[bytes]:
        return [self.chunk({"role": "assistant", "content": ""})] if self._question.is_chat else []

    def end(self, marks: list[dict[str, Any]], finish: str, usage: Usage, **more: Any) -> list[bytes]:
        """The annotations with the reason of the end, and the usage where the client wants it."""
        frames = [self.chunk({"annotations": marks}, finish, **more)]
        return [*frames, self._format_chunk([], usage=shapes.usage_of(usage))] if self._question.includes_usage else frames


async def _stream_chunks(
    nexi: Nexi, hosted: HostedRun, question: _CompletionRequest, writer: _CompletionWriter
) -> AsyncGenerator[bytes, None]:
    text, is_research = shapes.AnswerText(question), question.run.mode == "research"
    try:
        for frame in writer.begin():
            yield frame
        async for item in hosted.feed.follow(beat_s=shapes.BEAT_S):
            if item is None:
                yield shapes.format_comment("working")
                continue
            if visible := text.feed(item.event):
                yield writer.chunk({"content": visible})
            match item.event:
                case RunFinished() as end:
                    for frame in await _last_frames(nexi, writer, text, end, question):
                        yield frame
                case RunFailed():
                    yield shapes.format_event(shapes.openai_error(shapes.problem_of_run(hosted)))
                case event if question.is_chat and (line := shapes.progress_line(event)):
                    yield writer.chunk({"reasoning_content": f"{line}\n"}) if is_research else shapes.format_comment(line)
        yield DONE
    finally:
        await hosted.cancel()


async def _last_frames(
    nexi: Nexi, writer: _CompletionWriter, text: shapes.AnswerText, end: RunFinished, question: _CompletionRequest
) -> list[bytes]:
    """What the streamed text left out, the annotations, and the usage."""
    try:
        reply = await question.finish_text(nexi, end.answer, end)
    except NexiError as error:
        return [shapes.format_event(shapes.openai_error(problem_of(error)))]
    rest = text.finish(reply.text)
    marks = _nest_marks(text.cite(end.sources))
    rest += text.close(end.sources)
    if question.function:
        frames = [writer.chunk({"tool_calls": [{"index": 0, **writer.function_call(reply.text)}]})]
    else:
        frames = [writer.chunk({"content": rest})] if rest else []
    finish = writer.finish_reason(StopReason.CONTEXT_LIMIT if text.limit.is_cut else end.stop)
    more = {"nexi": shapes.nexi_field(end, question)} if question.is_chat else {}
    citations, usage = shapes.citation_urls(end.sources), end.usage + reply.usage
    return [*frames, *writer.end(marks, finish, usage, citations=citations, **more)]


def _nest_marks(citations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "url_citation", "url_citation": dict(citation)} for citation in citations]


@CONTRACT.serve("POST /v1/embeddings", "Vectors of texts.", body=_EmbeddingBody, ok=VECTORS)
async def _create_embeddings(request: Request) -> Response:
    host: RunHost = request.app.state.host
    body = await read_body(request, _EmbeddingBody)
    embedder = await host.nexi.gate().open_embedder()
    if embedder is None:
        fix = "set embedding_base_url and embedding_model, or install the vectors extra"
        raise build_refusal(404, "model_not_found", "no embedder is set up", fix=fix, parameter="model")
    if body.model not in (EMBEDDING_MODEL, embedder.name):
        raise shapes.unknown_model(body.model, (EMBEDDING_MODEL, embedder.name))
    result = await embedder.embed([body.input] if isinstance(body.input, str) else body.input)
    length = len(result.vectors[0])
    if body.dimensions not in (None, length):
        raise bad_request(f"the vectors of {embedder.name} have {length} dimensions", parameter="dimensions")
    vectors: list[Any] = [list(vector) for vector in result.vectors]
    if body.encoding_format == "base64":  # 32-bit floats, the lowest byte first, as OpenAI sends them
        vectors = [base64.b64encode(struct.pack(f"<{length}f", *vector)).decode() for vector in result.vectors]
    return json_reply(
        {
            "object": "list",
            "data": [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)],
            "model": embedder.name,
            "usage": {"prompt_tokens": result.usage.input_tokens, "total_tokens": result.usage.input_tokens},
        }
    )
