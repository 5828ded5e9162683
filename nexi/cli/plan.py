"""A person's word on the plan of a deep run, at a terminal, before money is spent.

Above sits whoever follows the run; below is its gate. The line is read beside the run, so that Ctrl-C and a stop from elsewhere
end the waiting too.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from nexi.errors import ResearchError

if TYPE_CHECKING:
    from nexi.app import Run
    from nexi.cli.keys import KeyEcho
    from nexi.events import AgendaProposed
    from nexi.output import Screen

PROMPT = "Go on? [Enter], (e)dit, (q)uit, + TASK adds, - N drops, N TASK changes: "
MAX_LINE_BYTES = 4096  # of one line, as terminals have it

_ADD, _DROP, _CHANGE = re.compile(r"\+\s*(\S.*)"), re.compile(r"-\s*(\d+)"), re.compile(r"(\d+)[.)]?\s+(\S.*)")


async def settle_plan(run: Run, proposed: AgendaProposed, screen: Screen, keys: KeyEcho) -> None:
    """Ask about the plan that waits at the run's gate, and say there what came of it."""
    with screen.pause_drawing(), keys.show_keys():
        tasks = await _ask_for_tasks(run, proposed)
    if run.gate and run.gate.proposed and tasks:
        run.gate.settle(tasks)
    elif run.gate and run.gate.proposed:
        run.gate.refuse()


async def _ask_for_tasks(run: Run, proposed: AgendaProposed) -> tuple[str, ...]:
    """The tasks as a person wants them; none to research nothing."""
    from nexi.output import print_note, print_warning, write

    tasks = proposed.tasks
    if proposed.estimate:
        print_note(f"Depth {proposed.complexity}: {proposed.estimate}.")
    while True:
        for number, task in enumerate(tasks, 1):
            print_note(f"  {number}. {task}")
        write(PROMPT, sys.stderr)
        line = await _read_line(run)
        if line is None or line in ("q", "quit", "n", "no"):
            return ()
        if line in ("", "y", "yes"):
            return tasks
        try:
            tasks = await _apply_change(run, tasks, line)
        except ResearchError as error:
            print_warning(f"{error}. {error.fix}")


async def _apply_change(run: Run, tasks: tuple[str, ...], line: str) -> tuple[str, ...]:
    """The tasks after one word from the person. Raises ResearchError for tasks that cannot be researched."""
    from nexi.research.gate import edit_agenda
    from nexi.research.planner import Agenda

    wanted = await asyncio.to_thread(_edit_in_editor, tasks) if line in ("e", "edit") else _edit_inline(tasks, line)
    return edit_agenda(Agenda(tasks, 1), wanted).tasks


def _edit_inline(tasks: Sequence[str], line: str) -> list[str]:
    """The tasks after `+ TASK`, `- N` or `N TASK`. Raises ResearchError for any other word."""
    changed = list(tasks)
    if added := _ADD.fullmatch(line):
        return [*changed, added[1]]
    dropped, told = _DROP.fullmatch(line), _CHANGE.fullmatch(line)
    number = int((dropped or told or ("", "0"))[1])
    if not 1 <= number <= len(changed):
        fix = f"the tasks are numbered 1 to {len(changed)}" if dropped or told else "press Enter, e or q, or change a task"
        raise ResearchError(f"{line[:60]!r} changes nothing", fix=fix, code="bad_plan")
    changed[number - 1 : number] = [told[2]] if told else []
    return changed


def _edit_in_editor(tasks: Sequence[str]) -> list[str]:
    from nexi.output import print_warning
    from nexi.research.state import MAX_TASKS

    head = f"# One task a line, at most {MAX_TASKS}. Lines that begin with # are left out.\n"
    try:
        text = click.edit(head + "\n".join(tasks) + "\n", extension=".txt")
    except click.ClickException as error:
        raise ResearchError("the plan was not edited", cause=error.message, fix="set EDITOR to one that is there") from error
    told = [line.strip() for line in (text or "").splitlines() if line.strip() and not line.startswith("#")]
    if not told:
        print_warning("the plan was left as it was")
    return told or list(tasks)


async def _read_line(run: Run) -> str | None:
    """A line from the keyboard; None at the end of input, or when the run was told to stop."""
    loop, fd = asyncio.get_running_loop(), sys.stdin.fileno()
    typed: asyncio.Future[bytes] = loop.create_future()
    stopping = asyncio.ensure_future(run.stopping.wait())
    first: tuple[asyncio.Future[Any], ...] = (typed, stopping)
    loop.add_reader(fd, lambda: None if typed.done() else typed.set_result(os.read(fd, MAX_LINE_BYTES)))
    try:
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(fd)
        stopping.cancel()
    if not typed.done() or not typed.result():
        return None
    return typed.result().decode("utf-8", "replace").strip()
