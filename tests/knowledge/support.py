"""What the knowledge tests share: a world of a store, a web in memory, and a list of what was said."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nexi.events import Delta, Fact
from nexi.knowledge.agentic import AgenticSearch, KnowledgeSettings, Web
from nexi.knowledge.indexing import Indexer
from nexi.knowledge.judge import AgenticJudge
from nexi.knowledge.retrieval import Retriever
from nexi.ports import LLM, Embedder
from nexi.stores.sqlite import SqliteStore
from nexi.testing import FakeClock, FakeWeb
from nexi.text.terms import extract_terms
from nexi.types import Embedded, Failure, FetchLimits, Page, Query, Reply, SearchOutcome, Usage


class Said:
    """An Emit that keeps everything."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.deltas: list[Delta] = []

    async def __call__(self, fact: Fact) -> None:
        self.facts.append(fact)

    def delta(self, delta: Delta) -> None:
        self.deltas.append(delta)

    def of(self, kind: type[Any]) -> list[Any]:
        return [fact for fact in self.facts if isinstance(fact, kind)]


class WordEmbedder:
    """A vector per text that depends on its words alone; texts that share words are near each other."""

    def __init__(self, name: str = "words", dims: int = 64) -> None:
        self.name = name
        self.dims = dims
        self.batches: list[int] = []

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Embedded:
        self.batches.append(len(texts))
        return Embedded(tuple(self._vector(text) for text in texts))

    def _vector(self, text: str) -> array[float]:
        values = [0.0] * self.dims
        for term in extract_terms(text):
            values[int(hashlib.sha256(term.encode()).hexdigest(), 16) % self.dims] += 1.0
        length = sum(v * v for v in values) ** 0.5 or 1.0
        return array("f", [v / length for v in values])


class World:
    """An agentic search over a web in memory; the store is a file that outlives the searches."""

    def __init__(
        self,
        folder: Path,
        pages: Mapping[str, str],
        *,
        llm: LLM | None = None,
        embedder: Embedder | None = None,
        failures: Sequence[Failure] = (),
    ) -> None:
        self.store = SqliteStore(folder / "knowledge.db")
        self.web = FakeWeb(pages)
        self.said = Said()
        self.clock = FakeClock()
        self.llm = llm
        self.embedder = embedder
        self.failures = tuple(failures)
        self.indexer = Indexer(self.store, emit=self.said, clock=self.clock, embedder=embedder)
        self.retriever = Retriever(self.store, emit=self.said, clock=self.clock, embedder=embedder)

    async def search(self, query: Query) -> SearchOutcome:
        if self.failures:
            return SearchOutcome(query.text, failures=self.failures)
        return SearchOutcome(query.text, tuple(await self.web.search(query)), "fake")

    async def read(self, url: str) -> Page:
        return await self.web.fetch(url, FetchLimits())

    async def ask(self, question: str, settings: KnowledgeSettings | None = None) -> dict[str, Any]:
        return await AgenticSearch(
            question,
            retriever=self.retriever,
            indexer=self.indexer,
            judge=AgenticJudge(self.llm, emit=self.said),
            web=Web(self.search, self.read),
            emit=self.said,
            settings=settings or KnowledgeSettings(),
        ).run()


def saying(value: object) -> Reply:
    return Reply(value if isinstance(value, str) else json.dumps(value), usage=Usage(10, 5))


class JudgingLLM:
    """A model that answers by what it is asked: one function for each prompt. Records temperatures and schemas."""

    name = "judging"

    def __init__(self, **answers: Callable[[str], object]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, float | None]] = []

    async def complete(self, messages: Sequence[Any], tools: Sequence[Any] = (), **options: Any) -> Reply:
        system = messages[0].content
        marks = {"enough to answer": "completeness", "worth reading": "urls", "did not bring": "queries", "just read": "hints"}
        about = next(name for mark, name in marks.items() if mark in system)
        self.asked.append((about, options.get("temperature")))
        answer = self.answers[about](messages[1].content)
        if isinstance(answer, Exception):
            raise answer
        return saying(answer)
