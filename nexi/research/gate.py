"""The gate between a plan and the money: a run that is held waits here until somebody has settled its tasks.

Doors above look at what is proposed and say the word; the orchestrator awaits it like any other approval. Nothing here knows
who the person is, how they are asked, or how long they may take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from nexi.errors import ResearchError
from nexi.research.planner import MAX_TASK_CHARS, Agenda
from nexi.research.state import MOST_TASKS


class PlanGate:
    """One run's gate. `proposed` is the plan that waits, None before there is one and after it was settled."""

    def __init__(self) -> None:
        self.proposed: Agenda | None = None
        self._settled: asyncio.Future[Agenda | None] | None = None

    async def __call__(self, agenda: Agenda) -> Agenda | None:
        """Wait for a word on the plan: the tasks to research, or None to research nothing."""
        self._settled = asyncio.get_running_loop().create_future()
        self.proposed = agenda
        try:
            return await self._settled
        finally:
            self.proposed = None

    def settle(self, tasks: Sequence[str] | None = None) -> Agenda:
        """Go on, with these tasks instead of the proposed ones where some are given. Raises ResearchError."""
        agenda = self._waiting()
        settled = agenda if tasks is None else edited(agenda, tasks)
        self._answer(settled)
        return settled

    def refuse(self) -> None:
        """Research nothing. Raises ResearchError."""
        self._waiting()
        self._answer(None)

    def _waiting(self) -> Agenda:
        if self.proposed is None:
            raise ResearchError(
                "no plan waits here",
                cause="it is not made yet, or it was settled already",
                fix="follow the run's events: agenda_proposed says when it waits",
                code="no_plan",
            )
        return self.proposed

    def _answer(self, word: Agenda | None) -> None:
        self.proposed = None
        if self._settled and not self._settled.done():
            self._settled.set_result(word)


def edited(agenda: Agenda, tasks: Sequence[str]) -> Agenda:
    """The plan with a person's tasks. Raises ResearchError where they cannot be researched."""
    told = tuple(dict.fromkeys(" ".join(task.split()) for task in tasks if task.strip()))
    if not 1 <= len(told) <= MOST_TASKS:
        raise _bad_plan(f"it has {len(told)} tasks, and a plan has 1 to {MOST_TASKS}")
    if longest := max((len(task) for task in told if len(task) > MAX_TASK_CHARS), default=0):
        raise _bad_plan(f"a task has {longest:,} characters, and at most {MAX_TASK_CHARS:,} are taken")
    return agenda if told == agenda.tasks else replace(agenda, tasks=told, by="user")


def _bad_plan(cause: str) -> ResearchError:
    return ResearchError("the plan cannot be used", cause=cause, fix="name other tasks, one question each", code="bad_plan")
