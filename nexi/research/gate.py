"""The gate between a plan and its costs: a held run waits here until the user has settled its tasks.

Doors above show the proposed plan and pass on the decision; the orchestrator awaits it like any other approval. Nothing here
knows how the user is asked or how long they may take. The costs are a range, because the web decides how much is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import ResearchError
from nexi.research.planner import MAX_TASK_CHARS, Agenda
from nexi.research.state import EXTRA_ROUNDS, FIRST_RESEARCHERS, MAX_TASKS, TARGET_ROUNDS

CALLS_PER_RESEARCHER = (4, 9)  # at least and at most, as its phases allow
PROMPT_TOKENS_PER_CALL = (3_000, 14_000)  # on average
REPLY_TOKENS_PER_CALL = (150, 900)
REPORT_TOKENS = (1_500, 6_000)


class PlanGate:
    """The gate of one run. `proposed` is the plan that waits for a decision, None while there is none."""

    def __init__(self) -> None:
        self.proposed: Agenda | None = None
        self._decision: asyncio.Future[Agenda | None] | None = None

    async def __call__(self, agenda: Agenda) -> Agenda | None:
        """Wait for the decision on a plan: the agenda to research, or None to research nothing."""
        self._decision = asyncio.get_running_loop().create_future()
        self.proposed = agenda
        try:
            return await self._decision
        finally:
            self.proposed = None

    def settle(self, tasks: Sequence[str] | None = None) -> Agenda:
        """Accept the plan, with these tasks instead of the proposed ones if some are given. Raises ResearchError."""
        agenda = self._require_proposal()
        settled = agenda if tasks is None else edit_agenda(agenda, tasks)
        self._resolve(settled)
        return settled

    def refuse(self) -> None:
        """Reject the plan. Raises ResearchError."""
        self._require_proposal()
        self._resolve(None)

    def _require_proposal(self) -> Agenda:
        if self.proposed is None:
            cause = "it is not made yet, or it was settled already"
            fix = "follow the run's events: agenda_proposed says when it waits"
            raise ResearchError("no plan waits here", cause=cause, fix=fix, code="no_plan")
        return self.proposed

    def _resolve(self, agenda: Agenda | None) -> None:
        self.proposed = None
        if self._decision and not self._decision.done():
            self._decision.set_result(agenda)


def edit_agenda(agenda: Agenda, tasks: Sequence[str]) -> Agenda:
    """Replace the tasks of a plan by the user's. Raises ResearchError if they cannot be used."""
    edited = tuple(dict.fromkeys(" ".join(task.split()) for task in tasks if task.strip()))
    if not 1 <= len(edited) <= MAX_TASKS:
        raise _bad_plan(f"it has {len(edited)} tasks, and a plan has 1 to {MAX_TASKS}")
    if longest := max((len(task) for task in edited if len(task) > MAX_TASK_CHARS), default=0):
        raise _bad_plan(f"a task has {longest:,} characters, and at most {MAX_TASK_CHARS:,} are taken")
    return agenda if edited == agenda.tasks else replace(agenda, tasks=edited, by="user")


def _bad_plan(cause: str) -> ResearchError:
    return ResearchError("the plan cannot be used", cause=cause, fix="name other tasks, one question each", code="bad_plan")


class CostEstimate(Struct, frozen=True):
    """Low and high: model calls, tokens, and US dollars where prices are known."""

    calls: tuple[int, int]
    tokens: tuple[int, int]
    cost: tuple[float, float] | None = None

    def describe(self) -> str:
        tokens = " to ".join(f"{n / 1e6:.1f} M" if n >= 1_000_000 else f"{n // 1000} k" for n in self.tokens)
        text = f"about {self.calls[0]} to {self.calls[1]} model calls and {tokens} tokens"
        return text if self.cost is None else f"{text}, ${self.cost[0]:.2f} to ${self.cost[1]:.2f}"


def estimate_cost(complexity: int, tasks: int, window: int, price: tuple[float, float] | None = None) -> CostEstimate:
    """Estimate an agenda of this many tasks; `price` is in dollars per million tokens, of input and output."""
    later = TARGET_ROUNDS[complexity] + EXTRA_ROUNDS - 1
    researchers = (tasks, tasks + later * max(1, FIRST_RESEARCHERS[complexity] // 2))
    calls = tuple(r * c + n + 1 for r, c, n in zip(researchers, CALLS_PER_RESEARCHER, (1, later + 1), strict=True))
    prompts = tuple(c * min(p, window) for c, p in zip(calls, PROMPT_TOKENS_PER_CALL, strict=True))
    replies = tuple(c * r + t for c, r, t in zip(calls, REPLY_TOKENS_PER_CALL, REPORT_TOKENS, strict=True))
    cost = None
    if price is not None:
        low, high = ((p * price[0] + r * price[1]) / 1e6 for p, r in zip(prompts, replies, strict=True))
        cost = (low, high)
    return CostEstimate((calls[0], calls[1]), (prompts[0] + replies[0], prompts[1] + replies[1]), cost)
