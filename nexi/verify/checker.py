"""Checks an answer while it is written, and lets each sentence out when it has passed.

Above it, the loop feeds stretches and shows what is released; below it are `proof` and the stored pages. What is out is never
taken back: a sentence that fails is held, and all that follows with it, until the answer is complete and the model was asked
once to rewrite it. What still fails is marked, or left out of a strict answer. Where no model can rewrite, nothing is held.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.citations import extract_citation_markers, is_row
from nexi.answers.safe_markdown import MarkdownGuard, Place
from nexi.types import Claim, Evidence, Proof, Review, Verdict
from nexi.verify.edits import (
    MARK,
    PASSING,
    check,
    drop_idle_citations,
    edit_stretch,
    find_failing,
    hide_code,
    repair,
    substitute_sentences,
)
from nexi.verify.judging import JudgedClaims
from nexi.verify.quotations import accept_quotations
from nexi.verify.snapshots import Snapshots

if TYPE_CHECKING:
    from nexi.proof import Snapshot

__all__ = ["Checker", "FailedClaim", "JudgeClaims", "RewriteSentences"]


MAX_STRETCHES = 1000
MAX_CHARS = 400_000  # of one answer
MAX_SHOWN_CHARS = 200
_ABOUT_CODE = re.compile(
    r"[`{}<>=]|\w\(|\w_\w|--\w|\b(?:code|function|command|script|program|snippet|python|javascript|java|rust|sql|bash|shell|regex|api"
    r"|library|compile|install|configure|config|query|method|class|error|exception|git|docker|html|css|json|yaml|linux)s?\b",
    re.IGNORECASE,
)
_OWN_MARK = re.compile(re.escape(MARK.strip()) + " ?")  # written by the model it says nothing


class FailedClaim(Struct, frozen=True):
    """A sentence that failed, and what sources it does not cite say to it."""

    claim: Claim
    hints: tuple[Evidence, ...] = ()


# New sentences by the position of the failed_claim, "" for one to leave out; None when the model was not asked.
RewriteSentences: TypeAlias = Callable[[Sequence[FailedClaim]], Awaitable[Mapping[int, str] | None]]
# The same claims, judged.
JudgeClaims: TypeAlias = Callable[[Sequence[Claim]], Awaitable[JudgedClaims]]


@dataclass
class Piece:
    """A stretch of the answer that is not out yet."""

    text: str
    claims: tuple[Claim, ...] = ()
    hints: Mapping[int, tuple[Evidence, ...]] = field(default_factory=dict)
    begins_line: bool = True


class Checker:
    """One answer. `release` gets the checked text, stretch by stretch; joined it is `text`.

    A `judge` that is given here judges before anything is released, for a reader who wants nothing that it would not accept.
    `show_marks` gets the claims of a stretch as soon as it is released.
    """

    def __init__(
        self,
        snapshots: Snapshots,
        release: Callable[[str], None],
        *,
        strict: bool = False,
        rewrites: bool = True,
        judge: JudgeClaims | None = None,
        question: str = "",
        show_marks: Callable[[Sequence[Claim]], None] | None = None,
        place: Place = lambda _: 0,
        guards_code: bool = False,
    ) -> None:
        self._question = question
        self._show_marks = show_marks
        self._guard = MarkdownGuard(place, guards_code=guards_code)
        self._snapshots = snapshots
        self._release = release
        self._strict = strict
        self._rewrites = rewrites
        self._judge = judge
        self._queue: deque[tuple[str, bool]] = deque()
        self._held: list[Piece] = []
        self._taken = self._chars = 0
        self._beyond: list[str] = []
        self._known: dict[str, tuple[Claim, ...]] = {}
        self._turn = asyncio.Lock()
        self._line_is_open = self._in_table = False
        self._out: list[str] = []
        self._blanks = ""
        self._length = 0
        self._claims: list[Claim] = []
        self._marked: list[int] = []
        self._dropped: list[Claim] = []
        self._recited = self._corrected = 0
        self._asked = False
        self._judged: JudgedClaims | None = None

    @property
    def text(self) -> str:
        """The answer as far as it is out."""
        return "".join(self._out)

    @property
    def is_waiting(self) -> bool:
        return bool(self._queue)

    def add_stretch(self, stretch: str, is_code: bool = False) -> None:
        """One more stretch to check; what is beyond all measure is kept for the end, unchecked."""
        self._taken += 1
        self._chars += len(stretch)
        if self._taken > MAX_STRETCHES or self._chars > MAX_CHARS:
            self._beyond.append(stretch)
        elif stretch:
            self._queue.append((stretch if is_code else _OWN_MARK.sub("", stretch), is_code))

    async def drain(self, *, last: bool = False) -> None:
        """Check what is waiting, in order, and release what passes. A cancelled call loses nothing.

        Before the `last` time, the first row of a table waits for the line that tells whether it is only the head of one.
        """
        async with self._turn:
            while self._queue and (last or len(self._queue) > 1 or not self._begins_table(self._queue[0][0])):
                piece = await self._inspect_stretch(*self._queue[0])
                self._queue.popleft()
                self._held.append(piece)
                if not self._must_hold():
                    self._release_held()

    async def finish(self, rewrite: RewriteSentences | None = None) -> Review:
        """Settle what is held and release it. Without `rewrite`, or a second time, nobody is asked."""
        await self.drain(last=True)
        if rewrite and not self._asked and (failed := self._find_failed()):
            await self._rewrite_failed(rewrite, failed)
        if self._judge and self._judged is None:
            self._judged = await self._judge_held(self._judge)
        self._add_beyond()
        self._release_held()
        return Review(
            Proof(tuple(self._claims)),
            tuple(self._marked),
            tuple(self._dropped),
            self._recited,
            self._corrected,
            self._asked,
            self._strict,
            self._judged.judges if self._judged else (),
            self._judged.gap if self._judged else "",
        )

    # checking

    async def _inspect_stretch(self, stretch: str, is_code: bool) -> Piece:
        piece = Piece(stretch, begins_line=not self._line_is_open)
        after = self._queue[1][0] if len(self._queue) > 1 else ""
        if is_code:
            piece.claims = await self._claims_in_code(stretch)
        else:
            await self._check(piece, is_head=self._begins_table(stretch) and _is_head_of_table(stretch, after))
        self._in_table = not is_code and piece.begins_line and is_row(stretch)
        self._line_is_open = not stretch.endswith("\n")
        return piece

    def _begins_table(self, stretch: str) -> bool:
        return not self._line_is_open and not self._in_table and is_row(stretch)

    async def _check(self, piece: Piece, *, is_head: bool = False) -> None:
        """Check a stretch; put citations right where that is beyond doubt, and check again."""
        text, claims = piece.text, await self._claims_of(piece.text)
        repaired = None
        if any(not claim.evidence or claim.verdict not in PASSING for claim in claims):
            everything = await self._snapshots.of(self._snapshots.numbers)
            claims = await asyncio.to_thread(_settle_titles, claims, everything, self._question, is_head, self._strict)
        if find_failing(claims):
            repaired = await asyncio.to_thread(repair, text, claims, everything)
            text, claims = repaired.text, await self._claims_of(repaired.text) if repaired.recited else claims
        trimmed = drop_idle_citations(text, claims)
        if trimmed != text:
            text, claims = trimmed, await self._claims_of(trimmed)
        piece.text, piece.claims = text, claims
        if repaired:
            piece.hints = repaired.hints
            self._recited += repaired.recited

    async def _claims_in_code(self, stretch: str) -> tuple[Claim, ...]:
        """What a block of code claims: its prose, and under strictness every line where the question is not about code.

        A writer who only quotes has no prose of its own in it.
        """
        if not self._rewrites and not self._strict:
            return ()
        hidden = hide_code(stretch, keeps_prose_only=not self._strict or is_about_code(self._question))
        return await self._claims_of(hidden) if hidden.strip() else ()

    async def _claims_of(self, text: str) -> tuple[Claim, ...]:
        if text not in self._known:
            snapshots = await self._snapshots.of(sorted(extract_citation_markers(text)))
            claims = await asyncio.to_thread(check, text, snapshots, self._question)
            self._known[text] = claims if self._rewrites else await asyncio.to_thread(accept_quotations, claims, snapshots)
        return self._known[text]

    def _add_beyond(self) -> None:
        """The end of an answer that is too long to be checked, as one claim that was not."""
        text, self._beyond = "".join(self._beyond), []
        if text.strip():
            end = len(text.rstrip())
            reason = f"only {MAX_STRETCHES} sentences or {MAX_CHARS} characters of an answer are checked"
            self._held.append(Piece(text, (Claim(0, text[:MAX_SHOWN_CHARS], 0, end, Verdict.UNCHECKED, reason=reason),)))

    # holding and rewriting

    def _must_hold(self) -> bool:
        return self._judge is not None or (self._rewrites and any(find_failing(piece.claims) for piece in self._held))

    def _find_failed(self) -> list[tuple[Piece, FailedClaim]]:
        """What failed and may be rewrite_cleanly; a sentence without a stored source cannot be."""
        return [
            (piece, FailedClaim(claim, piece.hints.get(claim.index, ())))
            for piece in self._held
            for claim in find_failing(piece.claims)
            if claim.verdict is not Verdict.UNCHECKED
        ]

    async def _rewrite_failed(self, rewrite: RewriteSentences, failed: Sequence[tuple[Piece, FailedClaim]]) -> None:
        answers = await rewrite([failed_claim for _, failed_claim in failed])
        self._asked = answers is not None
        for piece in self._held:
            mine = {d.claim.index: (answers or {}).get(n) for n, (owner, d) in enumerate(failed) if owner is piece}
            await self._replace(piece, {index: text for index, text in mine.items() if text is not None})

    async def _replace(self, piece: Piece, sentences: Mapping[int, str]) -> None:
        """Put the model's new sentences in place of the old ones, where they pass; an empty one takes the old one out."""
        good: dict[int, str] = {}
        for index, text in sentences.items():
            offered = Piece(text)
            await self._check(offered)
            if text and not find_failing(offered.claims) and _can_replace(text, piece):
                good[index] = offered.text
        gone = [claim for claim in piece.claims if sentences.get(claim.index) == ""]
        if not good and not gone:
            return
        text = substitute_sentences(piece.text, piece.claims, good)
        claims = await self._claims_of(text)
        self._corrected += len(good)
        piece.text, piece.claims, piece.hints = text, claims, {}
        self._drop_claims(piece, {c.index for c in find_failing(claims) if c.text in {g.text for g in gone}})

    async def _judge_held(self, judge: JudgeClaims) -> JudgedClaims:
        """Judge every claim that is held, all in one call."""
        judged = await judge([claim for piece in self._held for claim in piece.claims])
        claims = iter(judged.claims)
        for piece in self._held:
            piece.claims = tuple(islice(claims, len(piece.claims)))
        return judged

    # release

    def _release_held(self) -> None:
        for piece in self._held:
            doubtful = {claim.index for claim in find_failing(piece.claims)}
            if self._strict:
                self._drop_claims(piece, doubtful)
                doubtful = set()
            text, claims = edit_stretch(piece.text, piece.claims, marked=doubtful, begins_line=piece.begins_line)
            if self._guard.find_exits(
                self._blanks + text if self._out else text.lstrip()
            ):  # what was left out or marked can turn code into a link
                self._dropped += claims
                text, claims = "", ()
            self._release_text(text, claims, doubtful)
        self._held = []

    def _drop_claims(self, piece: Piece, indexes: set[int]) -> None:
        if indexes:
            before = piece.claims
            piece.text, piece.claims = edit_stretch(piece.text, before, dropped=indexes, begins_line=piece.begins_line)
            kept = {claim.index for claim in piece.claims}
            self._dropped += [claim for claim in before if claim.index not in kept]

    def _release_text(self, text: str, claims: Sequence[Claim], marked: set[int]) -> None:
        """Blanks wait for what follows them, so that the answer begins and ends with a word."""
        lead = len(text) - len(text.lstrip()) if not self._out else 0
        base, known = self._length + len(self._blanks) - lead, len(self._claims)
        for claim in claims:
            if claim.index in marked:
                self._marked.append(len(self._claims))
            cut = max(0, lead - claim.start)  # blanks of a claim that begin the answer go with it
            start, end = claim.start + cut + base, claim.end + base
            self._claims.append(replace(claim, index=len(self._claims), text=claim.text[cut:], start=start, end=end))
        body = (self._blanks + text[lead:]).rstrip()
        self._blanks = (self._blanks + text[lead:])[len(body) :]
        if body:
            self._out.append(body)
            self._guard.add(body)
            self._length += len(body)
            self._release(body)
        if self._show_marks and len(self._claims) > known:
            self._show_marks(self._claims[known:])


def _can_replace(sentence: str, piece: Piece) -> bool:
    """Only a row can stand in for a row of a table."""
    return is_row(sentence) == is_row(piece.text)


def _is_head_of_table(line: str, after: str) -> bool:
    from nexi.proof.segments import is_head_of_table  # with all of proof behind it, which the first byte does not need

    return is_head_of_table(line, after)


def _settle_titles(
    claims: Sequence[Claim], pages: Mapping[int, Snapshot | None], question: str, is_head: bool, strict: bool
) -> tuple[Claim, ...]:
    from nexi.verify.titles import settle_titles  # likewise

    return settle_titles(claims, pages, question, is_head=is_head, strict=strict)


def is_about_code(question: str) -> bool:
    """Whether a question asks for code, or gives some."""
    return bool(_ABOUT_CODE.search(question))
