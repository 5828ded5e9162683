"""A document checked: against the pages it cites, stored or fresh, or against pages that were looked up for it.

Above it, `app` brings stored texts and fetched pages, and says who judges; below it are the rules, the judge and
the review. Rules look first, and a judge that is there decides. A text that is missing is a stated gap. With fresh pages both
are looked at, so that it can be said which page died or changed and what that did to the sentences that rest on it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.document import Document
from nexi.answers.papers import mark_standing
from nexi.checking.answer import MAX_CHARS
from nexi.checking.judge import Judge
from nexi.checking.pages import Pages, Snapshot, prepare
from nexi.checking.review import describe_gap, find_failing, judge_claims, soften_claims
from nexi.checking.rules import check_answer, find_anywhere
from nexi.checking.sentences import numbers_of
from nexi.errors import FetchError, PageLimitError
from nexi.types import Claim, Evidence, JudgeFigure, Page, Proof, Source, Verdict, content_digest

__all__ = ["CitationFigures", "SourceState", "Verification", "check_document", "recheck"]

State: TypeAlias = Literal["stored", "missing", "same", "changed", "dead", "refused", "fresh", "unread"]
Basis: TypeAlias = Literal["cited", "given", "knowledge", "web"]
Texts: TypeAlias = Mapping[int, str | None]
LOST = "no source with this number is listed"

COVERED_BY = "covered by"  # how the reason of a sentence begins that a later citation of its paragraph supports


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
        before = await asyncio.to_thread(check_by_rules, document, stored_pages, "cited")
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
    compare: Callable[[Document, Pages, Basis], tuple[Claim, ...]] | None = None,
    judge_text: Callable[[Verification, Pages, Judge, float | None], Awaitable[Verification]] | None = None,
) -> Verification:
    """Check a document against these texts: by rules, and by a judge where there is one."""
    # `before` is what rules said by other texts; `compare` and `judge_text` are other rules and another way to ask the judge.
    pages = await asyncio.to_thread(_prepare_pages, document, texts)
    claims = await asyncio.to_thread(compare or check_by_rules, document, pages, basis)
    changes = tuple(Change(a.index, b.verdict, a.verdict) for b, a in zip(before, claims) if a.verdict is not b.verdict)  # noqa: B905 - before may be empty
    gap = f"only the first {MAX_CHARS:,} characters were checked" if len(document.text) > MAX_CHARS else ""
    verification = Verification(document, Proof(claims), states, changes, basis=basis, gap=gap, texts=dict(texts))
    if judge and any(pages.values()):
        verification = await (judge_text or _judge_sentences)(verification, pages, judge, deadline)
    # a page that could not be read says so in the evidence that misses it
    words = {"dead": "the page is dead", "refused": "the page was not read", "unread": "the page was not read"}
    why = {s.source.number: f"{words[s.state]}: {s.reason}" for s in states if s.state in words}
    final_claims = []
    for claim in verification.proof.claims:
        evidence = tuple(replace(e, reason=why[e.number]) if e.number in why else e for e in claim.evidence)
        final_claims.append(replace(claim, evidence=evidence))
    return replace(verification, proof=mark_standing(Proof(tuple(final_claims)), document.sources))


def say_all(*parts: str) -> str:
    """Several statements as one text."""
    return ". ".join(f"{part[0].upper()}{part[1:]}".rstrip(".") for part in dict.fromkeys(parts) if part)


def _prepare_pages(document: Document, texts: Texts) -> dict[int, Snapshot | None]:
    pages: dict[int, Snapshot | None] = dict.fromkeys(document.lost)
    for source in document.sources:
        text = texts.get(source.number)
        pages[source.number] = None if text is None else prepare(text, source.url, content_digest(text))
    return pages


def check_by_rules(document: Document, pages: Pages, basis: Basis) -> tuple[Claim, ...]:
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
