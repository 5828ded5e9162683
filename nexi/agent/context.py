"""What the steps of one agent's run share, passed to each of them: conversation, model, budget, clock and events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from nexi.agent.repeats import RepeatedCalls
from nexi.budget import Meter
from nexi.compaction import CompactionSettings
from nexi.events import LimitApplied, Warned
from nexi.model import MeteredLLM
from nexi.ports import Clock, Emit
from nexi.runs.session import Session
from nexi.tasks import run_unless_stopped
from nexi.text.scope import plausible_day
from nexi.token_counter import TokenCounter
from nexi.types import Answered, Approach, Message, PageView, Reply, StopReason, ToolResult

T = TypeVar("T")
# whether pages answer a question, the last argument being what was asked before it
RatePages: TypeAlias = Callable[[str, Sequence[PageView], str], Answered]
ChoosePassages: TypeAlias = Callable[[str, Sequence[PageView]], str]  # what of the pages a small model is given; "" for nothing
AddsAnswer: TypeAlias = Callable[[str, str, str, str], bool]  # whether a text adds to its question what a quotation says

GRACE_S = 15.0  # a call in flight at the time target may still finish: it is paid for already
MAX_WHOLE_CHARS = 300_000  # of a page that is read whole without a model
MAX_CALL_TIMEOUTS = 5  # for a whole call without a time target, in timeouts of a silent model
# Limits that depend on neither clock nor budget, so a replay recomputes them.
REPRODUCIBLE_LIMITS = (StopReason.MAX_ITERATIONS, StopReason.CONTEXT_LIMIT, StopReason.REPEATED)


class AgentSettings(Struct, frozen=True):
    """The settings that an agent reads. No key and no address is among them."""

    max_output_tokens: int
    compaction: CompactionSettings
    prompts_folder: Path | None = None
    temperature: float | None = None
    final_answer_s: float = 30.0  # for the call that writes the last answer, where there is no time target
    approach: Approach = "tools"
    archives_results: bool = False  # of tools, before a summary is asked for: a small model summarises slowly and badly


@dataclass
class RunContext:
    """The state of one run that its steps have in common."""

    question: str
    llm: MeteredLLM  # replaced, as the window in `settings` is, when the server turns out to have a smaller context window
    session: Session
    meter: Meter
    emit: Emit
    clock: Clock
    counter: TokenCounter
    settings: AgentSettings
    stop: asyncio.Event
    rate_pages: RatePages | None = None
    choose_passages: ChoosePassages | None = None
    adds_answer: AddsAnswer | None = None
    has_own_files: bool = False  # that came with the question, so that "it" and "this report" are named
    repeats: RepeatedCalls = field(default_factory=RepeatedCalls)
    warnings: list[str] = field(default_factory=list)

    async def warn(self, code: str, message: str) -> None:
        """Log a warning and keep it for the answer."""
        self.warnings.append(message)
        await self.emit(Warned(code, message))

    def remember_calls(self, reply: Reply, results: Sequence[ToolResult]) -> None:
        """Add a reply's tool calls and their results to the conversation."""
        if not reply.tool_calls:
            return
        self.session.messages.append(Message("assistant", reply.text, reply.tool_calls))
        for call, result in zip(reply.tool_calls, results, strict=True):
            self.session.messages.append(Message("tool", result.text, tool_call_id=call.id, result=result))

    def read_pages(self) -> list[PageView]:
        """Every numbered page whose text the run has; of a long one, what speaks to the question."""
        session, views, today = self.session, [], self.clock.now().date().isoformat()
        for source in session.book.sources:
            if page := session.find_page(source.url):
                text = page.text
                if len(text) > MAX_WHOLE_CHARS:
                    text = session.excerpt(text, self.question, MAX_WHOLE_CHARS // 2, session.found_passages(page))
                day = plausible_day(source.imprint)
                views.append(PageView(source.url, source.number, source.title, text, day=day, read_on=today))
        return views

    def shown_pages(self) -> list[PageView]:
        """Every numbered page as the model was given it last."""
        values = (message.result.value for message in self.session.messages if message.result)
        views = (view for value in values if isinstance(value, tuple) for view in value if isinstance(view, PageView))
        return list({view.number: view for view in views if view.number > 0 and view.text and not view.error}.values())

    # limits

    @property
    def reply_tokens(self) -> int:
        """Tokens of the window that are kept free for the reply."""
        return min(self.settings.max_output_tokens, self.llm.max_context // 4)

    def current_limit(self) -> StopReason | None:
        """Return the limit that forbids another turn. Recorded turns of a resumed run cost neither time nor money."""
        if self.stop.is_set():
            return StopReason.CANCELLED
        reason = self.meter.stop_reason(self.clock.monotonic())
        return None if self.llm.replay.is_catching_up and reason is not StopReason.MAX_ITERATIONS else reason

    async def apply_limit(self, place: str, reason: StopReason | None) -> StopReason | None:
        """Log the limit so that a replay, which has no clock, takes the same branch."""
        at = f"{place} {self.meter.iterations}"
        if self.llm.replay.is_replay_only:
            reason = self.llm.replay.next_limit(at) or (reason if reason in REPRODUCIBLE_LIMITS else None)
        if reason:
            await self.emit(LimitApplied(at, reason))
        return reason

    def can_call_model(self) -> bool:
        """Whether an optional model call is still allowed: the user has not stopped the run and no limit is reached."""
        return not self.stop.is_set() and self.meter.may_call(self.clock.monotonic())

    def call_deadline(self) -> float:
        """When a model call must end, whatever still trickles in."""
        if self.meter.deadline is None:
            return self.clock.monotonic() + MAX_CALL_TIMEOUTS * self.settings.final_answer_s
        return self.meter.deadline + self.meter.grace(GRACE_S)

    def final_deadline(self) -> float:
        """When the call that writes the last answer must end."""
        now, deadline = self.clock.monotonic(), self.meter.deadline
        if deadline is None:
            return now + max(GRACE_S * 2, self.settings.final_answer_s)
        return min(now + GRACE_S * 2, deadline + self.meter.grace(GRACE_S * 2, part=1.0))

    async def run_unless_cancelled(self, work: Coroutine[Any, Any, T]) -> T | StopReason:
        """Return the work's result, or CANCELLED as soon as the run is asked to stop."""
        return await run_unless_stopped(work, self.stop)
