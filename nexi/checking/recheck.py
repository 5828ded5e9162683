"""A document checked once more, against stored pages or fresh ones.

Above it, `app` says where stored texts come from and how a page is fetched; below it is `proof`. A text that is missing is a
stated gap. With fresh pages both are looked at, so that it can be said which page died or changed and what that did to the
sentences that rest on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from nexi.checking.document import Document
from nexi.checking.review import find_failing
from nexi.errors import FetchError
from nexi.types import Claim, Page, Proof, Source, Verdict, content_digest

if TYPE_CHECKING:
    from nexi.checking.pages import Snapshot

__all__ = ["SourceState", "Verification", "recheck"]


State: TypeAlias = Literal["stored", "missing", "same", "changed", "dead", "fresh"]
Stored: TypeAlias = Callable[[Source], Awaitable[str | None]]
Fetch: TypeAlias = Callable[[str], Awaitable[Page]]
MAX_CONCURRENT_FETCHES = 4
LOST = "no source with this number is listed"


class SourceState(Struct, frozen=True):
    """What became of a source: its text is stored or missing; after a fetch it is the same, changed, dead or seen for the
    first time (`fresh`)."""

    source: Source
    state: State
    reason: str = ""
    digest: str = ""


class Change(Struct, frozen=True):
    """A sentence whose verdict a fresh page changed."""

    index: int
    before: Verdict
    after: Verdict


class Verification(Struct, frozen=True):
    """A document, checked again."""

    document: Document
    proof: Proof
    sources: tuple[SourceState, ...] = ()
    changes: tuple[Change, ...] = ()
    refetched: bool = False

    def failed(self, *, strict: bool = False) -> tuple[Claim, ...]:
        """The sentences that make the verification fail.

        Those are cited sentences that are not found in their sources, whether the source says otherwise, says nothing or is
        missing; what cites nothing fails only when it is strict.
        """
        wrong = find_failing(self.proof.claims)
        return tuple(wrong if strict else (claim for claim in wrong if claim.evidence))

    def line_of(self, claim: Claim) -> int:
        return self.document.text.count("\n", 0, claim.start) + 1


async def recheck(document: Document, stored: Stored, fetch: Fetch | None = None) -> Verification:
    """Check every sentence of a document against the pages it cites."""
    kept = {source.number: await stored(source) for source in document.sources}
    before = await asyncio.to_thread(_check_document, document, kept)
    if fetch is None:
        states = tuple(_stored_state(source, kept[source.number]) for source in document.sources)
        return Verification(document, before, states)
    pages = await _fetch_pages(document.sources, fetch)
    fresh = {n: page.text if isinstance(page, Page) else None for n, page in pages.items()}
    after = await asyncio.to_thread(_check_document, document, fresh)
    states = tuple(_fresh_state(source, kept[source.number], pages[source.number]) for source in document.sources)
    return Verification(document, _name_dead_pages(after, pages), states, _find_changes(before, after, kept), refetched=True)


def _check_document(document: Document, texts: Mapping[int, str | None]) -> Proof:
    from nexi.checking.pages import prepare
    from nexi.checking.rules import check_answer

    snapshots: dict[int, Snapshot | None] = dict.fromkeys(document.lost)
    for source in document.sources:
        text = texts[source.number]
        snapshots[source.number] = None if text is None else prepare(text, source.url, content_digest(text))
    claims = check_answer(document.text, snapshots, document.question).claims
    return _add_addresses(Proof(claims), document)


def _add_addresses(proof: Proof, document: Document) -> Proof:
    """Every piece of evidence with its address, also where there was no text to compare."""
    urls = {source.number: source.url for source in document.sources}

    def add_addresses(claim: Claim) -> Claim:
        evidence = tuple(
            e if e.url else replace(e, url=urls.get(e.number, ""), reason=LOST if e.number in document.lost else e.reason)
            for e in claim.evidence
        )
        return replace(claim, evidence=evidence)

    return Proof(tuple(map(add_addresses, proof.claims)))


async def _fetch_pages(sources: Sequence[Source], fetch: Fetch) -> dict[int, Page | FetchError]:
    limit = asyncio.Semaphore(MAX_CONCURRENT_FETCHES)

    async def one(source: Source) -> Page | FetchError:
        async with limit:
            try:
                return await fetch(source.url)
            except FetchError as error:
                return error

    async with asyncio.TaskGroup() as group:
        tasks = {source.number: group.create_task(one(source)) for source in sources}
    return {number: task.result() for number, task in tasks.items()}


def _name_dead_pages(proof: Proof, pages: Mapping[int, Page | FetchError]) -> Proof:
    """A page that could not be fetched says so in the evidence that misses it."""

    def name_dead_pages(claim: Claim) -> Claim:
        evidence = []
        for e in claim.evidence:
            page = pages.get(e.number)
            evidence.append(replace(e, reason=f"the page is dead: {page}") if isinstance(page, FetchError) else e)
        return replace(claim, evidence=tuple(evidence))

    return Proof(tuple(map(name_dead_pages, proof.claims)))


def _stored_state(source: Source, text: str | None) -> SourceState:
    if text is None:
        return SourceState(source, "missing", "no stored text of this page was found")
    return SourceState(source, "stored", digest=content_digest(text))


def _fresh_state(source: Source, kept: str | None, page: Page | FetchError) -> SourceState:
    if isinstance(page, FetchError):
        return SourceState(source, "dead", str(page))
    known = source.digest or (content_digest(kept) if kept is not None else "")
    if not known:
        return SourceState(source, "fresh", "it was not stored before", page.digest)
    return SourceState(source, "same" if known == page.digest else "changed", digest=page.digest)


def _find_changes(before: Proof, after: Proof, kept: Mapping[int, str | None]) -> tuple[Change, ...]:
    """What fresh pages did to sentences that could be checked before."""
    pairs = zip(before.claims, after.claims, strict=True)
    return tuple(Change(a.index, b.verdict, a.verdict) for b, a in pairs if a.verdict is not b.verdict and any(kept.values()))
