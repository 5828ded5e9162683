"""The state of a research run as its facts tell it, for doors that show it, and changes to its tasks."""

from __future__ import annotations

from collections.abc import Sequence

from nexi.research.planner import Agenda, edit_agenda
from nexi.research.state import MAX_TASKS, UNITS_PER_RESEARCHER, Researcher, ResearchState, fold, reduce

__all__ = ["MAX_TASKS", "UNITS_PER_RESEARCHER", "ResearchState", "Researcher", "edit_tasks", "fold", "reduce"]


def edit_tasks(tasks: tuple[str, ...], new_tasks: Sequence[str]) -> tuple[str, ...]:
    """The tasks after a change by the user. Raises ResearchError for tasks that cannot be researched."""
    return edit_agenda(Agenda(tasks, 1), new_tasks).tasks
