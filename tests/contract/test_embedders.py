"""What every embedder promises: one suite over static vectors and an endpoint on loopback."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nexi.app import SystemClock
from nexi.llm.embeddings import OpenAIEmbedder
from nexi.llm.openai.client import OpenAICompatible
from nexi.ports import Embedder
from nexi.stores.embedders import StaticEmbedder
from tests.stub import serving

WORDS = ["moon", "star", "cat", "dog", "purr"]
pytest.importorskip("numpy")


def write_static(folder: Path) -> Path:
    """A package of static vectors in small: a few letters, a few words, three dimensions."""
    letters = sorted({c for word in WORDS for c in word} | {"\u2581"})
    merges, vocab = [], ["<unk>", *(f"<0x{b:02X}>" for b in range(256)), *letters]
    for word in WORDS:
        whole = "\u2581"
        for letter in word:
            merges.append(f"{whole} {letter}")
            whole += letter
            vocab.append(whole)
    (folder / "tokenizers").mkdir(parents=True)
    (folder / "weights").mkdir()
    numbers = {piece: n for n, piece in enumerate(dict.fromkeys(vocab))}
    model = {"type": "BPE", "vocab": numbers, "merges": list(dict.fromkeys(merges))}
    (folder / "tokenizers" / "small_tokenizer_config.json").write_text(json.dumps({"model": model}))
    rows = [math.sin(n * 3 + d * 7) for n in range(len(numbers)) for d in range(3)]
    header = {"embedding.weight": {"dtype": "F32", "shape": [len(numbers), 3], "data_offsets": [0, len(rows) * 4]}}
    head = json.dumps(header).encode()
    data = struct.pack("<Q", len(head)) + head + struct.pack(f"<{len(rows)}f", *rows)
    (folder / "weights" / "small_3.safetensors").write_bytes(data)
    return folder


def answer(body: dict[str, Any]) -> tuple[int, Any]:
    """An endpoint that answers out of order, as it may."""
    data = [
        {"object": "embedding", "index": i, "embedding": [math.sin(len(text) + d) + 2 * (d == i % 3) for d in range(3)]}
        for i, text in enumerate(body["input"])
    ]
    return 200, {"object": "list", "data": data[::-1], "model": body["model"], "usage": {"prompt_tokens": 5, "total_tokens": 5}}


@contextmanager
def an_endpoint(folder: Path) -> Iterator[Embedder]:
    with serving({"POST /v1/embeddings": answer}) as port:
        yield OpenAIEmbedder(OpenAICompatible(f"http://127.0.0.1:{port}/v1", "toy", clock=SystemClock()))


@contextmanager
def static_vectors(folder: Path) -> Iterator[Embedder]:
    yield StaticEmbedder(write_static(folder / "package"))


@pytest.fixture(params=[static_vectors, an_endpoint], ids=["static", "endpoint"])
async def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Embedder]:
    with request.param(tmp_path) as made:
        yield made
        if isinstance(made, OpenAIEmbedder):
            await made.aclose()


TEXTS = ["moon star", "cat", "dog dog dog", "purr " * 50, "日本語", "", " \n ", "half \ud83c pair", "x" * 30_000]


async def test_every_text_gets_a_vector_of_length_one_in_order(embedder: Embedder) -> None:
    embedded = await embedder.embed(TEXTS)
    assert len(embedded.vectors) == len(TEXTS)
    assert {len(vector) for vector in embedded.vectors} == {embedder.dims} == {3}
    assert [math.sqrt(sum(n * n for n in v)) for v in embedded.vectors] == pytest.approx([1.0] * len(TEXTS), abs=1e-3)


async def test_many_texts_are_as_good_as_few(embedder: Embedder) -> None:
    texts = [f"cat {'moon ' * (i % 7)}" for i in range(45)]
    together = await embedder.embed(texts)
    first = await embedder.embed(texts[:3])
    assert list(together.vectors[:3]) == list(first.vectors)
    assert len(together.vectors) == 45


async def test_no_texts_are_no_vectors_and_cost_nothing(embedder: Embedder) -> None:
    embedded = await embedder.embed([])
    assert (embedded.vectors, embedded.usage.total) == ((), 0)


async def test_the_same_text_gives_the_same_vector(embedder: Embedder) -> None:
    assert (await embedder.embed(["moon star"])).vectors == (await embedder.embed(["moon star"])).vectors


async def test_an_embedder_has_a_name(embedder: Embedder) -> None:
    assert embedder.name in {"wordllama:small_3", "toy"}
