"""Embeddings of an endpoint: what is sent, what is paid, and what comes of bad answers."""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from nexi.app import SystemClock
from nexi.errors import LLMError
from nexi.llm.embeddings import OpenAIEmbedder
from nexi.llm.openai.client import OpenAICompatible
from tests.raising import has_code

Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]


class Waits(SystemClock):
    """Waiting takes no time but is written down."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class Endpoint:
    """Answers in turn; the last answer again and again. Keeps what it was asked."""

    def __init__(self, *answers: Answer | Callable[[dict[str, Any]], Answer]) -> None:
        self._answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import json

        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.asked.append(body)
        self.headers.append(headers)
        self.paths.append(lines[0].split(" ")[1])
        turn = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        status, value, *extra = turn(body) if callable(turn) else turn
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        more = "".join(f"{k}: {v}\r\n" for k, v in (extra[0] if extra else {}).items())
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(data)}\r\nconnection: close\r\n{more}\r\n".encode() + data)
        await writer.drain()
        writer.close()


def vectors(body: dict[str, Any]) -> Answer:
    return 200, {
        "data": [{"index": i, "embedding": [1.0, 0.0]} for i, _ in enumerate(body["input"])],
        "usage": {"prompt_tokens": 7},
    }


@asynccontextmanager
async def embedding(
    endpoint: Endpoint, model: str = "text-embedding-3-small", api_keys: Sequence[str] = (), **options: Any
) -> AsyncIterator[tuple[OpenAIEmbedder, Waits]]:
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0)
    clock = Waits()
    port = server.sockets[0].getsockname()[1]
    server_of_vectors = OpenAICompatible(f"http://127.0.0.1:{port}/v1", model, api_keys=api_keys, clock=clock, rng=lambda: 1.0)
    embedder = OpenAIEmbedder(server_of_vectors, **options)
    try:
        yield embedder, clock
    finally:
        await embedder.aclose()
        server.close()
        await server.wait_closed()


async def test_twenty_texts_go_in_one_request_and_usage_is_added_up() -> None:
    endpoint = Endpoint(vectors)
    async with embedding(endpoint, api_keys=["sk-secret"]) as (embedder, _):
        embedded = await embedder.embed([f"text {i}" for i in range(45)])
    assert [len(body["input"]) for body in endpoint.asked] == [20, 20, 5]
    assert endpoint.asked[0] == {
        "model": "text-embedding-3-small",
        "input": [f"text {i}" for i in range(20)],
        "encoding_format": "float",
    }
    assert (embedded.usage.input_tokens, embedded.usage.estimated) == (21, False)
    assert embedded.usage.cost == pytest.approx(21 * 0.02 / 1e6)
    assert endpoint.headers[0]["authorization"] == "bearer sk-secret"
    assert endpoint.paths[0] == "/v1/embeddings"


async def test_prefixes_and_a_wished_length_are_sent() -> None:
    endpoint = Endpoint(vectors)
    async with embedding(endpoint, model="nomic", dims=2, prefixes=("document: ", "query: ")) as (embedder, _):
        await embedder.embed(["a"])
        await embedder.embed(["a"], query=True)
        assert (embedder.name, embedder.dims) == ("nomic@2", 2)
    assert [(b["input"], b["dimensions"]) for b in endpoint.asked] == [(["document: a"], 2), (["query: a"], 2)]


async def test_blank_and_endless_texts_are_sent_in_a_form_that_endpoints_take() -> None:
    endpoint = Endpoint(vectors)
    async with embedding(endpoint) as (embedder, _):
        await embedder.embed(["", "  \n", "x" * 100_000])
    assert [len(text) for text in endpoint.asked[0]["input"]] == [1, 1, 24_000]


async def test_usage_is_estimated_where_the_endpoint_tells_none() -> None:
    endpoint = Endpoint((200, {"data": [{"embedding": [0.0, 2.0]}]}))
    async with embedding(endpoint, model="local") as (embedder, _):
        embedded = await embedder.embed(["x" * 40])
    assert (list(embedded.vectors[0]), embedded.usage.input_tokens, embedded.usage.estimated) == ([0.0, 1.0], 11, True)


async def test_vectors_in_base64_are_read() -> None:
    packed = base64.b64encode(struct.pack("<2f", 0.6, 0.8)).decode()
    endpoint = Endpoint((200, {"data": [{"index": 0, "embedding": packed}]}))
    async with embedding(endpoint) as (embedder, _):
        assert list((await embedder.embed(["a"])).vectors[0]) == pytest.approx([0.6, 0.8])


async def test_a_busy_endpoint_is_asked_again_when_it_wishes() -> None:
    endpoint = Endpoint((429, {"error": {"message": "slow down"}}, {"Retry-After": "7"}), (503, {}), vectors)
    async with embedding(endpoint) as (embedder, clock):
        assert len((await embedder.embed(["a"])).vectors) == 1
    assert (clock.slept, len(endpoint.asked)) == ([7.0, 1.0], 3)


async def test_a_second_key_is_tried_before_waiting() -> None:
    endpoint = Endpoint((429, {}), vectors)
    async with embedding(endpoint, api_keys=["sk-one-1", "sk-two-2"]) as (embedder, clock):
        await embedder.embed(["a"])
    assert ([h["authorization"] for h in endpoint.headers], clock.slept) == (["bearer sk-one-1", "bearer sk-two-2"], [])


@pytest.mark.parametrize(
    ("answer", "code", "fix"),
    [
        ((401, {"error": {"message": "bad key sk-secret-key"}}), "auth", "NEXI_EMBEDDING_API_KEY"),
        ((404, {"error": {"message": "no such model"}}), "not_found", "NEXI_EMBEDDING_MODEL"),
        ((429, {"error": "wait"}), "rate_limit", "wait"),
        ((500, b"oops"), "server", "NEXI_EMBEDDING"),
        ((200, b"not json"), "bad_reply", "NEXI_EMBEDDING"),
        ((200, {"data": []}), "bad_reply", "NEXI_EMBEDDING"),
        ((200, {"choices": []}), "bad_reply", "NEXI_EMBEDDING"),
        ((200, {"data": [{"embedding": []}]}), "bad_reply", "NEXI_EMBEDDING"),
        ((200, {"data": [{"embedding": [0, 0]}]}), "bad_reply", "NEXI_EMBEDDING"),
        ((200, {"data": [{"embedding": ["a"]}]}), "bad_reply", "NEXI_EMBEDDING"),
        ((200, {"data": [{"embedding": "!!"}]}), "bad_reply", "NEXI_EMBEDDING"),
        ((200, b'{"data": [{"embedding": [NaN, 1]}]}'), "bad_reply", "NEXI_EMBEDDING"),
        ((200, {"data": [{"embedding": [1, 0], "index": 4}]}), "bad_reply", "NEXI_EMBEDDING"),
        ((200, b"[" * 100_000), "bad_reply", "NEXI_EMBEDDING"),
        ((200, {"data": [3]}), "bad_reply", "NEXI_EMBEDDING"),
        ((200, {"data": [{"embedding": [10**400]}]}), "bad_reply", "NEXI_EMBEDDING"),
    ],
)
async def test_every_failure_says_why_and_what_mends_it(answer: Answer, code: str, fix: str) -> None:
    async with embedding(Endpoint(answer), api_keys=["sk-secret-key"]) as (embedder, _):
        with pytest.raises(LLMError) as failed:
            await embedder.embed(["a"])
    assert failed.value.code == code
    assert fix in failed.value.fix
    assert "sk-secret-key" not in f"{failed.value} {failed.value.fix}"


async def test_vectors_whose_length_changes_are_refused() -> None:
    endpoint = Endpoint(vectors, (200, {"data": [{"embedding": [1.0, 0.0, 0.0]}]}))
    async with embedding(endpoint) as (embedder, _):
        await embedder.embed(["a"])
        with pytest.raises(LLMError, check=has_code("bad_reply")):
            await embedder.embed(["b"])


async def test_what_was_paid_before_a_failure_is_told() -> None:
    endpoint = Endpoint(vectors, (401, {}))
    async with embedding(endpoint) as (embedder, _):
        with pytest.raises(LLMError) as failed:
            await embedder.embed(["a"] * 21)
    assert failed.value.usage is not None
    assert failed.value.usage.input_tokens == 7


async def test_nobody_listening_is_an_error_with_a_fix() -> None:
    embedder = OpenAIEmbedder(OpenAICompatible("http://127.0.0.1:9/v1/embeddings", "toy", clock=Waits(), max_retries=1))
    with pytest.raises(LLMError) as failed:
        await embedder.embed(["a"])
    await embedder.aclose()
    assert (failed.value.code, "NEXI_EMBEDDING_BASE_URL" in failed.value.fix) == ("connect", True)
