"""An answer under way: what the model writes goes in, checked text comes out.

It joins the stream that cuts the text with the checker that lets it out, for one answer of one session. The loop above owns the
tasks and says whether the model may be asked to mend; without a verifier the text passes as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from nexi.answers.streaming import AnswerStream
from nexi.ports import PairModel
from nexi.runs.session import Session
from nexi.types import Review
from nexi.urls import is_web_url
from nexi.verify.checker import Checker, Doubt, JudgeClaims, Mend
from nexi.verify.snapshots import Snapshots


class Verifier(Struct, frozen=True):
    """How the answers of a run are checked. `mends` is for a model that can be asked to write a sentence again.

    `open_judge` opens the pair model that judges what rules found: all there is for the text of a model (True), for
    quotations (False) what costs nothing.
    """

    snapshots: Snapshots
    strict: bool = False
    mends: bool = True
    open_judge: Callable[[bool], PairModel | None] = lambda by_model: None


class Writing:
    """One answer. Feed it, let it `drain` now and then, and `finish` it; `released` says whether there is anything of it."""

    def __init__(
        self,
        session: Session,
        verifier: Verifier | None,
        release: Callable[[str], None],
        *,
        mends: bool = True,
        judge: JudgeClaims | None = None,
    ) -> None:
        self.by_model = mends
        self._session = session
        self._checker = None
        if verifier:
            self._checker = Checker(
                verifier.snapshots, release, strict=verifier.strict, mends=mends and verifier.mends, judge=judge
            )
        take = self._checker.take if self._checker else lambda stretch, _: release(stretch)
        known = {source.number for source in session.book.sources}
        self._stream = AnswerStream(known, take, place=self._place)

    @property
    def released(self) -> bool:
        return self._stream.has_released

    @property
    def waiting(self) -> bool:
        return bool(self._checker and self._checker.waiting)

    @property
    def dropped(self) -> set[int]:
        """Citation numbers that name nothing."""
        return self._stream.dropped

    @property
    def removed(self) -> set[str]:
        """Addresses that nobody gave."""
        return self._stream.removed

    def feed(self, text: str) -> None:
        self._stream.feed(text)

    async def drain(self) -> None:
        if self._checker:
            await self._checker.drain()

    async def finish(self, mend: Mend | None = None) -> tuple[str, Review | None]:
        """The whole answer, and how it was checked."""
        text = self._stream.finish()
        if not self._checker:
            return text, None
        review = await self._checker.finish(self._cleaned(mend) if mend else None)
        return self._checker.text, review

    def _cleaned(self, mend: Mend) -> Mend:
        """New sentences obey the same rules as the first ones."""

        async def mended(doubts: Sequence[Doubt]) -> Mapping[int, str] | None:
            sentences = await mend(doubts)
            return None if sentences is None else {n: self._stream.clean(text).strip() for n, text in sentences.items()}

        return mended

    def _place(self, url: str) -> int | None:
        """The number of a read page; 0 for an address that stands in the question or in a page that was read."""
        if not is_web_url(url):
            return None
        if source := self._session.book.find(url):
            return source.number
        asked = (message.content for message in self._session.messages if message.role == "user")
        pages = self._session.pages.values()
        said = any(url in text for text in asked) or any(url in page.text or url in page.links for page in pages)
        return 0 if said else None
