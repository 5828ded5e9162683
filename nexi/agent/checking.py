"""Checks the answer of a run before it is shown, and warns about what the check found.

Below the loop, the turn and the fallbacks; `verify` compares sentences with pages. This module asks the model to rewrite
sentences that failed, asks the judge to reject sentences that passed, and warns of what the reader should know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from nexi.agent.context import RunContext
from nexi.answers.citations import extract_citation_markers
from nexi.errors import LLMError, VerificationError
from nexi.events import AnswerChecked, ConflictsFound, TextDelta
from nexi.ports import LLM
from nexi.types import Answer, Claim, Conflict, Message, Reply, Review, Source, StopReason
from nexi.verify import MARK, Doubt, Ruling, Verifier, Writing
from nexi.verify.disagreements import disagreements, linked

if TYPE_CHECKING:
    from nexi.verify.correction import Request


class StreamedAnswerCheck:
    """Checks a text while it is still being written; `tasks` owns the checking."""

    def __init__(self, check: Writing, tasks: asyncio.TaskGroup) -> None:
        self.check = check
        self._tasks = tasks
        self._checking: asyncio.Task[None] | None = None

    def feed(self, text: str) -> None:
        self.check.feed(text)
        if self.check.waiting and (self._checking is None or self._checking.done()):
            self._checking = self._tasks.create_task(self.check.drain(), name="check the answer")


class AnswerChecker:
    """Checks and releases the answers of one run. Without a verifier an answer is released unchecked."""

    def __init__(self, context: RunContext, verifier: Verifier | None = None, judge: LLM | None = None) -> None:
        self.context = context
        self.verifier = verifier
        self._judge = judge

    def open_check(self, *, by_model: bool = True) -> Writing:
        """Begin the check of one answer. `by_model` is False for quotations, which need no rewriting and no judge."""
        release: Callable[[str], None] = lambda text: self.context.emit.delta(TextDelta(text))  # noqa: E731 - shorter than a function
        judge = self._judge_claims if self._judge and by_model else None
        return Writing(self.context.session, self.verifier, release, mends=by_model, judge=judge)

    def check_stream(self, tasks: asyncio.TaskGroup) -> StreamedAnswerCheck:
        """Begin the check of an answer that is fed piece by piece."""
        return StreamedAnswerCheck(self.open_check(), tasks)

    async def check_answer(self, text: str, stop: StopReason, *, by_model: bool = True) -> Answer:
        """Check and release a text that is complete."""
        return await self.finish_check(self.open_check(by_model=by_model), stop, text)

    async def finish_check(self, check: Writing, stop: StopReason, rest: str = "") -> Answer:
        """Check the rest of an answer and add the answer, as it was shown, to the conversation."""
        context = self.context
        check.feed(rest)
        clean, review = await check.finish(self._rewrite_failed if context.can_call_model() else None)
        await self._warn_about_citations(check, clean)
        if review:
            await self._warn_about_review(review)
        conflicts = await self._report_conflicts(review)
        clean = "\n\n".join((clean, *(conflict.sentence() for conflict in conflicts)))
        context.session.messages.append(Message("assistant", clean))
        numbers = extract_citation_markers(clean)
        cited = tuple(s for s in context.session.book.sources if s.number in numbers)
        return Answer(clean, await self._link_sources(cited, review), stop, tuple(context.warnings), conflicts, review)

    async def warn_if_cut_off(self, reply: Reply, *, is_broken: bool, is_unfinished: bool) -> None:
        """Warn of an answer that has no end. `is_broken`: the stream failed; `is_unfinished`: the answer argument is open."""
        reached_limit = reply.finish == "length" and not is_broken
        if is_unfinished or (reached_limit and not reply.tool_calls):
            limit, stopped = "it reached the output limit (--max-len)", "the model stopped writing (ask again, or use -m)"
            await self.context.warn("cut", f"the answer breaks off where {limit if reached_limit else stopped}")

    async def _report_conflicts(self, review: Review | None) -> tuple[Conflict, ...]:
        """Show below the answer where the pages disagree on what it says; such values are never averaged."""
        if review is None or self.verifier is None:
            return ()
        titles = {source.number: source.title for source in self.context.session.book.sources}
        conflicts = await disagreements(self.context.question, review, self.verifier.snapshots, titles)
        if conflicts:
            await self.context.emit(ConflictsFound(conflicts))
        for conflict in conflicts:
            self.context.emit.delta(TextDelta(f"\n\n{conflict.sentence()}"))
        return conflicts

    async def _link_sources(self, cited: tuple[Source, ...], review: Review | None) -> tuple[Source, ...]:
        return await linked(cited, review, self.verifier.snapshots) if review and self.verifier else cited

    async def _rewrite_failed(self, doubts: Sequence[Doubt]) -> Mapping[int, str] | None:
        """Ask the model to rewrite the sentences that failed; None when it could not be asked."""
        request = self._build_request(self.context.llm.as_role("correct"))
        try:
            rewritten = await self.context.run_unless_cancelled(request.mended(doubts))
        except LLMError as error:
            if error.code in ("budget_spent", "not_recorded"):
                return None
            await self.context.warn("not_corrected", f"the model could not correct what failed ({error})")
            return {}
        return {} if isinstance(rewritten, StopReason) else rewritten

    async def _judge_claims(self, claims: Sequence[Claim]) -> Sequence[Ruling]:
        if self._judge is None or not self.context.can_call_model():
            return ()
        try:
            rulings = await self.context.run_unless_cancelled(self._build_request(self._judge).judged(claims))
        except LLMError as error:
            await self.context.warn("not_judged", f"the judge could not be asked ({error})")
            return ()
        return () if isinstance(rulings, StopReason) else rulings

    def _build_request(self, llm: LLM) -> Request:
        from nexi.verify.correction import Request

        settings = self.context.settings
        deadline = self.context.call_deadline()
        return Request(llm, self.context.question, settings.max_output_tokens, deadline, settings.prompts_folder)

    async def _warn_about_review(self, review: Review) -> None:
        """Warn of sentences that failed. Raises VerificationError for a strict answer without a supported sentence."""
        total = len(review.proof.checked) + len(review.dropped)
        if review.marked:
            count = f"{len(review.marked)} of {total} sentence{'s' * (total != 1)}"
            await self.context.warn("unsupported", f"{count} could not be verified against the pages and carry the mark{MARK}")
        if review.dropped:
            count = f"{len(review.dropped)} of {total} sentence{'s' * (total != 1)}"
            await self.context.warn("left_out", f"{count} left out: the pages that were read do not support them")
        if review.strict and review.dropped and not review.proof.supported:
            await self.context.emit(AnswerChecked(review))
            raise VerificationError(
                "there is no answer that could be verified",
                cause=f"none of its {total} sentences is supported by the pages that were read",
                fix="ask without --strict to see it marked, try another model with -m, or ask more narrowly",
            )

    async def _warn_about_citations(self, check: Writing, clean: str) -> None:
        warn = self.context.warn
        if check.dropped:
            numbers = ", ".join(f"[{n}]" for n in sorted(check.dropped))
            await warn("unknown_citation", f"the model cited {numbers}, which names no page that was read; removed")
        if check.removed:
            addresses = ", ".join(sorted(check.removed))[:300]
            await warn("unknown_address", f"the model wrote {addresses}, which is on no page that was read; removed")
        if not extract_citation_markers(clean):
            await warn("no_citation", "the answer cites none of the pages that were read")
