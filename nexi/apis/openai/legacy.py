"""Passes as OpenAI for older clients: `POST /v1/completions`, and `POST /v1/embeddings` where an embedder is set up.

A prompt is a question without a conversation; its text ends with its sources, because such clients show no annotations.
Below are `openai_shapes`, `hosting` and the embedder of the knowledge base.
"""

from __future__ import annotations

import base64
import sys
import uuid
from array import array
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.answers.streaming import find_rest
from nexi.apis.openai.chat import finish_reason, wait_while_connected
from nexi.apis.openai.shapes import (
    BEAT_S,
    ERROR,
    TAG,
    ListsSources,
    ModelName,
    ModelRequest,
    OneChoice,
    OutputTokens,
    ReplacedModelNote,
    build_run,
    citation_urls,
    failure_body,
    format_comment,
    format_event,
    unknown_model,
    usage_of,
)
from nexi.app import Session
from nexi.app.hosting import HostedRun, RunHost
from nexi.events import RunFailed, RunFinished, TextDelta
from nexi.ports import Embedder
from nexi.types import Source, StopReason, Usage
from nexi.web.fences import FenceRenamer, rename_fences
from nexi.web.payload import build_operation, json_reply, read_body
from nexi.web.problems import bad_request, build_refusal
from nexi.web.streams import EventStream

EMBEDDING_MODEL = "nexi-embed"
MAX_TEXTS = 2048
MAX_TEXT_CHARS = 100_000
PromptText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)]


class CompletionBody(Struct, frozen=True):
    """A prompt to answer."""

    model: ModelName
    prompt: PromptText | Annotated[tuple[PromptText, ...], Meta(min_length=1, max_length=1)]
    stream: bool | None = None
    max_tokens: OutputTokens = None
    n: OneChoice = None
    sources: ListsSources = None


class EmbeddingBody(Struct, frozen=True):
    """Texts whose vectors are wanted."""

    model: ModelName
    input: PromptText | Annotated[tuple[PromptText, ...], Meta(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Meta(ge=1)] | None = None


def routes() -> list[Route]:
    return [
        Route("/v1/completions", create_completion, methods=["POST"]),
        Route("/v1/embeddings", create_embeddings, methods=["POST"]),
    ]


# completions


async def create_completion(request: Request) -> Response:
    host: RunHost = request.app.state.host
    body = await read_body(request, CompletionBody)
    prompt = body.prompt if isinstance(body.prompt, str) else body.prompt[0]
    run = build_run(body.model, prompt, max_output_tokens=body.max_tokens)
    question = ModelRequest(body.model, run, Session(), None, body.sources is not False, max_tokens=body.max_tokens)
    created = int(host.nexi.clock.now().timestamp())
    if reply := await question.reply_without_search(host.nexi):
        writer = _TextWriter(uuid.uuid4().hex[:12], question, created)
        text = rename_fences(reply.text)
        whole = writer.body(text, (), StopReason.PLAIN_ANSWER, reply.usage)
        return EventStream(_stream_reply(writer, text)) if body.stream else json_reply(whole)
    hosted = await host.start(question.run, question.session)
    writer = _TextWriter(hosted.id, question, created)
    if body.stream:
        return EventStream(_stream_texts(hosted, question, writer))
    result = await wait_while_connected(request, hosted)
    answer = result.answer
    limit = question.open_limit()
    text = limit.feed(rename_fences(answer.text))
    if limit.is_cut:
        return json_reply(writer.body(text, answer.sources, StopReason.CONTEXT_LIMIT, result.finished.usage))
    text += question.closing_text(answer.sources, ReplacedModelNote(result.facts).text)
    return json_reply(writer.body(text, answer.sources, answer.stop, result.finished.usage))


class _TextWriter:
    """The objects of one completion."""

    def __init__(self, run_id: str, question: ModelRequest, created: int) -> None:
        self._head = {"id": f"cmpl-{run_id}", "object": "text_completion", "created": created, "model": question.model}

    def body(self, text: str, sources: tuple[Source, ...], stop: StopReason, usage: Usage) -> dict[str, Any]:
        whole = self._choices(text, finish_reason(stop))
        return {**self._head, "choices": whole, "usage": usage_of(usage), "citations": citation_urls(sources)}

    def chunk(self, text: str, finish: str | None = None, **more: Any) -> bytes:
        return format_event({**self._head, "choices": self._choices(text, finish), **more})

    @staticmethod
    def _choices(text: str, finish: str | None) -> list[dict[str, Any]]:
        return [{"index": 0, "text": text, "logprobs": None, "finish_reason": finish}]


async def _stream_reply(writer: _TextWriter, text: str) -> AsyncGenerator[bytes, None]:
    yield writer.chunk(text)
    yield writer.chunk("", "stop", citations=[])
    yield b"data: [DONE]\n\n"


async def _stream_texts(hosted: HostedRun, question: ModelRequest, writer: _TextWriter) -> AsyncGenerator[bytes, None]:
    streamed_text, note, fences, limit = "", ReplacedModelNote(), FenceRenamer(), question.open_limit()
    try:
        async for item in hosted.feed.follow(beat_s=BEAT_S):
            if item:
                note.observe(item.event)
            match item.event if item else None:
                case None:
                    yield format_comment("working")
                case TextDelta(text=text):
                    streamed_text += text
                    if visible := limit.feed(fences.feed(text)):
                        yield writer.chunk(visible)
                case RunFinished(answer=answer, sources=sources, stop=stop):
                    rest = find_rest(streamed_text, answer)
                    visible = limit.feed(fences.feed(rest) + fences.finish())
                    yield writer.chunk(visible if limit.is_cut else visible + question.closing_text(sources, note.text))
                    finish = "length" if limit.is_cut else finish_reason(stop)
                    yield writer.chunk("", finish, citations=citation_urls(sources))
                case RunFailed():
                    yield format_event(failure_body(hosted))
                case _:
                    pass
        yield b"data: [DONE]\n\n"
    finally:
        await hosted.cancel()


# embeddings


async def create_embeddings(request: Request) -> Response:
    host: RunHost = request.app.state.host
    body = await read_body(request, EmbeddingBody)
    embedder = await host.nexi.gate().open_embedder()
    if embedder is None:
        fix = "set embedding_base_url and embedding_model, or install the vectors extra"
        raise build_refusal(404, "model_not_found", "no embedder is set up", fix=fix, parameter="model")
    if body.model not in (EMBEDDING_MODEL, embedder.name):
        raise unknown_model(body.model, (EMBEDDING_MODEL, embedder.name))
    texts = [body.input] if isinstance(body.input, str) else body.input
    return json_reply(await _embed_texts(embedder, texts, body))


async def _embed_texts(embedder: Embedder, texts: Sequence[str], body: EmbeddingBody) -> dict[str, Any]:
    result = await embedder.embed(texts)
    length = len(result.vectors[0])
    if body.dimensions not in (None, length):
        raise bad_request(f"the vectors of {embedder.name} have {length} dimensions", parameter="dimensions")
    packs = body.encoding_format == "base64"
    vectors = [_pack_vector(vector) if packs else list(vector) for vector in result.vectors]
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)],
        "model": embedder.name,
        "usage": {"prompt_tokens": result.usage.input_tokens, "total_tokens": result.usage.input_tokens},
    }


def _pack_vector(vector: array[float]) -> str:
    """32-bit floats, the lowest byte first, as OpenAI sends them."""
    floats = array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode()


def openapi() -> dict[str, Any]:
    whole = {"type": "object", "required": ["id", "object", "choices", "usage", "citations"]}
    vectors = {"type": "object", "required": ["object", "data", "model", "usage"]}
    prompt = build_operation("Answer a prompt.", TAG, body=CompletionBody, ok=whole, error=ERROR, streams=True)
    return {
        "/v1/completions": {"post": prompt},
        "/v1/embeddings": {"post": build_operation("Vectors of texts.", TAG, body=EmbeddingBody, ok=vectors, error=ERROR)},
    }
