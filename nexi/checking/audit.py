"""How well a report is cited: each citation judged by its page alone, and precision and recall of all of them.

Above are the check of a document and the doors; below are the judge and the review. Precision is the share of citations whose
page supports their sentence; recall is the share of sentences that state something and are fully supported by what they cite.
A sentence that cites nothing may be covered by the next citation of its paragraph, as people write; where that page does not
say it, it stays without a citation. A link that is dead supports nothing. Where no judge has read a citation, the figures are
a lower bound, and say so.
"""

from __future__ import annotations

import asyncio
from bisect import bisect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from nexi.answers.document import Document
from nexi.checking.judge import Judge, Judgement
from nexi.checking.pages import Pages, cut_block
from nexi.checking.recheck import (
    COVERED_BY,
    Basis,
    CitationFigures,
    SourceState,
    Texts,
    Verification,
    check_by_rules,
    check_document,
    say_all,
)
from nexi.checking.review import MAX_GAP_REASONS, MAX_JUDGED, PASSING, judge_claims
from nexi.checking.rules import find_anywhere
from nexi.checking.sentences import numbers_of
from nexi.text.blocks import parse_blocks
from nexi.types import Claim, Evidence, JudgeFigure, Proof, Verdict

MAX_CONCURRENT_PAGES = 4
PART = "says its part"
# Of several verdicts on a sentence, the first of these counts.
_RANKING = (Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.FOUND, Verdict.NOT_CONFIRMED, Verdict.NOT_FOUND, Verdict.UNCHECKED)

# These sentences, judged by the pages with these numbers alone.
AskAbout: TypeAlias = Callable[[Sequence[Claim], Sequence[int]], Coroutine[Any, Any, tuple[Claim, ...]]]


def _measure_citations(verification: Verification) -> CitationFigures:
    """Precision and recall of the citations of a document whose citations were checked one by one."""
    claims = verification.proof.checked
    citing_claims = [claim for claim in claims if numbers_of(claim.text)]
    covered_claims = [claim for claim in claims if verification.is_covered(claim)]
    citations = [e for claim in citing_claims for e in _own_evidence(claim)]
    unread = {s.source.number for s in verification.sources if s.state in ("dead", "refused", "missing")}
    unread |= set(verification.document.lost)
    open_verdicts = (Verdict.NOT_CONFIRMED, Verdict.UNCHECKED)
    return CitationFigures(
        citations=len(citations),
        supporting=sum(e.verdict in PASSING for e in citations),
        contradicted=sum(e.verdict is Verdict.CONTRADICTED for e in citations),
        unreadable=sum(e.number in unread for e in citations),
        sentences=len(claims),
        supported=sum(claim.verdict in PASSING for claim in citing_claims) + len(covered_claims),
        uncited=len(claims) - len(citing_claims) - len(covered_claims),
        is_bound=any(e.verdict in open_verdicts and e.number not in unread for e in citations),
    )


async def check_citations(
    document: Document,
    texts: Texts,
    states: tuple[SourceState, ...],
    *,
    judge: Judge | None = None,
    deadline: float | None = None,
) -> Verification:
    """Check every citation of a document by itself: what its page, and no other, says to its sentence."""
    verification = await check_document(
        document, texts, states, judge=judge, deadline=deadline, compare=_check_by_rules, judge_text=_judge_citations
    )
    claims = []
    for claim, numbers in _list_covers(verification.proof.claims, document.text):
        passing = [f"[{e.number}]" for e in claim.evidence if e.number in numbers and e.verdict in PASSING]
        if passing and claim.verdict in PASSING:
            claim = replace(claim, reason=f"{COVERED_BY} {', '.join(passing)}, cited later in its paragraph")
        claims.append(claim)
    verification = replace(verification, proof=Proof(tuple(claims)), refetched=True)
    return replace(verification, citations=_measure_citations(verification))


def _check_by_rules(document: Document, pages: Pages, basis: Basis) -> tuple[Claim, ...]:
    """What rules say to each sentence; one that cites nothing is looked for in what the next one of its paragraph cites."""
    claims = check_by_rules(document, pages, basis)
    pairs = [
        (claim, find_anywhere(claim, {n: pages.get(n) for n in numbers}, document.question) if numbers else claim)
        for claim, numbers in _list_covers(claims, document.text)
    ]
    return tuple(after if after.verdict is Verdict.FOUND else before for before, after in pairs)


def _list_covers(claims: Sequence[Claim], text: str) -> list[tuple[Claim, tuple[int, ...]]]:
    """Each claim and, where it cites nothing itself, what the next one of its paragraph cites."""
    starts = [start for block in parse_blocks(text) for start, _ in cut_block(text, block)]
    covers: list[tuple[Claim, tuple[int, ...]]] = []
    last, following = -1, tuple[int, ...]()
    for claim in reversed(claims):
        own, place = numbers_of(claim.text), bisect(starts, claim.start)
        following = own or (following if place == last else ())
        last = place
        covers.append((claim, () if own else following))
    return covers[::-1]


async def _judge_citations(verification: Verification, pages: Pages, judge: Judge, deadline: float | None) -> Verification:
    """The verdict of a judge on every citation by its own page, and on every sentence by all that it cites."""
    claims, question = list(verification.proof.claims), verification.document.question
    limit = asyncio.Semaphore(MAX_CONCURRENT_PAGES)
    figures: list[JudgeFigure] = []
    judgements: list[Judgement] = []

    async def ask(group: Sequence[Claim], numbers: Sequence[int]) -> tuple[Claim, ...]:
        own = {number: pages.get(number) for number in numbers}
        async with limit:
            answers, judging = await judge_claims(group, question, own, judge, deadline=deadline)
        figures.extend([judging.judge] if judging.judge else [])
        judgements.extend(judging.judgements)
        return answers

    judged_claims = Proof(tuple(claims)).checked[:MAX_JUDGED]
    citing_claims = [claim for claim in judged_claims if numbers_of(claim.text)]
    read_numbers = [n for n, page in pages.items() if page is not None]
    other_claims = [claim for claim in judged_claims if not numbers_of(claim.text)]
    async with asyncio.TaskGroup() as tasks:
        asking = {
            number: tasks.create_task(ask(group, [number]))
            for number in read_numbers
            if (group := [_only(claim, number) for claim in citing_claims if number in claim.numbers])
        }
        others = tasks.create_task(ask(other_claims, read_numbers)) if other_claims else None
    verdicts = {(claim.index, number): claim for number, task in asking.items() for claim in task.result()}
    results = {claim.index: _join_verdicts(claim, verdicts) for claim in citing_claims}
    results |= {claim.index: claim for claim in (others.result() if others else ())}
    results |= await _judge_together(list(results.values()), pages, ask)
    was_judged = any(judgement.finding for judgement in judgements)
    beyond = len(Proof(tuple(claims)).checked) - len(judged_claims)
    rest = f"only {MAX_JUDGED} sentences of a text are judged, {beyond} were not" if beyond else ""
    reasons = [judgement.reason for judgement in judgements if not judgement.finding and judgement.reason]
    why = "; ".join(list(dict.fromkeys(reasons))[:MAX_GAP_REASONS])
    lack = f"{len(reasons)} of {len(judgements)} judgements are missing: {why}" if reasons else ""
    return replace(
        verification,
        proof=Proof(tuple(results.get(claim.index, claim) for claim in claims)),
        judge=(figures[0].name if figures else judge.name) if was_judged else "",
        judges=tuple(dict.fromkeys(figures))[:1] if was_judged else (),
        gap=say_all(verification.gap, rest, lack),
    )


async def _judge_together(claims: Sequence[Claim], pages: Pages, ask: AskAbout) -> dict[int, Claim]:
    """Sentences that none of their pages supports alone, by all of these pages together."""
    groups: dict[tuple[int, ...], list[Claim]] = {}
    for claim in claims:
        readable = tuple(e.number for e in _own_evidence(claim) if pages.get(e.number) is not None)
        is_rejected = any(e.verdict is Verdict.NOT_FOUND for e in claim.evidence)
        if len(readable) > 1 and is_rejected and claim.verdict is Verdict.NOT_FOUND and claim.judge:
            groups.setdefault(readable, []).append(claim)
    together: dict[int, Claim] = {}
    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(ask(group, numbers)) for numbers, group in groups.items()]
    for task in asking:
        for claim in task.result():
            if claim.verdict is Verdict.SUPPORTED:
                parts = (replace(e, reason=PART) if e.verdict is Verdict.SUPPORTED else e for e in claim.evidence)
                together[claim.index] = replace(claim, evidence=tuple(parts), reason="its pages say it together")
    return together


def _own_evidence(claim: Claim) -> list[Evidence]:
    """What the pages say that a sentence cites itself."""
    own = numbers_of(claim.text)
    return [e for e in claim.evidence if e.number in own]


def _only(claim: Claim, number: int) -> Claim:
    """A sentence as if it cited one page alone, with what rules say to that."""
    evidence = next(e for e in claim.evidence if e.number == number)
    return replace(claim, evidence=(evidence,), verdict=evidence.verdict, reason=evidence.reason)


def _join_verdicts(claim: Claim, verdicts: Mapping[tuple[int, int], Claim]) -> Claim:
    """A sentence with what each of its pages was judged to say; the best of them is the verdict on it."""
    answers = [verdicts[claim.index, e.number] for e in claim.evidence if (claim.index, e.number) in verdicts]
    if not answers:
        return claim
    if all(not each.needs_citation for each in answers):
        return replace(claim, needs_citation=False, evidence=(), reason=answers[0].reason, judge=answers[0].judge)
    evidence = tuple(
        next((e for e in verdicts[claim.index, old.number].evidence if e.number == old.number), old)
        if (claim.index, old.number) in verdicts
        else old
        for old in claim.evidence
    )
    best = min(answers, key=lambda each: _RANKING.index(each.verdict))
    return replace(claim, verdict=best.verdict, reason=best.reason, judge=best.judge, evidence=evidence)
