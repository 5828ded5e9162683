"""`nexi research` and `nexi --deep`: a research run from its plan to its report.

At a terminal it asks what a question means before it is researched, where it leaves that open. In a pipe nothing is asked, and
the report is about each reading.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from nexi.answers.answered import narrow_question
from nexi.cli import options as shared
from nexi.cli import runner
from nexi.cli.completion import complete_space
from nexi.cli.delivery import chosen_vault, deliver_report, output_path
from nexi.cli.exits import EXIT_CANCELLED, Interrupts, exit_unless_answered
from nexi.cli.flags import AskFlags, parse_flags
from nexi.events import AgendaProposed, Event
from nexi.output import clean_line, is_tty, print_note, write

if TYPE_CHECKING:
    from nexi.app import Run, RunRequest
    from nexi.app.questions import OpenQuestion
    from nexi.cli.keys import KeyEcho
    from nexi.config import Config

ALL = "0"  # the number of all readings of a question


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
    from nexi.cli.plan import settle_plan

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
    screen = runner.research_screen(flags.output, ResearchState())

    async def prompt(run: Run, event: Event, keys: KeyEcho) -> None:
        if isinstance(event, AgendaProposed):
            await settle_plan(run, event, screen, keys)

    with Interrupts(as_json=flags.output.as_json) as interrupts:
        request = replace(runner.run_request(flags, whole_question, "research"), holds_plan=flags.plan and has_person)
        runner.warn_without_model(config, request.model)
        on_event = prompt if request.holds_plan else None
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
