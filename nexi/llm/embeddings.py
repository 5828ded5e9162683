"""Embeddings of any OpenAI-compatible endpoint.

No answer is believed to be well-formed. Keys, waits and failures are those of `openai/client.py`.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from nexi.errors import LLMError
from nexi.llm.openai import faults
from nexi.llm.openai.client import OpenAICompatible
from nexi.types import Embedded, Usage, Vector

BATCH = 20
MAX_BYTES = 32_000_000
MAX_CHARS = 24_000  # of one text; models take about 8,000 tokens and refuse the whole batch for one that is longer
FIXES = {
    "auth": "set NEXI_EMBEDDING_API_KEY to a key of this endpoint",
    "not_found": "set NEXI_EMBEDDING_MODEL to an embedding model of this endpoint",
    "rate_limit": "wait, or use an embedding model on this machine",
}
OTHER_FIX = "check NEXI_EMBEDDING_BASE_URL and NEXI_EMBEDDING_MODEL"
NOTHING = "."  # for a text of spaces, which endpoints refuse


class OpenAIEmbedder:
    """The Embedder port over `POST /embeddings`, twenty texts a request. `prefixes` go before documents and queries."""

    def __init__(self, endpoint: OpenAICompatible, *, dims: int = 0, prefixes: tuple[str, str] = ("", "")) -> None:
        self._endpoint, self._model, self._prefixes = endpoint, endpoint.model, prefixes
        self._asked_dims = self.dims = dims

    @property
    def name(self) -> str:
        """Two lengths of one model's vectors cannot be compared, so a length that was asked for is part of the name."""
        return f"{self._model}@{self._asked_dims}" if self._asked_dims else self._model

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Embedded:
        """Batches one after another: endpoints limit requests, and a caller with many texts runs several of these calls."""
        vectors: list[Vector] = []
        usage = Usage()
        for start in range(0, len(texts), BATCH):
            batch = [(self._prefixes[query] + (text.strip() or NOTHING))[:MAX_CHARS] for text in texts[start : start + BATCH]]
            try:
                batch_result = await self._embed_batch(batch)
            except LLMError as fault:
                fault.usage = usage
                fault.fix = FIXES.get(fault.code, OTHER_FIX)
                raise
            vectors.extend(batch_result.vectors)
            usage += batch_result.usage
        return Embedded(tuple(vectors), usage)

    async def _embed_batch(self, batch: Sequence[str]) -> Embedded:
        request: dict[str, Any] = {"model": self._model, "input": list(batch), "encoding_format": "float"}
        if self._asked_dims:
            request["dimensions"] = self._asked_dims
        body = await self._endpoint.post("/embeddings", request, max_bytes=MAX_BYTES)
        try:
            answer = json.loads(body)
            vectors = _parse_vectors(answer, len(batch))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            problem = str(error) or type(error).__name__
            raise faults.build_error(self._endpoint.endpoint, faults.BAD_EMBEDDINGS, problem) from None
        lengths = {len(vector) for vector in vectors} | ({self.dims} if self.dims else set())
        if len(lengths) != 1:  # the first answer tells how long vectors are
            problem = f"vectors of different lengths: {sorted(lengths)}"
            raise faults.build_error(self._endpoint.endpoint, faults.BAD_EMBEDDINGS, problem)
        self.dims = lengths.pop()
        # what the server counted, or an estimate
        usage = answer.get("usage")
        tokens = usage.get("prompt_tokens") or usage.get("total_tokens") if isinstance(usage, Mapping) else None
        is_reported = isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0
        count = int((tokens if is_reported else sum(len(text.encode("utf-8", "replace")) // 4 + 1 for text in batch)) or 0)
        return Embedded(vectors, Usage(count, estimated=not is_reported, cost=self._endpoint.cost_of(count)))


def _parse_vectors(answer: Any, count: int) -> tuple[Vector, ...]:
    """One vector for each text, in the order of the texts. ValueError, KeyError or TypeError where there is not."""
    items = answer["data"]
    if len(items) != count:
        raise ValueError(f"{len(items)} vectors for {count} texts")
    vectors_by_place: dict[int, Vector] = {}
    for place, item in enumerate(items):
        numbers = item["embedding"]
        if isinstance(numbers, str):  # in base64, as some servers give it whatever was asked for
            try:
                data = base64.b64decode(numbers, validate=True)
                numbers = struct.unpack(f"<{len(data) // 4}f", data)
            except (binascii.Error, struct.error) as error:
                raise ValueError(str(error)) from None
        numbers = array("f", numbers)
        length = math.sqrt(sum(n * n for n in numbers))
        if not math.isfinite(length) or length == 0:
            raise ValueError("a vector has no length")
        unit_vector = numbers if abs(length - 1) < 1e-4 else array("f", [n / length for n in numbers])
        vectors_by_place[int(item.get("index", place))] = unit_vector
    if sorted(vectors_by_place) != list(range(count)):
        raise ValueError("the vectors are not numbered in order")
    return tuple(vectors_by_place[place] for place in range(count))
