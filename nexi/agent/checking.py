"""How the answer of a run is checked before it is shown, and what is said about it.

Below `loop`, whose session, model and events it uses; `verify` does the checking. It asks the model to mend what failed, the
judge to lower what passed, and warns of what the reader should know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from nexi.citations import extract_citation_markers
from nexi.errors import LLMError, VerificationError
from nexi.events import AnswerChecked, ConflictsFound, TextDelta
from nexi.ports import LLM
from nexi.types import Answer, Claim, Conflict, Message, Reply, Review, Source, StopReason
from nexi.verify import MARK, Doubt, Ruling, Writing
from nexi.verify.disagreements import disagreements, linked

if TYPE_CHECKING:
    from nexi.agent.loop import Loop
    from nexi.agent.turn import Turn
    from nexi.verify.correction import Request


class Draft:
    """A text that is checked while it is still being written; `tasks` owns the checking."""

    def __init__(self, writing: Writing, tasks: asyncio.TaskGroup) -> None:
        self.writing = writing
        self._tasks = tasks
        self._checking: asyncio.Task[None] | None = None

    def feed(self, text: str) -> None:
        self.writing.feed(text)
        if self.writing.waiting and (self._checking is None or self._checking.done()):
            self._checking = self._tasks.create_task(self.writing.drain(), name="check the answer")


class Checking:
    """The checking of the answers of one loop."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    async def answer(self, text: str, stop: StopReason, writing: Writing) -> Answer:
        """The end of an answer: what is still to come of it is checked, and it is remembered as it was shown."""
        writing.feed(text)
        clean, review = await writing.finish(self._mend if self._may_mend() else None)
        await self._note_citations(writing, clean)
        if review:
            await self._note_review(review)
        conflicts = await self._conflicts(review)
        clean = "\n\n".join((clean, *(conflict.sentence() for conflict in conflicts)))
        self._loop.session.messages.append(Message("assistant", clean))
        numbers = extract_citation_markers(clean)
        cited = tuple(s for s in self._loop.session.book.sources if s.number in numbers)
        return Answer(clean, await self._linked(cited, review), stop, tuple(self._loop.warnings), conflicts, review)

    def writing(self, *, by_model: bool = True) -> Writing:
        release: Callable[[str], None] = lambda text: self._loop.emit.delta(TextDelta(text))  # noqa: E731 - shorter than a function
        judge = self._judged if self._loop.judge and by_model else None
        return Writing(self._loop.session, self._loop.verifier, release, mends=by_model, judge=judge)

    async def _conflicts(self, review: Review | None) -> tuple[Conflict, ...]:
        """Where the pages disagree on what the answer says: shown under it, never averaged."""
        if review is None or self._loop.verifier is None:
            return ()
        titles = {source.number: source.title for source in self._loop.session.book.sources}
        conflicts = await disagreements(self._loop.toolbox.question, review, self._loop.verifier.snapshots, titles)
        if conflicts:
            await self._loop.emit(ConflictsFound(conflicts))
        for conflict in conflicts:
            self._loop.emit.delta(TextDelta(f"\n\n{conflict.sentence()}"))
        return conflicts

    async def _linked(self, cited: tuple[Source, ...], review: Review | None) -> tuple[Source, ...]:
        return await linked(cited, review, self._loop.verifier.snapshots) if review and self._loop.verifier else cited

    def _may_mend(self) -> bool:
        """Whether the model may be asked to mend what failed: not when a limit or the user says stop."""
        return not self._loop.stop.is_set() and self._loop.meter.may_call(self._loop.clock.monotonic())

    async def _mend(self, doubts: Sequence[Doubt]) -> Mapping[int, str] | None:
        """The failed sentences, written again; None when the model could not be asked."""
        request = self._request(self._loop.llm.as_role("correct"))
        try:
            mended = await self._loop.until_stopped(request.mended(doubts))
        except LLMError as error:
            if error.code in ("budget_spent", "not_recorded"):
                return None
            await self._loop.warn("not_corrected", f"the model could not correct what failed ({error})")
            return {}
        return {} if isinstance(mended, StopReason) else mended

    async def _judged(self, claims: Sequence[Claim]) -> Sequence[Ruling]:
        if self._loop.judge is None or not self._may_mend():
            return ()
        try:
            rulings = await self._loop.until_stopped(self._request(self._loop.judge).judged(claims))
        except LLMError as error:
            await self._loop.warn("not_judged", f"the judge could not be asked ({error})")
            return ()
        return () if isinstance(rulings, StopReason) else rulings

    def _request(self, llm: LLM) -> Request:
        from nexi.verify.correction import Request

        folder, most = self._loop.settings.prompts_folder, self._loop.settings.max_output_tokens
        return Request(llm, self._loop.toolbox.question, most, self._loop.call_deadline(), folder)

    async def _note_review(self, review: Review) -> None:
        """What failed is said; a strict answer of which nothing is supported is none."""
        total = len(review.proof.checked) + len(review.dropped)
        if review.marked:
            count = f"{len(review.marked)} of {total} sentence{'s' * (total != 1)}"
            await self._loop.warn("unsupported", f"{count} could not be verified against the pages and carry the mark{MARK}")
        if review.dropped:
            count = f"{len(review.dropped)} of {total} sentence{'s' * (total != 1)}"
            await self._loop.warn("left_out", f"{count} left out: the pages that were read do not support them")
        if review.strict and review.dropped and not review.proof.supported:
            await self._loop.emit(AnswerChecked(review))
            raise VerificationError(
                "there is no answer that could be verified",
                cause=f"none of its {total} sentences is supported by the pages that were read",
                fix="ask without --strict to see it marked, try another model with -m, or ask more narrowly",
            )

    async def _note_citations(self, writing: Writing, clean: str) -> None:
        if writing.dropped:
            numbers = ", ".join(f"[{n}]" for n in sorted(writing.dropped))
            await self._loop.warn("unknown_citation", f"the model cited {numbers}, which names no page that was read; removed")
        if writing.removed:
            addresses = ", ".join(sorted(writing.removed))[:300]
            await self._loop.warn("unknown_address", f"the model wrote {addresses}, which is on no page that was read; removed")
        if not extract_citation_markers(clean):
            await self._loop.warn("no_citation", "the answer cites none of the pages that were read")

    async def note_cut(self, reply: Reply, turn: Turn) -> None:
        """An answer without an end is said to be one."""
        limited = reply.finish == "length" and not turn.broken
        if turn.unfinished or (limited and not reply.tool_calls):
            why = "it reached the output limit (--max-len)" if limited else "the model stopped writing (ask again, or use -m)"
            await self._loop.warn("cut", f"the answer breaks off where {why}")
