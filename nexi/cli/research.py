"""`nexi research` and `nexi --deep`: a deep question from its plan to the file of its report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nexi.cli.exits import Interrupts, failing_politely
from nexi.cli.filters import narrowing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from nexi.app import Run, RunResult
    from nexi.cli.keys import Keys
    from nexi.config import Config
    from nexi.events import Event
    from nexi.output import Screen
    from nexi.research.state import ResearchState

UNUSED = {
    "system": None,
    "query_text": None,
    "template": None,
    "max_iter": None,
    "effort": None,
    "usage": False,
    "no_stream": False,
}


@click.command("research", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("words", nargs=-1, metavar='"QUESTION"')
@click.option("--depth", type=click.IntRange(1, 3), metavar="N", help="1 to 3; without it the coordinator chooses.")
@click.option("--plan", is_flag=True, help="Show the plan first, and let me change it.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@click.option("-m", "--model", help="The model; `extractive` needs none.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Let the coordinator read the last conversation.")
@narrowing
@click.option(
    "--time-target",
    "--max-timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="Write the report after about S seconds.",
)
@click.option("--max-len", type=click.IntRange(1), metavar="N", help="At most N tokens of report.")
@click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Spend at most this much.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Use at most N tokens in all.")
@click.option("-f", "--file", "files", multiple=True, metavar="PATH", help="Ask about this file, folder or URL, too.")
@click.option("--local", is_flag=True, help="Ask only what nexi knows already; nothing goes over a network.")
@click.option("--strict", is_flag=True, help="Leave out sentences that the pages do not support.")
@click.option("-v", "--verbose", is_flag=True, help="Show every model call, tool call and token count.")
@click.option("--plain", is_flag=True, help="No colours, no emoji.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write the report to a new FILE instead of the usual place; - is stdout only."
)
@click.option("--copy", is_flag=True, help="Put the report on the clipboard.")
def research(words: tuple[str, ...], **options: Any) -> None:
    """Research a deep question in rounds and write a report.

    \b
      nexi research "how do heat pumps compare with gas boilers in old houses"
      nexi research --depth 3 --plan "the state of solid-state batteries"
    """
    with failing_politely(as_json=options["as_json"]):
        run_research(" ".join(words), {**UNUSED, "form": None, **options})


def run_research(question: str, options: dict[str, Any]) -> None:
    """One deep question, one report."""
    import asyncio

    from nexi.cli.ask import load
    from nexi.cli.stdin import read_question, with_piped_text
    from nexi.output import is_tty
    from nexi.research.state import ResearchState

    if question:
        question = with_piped_text(question)
    elif not is_tty(sys.stdin):
        question = read_question()
    else:
        raise click.UsageError('What shall be researched? nexi research "your question"')
    config = load(options)
    with Interrupts(as_json=options["as_json"]) as interrupts:
        screen = screen_for(options, ResearchState())
        result = asyncio.run(_researched(config, question, options, interrupts, screen))
        deliver(result, config, options, screen)


async def _researched(
    config: Config, question: str, options: dict[str, Any], interrupts: Interrupts, screen: Screen
) -> RunResult:
    from dataclasses import replace

    from nexi.app import Nexi
    from nexi.cli.ask import follow, run_request, warn_without_model

    request = replace(run_request(question, options, "research"), holds_plan=_asks(options))
    warn_without_model(config, request.model)
    async with Nexi(config) as nexi:
        return await follow(nexi.run(request), screen, interrupts, _settling(screen) if request.holds_plan else None)


def screen_for(options: dict[str, Any], state: ResearchState) -> Screen:
    import time

    from nexi.output import Screen
    from nexi.output.panel import panel_for

    verbose, quiet = options["verbose"], options["as_json"]
    panel = panel_for(verbose, quiet, state, time.monotonic)
    return Screen(verbose=verbose, quiet=quiet, stream=not options.get("no_stream"), usage=True, progress=panel)


def deliver(result: RunResult, config: Config, options: dict[str, Any], screen: Screen) -> None:
    """The report on stdout and in its file; where that went is said on stderr."""
    from nexi.cli.ask import model_of
    from nexi.cli.delivery import copy_answer, file_of
    from nexi.output import answer_json, print_json, print_success

    file = file_of(options)
    path = _save(result, file, options)
    if options["as_json"]:
        form = answer_json(result, question_of(result), model_of(result))
        print_json({**form, "report": str(path)} if path else form)
    else:
        screen.finish(result)
    if path:
        print_success(f"The report is in {path}.")
    if options["copy"]:
        copy_answer(result)


def question_of(result: RunResult) -> str:
    from nexi.events import RunStarted

    return next((f.query for f in result.facts if isinstance(f, RunStarted)), "")


def _save(result: RunResult, file: Path | None, options: dict[str, Any]) -> Path | None:
    from nexi.app.clock import SystemClock
    from nexi.app.report import report_text, save_report
    from nexi.errors import StoreError
    from nexi.files import store_error
    from nexi.output import print_warning

    today = SystemClock().now().date().isoformat()
    if options.get("output") == "-":
        return None
    if file is not None:
        text, linted = report_text(result, today)
        try:
            file.write_text(text, "utf-8")
        except OSError as error:
            raise store_error("Could not save the report", file, error) from error
        saved, notes = file, linted.notes
    else:
        try:
            kept = save_report(result, Path.cwd(), today)
        except StoreError as error:
            print_warning(f"{error}. {error.fix} The run keeps it: nexi --show {result.id}")
            return None
        saved, notes = kept.path, kept.notes
    for note in notes:
        print_warning(f"in the report, {note}")
    return saved


def _asks(options: dict[str, Any]) -> bool:
    """Whether a person stands between the plan and the money: with --plan, at a terminal."""
    from nexi.output import is_tty

    return bool(options["plan"] and not options["yes"] and is_tty(sys.stdin) and is_tty(sys.stderr))


def _settling(screen: Screen) -> Callable[[Run, Event, Keys], Awaitable[None]]:
    async def settling(run: Run, event: Event, keys: Keys) -> None:
        from nexi.cli.plan import settle
        from nexi.events import AgendaProposed

        if isinstance(event, AgendaProposed):
            await settle(run, event, screen, keys)

    return settling
