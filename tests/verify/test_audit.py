"""Citations are judged one by one, and counted: precision, recall, and what is no lower than that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from nexi.answers.document import read_markdown
from nexi.checking.evidence import EvidencePassage
from nexi.checking.judge import Case, Finding, Judgement, Judging
from nexi.checking.pages import Snapshot
from nexi.checking.recheck import CitationFigures, SourceState, Verification, check_document
from nexi.types import JudgeFigure, Verdict

A, B = "The Loire flows into the Atlantic Ocean.", "The Eiffel Tower is 330 metres tall."
GAP = "the judge broke off"


class WordJudge:
    """Supports a sentence by the pages that hold one of its words; says "" for words that it is told to fail on."""

    name = "reader"

    def __init__(self, words: Mapping[str, Finding], fails_on: str = "\0") -> None:
        self._words = words
        self._fails_on = fails_on
        self.requests: list[tuple[list[str], list[int]]] = []

    async def judge(
        self, cases: Sequence[Case], pages: Mapping[int, Snapshot | None], question: str = "", *, deadline: float | None = None
    ) -> Judging:
        self.requests.append(([case.text for case in cases], sorted(pages)))
        return Judging(tuple(self._judge(case, pages) for case in cases), JudgeFigure(self.name, 0.9, 24))

    def _judge(self, case: Case, pages: Mapping[int, Snapshot | None]) -> Judgement:
        if self._fails_on in case.text:
            return Judgement(reason=GAP)
        for word, finding in self._words.items():
            held = [n for n, page in pages.items() if page and word in page.text]
            if word in case.text and held:
                return Judgement(finding, tuple(EvidencePassage(at, n, 0, 20, "") for at, n in enumerate(held, 1)))
        return Judgement("not_supported")


def figures_of(found: Verification) -> CitationFigures:
    assert found.citations
    return found.citations


async def audit(text: str, pages: Mapping[int, str | None], judge: WordJudge | None = None) -> Verification:
    listed = "\n".join(f"[{n}] https://{n}.example/" for n in pages)
    document = read_markdown(f"{text}\n\nSources:\n{listed}")
    states = tuple(SourceState(s, "fresh" if pages[s.number] else "dead", "HTTP 404") for s in document.sources)
    return await check_document(document, pages, states, judge=judge, by_citation=True)


async def test_each_citation_is_judged_by_its_own_page() -> None:
    judge = WordJudge({"Loire": "supported"})
    found = await audit("The Loire meets the sea [1][2].", {1: A, 2: B}, judge)
    (claim,) = found.proof.checked
    assert [e.verdict for e in claim.evidence] == [Verdict.SUPPORTED, Verdict.NOT_FOUND]
    figures = figures_of(found)
    assert (figures.precision, figures.recall, figures.is_bound, claim.verdict) == (0.5, 1.0, False, Verdict.SUPPORTED)
    assert [numbers for _, numbers in judge.requests] == [[1], [2]]


async def test_pages_may_support_a_sentence_together() -> None:
    class Together(WordJudge):
        def _judge(self, case: Case, pages: Mapping[int, Snapshot | None]) -> Judgement:
            both = tuple(EvidencePassage(n, n, 0, 20, "") for n in pages)
            return Judgement("supported", both) if len(pages) > 1 else Judgement("not_supported")

    found = await audit("The Loire meets the sea and the tower is tall [1][2].", {1: A, 2: B}, Together({}))
    assert [e.verdict for e in found.proof.checked[0].evidence] == [Verdict.SUPPORTED] * 2
    assert (figures_of(found).precision, figures_of(found).recall) == (1.0, 1.0)


async def test_a_dead_link_supports_nothing_and_no_judge_is_asked_about_it() -> None:
    judge = WordJudge({"Loire": "supported"})
    found = await audit("The Loire meets the sea [1]. The tower is tall [2].", {1: A, 2: None}, judge)
    figures = figures_of(found)
    assert (figures.supporting, figures.citations, figures.unreadable, figures.is_bound) == (1, 2, 1, False)
    assert "the page is dead: HTTP 404" in found.proof.checked[1].evidence[0].reason
    assert [texts for texts, _ in judge.requests] == [["The Loire meets the sea."]]


async def test_sentences_without_a_citation_lower_recall_alone() -> None:
    found = await audit("The Loire meets the sea [1]. The tower is tall.", {1: A}, WordJudge({"Loire": "supported"}))
    figures = figures_of(found)
    assert (figures.precision, figures.recall, figures.uncited) == (1.0, 0.5, 1)


@pytest.mark.parametrize("judge", [None, WordJudge({"Loire": "supported", "river": "supported"})], ids=["rules", "judge"])
async def test_a_citation_covers_what_stands_before_it_in_its_paragraph_where_its_page_says_so(judge: WordJudge | None) -> None:
    page = f"{A} It is the longest river of France."
    text = f"It is the longest river of France. Cats own it. {A.removesuffix('.')} [1].\n\nIt is the longest river of France."
    found = await audit(text, {1: page}, judge)
    figures = figures_of(found)
    assert (figures.precision, figures.supported, figures.sentences, figures.uncited) == (1.0, 2, 4, 2)
    assert found.proof.checked[0].reason == "covered by [1], cited later in its paragraph"


async def test_what_states_nothing_by_the_judge_is_not_counted() -> None:
    words: dict[str, Finding] = {"Loire": "supported", "rest": "nothing"}
    found = await audit("The Loire meets the sea [1]. Now for the rest of it all [1].", {1: f"{A} rest"}, WordJudge(words))
    assert (figures_of(found).citations, figures_of(found).sentences) == (1, 1)


async def test_a_judge_that_fails_midway_leaves_lower_bounds_and_a_stated_gap() -> None:
    judge = WordJudge({"Loire": "supported"}, fails_on="tower")
    found = await audit("The Loire meets the sea [1]. The tower is tall [2].", {1: A, 2: "Elephants are grey."}, judge)
    figures = figures_of(found)
    assert (figures.precision, figures.is_bound, found.gap) == (0.5, True, f"1 of 2 judgements are missing: {GAP}")
    assert found.proof.checked[1].verdict is Verdict.NOT_CONFIRMED


async def test_without_a_judge_rules_give_a_lower_bound() -> None:
    found = await audit(f"{A.removesuffix('.')} [1]. A river ends there [1].", {1: A})
    figures = figures_of(found)
    assert (figures.precision, figures.recall, figures.is_bound, found.judge) == (0.5, 0.5, True, "")


async def test_a_judge_that_contradicts_is_told_from_one_that_does_not_find() -> None:
    found = await audit("The Loire is dry [1]. The Nile is wet [1].", {1: A}, WordJudge({"Loire": "contradicted"}))
    assert [claim.verdict for claim in found.proof.checked] == [Verdict.CONTRADICTED, Verdict.NOT_FOUND]
    assert (found.is_contradicted, figures_of(found).contradicted) == (True, 1)


async def test_a_check_asks_the_judge_about_every_sentence_in_one_request() -> None:
    judge = WordJudge({"Loire": "supported"})
    document = read_markdown("The Loire meets the sea. The tower is tall.\n")
    pages = read_markdown("x [1]\n\nSources:\n[1] https://1.example/").sources
    document = type(document)(document.text, pages)
    found = await check_document(document, {1: A}, (SourceState(pages[0], "stored"),), basis="given", judge=judge)
    assert judge.requests == [(["The Loire meets the sea.", "The tower is tall."], [1])]
    assert [claim.verdict for claim in found.proof.checked] == [Verdict.SUPPORTED, Verdict.NOT_FOUND]
    assert (len(found.failed()), found.judge) == (1, "reader")


async def test_what_only_a_missing_page_could_say_stays_a_gap() -> None:
    document = read_markdown(
        "The Loire meets the sea [1]. The tower is tall [2].\n\nSources:\n[1] https://1.example/\n[2] https://2.example/"
    )
    states = tuple(SourceState(source, "stored") for source in document.sources)
    found = await check_document(document, {1: A, 2: None}, states, judge=WordJudge({"Loire": "supported"}))
    assert [claim.verdict for claim in found.proof.checked] == [Verdict.SUPPORTED, Verdict.UNCHECKED]
