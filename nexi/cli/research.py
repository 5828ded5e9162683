"""`nexi research` and `nexi --deep`: a research run from its plan to its report.

At a terminal it asks what a question means before it is researched, where it leaves that open, and lets the user approve or
edit the plan before money is spent. In a pipe nothing is asked, and the report is about each reading.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from nexi.answers.answered import narrow_question
from nexi.cli import flags as shared
from nexi.cli import runner
from nexi.cli.completion import complete_space
from nexi.cli.delivery import chosen_vault, deliver_report, output_path
from nexi.cli.exits import EXIT_CANCELLED, Interrupts, exit_unless_answered
from nexi.cli.flags import AskFlags, parse_flags
from nexi.errors import ResearchError
from nexi.events import AgendaProposed, Event
from nexi.output import clean_line, is_tty, print_note, print_warning, write

if TYPE_CHECKING:
    from nexi.app import Run, RunRequest
    from nexi.app.questions import OpenQuestion
    from nexi.config import Config

ALL = "0"  # the number of all readings of a question
PROMPT = "Continue? [Enter], (e)dit, (q)uit, + TASK to add, - N to remove, N TASK to change: "
MAX_LINE_BYTES = 4096  # the longest line that terminals pass on

_ADD, _DROP, _CHANGE = re.compile(r"\+\s*(\S.*)"), re.compile(r"-\s*(\d+)"), re.compile(r"(\d+)[.)]?\s+(\S.*)")


@click.command("research", cls=shared.SavingCommand, context_settings=shared.HELP)
@click.argument("words", nargs=-1, metavar='"QUESTION"')
@shared.research_options
@click.option("-m", "--model", help="Model to use; `extractive` is built in.")
@shared.flag("-c", "--continue", "go_on", help="Continue the last conversation.")
@shared.filter_options
@click.option("--time-target", "--max-timeout", type=shared.MORE_THAN_ZERO, metavar="S", help="Aim to finish within S seconds.")
@click.option("--max-len", "max_output_tokens", type=shared.COUNT, metavar="N", help="Maximum length of the report in tokens.")
@shared.cost_options
@shared.source_options
@click.option("--space", metavar="NAME", shell_complete=complete_space, help="Research in this space.")
@shared.flag("--strict", help="Omit sentences that are not found in the pages, or that a judge rejects.")
@shared.screen_options
@shared.json_option
@click.option(
    "-o", "--output", metavar="FILE", help="Write the report to a new FILE instead of the default location; - prints it only."
)
@shared.save_option
@shared.flag("--copy", help="Copy the report to the clipboard.")
def _research_command(words: tuple[str, ...], **options: Any) -> None:
    """Research a question in rounds and write a report.

    \b
      nexi research "how do heat pumps compare with gas boilers in old houses"
      nexi research --depth 3 --plan "the state of solid-state batteries"
    """
    run_research(" ".join(words), parse_flags(options))


def run_research(question: str, flags: AskFlags) -> None:
    from nexi.app.research_state import ResearchState

    whole_question = runner.read_question(question)
    if whole_question is None:
        raise click.UsageError('Missing question: nexi research "your question"')
    config = runner.load_terminal_config(flags.output)
    output_path(flags.output)  # fail before anything is spent
    vault = chosen_vault(config, flags.output)
    # whoever is at the terminal may be asked back, and approves the plan before money is spent
    has_person = not flags.yes and is_tty(sys.stdin) and is_tty(sys.stderr)
    if has_person and not flags.go_on:
        whole_question = _ask_back(config, runner.run_request(flags, whole_question, "research"))
    screen = runner.open_screen(flags.output, research=ResearchState())

    async def settle_plan(run: Run, event: Event, keys: runner.KeyEcho) -> None:
        """Prompt for the plan that waits at the run's gate, and approve or refuse it there."""
        if not isinstance(event, AgendaProposed):
            return
        with screen.pause_drawing(), keys.show_keys():
            tasks = await _ask_for_tasks(run, event)
        if run.gate and run.gate.proposed and tasks:
            run.gate.settle(tasks)
        elif run.gate and run.gate.proposed:
            run.gate.refuse()

    with Interrupts(as_json=flags.output.as_json) as interrupts:
        request = replace(runner.run_request(flags, whole_question, "research"), holds_plan=flags.plan and has_person)
        runner.warn_without_model(config, request.model)
        on_event = settle_plan if request.holds_plan else None
        result = runner.run_with_nexi(lambda nexi: runner.follow_run(nexi.run(request), screen, interrupts, on_event), config)
        deliver_report(result, flags.output, screen, vault=vault)
    exit_unless_answered(result)


def _ask_back(config: Config, request: RunRequest) -> str:
    """The question as the user means it; unchanged where it is clear, or where the user wants all that it may mean."""
    open_question = runner.run_with_nexi(lambda nexi: nexi.find_open_question(request), config)
    if not open_question:
        return request.question
    print_note(describe_choices(open_question), None)
    write("> ", sys.stderr)
    try:
        reply = sys.stdin.readline()
    except KeyboardInterrupt:
        raise SystemExit(EXIT_CANCELLED) from None
    if not reply:
        raise click.Abort
    return narrow_by_reply(request.question, open_question, reply.strip())


def describe_choices(open_question: OpenQuestion) -> str:
    """The question back, with the number of each reading."""
    if open_question.kind:
        return f"Which {open_question.kind} do you mean? Type its name, or {ALL} to research the question as it is."
    choices = [f"{number} {clean_line(reading)}" for number, reading in enumerate(open_question.readings, 1)]
    return f"Which one do you mean? Type its number: {' · '.join((*choices, f'{ALL} all of them'))}"


def narrow_by_reply(question: str, open_question: OpenQuestion, reply: str) -> str:
    """The question about the reading of that number, or about what was typed; unchanged for all of them."""
    readings = open_question.readings
    if reply.isdecimal() and 0 < int(reply) <= len(readings):
        return narrow_question(question, readings[int(reply) - 1])
    return question if reply in ("", ALL) or reply.isdecimal() else narrow_question(question, reply)


async def _ask_for_tasks(run: Run, proposal: AgendaProposed) -> tuple[str, ...]:
    """The tasks as the user wants them; none to cancel."""
    import asyncio

    from nexi.app.research_state import edit_tasks

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
    from nexi.app.research_state import MAX_TASKS

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
    """Read a line while the run goes on; None at the end of input, or when the run is stopped, by Ctrl-C or `nexi stop`."""
    import asyncio

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
