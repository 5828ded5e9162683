"""What is known for the question of a run: the pages to read from the store, and whether they are enough.

The tools above hand its findings to the model; below is a searcher over the store. Where pages lie and how they are read is
not known here. The judgement is the stand-in's, by words alone: it costs nothing and is only an offer to the model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from nexi.events import Warned
from nexi.knowledge.coverage import assess_coverage
from nexi.notices import Notice, join_sentences
from nexi.ports import Emit
from nexi.searcher import Searcher
from nexi.structured.ranking import ENOUGH, Assessment
from nexi.text.whole import asks_about_whole
from nexi.types import Failure, Hit, Passage, Query

PAGES = 4
UNSURE = ENOUGH - 0.01


class Known(Struct, frozen=True):
    """Pages of the store for a question, best first. `repeated` says that the question was answered from them before."""

    hits: tuple[Hit, ...] = ()
    assessment: Assessment = Assessment(0.0)
    repeated: bool = False
    failures: tuple[Failure, ...] = ()


@dataclass(eq=False)
class Lookup:
    """`before` gives the pages from which the same question was answered, where it was.

    `is_about_question` says that what is stored came with the question, as its files do: what covers the question is enough.
    """

    searcher: Searcher
    _: KW_ONLY
    question: str
    emit: Emit
    template: Query = Query("")
    before: Callable[[str], Awaitable[tuple[Hit, ...]]] | None = None
    is_about_question: bool = False
    _warned: bool = field(default=False, init=False)

    async def find(self, queries: Sequence[str]) -> Known:
        before = await self.before(self.question) if self.before else ()
        hits: dict[str, Hit] = {hit.url: hit for hit in before}
        failures: list[Failure] = []
        for query in dict.fromkeys(q.strip() for q in queries if q.strip()):
            outcome = await self.searcher.search(replace(self.template, text=query, count=PAGES))
            failures += [f for f in outcome.failures if f.code.startswith("store")]
            for hit in outcome.hits:
                former = hits.get(hit.url)
                hits[hit.url] = replace(former, snippet=former.snippet or hit.snippet) if former else hit
        if failures and not self._warned:
            self._warned = True
            first = failures[0]
            message = Notice("store.not_asked", "the knowledge store was not asked: {error}", error=first.message)
            await self.emit(Warned("store", join_sentences(message, first.fix), cause=first.fix))
        first_hits = tuple(hits.values())[: max(PAGES, len(before))]
        if before:
            verdict = Assessment(1.0, "this question was answered from these pages before")
        elif first_hits and self.is_about_question and asks_about_whole(self.question):
            verdict = Assessment(1.0, "the question is about these files as a whole")
        else:
            passages = [Passage(hit.url, hit.url, 0, hit.snippet, title=hit.title) for hit in first_hits]
            verdict = assess_coverage(self.question, passages) if passages else Assessment(0.0)
            if not self.is_about_question:  # words cannot tell that a better page is not out there: never enough
                verdict = replace(verdict, score=min(verdict.score, UNSURE))
        return Known(first_hits, verdict, bool(before), tuple(failures))
