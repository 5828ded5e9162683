"""An answer under way: what the model writes goes in, checked text comes out.

It joins the stream that cuts the text with the checker that lets it out, for one answer of one session. The loop above owns the
tasks and says whether the model may be asked to rewrite; without a verifier the text passes as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from nexi.answers.streaming import AnswerStream
from nexi.ports import PairModel
from nexi.runs.session import Session
from nexi.types import Claim, Review
from nexi.urls import is_web_url
from nexi.verify.checker import Checker, FailedClaim, JudgeClaims, RewriteSentences
from nexi.verify.snapshots import Snapshots


class Verifier(Struct, frozen=True):
    """How the answers of a run are checked. `rewrites` is for a model that can be asked to write a sentence again.

    `open_judge` opens the pair model that judges what rules found: all there is for the text of a model (True), for
    quotations (False) what costs nothing.
    """

    snapshots: Snapshots
    strict: bool = False
    rewrites: bool = True
    open_judge: Callable[[bool], PairModel | None] = lambda by_model: None
    question: str = ""


class AnswerCheck:
    """One answer. Feed it, let it `drain` now and then, and `finish` it; `has_released` says whether any of it is out."""

    def __init__(
        self,
        session: Session,
        verifier: Verifier | None,
        release: Callable[[str], None],
        *,
        rewrites: bool = True,
        judge: JudgeClaims | None = None,
        show_marks: Callable[[Sequence[Claim]], None] | None = None,
    ) -> None:
        self.by_model = rewrites
        self._session = session
        self._checker = None
        if verifier:
            self._checker = Checker(
                verifier.snapshots,
                release,
                strict=verifier.strict,
                rewrites=rewrites and verifier.rewrites,
                judge=judge,
                question=verifier.question,
                show_marks=show_marks,
                place=self._place,
                guards_code=bool(session.private),
            )
        add_stretch = self._checker.add_stretch if self._checker else lambda stretch, _: release(stretch)
        known = {source.number for source in session.book.sources}
        self._stream = AnswerStream(known, add_stretch, place=self._place, guards_code=bool(session.private))

    @property
    def has_released(self) -> bool:
        return self._stream.has_released

    @property
    def is_waiting(self) -> bool:
        return bool(self._checker and self._checker.is_waiting)

    @property
    def unknown_citations(self) -> set[int]:
        """Citation numbers that name nothing."""
        return self._stream.dropped

    @property
    def unknown_addresses(self) -> set[str]:
        """Addresses that nobody gave."""
        return self._stream.removed

    def feed(self, text: str) -> None:
        self._stream.feed(text)

    async def drain(self) -> None:
        if self._checker:
            await self._checker.drain()

    async def finish(self, rewrite: RewriteSentences | None = None) -> tuple[str, Review | None]:
        """The whole answer, and how it was checked."""
        text = self._stream.finish()
        if not self._checker:
            return text, None
        review = await self._checker.finish(self._clean_rewritten(rewrite) if rewrite else None)
        return self._checker.text, review

    def _clean_rewritten(self, rewrite: RewriteSentences) -> RewriteSentences:
        """New sentences obey the same rules as the first ones."""

        async def rewrite_cleanly(failed: Sequence[FailedClaim]) -> Mapping[int, str] | None:
            sentences = await rewrite(failed)
            return None if sentences is None else {n: self._stream.clean(text).strip() for n, text in sentences.items()}

        return rewrite_cleanly

    def _place(self, url: str) -> int | None:
        """The number of a read page; 0 for an address that stands in the question or in a page that was read."""
        if is_web_url(url) and (source := self._session.book.find(url)):
            return source.number
        asked = (message.content for message in self._session.messages if message.role == "user")
        pages = self._session.pages.values()
        said = any(url in text for text in asked) or any(url in page.text or url in page.links for page in pages)
        return 0 if said else None
