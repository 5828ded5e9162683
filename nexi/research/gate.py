"""The gate between a plan and its costs: a held run waits here until the user has settled its tasks.

Doors above show the proposed plan and pass on the decision; the orchestrator awaits it like any other approval. Nothing here
knows how the user is asked or how long they may take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from nexi.errors import ResearchError
from nexi.research.planner import MAX_TASK_CHARS, Agenda
from nexi.research.state import MAX_TASKS


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
            raise ResearchError(
                "no plan waits here",
                cause="it is not made yet, or it was settled already",
                fix="follow the run's events: agenda_proposed says when it waits",
                code="no_plan",
            )
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
