"""A document checked: sentence by sentence, or citation by citation, against pages it cites or that were looked up for it.

Above it, `app` brings stored texts and fetched pages, and says who judges; below it are the rules, the judge and the review.
Rules look first, and a judge that is there decides. A text that is missing is a stated gap. With fresh pages both are looked
at, so that it can be said which page died or changed and what that did to the sentences that rest on it.
"""

from __future__ import annotations

import asyncio
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.document import Document
from nexi.answers.papers import mark_standing
from nexi.checking.answer import MAX_CHARS
from nexi.checking.judge import Judge, Judgement
from nexi.checking.pages import Pages, Snapshot, cut_block, prepare
from nexi.checking.review import MAX_GAP_REASONS, MAX_JUDGED, PASSING, describe_gap, find_failing, judge_claims, soften_claims
from nexi.checking.rules import check_answer, find_anywhere
from nexi.checking.sentences import numbers_of
from nexi.errors import FetchError, PageLimitError
from nexi.text.blocks import parse_blocks
from nexi.types import Claim, Evidence, JudgeFigure, Page, Proof, Source, Verdict, content_digest

State: TypeAlias = Literal["stored", "missing", "same", "changed", "dead", "refused", "fresh", "unread"]
Basis: TypeAlias = Literal["cited", "given", "knowledge", "web"]
Texts: TypeAlias = Mapping[int, str | None]
LOST = "no source with this number is listed"
COVERED_BY = "covered by"  # how the reason of a sentence begins that a later citation of its paragraph supports
MAX_CONCURRENT_PAGES = 4
PART = "says its part"
# Of several verdicts on a sentence, the first of these counts.
_RANKING = (Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.FOUND, Verdict.NOT_CONFIRMED, Verdict.NOT_FOUND, Verdict.UNCHECKED)

# These sentences, judged by the pages with these numbers alone.
AskAbout: TypeAlias = Callable[[Sequence[Claim], Sequence[int]], Coroutine[Any, Any, tuple[Claim, ...]]]


class SourceState(Struct, frozen=True):
    """What became of a source: `fresh` is one that was never stored, `unread` one beyond the limit on pages."""

    source: Source
    state: State
    reason: str = ""
    digest: str = ""


class Change(Struct, frozen=True):
    """A sentence whose verdict a fresh page changed."""

    index: int
    before: Verdict
    after: Verdict


class CitationFigures(Struct, frozen=True):
    """What an audit counts. `is_bound` says that some citations were not judged, so that both shares may be higher."""

    # Precision is the share of citations whose page supports their sentence; recall is the share of sentences that state
    # something and are fully supported by what they cite. A link that is dead supports nothing.

    citations: int = 0
    supporting: int = 0
    contradicted: int = 0
    unreadable: int = 0  # citations whose page could not be read, or that name nothing
    sentences: int = 0
    supported: int = 0
    uncited: int = 0
    is_bound: bool = False

    @property
    def precision(self) -> float | None:
        return self.supporting / self.citations if self.citations else None

    @property
    def recall(self) -> float | None:
        return self.supported / self.sentences if self.sentences else None


class Verification(Struct, frozen=True):
    """A document, checked against the pages of `basis`; `judge` names who judged, "" where rules alone looked."""

    document: Document
    proof: Proof
    sources: tuple[SourceState, ...] = ()
    changes: tuple[Change, ...] = ()
    refetched: bool = False
    basis: Basis = "cited"
    judge: str = ""
    judges: tuple[JudgeFigure, ...] = ()
    gap: str = ""
    texts: Texts = {}
    citations: CitationFigures | None = None

    @property
    def is_contradicted(self) -> bool:
        """Whether a page says otherwise than a sentence."""
        return any(claim.verdict is Verdict.CONTRADICTED for claim in self.failed())

    @property
    def counts(self) -> dict[str, int]:
        """How many sentences have each verdict."""
        counts = Counter(claim.verdict.value for claim in self.proof.checked)
        return {verdict.value: counts[verdict.value] for verdict in Verdict}

    def failed(self, *, strict: bool = False) -> tuple[Claim, ...]:
        """The sentences that make the verification fail: those that are neither found nor supported."""
        # In a document with citations, one that cites nothing fails only when it is contradicted or the check is strict.
        is_strict = strict or self.basis != "cited"
        wrong = find_failing(self.proof.claims)
        return tuple(c for c in wrong if is_strict or numbers_of(c.text) or c.verdict is Verdict.CONTRADICTED)

    def is_uncited(self, claim: Claim) -> bool:
        """Whether a sentence of a document with citations cites nothing."""
        return self.basis == "cited" and not numbers_of(claim.text)

    def is_covered(self, claim: Claim) -> bool:
        """Whether a page that is cited later in the paragraph supports a sentence that cites nothing."""
        return claim.reason.startswith(COVERED_BY)

    def line_of(self, claim: Claim) -> int:
        return self.document.text.count("\n", 0, claim.start) + 1


async def recheck(
    document: Document,
    stored_texts: Texts,
    pages: Mapping[int, Page | FetchError] | None = None,
    *,
    judge: Judge | None = None,
    deadline: float | None = None,
) -> Verification:
    """Check every sentence of a document against the pages it cites: as they are stored, or as they were fetched now."""
    if pages is None:
        states = tuple(
            SourceState(source, "missing", "no stored text of this page was found")
            if (text := stored_texts[source.number]) is None
            else SourceState(source, "stored", digest=content_digest(text))
            for source in document.sources
        )
        return await check_document(document, stored_texts, states, judge=judge, deadline=deadline)
    before: tuple[Claim, ...] = ()
    if any(stored_texts.values()):
        stored_pages = await asyncio.to_thread(_prepare_pages, document, stored_texts)
        before = await asyncio.to_thread(_check_by_rules, document, stored_pages, "cited")
    fresh = {n: page.text if isinstance(page, Page) else None for n, page in pages.items()}
    states = tuple(_fresh_state(source, stored_texts[source.number], pages[source.number]) for source in document.sources)
    verification = await check_document(document, fresh, states, judge=judge, deadline=deadline, before=before)
    return replace(verification, refetched=True)


async def check_document(
    document: Document,
    texts: Texts,
    states: tuple[SourceState, ...],
    *,
    basis: Basis = "cited",
    judge: Judge | None = None,
    deadline: float | None = None,
    before: Sequence[Claim] = (),
    by_citation: bool = False,
) -> Verification:
    """Check a document against these texts: by rules, and by a judge where there is one."""
    # `before` is what rules said by other texts. By citation, each is judged by what its page, and no other, says to its
    # sentence; a sentence that cites nothing may be covered by the next citation of its paragraph, as people write.
    pages = await asyncio.to_thread(_prepare_pages, document, texts)
    claims = await asyncio.to_thread(_check_by_rules, document, pages, basis)
    if by_citation:
        claims = await asyncio.to_thread(_look_in_covers, claims, document, pages)
    changes = tuple(Change(a.index, b.verdict, a.verdict) for b, a in zip(before, claims) if a.verdict is not b.verdict)  # noqa: B905 - before may be empty
    gap = f"only the first {MAX_CHARS:,} characters were checked" if len(document.text) > MAX_CHARS else ""
    verification = Verification(document, Proof(claims), states, changes, basis=basis, gap=gap, texts=dict(texts))
    if judge and any(pages.values()):
        judge_text = _judge_citations if by_citation else _judge_sentences
        verification = await judge_text(verification, pages, judge, deadline)
    # a page that could not be read says so in the evidence that misses it
    words = {"dead": "the page is dead", "refused": "the page was not read", "unread": "the page was not read"}
    why = {s.source.number: f"{words[s.state]}: {s.reason}" for s in states if s.state in words}
    final_claims = []
    for claim in verification.proof.claims:
        evidence = tuple(replace(e, reason=why[e.number]) if e.number in why else e for e in claim.evidence)
        final_claims.append(replace(claim, evidence=evidence))
    verification = replace(verification, proof=mark_standing(Proof(tuple(final_claims)), document.sources))
    return _count_citations(verification) if by_citation else verification


def say_all(*parts: str) -> str:
    """Several statements as one text."""
    return ". ".join(f"{part[0].upper()}{part[1:]}".rstrip(".") for part in dict.fromkeys(parts) if part)


def _prepare_pages(document: Document, texts: Texts) -> dict[int, Snapshot | None]:
    pages: dict[int, Snapshot | None] = dict.fromkeys(document.lost)
    for source in document.sources:
        text = texts.get(source.number)
        pages[source.number] = None if text is None else prepare(text, source.url, content_digest(text))
    return pages


def _check_by_rules(document: Document, pages: Pages, basis: Basis) -> tuple[Claim, ...]:
    """What rules say; a sentence that cites nothing is looked for in every page where the document as a whole was."""
    urls = {source.number: source.url for source in document.sources}

    def add_address(e: Evidence) -> Evidence:  # also where there was no text to compare
        return e if e.url else replace(e, url=urls.get(e.number, ""), reason=LOST if e.number in document.lost else e.reason)

    def soften(e: Evidence) -> Evidence:  # rules that do not find a sentence in a page say nothing against it
        return replace(e, verdict=Verdict.NOT_CONFIRMED) if e.verdict is Verdict.NOT_FOUND else e

    claims = check_answer(document.text[:MAX_CHARS], pages, document.question).claims
    claims = tuple(replace(claim, evidence=tuple(map(add_address, claim.evidence))) for claim in claims)
    if basis != "cited":
        claims = tuple(find_anywhere(claim, pages, document.question) for claim in claims)
    return tuple(
        replace(claim, verdict=Verdict.UNCHECKED, reason="it cites no page")
        if basis == "cited" and claim.needs_citation and not claim.evidence
        else replace(claim, evidence=tuple(map(soften, claim.evidence)))
        for claim in soften_claims(claims)
    )


def _look_in_covers(claims: Sequence[Claim], document: Document, pages: Pages) -> tuple[Claim, ...]:
    """The claims; one that cites nothing is looked for in what the next one of its paragraph cites."""
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


async def _judge_sentences(verification: Verification, pages: Pages, judge: Judge, deadline: float | None) -> Verification:
    claims = verification.proof.claims
    new_claims, judging = await judge_claims(claims, verification.document.question, pages, judge, deadline=deadline)
    verification = replace(verification, gap=say_all(verification.gap, describe_gap(judging.judgements)))
    if not any(judgement.finding for judgement in judging.judgements):
        return verification
    new_claims = tuple(
        old if new.verdict is Verdict.NOT_FOUND and old.evidence and all(pages.get(n) is None for n in old.numbers) else new
        for old, new in zip(claims, new_claims, strict=True)  # what is not in the other pages may be in the one that is missing
    )
    name, judges = (judging.judge.name, (judging.judge,)) if judging.judge else (judge.name, ())
    return replace(verification, proof=Proof(new_claims), judge=name, judges=judges)


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


def _count_citations(verification: Verification) -> Verification:
    """The verification with the figures of its citations, and with the reason of sentences that a later citation supports."""
    reasoned_claims = []
    for claim, numbers in _list_covers(verification.proof.claims, verification.document.text):
        passing = [f"[{e.number}]" for e in claim.evidence if e.number in numbers and e.verdict in PASSING]
        if passing and claim.verdict in PASSING:
            claim = replace(claim, reason=f"{COVERED_BY} {', '.join(passing)}, cited later in its paragraph")
        reasoned_claims.append(claim)
    verification = replace(verification, proof=Proof(tuple(reasoned_claims)), refetched=True)
    claims = verification.proof.checked
    citing_claims = [claim for claim in claims if numbers_of(claim.text)]
    covered_claims = [claim for claim in claims if verification.is_covered(claim)]
    citations = [e for claim in citing_claims for e in _own_evidence(claim)]
    unread = {s.source.number for s in verification.sources if s.state in ("dead", "refused", "missing")}
    unread |= set(verification.document.lost)
    open_verdicts = (Verdict.NOT_CONFIRMED, Verdict.UNCHECKED)
    figures = CitationFigures(
        citations=len(citations),
        supporting=sum(e.verdict in PASSING for e in citations),
        contradicted=sum(e.verdict is Verdict.CONTRADICTED for e in citations),
        unreadable=sum(e.number in unread for e in citations),
        sentences=len(claims),
        supported=sum(claim.verdict in PASSING for claim in citing_claims) + len(covered_claims),
        uncited=len(claims) - len(citing_claims) - len(covered_claims),
        is_bound=any(e.verdict in open_verdicts and e.number not in unread for e in citations),
    )
    return replace(verification, citations=figures)


def describe_failure(source: Source, error: FetchError) -> SourceState:
    """A page that could not be read: it is dead, it is one that nexi does not read, or a limit was reached before it."""
    if isinstance(error, PageLimitError):
        return SourceState(source, "unread", error.cause)
    return SourceState(source, "dead" if error.reason in ("error", "timeout") else "refused", error.cause or error.message)


def _fresh_state(source: Source, stored_text: str | None, page: Page | FetchError) -> SourceState:
    if isinstance(page, FetchError):
        return describe_failure(source, page)
    former_digest = source.digest or (content_digest(stored_text) if stored_text is not None else "")
    if not former_digest:
        return SourceState(source, "fresh", "it was not stored before", page.digest)
    return SourceState(source, "same" if former_digest == page.digest else "changed", digest=page.digest)
