"""Finds passages for a question, by words and by vectors, and makes one order of both.

Above are the agentic search, the loop's `local_search` and the doors; below are the ports of the store, the embedder and,
for reranking, a model. Which store answers is not known here. A part that fails is left out and said; words always work.
The weights were settled by measurement, see docs/decisions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

from msgspec.structs import replace

from nexi.errors import LLMError, StoreError
from nexi.events import KnowledgeSearched, Warned
from nexi.notices import Notice, join_sentences
from nexi.ports import LLM, Clock, Embedder, Emit, KnowledgeStore
from nexi.prompts import render
from nexi.structured.ranking import first_ones, pick_or_first, pick_schema
from nexi.text.terms import extract_terms, join_roots
from nexi.types import EVERYTHING, Message, Passage, Scope

DEPTH = 100
RERANKED = 20
RERANK_CHARS = 800
RERANK_TOKENS = 200
LEXICAL_WEIGHT = 1.0
DENSE_WEIGHT = 1.0
STATIC_DENSE_WEIGHT = 0.4  # a mean of word vectors knows neither order nor context
STATIC_EMBEDDERS = ("wordllama:", "model2vec:")
CODE_WEIGHT = 0.3
NEXT = 0.18  # of a page, each next passage counts this share of the one before
MENTION = 0.5
MIN_NAME_CHARS = 6  # with the spaces around it: a shorter title is in every text
MENTIONING = 2  # how many of the first pages may name others
POOL = 60
SHINGLE = 4
ALIKE = 0.8
MAX_CHANGED = 4  # terms, in the place of which another text has others

_TITLE_END = re.compile(r"\s+[-–—|·]\s+| \(")
_CODE = re.compile(
    r"`|\w\(\)|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\.\w+\(|"
    r"\b(?:code|snippet|example|syntax|function|method|class|command|implement|call|api|sql|regex|script|parameter|option)s?\b",
    re.I,
)


@dataclass(eq=False)
class Retriever:
    """`embedder` and `reranker` are given only where they are enabled; `code_aware` is a switch of the seed's."""

    store: KnowledgeStore
    _: KW_ONLY
    emit: Emit
    clock: Clock
    embedder: Embedder | None = None
    code_aware: bool = False
    reranker: LLM | None = None
    prompts_folder: Path | None = None
    _warned: set[str] = field(default_factory=set, init=False)

    async def search(self, query: str, scope: Scope = EVERYTHING, k: int = 10) -> list[Passage]:
        """The best `k` passages, their scores between 0 and 1. Raises StoreError."""
        started = self.clock.monotonic()
        lexical = await self.store.lexical(query, count=DEPTH, scope=scope)
        dense = await self._search_vectors(query, scope)
        is_static = self.embedder is not None and self.embedder.name.startswith(STATIC_EMBEDDERS)
        lists = [(lexical, LEXICAL_WEIGHT), (dense, STATIC_DENSE_WEIGHT if is_static else DENSE_WEIGHT)]
        if self.code_aware and scope.code is None and _CODE.search(query):
            code = await self.store.lexical(query, count=DEPTH // 2, scope=replace(scope, code=True))
            lists.append((code, CODE_WEIGHT))
        by_id = {p.id: p for ranking, _ in lists for p in ranking}
        sums: dict[str, float] = {}
        for ranking, weight in lists:  # a passage that one search did not find gets nothing from it
            for key, score in normalise_scores(ranking).items():
                sums[key] = sums.get(key, 0.0) + weight * score
        scores = _add_page_worth(sums, by_id)
        order = sorted(scores, key=lambda key: -scores[key])
        final_scores = _raise_named_pages(scores, [by_id[key] for key in order[:POOL]])
        order.sort(key=lambda key: (-final_scores[key], -scores[key]))
        most = sum(weight for ranking, weight in lists if ranking) or 1.0
        passages = without_copies(
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


def normalise_scores(passages: Sequence[Passage]) -> dict[str, float]:
    """Scores of one search by id, placed within three standard deviations around their mean, mostly 0 to 1."""
    scores = [p.score for p in passages]
    if not scores:
        return {}
    mean = sum(scores) / len(scores)
    deviation = math.sqrt(sum((s - mean) ** 2 for s in scores) / len(scores))
    if deviation < 1e-12:
        return dict.fromkeys((p.id for p in passages), 0.5)
    return {p.id: (p.score - mean) / (6 * deviation) + 0.5 for p in passages}


def _add_page_worth(scores: Mapping[str, float], passages: Mapping[str, Passage]) -> dict[str, float]:
    """The scores, each with what the next best passages of its page add: a page that says more of it is the better page."""
    pages: dict[str, list[float]] = {}
    for key in sorted(scores, key=lambda key: -scores[key]):
        pages.setdefault(passages[key].url, []).append(max(0.0, scores[key]))
    worth = {
        url: sum(NEXT**place * score for place, score in enumerate(page_scores[1:4], 1)) for url, page_scores in pages.items()
    }
    return {key: score + worth[passages[key].url] for key, score in scores.items()}


def _raise_named_pages(scores: Mapping[str, float], ranking: Sequence[Passage]) -> dict[str, float]:
    """The scores, with passages raised whose page is named by a passage of the first pages, though not above that one."""
    # a question about one thing often wants a second that only the page of the first names
    naming: dict[str, tuple[str, str]] = {}
    for passage in ranking:
        if len(naming) < MENTIONING:
            naming.setdefault(passage.url, (passage.id, f" {join_roots(passage.text)} "))
    new_scores = dict(scores)
    for passage in ranking:
        name = f" {join_roots(_TITLE_END.split(passage.title)[0])} "  # so that it is found as whole words
        if len(name) < MIN_NAME_CHARS:
            continue
        others = [
            (place, key) for place, (url, (key, text)) in enumerate(naming.items()) if url != passage.url and name in text
        ]
        for place, key in others[:1]:
            target = scores[passage.id] + MENTION / (1 + place)
            new_scores[passage.id] = max(scores[passage.id], min(target, scores[key]))
    return new_scores


def without_copies(ranking: Iterable[Passage], count: int) -> list[Passage]:
    """The first `count` passages, leaving out those that say nearly what an earlier one says, and nothing else in its place."""
    distinct: list[tuple[Passage, list[str], set[tuple[str, ...]]]] = []
    for passage in ranking:
        if len(distinct) == count:
            break
        terms = extract_terms(passage.text)
        own = set(zip(*(terms[start:] for start in range(SHINGLE)), strict=False)) or {tuple(terms)}
        if not any(_are_alike(own, other) and not _is_changed(terms, others) for _, others, other in distinct):
            distinct.append((passage, terms, own))
    return [passage for passage, *_ in distinct]


def _is_changed(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two texts that are alike have different words in one place: another number, date, name or thing."""
    edits = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return any(tag == "replace" and min(b - a, d - c) <= MAX_CHANGED for tag, a, b, c, d in edits)


def _are_alike(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> bool:
    """Whether the smaller is nearly contained in the larger."""
    return len(one & other) >= ALIKE * max(1, min(len(one), len(other)))
