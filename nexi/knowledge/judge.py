"""The judges of a knowledge search: is it enough, what to read, what to ask next.

Above is the agentic search; below are a model behind its port and the stand-in that needs none. Every reply is strict JSON
read by `ranking`; what cannot be used is sent back once with the reason, then the stand-in answers. A judge never raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from nexi.errors import LLMError
from nexi.events import Judged, Warned
from nexi.knowledge import coverage
from nexi.notices import Notice
from nexi.ports import LLM, Emit
from nexi.prompts import render
from nexi.structured import ranking
from nexi.structured.ranking import Assessment, UrlScore
from nexi.text.chunking import count_code_blocks, headings_of
from nexi.types import Hit, Message, Page, Passage

__all__ = ["TOP", "AgenticJudge"]

T = TypeVar("T")

TOP = 5
ATTEMPTS = 2
PASSAGE_CHARS = 1_500
SNIPPET_CHARS = 300
MAX_TOKENS = 700
REFINER_TEMPERATURE = 0.5
QUERIES = (2, 3)
HINTS = (1, 3)
_PROMPTS = {"completeness": "completeness", "urls": "url_ranking", "queries": "query_refinement", "hints": "search_hints"}


@dataclass(eq=False)
class AgenticJudge:
    """`llm` is None where no model can judge: the stand-in answers everything then, and nothing is warned of."""

    llm: LLM | None
    _: KW_ONLY
    emit: Emit
    temperature: float = 0.3
    deadline: float | None = None
    prompts_folder: Path | None = None
    _warned: bool = field(default=False, init=False)

    @property
    def has_model(self) -> bool:
        return self.llm is not None

    async def assess(self, question: str, passages: Sequence[Passage]) -> Assessment:
        """How completely the first five passages answer the question."""
        top = passages[:TOP]
        texts = [f"[{i}] {p.title} — {p.heading}\n{p.text[:PASSAGE_CHARS]}" for i, p in enumerate(top, 1)]
        data = "\n\n".join((f"Question: {question}", *texts))
        schema = ranking.assessment_schema()
        reply = await self._ask_model("completeness", data, schema, ranking.read_assessment) if top else None
        verdict = reply or coverage.assess_coverage(question, top)
        await self.emit(Judged("completeness", _author_of(reply), verdict.score, verdict.gaps))
        return verdict

    async def rank(self, question: str, gaps: Sequence[str], hits: Sequence[Hit]) -> tuple[UrlScore, ...]:
        """The hits by how likely their pages supply what is missing, best first."""
        if not hits:
            return ()
        results = "\n".join(
            f"{i}) {h.title} — {' '.join(h.snippet.split())[:SNIPPET_CHARS]} (URL: {h.url})" for i, h in enumerate(hits)
        )
        data = f"Question: {question}\n\nStill missing:\n{_number_lines(gaps)}\n\nResults:\n{results}"
        schema = ranking.scores_schema(len(hits))
        reply = await self._ask_model("urls", data, schema, lambda text: ranking.read_scores(text, len(hits)))
        scores = reply or coverage.rank_hits(question, hits)
        await self.emit(Judged("urls", _author_of(reply), scores[0].score, tuple(hits[s.index].url for s in scores)))
        return scores

    async def refine(self, question: str, current: str, gaps: Sequence[str]) -> tuple[str, ...]:
        """Two or three queries for what is still missing, the best first."""
        data = f"Original question: {question}\nLast query: {current}\n\nStill missing:\n{_number_lines(gaps)}"
        return await self._ask_queries("queries", data, QUERIES, coverage.refine_queries(question, current))

    async def hint(self, question: str, pages: Sequence[Page]) -> tuple[str, ...]:
        """Queries in the words of the pages that were just stored."""
        data = f"Question: {question}"
        headings = [(page.title, page.headings or tuple(headings_of(page.text))) for page in pages]
        for page, (title, heads) in zip(pages, headings, strict=True):
            languages = page.code_languages or tuple(count_code_blocks(page.text))
            data += f"\n\nTitle: {title}\nDescription: {page.description}\nHeadings: {'; '.join(heads[:30])}"
            data += f"\nLanguages of code: {', '.join(languages)}"
        return await self._ask_queries("hints", data, HINTS, coverage.hint_queries(question, headings))

    async def _ask_queries(self, about: str, data: str, counts: tuple[int, int], stand_in: tuple[str, ...]) -> tuple[str, ...]:
        schema = ranking.queries_schema(*counts)
        reply = await self._ask_model(about, data, schema, lambda text: ranking.read_queries(text, *counts))
        queries = reply or stand_in
        await self.emit(Judged(about, _author_of(reply), items=queries))
        return queries

    async def _ask_model(self, about: str, data: str, schema: Mapping[str, Any], read: Callable[[str], T]) -> T | None:
        """The model's answer, or None when it has no usable one after two attempts."""
        if self.llm is None:
            return None
        messages = [Message("system", render(_PROMPTS[about], folder=self.prompts_folder)), Message("user", data)]
        temperature = REFINER_TEMPERATURE if about == "queries" else self.temperature
        problem = ""
        for _ in range(ATTEMPTS):
            try:
                reply = await self.llm.complete(
                    messages, max_tokens=MAX_TOKENS, temperature=temperature, deadline=self.deadline, schema=schema
                )
                return read(reply.text)
            except ValueError as error:
                problem = str(error)
                refusal = f"Your reply cannot be used: {problem}. Reply again with the JSON object alone."
                messages = [*messages[:2], Message("assistant", reply.text), Message("user", refusal)]
            except LLMError as error:
                problem = str(error)
                if not error.retryable:
                    break
        if not self._warned:  # once a search: the stand-in judges on, and the log has every call
            self._warned = True
            message = Notice(
                "judge.stand_in",
                "the model could not judge {about} ({problem}); its words were compared instead",
                about=about,
                problem=problem,
            )
            await self.emit(Warned("judge_stand_in", message))
        return None


def _author_of(reply: object) -> str:
    return "stand_in" if reply is None else "model"


def _number_lines(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "- (not said)"
