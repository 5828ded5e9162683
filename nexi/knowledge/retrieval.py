"""Finds passages for a question: by words and by vectors.

Above are the agentic search, the loop's `local_search` and the doors; below are the ports of the store, the embedder and,
for reranking, a model. Which store answers is not known here. A part that fails is left out and said; words always work.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from msgspec.structs import replace

from nexi.errors import LLMError, StoreError
from nexi.events import KnowledgeSearched, Warned
from nexi.knowledge import _scoring
from nexi.notices import Notice, join_sentences
from nexi.ports import LLM, Clock, Embedder, Emit, KnowledgeStore
from nexi.prompts import render
from nexi.structured.ranking import first_ones, pick_or_first, pick_schema
from nexi.types import EVERYTHING, Message, Passage, Scope

DEPTH = 100
RERANKED = 20
RERANK_CHARS = 800
RERANK_TOKENS = 200

_CODE = re.compile(
    r"`|\w\(\)|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\.\w+\(|"
    r"\b(?:code|snippet|example|syntax|function|method|class|command|implement|call|api|sql|regex|script|parameter|option)s?\b",
    re.I,
)


@dataclass(eq=False)
class Retriever:
    """`reranker` is given only where reranking is enabled; `hybrid` and `code_aware` are the seed's switches."""

    store: KnowledgeStore
    _: KW_ONLY
    emit: Emit
    clock: Clock
    embedder: Embedder | None = None
    hybrid: bool = True
    code_aware: bool = False
    reranker: LLM | None = None
    prompts_folder: Path | None = None
    _warned: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.embedder = self.embedder if self.hybrid else None

    async def search(self, query: str, scope: Scope = EVERYTHING, k: int = 10) -> list[Passage]:
        """The best `k` passages, their scores between 0 and 1. Raises StoreError."""
        started = self.clock.monotonic()
        lexical = await self.store.lexical(query, count=DEPTH, scope=scope)
        dense = await self._search_vectors(query, scope)
        is_static = self.embedder is not None and self.embedder.name.startswith(_scoring.STATIC_EMBEDDERS)
        lists = [(lexical, _scoring.LEXICAL), (dense, _scoring.STATIC_DENSE if is_static else _scoring.DENSE)]
        if self.code_aware and scope.code is None and _CODE.search(query):
            code = await self.store.lexical(query, count=DEPTH // 2, scope=replace(scope, code=True))
            lists.append((code, _scoring.CODE))
        by_id = {p.id: p for ranking, _ in lists for p in ranking}
        scores = _scoring.fuse_scores(lists)
        worth = _scoring.page_worth(scores, by_id)
        scores = {key: score + worth[key] for key, score in scores.items()}
        order = sorted(scores, key=lambda key: -scores[key])
        final_scores = _scoring.drawn_up(scores, [by_id[key] for key in order[: _scoring.POOL]])
        order.sort(key=lambda key: (-final_scores[key], -scores[key]))
        most = sum(weight for ranking, weight in lists if ranking) or 1.0
        passages = _scoring.without_copies(
            [replace(by_id[key], score=round(min(1.0, max(0.0, final_scores[key] / most)), 4)) for key in order],
            max(k, RERANKED if self.reranker else 0),
        )
        if self.reranker and len(passages) > 1:
            passages = await self._rerank_passages(self.reranker, query, passages)
        passages = passages[:k]
        pages = tuple(dict.fromkeys(p.url for p in passages))
        seconds = round(self.clock.monotonic() - started, 3)
        await self.emit(KnowledgeSearched(query, len(passages), passages[0].score if passages else 0.0, pages, seconds))
        return passages

    async def _search_vectors(self, query: str, scope: Scope) -> list[Passage]:
        if self.embedder is None or not query.strip():
            return []
        try:
            vector = (await self.embedder.embed([query], query=True)).vectors[0]
            return await self.store.dense(vector, embedder=self.embedder.name, count=DEPTH, scope=scope)
        except (LLMError, StoreError) as error:
            if isinstance(error, StoreError) and error.code != "store_embedder":
                raise
            reason = Notice("search.words_alone", "searched by words alone: {error}", error=str(error))
            await self._warn_once("vectors_unused", join_sentences(reason, error.fix))
            return []

    async def _rerank_passages(self, llm: LLM, query: str, passages: list[Passage]) -> list[Passage]:
        """The order a model gives; what it leaves out follows as it was."""
        first = passages[:RERANKED]
        text = "\n\n".join(f"{i}) {p.title} — {p.heading}\n{p.text[:RERANK_CHARS]}" for i, p in enumerate(first))
        instructions = render("rerank", folder=self.prompts_folder, want=len(first))
        messages = [Message("system", instructions), Message("user", f"Question: {query}\n\n{text}")]
        try:
            reply = await llm.complete(
                messages, max_tokens=RERANK_TOKENS, temperature=0.0, schema=pick_schema(len(first), len(first))
            )
            pick = pick_or_first(reply.text, len(first), len(first))
        except LLMError as error:
            pick = first_ones(len(first), len(first))
            reason = Notice("search.not_reranked", "the passages were not reranked: {error}", error=str(error))
            await self._warn_once("not_reranked", reason)
        picked = [first[i] for i in pick.order]
        return [*picked, *(p for p in passages if p not in picked)]

    async def _warn_once(self, code: str, message: str) -> None:
        """Once: a search is asked several times in one run."""
        if code not in self._warned:
            self._warned.add(code)
            await self.emit(Warned(code, message))
