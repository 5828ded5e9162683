"""Passes as OpenAI for older clients: completions of a prompt, embeddings, and paths that are not there."""

from __future__ import annotations

import base64
import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nexi.token_counter import count_tokens
from nexi.types import Embedded, Usage
from tests.web.world import MOON, QUESTION, Served, serving

PATH = "/v1/completions"


def body(**more: Any) -> dict[str, Any]:
    return {"model": "nexi-s", "prompt": QUESTION, **more}


class LengthEmbedder:
    """A vector of two numbers: one, and the length of the text."""

    name, dims = "length", 2

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Embedded:
        return Embedded(tuple(array("f", (1.0, float(len(text)))) for text in texts), Usage(7))


async def test_a_prompt_is_answered_with_its_sources_at_the_end(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        told = (await served.client.post(PATH, json=body())).json()
        (choice,) = told["choices"]
        assert (told["object"], choice["finish_reason"], told["citations"][0]) == ("text_completion", "stop", MOON)
        assert "384,400 km" in choice["text"]
        assert MOON in choice["text"].partition("\n\nSources:\n")[2]
        bare = (await served.client.post(PATH, json=body(sources=False, prompt=[QUESTION]))).json()
        assert bare["choices"][0]["text"] == choice["text"].partition("\n\nSources:\n")[0]


async def test_a_streamed_prompt_says_the_same(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        whole = (await served.client.post(PATH, json=body())).json()
        assert await stream_text(served, body(stream=True)) == whole["choices"][0]["text"]
        hello = (await served.client.post(PATH, json=body(prompt="Thank you!"))).json()["choices"][0]["text"]
        assert await stream_text(served, body(stream=True, prompt="Thank you!")) == hello


async def stream_text(served: Served, sent: dict[str, Any]) -> str:
    async with served.client.stream("POST", PATH, json=sent) as stream:
        lines = [line.removeprefix("data: ") async for line in stream.aiter_lines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return "".join(json.loads(line)["choices"][0]["text"] for line in lines[:-1])


async def test_texts_become_vectors_where_an_embedder_is_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as served:
        monkeypatch.setattr(served.app.state.nexi.ports, "embedder", LengthEmbedder)
        sent = {"model": "nexi-embed", "input": ["four", "seventeen letters"]}
        told = (await served.client.post("/v1/embeddings", json=sent)).json()
        packed = (await served.client.post("/v1/embeddings", json={**sent, "encoding_format": "base64"})).json()
        other = await served.client.post("/v1/embeddings", json={**sent, "model": "text-embedding-3-small"})
        short = await served.client.post("/v1/embeddings", json={**sent, "dimensions": 1})
    assert told == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [1.0, 4.0]},
            {"object": "embedding", "index": 1, "embedding": [1.0, 17.0]},
        ],
        "model": "length",
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    }
    assert [list(array("f", base64.b64decode(row["embedding"]))) for row in packed["data"]] == [[1.0, 4.0], [1.0, 17.0]]
    assert (other.status_code, other.json()["error"]["code"]) == (404, "model_not_found")
    assert (short.status_code, short.json()["error"]["param"]) == (400, "dimensions")


async def test_embeddings_without_an_embedder_say_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as served:
        monkeypatch.setattr(served.app.state.nexi.ports, "embedder", lambda: None)
        reply = await served.client.post("/v1/embeddings", json={"model": "nexi-embed", "input": "x"})
        assert (reply.status_code, reply.json()["error"]["param"]) == (404, "model")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/files", 404), ("GET", "/v1/responses", 405)])
async def test_unknown_paths_under_v1_are_refused_in_openais_shape(tmp_path: Path, method: str, path: str, status: int) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.request(method, path)
        assert (reply.status_code, set(reply.json()["error"])) == (status, {"message", "type", "param", "code"})


@pytest.mark.parametrize("path", ["/v1/runs/ffffff", "/v1/search", "/v1/snippet_rank", "/v1/cache/clear"])
async def test_own_paths_keep_their_own_shape(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path) as served:
        error = (await served.client.get(path)).json()["error"]
        assert "type" not in error
        assert {"code", "message"} <= set(error)


@pytest.mark.parametrize(
    ("sent", "status"),
    [(body(prompt=["a", "b"]), 400), (body(prompt=[1, 2]), 400), (body(model="davinci"), 404), (body(n=2), 400)],
)
async def test_prompts_that_cannot_be_asked_are_refused(tmp_path: Path, sent: dict[str, Any], status: int) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post(PATH, json=sent)
        assert (reply.status_code, set(reply.json()["error"])) == (status, {"message", "type", "param", "code"})


async def test_a_prompt_is_answered_up_to_the_token_limit_of_its_client(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        (whole,) = (await served.client.post(PATH, json=body(max_tokens=6))).json()["choices"]
        async with served.client.stream("POST", PATH, json=body(max_tokens=6, stream=True)) as stream:
            lines = [line.removeprefix("data: ") async for line in stream.aiter_lines() if line.startswith("data: {")]
    choices = [json.loads(line)["choices"][0] for line in lines]
    assert (whole["finish_reason"], 0 < count_tokens(whole["text"]) <= 6) == ("length", True)
    assert ("".join(c["text"] for c in choices), choices[-1]["finish_reason"]) == (whole["text"], "length")
