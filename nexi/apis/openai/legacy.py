"""Passes as OpenAI for older clients: `POST /v1/completions`, and `POST /v1/embeddings` where an embedder is set up.

A prompt is a question without a conversation; its text ends with its sources, because such clients show no annotations.
Below are `shapes`, `hosting` and the embedder of the knowledge base.
"""

from __future__ import annotations

import base64
import struct
import uuid
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.apis.openai import shapes
from nexi.apis.openai.chat import COMPLETION, DONE, finish_reason, wait_while_connected
from nexi.apis.openai.chat_tasks import reply_without_search
from nexi.app import Session
from nexi.app.hosting import HostedRun, RunHost
from nexi.events import RunFailed, RunFinished
from nexi.types import Source, StopReason, Usage
from nexi.web.contract import Contract
from nexi.web.fences import rename_fences
from nexi.web.payload import json_reply, read_body
from nexi.web.problems import bad_request, build_refusal
from nexi.web.streams import EventStream, send_frames

CONTRACT = Contract("OpenAI", error=shapes.ERROR)
VECTORS = {"type": "object", "required": ["object", "data", "model", "usage"]}
EMBEDDING_MODEL = "nexi-embed"
MAX_TEXTS = 2048
MAX_TEXT_CHARS = 100_000
PromptText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)]


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


@CONTRACT.serve("POST /v1/completions", "Answer a prompt.", body=_CompletionBody, ok=COMPLETION, streams=True)
async def _create_completion(request: Request) -> Response:
    host: RunHost = request.app.state.host
    body = await read_body(request, _CompletionBody)
    prompt = body.prompt if isinstance(body.prompt, str) else body.prompt[0]
    run = shapes.build_run(body.model, prompt, max_output_tokens=body.max_tokens)
    question = shapes.ModelRequest(body.model, run, Session(), None, body.sources is not False, max_tokens=body.max_tokens)
    created = int(host.nexi.clock.now().timestamp())
    if reply := await reply_without_search(host.nexi, question):
        writer = _TextWriter(uuid.uuid4().hex[:12], question, created)
        text = rename_fences(reply.text)
        if body.stream:
            return EventStream(send_frames([writer.chunk(text), writer.chunk("", "stop", citations=[]), DONE]))
        return json_reply(writer.body(text, (), StopReason.PLAIN_ANSWER, reply.usage))
    hosted = await host.start(question.run, question.session)
    writer = _TextWriter(hosted.id, question, created)
    if body.stream:
        return EventStream(_stream_texts(hosted, question, writer))
    result = await wait_while_connected(request, hosted)
    answer, shown = result.answer, shapes.AnswerText(question, result.facts)
    text = shown.finish(answer.text) + shown.close(answer.sources)
    stop = StopReason.CONTEXT_LIMIT if shown.limit.is_cut else answer.stop
    return json_reply(writer.body(text, answer.sources, stop, result.finished.usage))


class _TextWriter:
    """The objects of one completion."""

    def __init__(self, run_id: str, question: shapes.ModelRequest, created: int) -> None:
        self._head = {"id": f"cmpl-{run_id}", "object": "text_completion", "created": created, "model": question.model}

    def body(self, text: str, sources: tuple[Source, ...], stop: StopReason, usage: Usage) -> dict[str, Any]:
        whole = self._choices(text, finish_reason(stop))
        return {**self._head, "choices": whole, "usage": shapes.usage_of(usage), "citations": shapes.citation_urls(sources)}

    def chunk(self, text: str, finish: str | None = None, **more: Any) -> bytes:
        return shapes.format_event({**self._head, "choices": self._choices(text, finish), **more})

    @staticmethod
    def _choices(text: str, finish: str | None) -> list[dict[str, Any]]:
        return [{"index": 0, "text": text, "logprobs": None, "finish_reason": finish}]


async def _stream_texts(hosted: HostedRun, question: shapes.ModelRequest, writer: _TextWriter) -> AsyncGenerator[bytes, None]:
    text = shapes.AnswerText(question)
    try:
        async for item in hosted.feed.follow(beat_s=shapes.BEAT_S):
            if item is None:
                yield shapes.format_comment("working")
                continue
            if visible := text.feed(item.event):
                yield writer.chunk(visible)
            match item.event:
                case RunFinished(answer=answer, sources=sources, stop=stop):
                    yield writer.chunk(text.finish(answer) + text.close(sources))
                    finish = finish_reason(StopReason.CONTEXT_LIMIT if text.limit.is_cut else stop)
                    yield writer.chunk("", finish, citations=shapes.citation_urls(sources))
                case RunFailed():
                    yield shapes.format_event(shapes.openai_error(shapes.problem_of_run(hosted)))
        yield DONE
    finally:
        await hosted.cancel()


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
