"""The one tool-calling loop: ask, run tools, check limits, compact, repeat.

Above it, `app` builds its parts; below it are the tools and a metered model. It decides when a run ends and why; it knows
nothing of networks, files or screens. A stop always yields an answer from what was read; with nothing read it is an error.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nexi.answer import AnswerArgument
from nexi.budget import Meter
from nexi.citations import extract_citation_markers
from nexi.compaction import compact, should_compact
from nexi.errors import ContextOverflowError, LLMError, NexiError, NoEvidenceError, VerificationError
from nexi.events import AnswerChecked, ConflictsFound, ContextCompacted, TextDelta, ToolFinished, ToolStarted, Warned
from nexi.model import MeteredLLM, prompt_tokens
from nexi.ports import LLM, Clock, Emit
from nexi.prompts import render
from nexi.repeats import WORDS as REPEATED
from nexi.repeats import Repeats
from nexi.session import Session
from nexi.tasks import to_the_end
from nexi.token_counter import TokenCounter
from nexi.tools import FINAL_ANSWER, Toolbox, error_result, read_arguments
from nexi.types import Answer, Claim, Conflict, Message, PageView, Reply, Review, Source, StopReason, ToolCall, ToolResult
from nexi.values import frozen
from nexi.verify import MARK, Doubt, Ruling, Verifier, Writing
from nexi.verify.disagreements import disagreements, linked

if TYPE_CHECKING:
    from nexi.verify.correction import Request

T = TypeVar("T")

GRACE_S = 15.0  # a call in flight at the time target may still finish: what is paid for is not thrown away
TOOL_GRACE_S = 1.0
WINDOW_MARGIN = 0.9  # our count is exact for other tokenizers only by chance
LEAST_WINDOW = 1000
GUIDED_QUERY_CHARS = 300
GUIDED_PAGES = 3
GUIDED_TOKENS = 250  # a small model loses its way in long passages
WORDS = {
    StopReason.TIME_TARGET: "the time target was reached",
    StopReason.MAX_ITERATIONS: "the iteration limit was reached",
    StopReason.CONTEXT_LIMIT: "the context window is full",
    StopReason.BUDGET_SPENT: "the budget is spent",
    StopReason.API_ERROR: "the model failed",
    StopReason.CANCELLED: "the search was stopped",
    StopReason.REPEATED: "the model made the same calls again and again",
}
FIXES = {
    StopReason.TIME_TARGET: "raise it with --time-target",
    StopReason.MAX_ITERATIONS: "raise it with --max-iter or -e l",
    StopReason.CONTEXT_LIMIT: "raise max_context if the model allows it, or ask a narrower question",
    StopReason.BUDGET_SPENT: "raise --max-cost or --max-tokens",
    StopReason.CANCELLED: "ask again to go on",
    StopReason.REPEATED: "try another model with -m, or ask in other words",
}


@frozen
class LoopSettings:
    max_output_tokens: int
    compaction: Any  # the Config, as compaction reads its own fields
    prompts_folder: Path | None = None
    temperature: float | None = None


@dataclass
class Loop:
    """One run of the loop over a session. `spare` is the built-in model that answers when the real one cannot; `judge` may
    lower what the verifier found. Without a verifier an answer is not checked. `steer` brings what others have to say before a
    turn."""

    llm: MeteredLLM
    spare: Callable[[], LLM]
    toolbox: Toolbox
    session: Session
    meter: Meter
    emit: Emit
    clock: Clock
    counter: TokenCounter
    settings: LoopSettings
    stop: asyncio.Event
    verifier: Verifier | None = None
    judge: MeteredLLM | None = None
    steer: Callable[[int], Awaitable[Sequence[Message]]] | None = None
    warnings: list[str] = field(default_factory=list)
    repeats: Repeats = field(default_factory=Repeats)
    _unread: int = 0
    _current: Turn | None = None

    async def run(self) -> Answer:
        """Ask until there is an answer. Raises NoEvidenceError or the model's own error when nothing was read."""
        while True:
            if reason := self._limit():
                return await self._forced(reason)
            self.meter.start_iteration()
            if self.steer:
                self.session.messages += await self.steer(self.meter.iterations)
            fits = await self._until_stopped(self._make_room())
            if fits is not True:
                return await self._forced(StopReason.CANCELLED if fits else StopReason.CONTEXT_LIMIT)
            try:
                turn = await self._until_stopped(self._turn())
            except LLMError as error:
                if await self._narrowed(error):
                    continue
                return await self._after_model_failure(error)
            if isinstance(turn, StopReason):
                return await self._interrupted(turn)
            if isinstance(turn, Answer):
                return turn

    async def quoted(self) -> str:
        """What was read on the question, as passages with their numbers, for a caller to whom an uncited text is no use."""
        return await self._spare_answer()

    async def deliver(self, text: str, stop: StopReason, *, by_model: bool = True) -> Answer:
        """A text that was written elsewhere, checked and released like an answer of this loop."""
        return await self._answer(text, stop, self._writing(by_model=by_model))

    # one turn

    async def _turn(self) -> Answer | StopReason | None:
        """Ask once and act on the reply; None means go on, a reason that the model gets no further."""
        turn = self._current = Turn(self)
        async with asyncio.TaskGroup() as group:
            turn.group = group
            preparing = group.create_task(self._prepare_pages(), name="prepare pages")
            reply = await turn.ask()
            preparing.cancel()  # what is still missing is prepared when a sentence cites it
            answer = await self._final(reply, turn)
            if answer is not None:
                turn.drop_calls()
                return answer
            results = await turn.finish_calls(reply)
        await self._make_room([Message("tool", r.text) for r in results])
        self._remember(reply, results)
        in_circles = self.repeats.turned(len(reply.tool_calls), turn.refused)
        return StopReason.REPEATED if in_circles else None

    async def _prepare_pages(self) -> None:
        if self.verifier:
            await self.verifier.snapshots.warm()

    async def _final(self, reply: Reply, turn: Turn) -> Answer | None:
        """The answer in a reply, if it has one that may count."""
        if turn.writing and turn.streaming:
            await self._note_cut(reply, turn)
            return await self._answer("", StopReason.API_ERROR if turn.broken else StopReason.FINAL_ANSWER, turn.writing)
        text, stop = None, StopReason.FINAL_ANSWER
        final = next((c for c in reply.tool_calls if c.name == FINAL_ANSWER.name), None)
        if final is not None:
            arguments, turn.refusal = read_arguments(final, FINAL_ANSWER)
            text = arguments.get("answer")
        elif not reply.tool_calls:
            text, stop = reply.text, StopReason.PLAIN_ANSWER
        if text is None:
            return None
        if self.session.has_evidence and text.strip():
            await self._note_cut(reply, turn)
            turn.writing = self._writing()
            return await self._answer(text, stop, turn.writing)
        self._unread += 1
        if self._unread > 1:
            return await self._guided_answer()
        turn.refusal = self._read_first(reply)
        return None

    def _read_first(self, reply: Reply) -> str:
        """An answer counts only when pages were read; the model is told so once."""
        nudge = render("read_first", folder=self.settings.prompts_folder)
        if not reply.tool_calls:
            self.session.messages += [Message("assistant", reply.text), Message("user", nudge)]
        return nudge

    async def _guided_answer(self) -> Answer:
        """For a model that does not use its tools: search with the question, read, and ask for an answer from passages."""
        await self._warn("guided", f"{self.llm.name} did not use its tools, so the question itself was searched for")
        views = await self._guided_reading()
        if not views:
            raise NoEvidenceError(
                "there is no answer with evidence",
                cause=f"{self.llm.name} answered without reading a page" + self._search_trouble(),
                fix="ask in other words, try another model with -m, or check the search service",
            )
        text = await self._from_passages(views)
        writing = self._writing(by_model=bool(text))
        return await self._answer(text or await self._spare_answer(), StopReason.PLAIN_ANSWER, writing)

    async def _guided_reading(self) -> list[PageView]:
        toolbox = replace(self.toolbox, extractor=self.spare(), summary_tokens=GUIDED_TOKENS)
        search = ToolCall("guided_search", "web_search", json.dumps({"queries": [toolbox.question[:GUIDED_QUERY_CHARS]]}))
        found = await toolbox.run(search)
        self._remember(Reply("", (search,)), [found])
        hits = [h.url for outcome in found.value for h in outcome.hits] if isinstance(found.value, tuple) else []
        if not hits:
            return []
        read = ToolCall("guided_read", "web_get", json.dumps({"urls": hits[:GUIDED_PAGES]}))
        pages = await toolbox.run(read)
        self._remember(Reply("", (read,)), [pages])
        return [view for view in pages.value if not view.error] if isinstance(pages.value, tuple) else []

    async def _from_passages(self, views: Sequence[PageView]) -> str:
        passages = "\n\n".join(f"[{v.number}] {v.title}\n{v.text}" for v in views)
        rules = Message("system", render("passages", folder=self.settings.prompts_folder))
        task = Message("user", f"Passages:\n\n{passages}\n\nQuestion: {self.toolbox.question}")
        try:
            reply = await self.llm.complete(
                [rules, task], max_tokens=self.settings.max_output_tokens, temperature=0.0, deadline=self._call_deadline()
            )
        except LLMError as error:
            await self._warn("model_failed", f"the model could not write the answer ({error})")
            return ""
        return reply.text

    async def refuse(self, call: ToolCall, why: str) -> ToolResult:
        """A call that is not run, as a fact like those that are."""
        result = error_result(why)
        await self.emit(ToolStarted(call.id, call.name, call.arguments[:4000]))
        await self.emit(ToolFinished(call.id, call.name, result.ok, result.text, 0.0))
        return result

    def _remember(self, reply: Reply, results: Sequence[ToolResult]) -> None:
        if not reply.tool_calls:
            return
        self.session.messages.append(Message("assistant", reply.text, reply.tool_calls))
        for call, result in zip(reply.tool_calls, results, strict=True):
            self.session.messages.append(Message("tool", result.text, tool_call_id=call.id, result=result))

    # limits and context

    def _limit(self) -> StopReason | None:
        """What forbids another turn. Turns that the record of an interrupted run still holds cost neither time nor money."""
        if self.stop.is_set():
            return StopReason.CANCELLED
        reason = self.meter.stop_reason(self.clock.monotonic())
        return None if self.llm.track.is_ahead and reason is not StopReason.MAX_ITERATIONS else reason

    async def _make_room(self, coming: Sequence[Message] = ()) -> bool:
        """Compact when the conversation, with what is about to join it, nears the window; False when it does not fit then."""
        before, following = self._tokens(), self._reply_room()
        following += prompt_tokens(self.counter, coming, (), self.llm.max_context) if coming else 0
        if not should_compact(before, following, self.settings.compaction):
            return True
        compacted = await compact(
            self.session.messages,
            self.settings.compaction,
            self.llm.as_role("compact"),
            deadline=self._call_deadline(),
            question=self.toolbox.question,
        )
        if compacted is not None:
            self.session.messages[:] = compacted
            self.repeats.forget()
        after = self._tokens()
        await self.emit(ContextCompacted(before, after, compacted is not None))
        return after + following <= self.llm.max_context

    async def _narrowed(self, error: LLMError) -> bool:
        """Learn a smaller window from a server that refused a request for its size; False when there is nothing to learn."""
        told = error.window or 0 if isinstance(error, ContextOverflowError) else 0
        window = int(told * WINDOW_MARGIN)
        if not LEAST_WINDOW <= window < self.llm.max_context:
            return False
        await self._warn("smaller_window", f"{self.llm.name} has a window of {told} tokens; set max_context to that")
        self.llm = replace(self.llm, max_context=window)
        self.settings = replace(self.settings, compaction=replace(self.settings.compaction, max_context=window))
        return True

    def _tokens(self) -> int:
        return prompt_tokens(self.counter, self.session.messages, self.toolbox.specs, self.llm.max_context)

    def _reply_room(self) -> int:
        return min(self.settings.max_output_tokens, self.llm.max_context // 4)

    def _call_deadline(self) -> float | None:
        deadline = self.meter.deadline
        return None if deadline is None else deadline + self.meter.grace(GRACE_S)

    def _last_deadline(self) -> float:
        """Until when the last answer may be written."""
        patience, deadline = self.clock.monotonic() + GRACE_S * 2, self.meter.deadline
        return patience if deadline is None else min(patience, deadline + self.meter.grace(GRACE_S * 2, part=1.0))

    async def _until_stopped(self, work: Coroutine[Any, Any, T]) -> T | StopReason:
        """The work's result, or CANCELLED as soon as somebody asks the run to stop."""
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return _unwrapped(task)
            return StopReason.CANCELLED
        finally:
            stopping.cancel()
            task.cancel()
            await to_the_end(task)

    # endings

    async def _answer(self, text: str, stop: StopReason, writing: Writing) -> Answer:
        """The end of an answer: what is still to come of it is checked, and it is remembered as it was shown."""
        writing.feed(text)
        clean, review = await writing.finish(self._mend if self._may_mend() else None)
        await self._note_citations(writing, clean)
        if review:
            await self._note_review(review)
        conflicts = await self._conflicts(review)
        clean = "\n\n".join((clean, *(conflict.sentence() for conflict in conflicts)))
        self.session.messages.append(Message("assistant", clean))
        numbers = extract_citation_markers(clean)
        cited = tuple(s for s in self.session.book.sources if s.number in numbers)
        return Answer(clean, await self._linked(cited, review), stop, tuple(self.warnings), conflicts, review)

    def _writing(self, *, by_model: bool = True) -> Writing:
        release: Callable[[str], None] = lambda text: self.emit.delta(TextDelta(text))  # noqa: E731 - shorter than a function
        judge = self._judged if self.judge and by_model else None
        return Writing(self.session, self.verifier, release, mends=by_model, judge=judge)

    # checking

    async def _conflicts(self, review: Review | None) -> tuple[Conflict, ...]:
        """Where the pages disagree on what the answer says: shown under it, never averaged."""
        if review is None or self.verifier is None:
            return ()
        titles = {source.number: source.title for source in self.session.book.sources}
        conflicts = await disagreements(self.toolbox.question, review, self.verifier.snapshots, titles)
        if conflicts:
            await self.emit(ConflictsFound(conflicts))
        for conflict in conflicts:
            self.emit.delta(TextDelta(f"\n\n{conflict.sentence()}"))
        return conflicts

    async def _linked(self, cited: tuple[Source, ...], review: Review | None) -> tuple[Source, ...]:
        return await linked(cited, review, self.verifier.snapshots) if review and self.verifier else cited

    def _may_mend(self) -> bool:
        """Whether the model may be asked to mend what failed: not when a limit or the user says stop."""
        return not self.stop.is_set() and self.meter.may_call(self.clock.monotonic())

    async def _mend(self, doubts: Sequence[Doubt]) -> Mapping[int, str] | None:
        """The failed sentences, written again; None when the model could not be asked."""
        request = self._request(self.llm.as_role("correct"))
        try:
            mended = await self._until_stopped(request.mended(doubts))
        except LLMError as error:
            if error.code == "budget_spent":
                return None
            await self._warn("not_corrected", f"the model could not correct what failed ({error})")
            return {}
        return {} if isinstance(mended, StopReason) else mended

    async def _judged(self, claims: Sequence[Claim]) -> Sequence[Ruling]:
        if self.judge is None or not self._may_mend():
            return ()
        try:
            rulings = await self._until_stopped(self._request(self.judge).judged(claims))
        except LLMError as error:
            await self._warn("not_judged", f"the judge could not be asked ({error})")
            return ()
        return () if isinstance(rulings, StopReason) else rulings

    def _request(self, llm: LLM) -> Request:
        from nexi.verify.correction import Request

        folder, most = self.settings.prompts_folder, self.settings.max_output_tokens
        return Request(llm, self.toolbox.question, most, self._call_deadline(), folder)

    async def _note_review(self, review: Review) -> None:
        """What failed is said; a strict answer of which nothing is supported is none."""
        total = len(review.proof.checked) + len(review.dropped)
        if review.marked:
            count = f"{len(review.marked)} of {total} sentence{'s' * (total != 1)}"
            await self._warn("unsupported", f"{count} could not be verified against the pages and carry the mark{MARK}")
        if review.dropped:
            count = f"{len(review.dropped)} of {total} sentence{'s' * (total != 1)}"
            await self._warn("left_out", f"{count} left out: the pages that were read do not support them")
        if review.strict and review.dropped and not review.proof.supported:
            await self.emit(AnswerChecked(review))
            raise VerificationError(
                "there is no answer that could be verified",
                cause=f"none of its {total} sentences is supported by the pages that were read",
                fix="ask without --strict to see it marked, try another model with -m, or ask more narrowly",
            )

    async def _note_citations(self, writing: Writing, clean: str) -> None:
        if writing.dropped:
            numbers = ", ".join(f"[{n}]" for n in sorted(writing.dropped))
            await self._warn("unknown_citation", f"the model cited {numbers}, which names no page that was read; removed")
        if writing.removed:
            addresses = ", ".join(sorted(writing.removed))[:300]
            await self._warn("unknown_address", f"the model wrote {addresses}, which is on no page that was read; removed")
        if not extract_citation_markers(clean):
            await self._warn("no_citation", "the answer cites none of the pages that were read")

    async def _note_cut(self, reply: Reply, turn: Turn) -> None:
        """An answer without an end is said to be one."""
        limited = reply.finish == "length" and not turn.broken
        if turn.unfinished or (limited and not reply.tool_calls):
            why = "it reached the output limit (--max-len)" if limited else "the model stopped writing (ask again, or use -m)"
            await self._warn("cut", f"the answer breaks off where {why}")

    async def _warn(self, code: str, message: str) -> None:
        self.warnings.append(message)
        await self.emit(Warned(code, message))

    async def _interrupted(self, reason: StopReason) -> Answer:
        """What was already released stays; otherwise the answer is made from what was read."""
        if self._current is None or not self._current.writing or not self._current.streaming:
            return await self._forced(reason)
        await self._warn(reason.value, f"{WORDS[reason]}; the answer breaks off here")
        return await self._answer("", reason, self._current.writing)

    async def _forced(self, reason: StopReason, *, by_model: bool = True) -> Answer:
        """A limit was reached: answer from what was read, or say that nothing was."""
        by_model = by_model and reason not in (StopReason.CANCELLED, StopReason.API_ERROR)
        if not by_model:
            await self.toolbox.number_what_was_read()
        if not self.session.has_evidence:
            raise NoEvidenceError(
                "there is no answer",
                cause=f"{WORDS[reason]} before any page was read" + self._search_trouble(),
                fix=FIXES.get(reason, ""),
            )
        await self._warn(reason.value, f"{WORDS[reason]}; this answer uses what was read until then. {FIXES.get(reason, '')}")
        text = await self._until_stopped(self._asked_to_answer(reason)) if by_model else ""
        by_model = not isinstance(text, StopReason) and bool(text.strip())
        writing = self._writing(by_model=by_model)
        return await self._answer(text if by_model else await self._spare_answer(), reason, writing)

    async def _asked_to_answer(self, reason: StopReason) -> str:
        """One last call without tools."""
        prompt = render("force_answer", folder=self.settings.prompts_folder, reason=WORDS[reason])
        window = self.llm.max_context - self._reply_room()
        messages = shrunk([*flattened(self.session.messages), Message("user", prompt)], self.counter, window)
        try:
            reply = await self.llm.complete(
                messages, max_tokens=self.settings.max_output_tokens, deadline=self._last_deadline()
            )
        except LLMError as error:
            await self._warn("model_failed", f"the model could not write the answer ({error})")
            return ""
        return reply.text

    async def _spare_answer(self) -> str:
        """Passages from what was read, by the built-in model, marked as such."""
        question = next((m for m in reversed(self.session.messages) if m.role == "user"), Message("user", ""))
        views = tuple(
            PageView(s.url, s.number, s.title, page.text)
            for s in self.session.book.sources
            if (page := self.session.page(s.url))
        )
        call = ToolCall("read", "web_get", "{}")
        messages = [
            Message("user", self.toolbox.question or question.content),
            Message("assistant", "", (call,)),
            Message("tool", "", tool_call_id=call.id, result=ToolResult(views, "")),
        ]
        await self._warn("extractive", "the answer below was assembled from passages without a model")
        reply = await self.spare().complete(messages, max_tokens=self.settings.max_output_tokens)
        return reply.text

    async def _after_model_failure(self, error: LLMError) -> Answer:
        if error.code == "budget_spent":
            return await self._forced(StopReason.BUDGET_SPENT)
        if isinstance(error, ContextOverflowError) and self.session.has_evidence:
            return await self._forced(StopReason.CONTEXT_LIMIT)
        if error.code == "timeout" and self._limit() is StopReason.TIME_TARGET:
            return await self._forced(StopReason.TIME_TARGET, by_model=False)
        if not self.session.has_evidence:
            raise error
        await self._warn("model_failed", f"{error}. {error.fix}".strip())
        return await self._forced(StopReason.API_ERROR)

    def _search_trouble(self) -> str:
        """Why the searches of this run found nothing, in the words of their backends."""
        troubles: list[str] = []
        for message in self.session.messages:
            outcomes = message.result.value if message.result else None
            for outcome in outcomes if isinstance(outcomes, tuple) else ():
                troubles += [f"{f.provider}: {f.message}" for f in getattr(outcome, "failures", ()) if not outcome.hits]
                if getattr(outcome, "error", "") and len(troubles) < 4:
                    troubles.append(f"{outcome.url}: {outcome.error}")
        return "; " + "; ".join(dict.fromkeys(troubles)) if troubles else ""


class Turn:
    """One request and the tool calls it starts, each as soon as its arguments are complete."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.group: asyncio.TaskGroup | None = None
        self.writing: Writing | None = None
        self._checking: asyncio.Task[None] | None = None
        self._started: dict[str, tuple[ToolCall, asyncio.Task[ToolResult]]] = {}
        self._argument: AnswerArgument | None = None
        self.refusal = ""
        self.refused = 0
        self.broken = False

    @property
    def streaming(self) -> bool:
        """Whether part of the answer has come."""
        return self.writing is not None and self.writing.released

    @property
    def unfinished(self) -> bool:
        """Whether the answer began and its end never came."""
        return self._argument is not None and self._argument.is_open

    async def ask(self) -> Reply:
        loop = self.loop
        try:
            reply = await loop.llm.complete(
                loop.session.messages,
                loop.toolbox.specs,
                max_tokens=loop.settings.max_output_tokens,
                temperature=loop.settings.temperature,
                deadline=loop._call_deadline(),
                on_call=self._start,
                on_arguments=self._on_arguments,
            )
        except LLMError as error:
            if not self._started and not self.streaming:
                raise
            self.broken = True
            await loop._warn("stream_closed", f"{error}; going on with what had arrived. {error.fix}".strip())
            reply = Reply("", tuple(call for call, _ in self._started.values()), finish="length")
        return reply

    async def finish_calls(self, reply: Reply) -> list[ToolResult]:
        for call in reply.tool_calls:
            self._start(call)
        return [await self._result(call) for call in reply.tool_calls]

    def drop_calls(self) -> None:
        for _, task in self._started.values():
            task.cancel()

    async def _result(self, call: ToolCall) -> ToolResult:
        if call.name == FINAL_ANSWER.name:
            return error_result(self.refusal or "the answer was not accepted")
        return await self._started[call.id][1]

    def _start(self, call: ToolCall) -> None:
        if call.id in self._started or call.name == FINAL_ANSWER.name or self.group is None:
            return
        self._started[call.id] = (call, self.group.create_task(self._bounded(call), name=f"tool {call.name[:40]}"))

    async def _bounded(self, call: ToolCall) -> ToolResult:
        """The tool's result. At the time target a tool ends by itself with what it has; soon after, it is ended."""
        deadline = self.loop.meter.deadline
        left = None if deadline is None else deadline - self.loop.clock.monotonic() + TOOL_GRACE_S
        try:
            async with asyncio.timeout(left):
                return await self._once(call)
        except TimeoutError:
            return error_result("stopped: the time target was reached")

    async def _once(self, call: ToolCall) -> ToolResult:
        """Run a call, unless it is the same as one before."""
        loop, result = self.loop, None
        if not loop.repeats.begin(call):
            self.refused += 1
            return await loop.refuse(call, REPEATED)
        try:
            result = await loop.toolbox.run(call)
        finally:
            loop.repeats.end(call, result)
        return result

    def _on_arguments(self, name: str, piece: str) -> None:
        """Release the answer while it is being written, once there is evidence to cite."""
        if name != FINAL_ANSWER.name or not self.loop.session.has_evidence:
            return
        if self._argument is None:
            self.writing = self.loop._writing()
            self._argument = AnswerArgument(self.writing.feed)
        self._argument.take(piece)
        self._check()

    def _check(self) -> None:
        """Check what has come while more is coming."""
        idle = self._checking is None or self._checking.done()
        if self.group and self.writing and self.writing.waiting and idle:
            self._checking = self.group.create_task(self.writing.drain(), name="check the answer")


def _unwrapped(task: asyncio.Task[T] | asyncio.Future[T]) -> T:
    """A task's result; the one error inside a task group's bundle is raised as itself."""
    try:
        return task.result()
    except BaseExceptionGroup as bundle:
        errors = [e for e in bundle.exceptions if isinstance(e, NexiError)]
        if len(errors) == 1 and len(bundle.exceptions) == 1:
            raise errors[0] from None
        raise


def flattened(messages: Sequence[Message]) -> list[Message]:
    """The conversation without tool calls, for a request that offers no tools."""
    flat: list[Message] = []
    for message in messages:
        if message.role == "tool":
            flat.append(Message("user", f"Tool result:\n{message.content}"))
        elif message.content:
            flat.append(Message(message.role, message.content))
    return flat


def shrunk(messages: Sequence[Message], counter: TokenCounter, limit: int) -> list[Message]:
    """The conversation with its longest parts cut until it fits; the first and last message stay whole."""
    result = list(messages)
    while not counter.at_most(result, limit) and len(result) > 2:
        at = max(range(1, len(result) - 1), key=lambda i: len(result[i].content))
        content = result[at].content
        if len(content) < 200:
            del result[at]
        else:
            result[at] = Message(result[at].role, content[: len(content) // 2])
    return result
