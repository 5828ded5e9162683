"""Lets the user approve or edit the plan of a research run at a terminal, before money is spent.

The line is read while the run goes on, so that Ctrl-C and `nexi stop` end the prompt too.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from nexi.app import Run
from nexi.app.research_state import MAX_TASKS, edit_tasks
from nexi.cli.keys import KeyEcho
from nexi.errors import ResearchError
from nexi.events import AgendaProposed
from nexi.output import Screen, print_note, print_warning, write

PROMPT = "Continue? [Enter], (e)dit, (q)uit, + TASK to add, - N to remove, N TASK to change: "
MAX_LINE_BYTES = 4096  # the longest line that terminals pass on

_ADD, _DROP, _CHANGE = re.compile(r"\+\s*(\S.*)"), re.compile(r"-\s*(\d+)"), re.compile(r"(\d+)[.)]?\s+(\S.*)")


async def settle_plan(run: Run, proposal: AgendaProposed, screen: Screen, keys: KeyEcho) -> None:
    """Prompt for the plan that waits at the run's gate, and approve or refuse it there."""
    with screen.pause_drawing(), keys.show_keys():
        tasks = await _ask_for_tasks(run, proposal)
    if run.gate and run.gate.proposed and tasks:
        run.gate.settle(tasks)
    elif run.gate and run.gate.proposed:
        run.gate.refuse()


async def _ask_for_tasks(run: Run, proposal: AgendaProposed) -> tuple[str, ...]:
    """The tasks as the user wants them; none to cancel."""
    tasks = proposal.tasks
    if proposal.estimate:
        print_note(f"Depth {proposal.complexity}: {proposal.estimate}.")
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
            is_edit = line in ("e", "edit")
            new_tasks = await asyncio.to_thread(_edit_in_editor, tasks) if is_edit else _edit_inline(tasks, line)
            tasks = edit_tasks(tasks, new_tasks)
        except ResearchError as error:
            print_warning(f"{error}. {error.fix}")


def _edit_inline(tasks: Sequence[str], line: str) -> list[str]:
    """Apply `+ TASK`, `- N` or `N TASK`. Raises ResearchError for anything else."""
    new_tasks = list(tasks)
    if addition := _ADD.fullmatch(line):
        return [*new_tasks, addition[1]]
    removal, replacement = _DROP.fullmatch(line), _CHANGE.fullmatch(line)
    number = int((removal or replacement or ("", "0"))[1])
    if not 1 <= number <= len(new_tasks):
        fix = (
            f"the tasks are numbered 1 to {len(new_tasks)}" if removal or replacement else "press Enter, e or q, or edit a task"
        )
        raise ResearchError(f"{line[:60]!r} is not a change", fix=fix, code="bad_plan")
    new_tasks[number - 1 : number] = [replacement[2]] if replacement else []
    return new_tasks


def _edit_in_editor(tasks: Sequence[str]) -> list[str]:
    head = f"# One task per line, at most {MAX_TASKS}. Lines starting with # are ignored.\n"
    try:
        text = click.edit(head + "\n".join(tasks) + "\n", extension=".txt")
    except click.ClickException as error:
        raise ResearchError("the plan was not edited", cause=error.message, fix="set EDITOR to an installed editor") from error
    new_tasks = [line.strip() for line in (text or "").splitlines() if line.strip() and not line.startswith("#")]
    if not new_tasks:
        print_warning("the plan was not changed")
    return new_tasks or list(tasks)


async def _read_line(run: Run) -> str | None:
    """Read a line; None at the end of input, or when the run is stopped."""
    loop, fd = asyncio.get_running_loop(), sys.stdin.fileno()
    line: asyncio.Future[bytes] = loop.create_future()
    stopping = asyncio.ensure_future(run.stopping.wait())
    first: tuple[asyncio.Future[Any], ...] = (line, stopping)
    loop.add_reader(fd, lambda: None if line.done() else line.set_result(os.read(fd, MAX_LINE_BYTES)))
    try:
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(fd)
        stopping.cancel()
    if not line.done() or not line.result():
        return None
    return line.result().decode("utf-8", "replace").strip()
