"""A question on the command line: who asks for what, and one search from start to end."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from nexi.cli.exits import Interrupts
from nexi.cli.stdin import read_question, with_piped_text

if TYPE_CHECKING:
    from nexi.app import Run, RunOpening, RunRequest, RunResult
    from nexi.app.request import RunMode
    from nexi.cli.keys import Keys
    from nexi.config import Config
    from nexi.events import Event
    from nexi.output import Screen


def dispatch(ctx: click.Context, words: tuple[str, ...], options: dict[str, Any]) -> None:
    """The seeds' precedence: config commands, history commands, argument, --query-text, stdin, REPL."""
    if options["show_config"] or options["edit_config"]:
        from nexi.cli.settings import show_or_edit

        return show_or_edit(edit=options["edit_config"])
    if options["last"] or options["prev"] or options["show"] is not None or options["clear_history"]:
        from nexi.cli.history import history_command

        return history_command(options)
    from nexi.output import is_tty

    _refuse_mistyped_command(words)
    question = " ".join(words) or options["query_text"] or ""
    if question:
        question = with_piped_text(question)
    elif not is_tty(sys.stdin):
        question = read_question()
    elif not words:
        if options["files"]:
            raise click.UsageError('--file goes with a question: nexi -f notes.md "what did we decide"')
        from nexi.cli.repl import _interactive_mode

        return _interactive_mode(options)
    if options["deep"] or options["depth"] or options["plan"]:
        from nexi.cli.research import run_research
        from nexi.cli.templates import asked

        return run_research(asked(question, options), options)
    return _run_search_command(question, options)


def _refuse_mistyped_command(words: tuple[str, ...]) -> None:
    """One bare word that is nearly a subcommand is not searched for."""
    if len(words) != 1 or not words[0].isalpha():
        return
    from nexi.cli.guide import near_command

    if near := near_command(words[0]):
        raise click.UsageError(
            f"no such command: {words[0]}. Did you mean `nexi {near}`? "
            f"To ask about it, put a whole question in quotes, or: nexi -q {words[0]}"
        )


def _run_search_command(question: str, options: dict[str, Any]) -> None:
    """One question, one answer."""
    import asyncio

    from nexi.cli.delivery import copy_answer, file_of, print_references, wants_references, write_answer
    from nexi.cli.templates import asked
    from nexi.output import answer_json, print_json

    config = load(options)
    question = asked(question, options)
    file = file_of(options)
    screen = screen_for(options, streams=not file and not wants_references(options))
    with Interrupts(as_json=options["as_json"]) as interrupts:
        result = asyncio.run(_search(config, question, options, screen, interrupts))
        if file:
            write_answer(file, result, question, config, options)
            screen.sum_up(result)
        elif wants_references(options):
            print_references(result.answer.sources, options["form"])
            screen.sum_up(result)
        elif options["as_json"]:
            print_json(answer_json(result, question, model_of(result)))
        else:
            screen.finish(result)
        if options["copy"]:
            copy_answer(result)


def screen_for(options: dict[str, Any], *, streams: bool = True) -> Screen:
    from nexi.output import Screen

    return Screen(
        verbose=options["verbose"],
        quiet=options["as_json"],
        stream=streams and not options["no_stream"],
        usage=options["usage"],
    )


async def _search(config: Config, question: str, options: dict[str, Any], screen: Screen, interrupts: Interrupts) -> RunResult:
    from nexi.app import Nexi

    request = run_request(question, options)
    warn_without_model(config, request.model)
    async with Nexi(config) as nexi:
        return await follow(nexi.run(request), screen, interrupts)


async def follow(
    opening: RunOpening,
    screen: Screen,
    interrupts: Interrupts,
    asks: Callable[[Run, Event, Keys], Awaitable[None]] | None = None,
) -> RunResult:
    """Show a run to its end, or to the signal that ends it; `asks` may turn to the person after an event."""
    from nexi.cli.keys import unseen

    async with opening as run:
        with interrupts.heard_by(run.stop), unseen() as keys:
            try:
                async for event in run:
                    screen.show(event)
                    if asks:
                        await asks(run, event, keys)
            finally:
                screen.end()
        return run.result()


def run_request(question: str, options: dict[str, Any], mode: RunMode = "search") -> RunRequest:
    """The request that the flags of a question stand for."""
    from nexi.app import LAST_RUN, RunLimits, RunRequest
    from nexi.cli.filters import query_of
    from nexi.cli.templates import instructions

    return RunRequest(
        question,
        mode=mode,
        effort=options.get("effort") or "",
        limits=RunLimits(
            max_iterations=options.get("max_iter"),
            time_target=options["time_target"],
            max_output_tokens=options["max_len"],
            max_cost=options["max_cost"],
            max_tokens=options["max_tokens"],
        ),
        query=query_of("", options),
        model=options["model"] or "",
        scope="local" if options.get("local") else "both",
        system_prompt=instructions(options),
        attachments=tuple(options.get("files") or ()),
        continues=LAST_RUN if options.get("go_on") else "",
        depth=options.get("depth") or 0,
        strict=True if options.get("strict") else None,
        door="cli",
    )


def load(options: dict[str, Any]) -> Config:
    """The config for this terminal; from here on the screen is as both want it."""
    from nexi.config import load_config
    from nexi.output import print_warning, set_plain_mode

    set_plain_mode(options["plain"])
    config = load_config()
    set_plain_mode(options["plain"] or not config.color)
    for note in config.notes:
        print_warning(note)
    return config.override(stream=False) if options["no_stream"] else config


def model_of(result: RunResult) -> str:
    """The model that answered."""
    from nexi.events import RunStarted

    return next((fact.model for fact in result.facts if isinstance(fact, RunStarted)), "")


def warn_without_model(config: Config, model: str = "") -> None:
    """Say that no model is configured, unless the built-in one was asked for."""
    from nexi.config import EXTRACTIVE
    from nexi.output import write

    config = config.override(model=model) if model else config
    if config.endpoint("answer").is_extractive and config.model != EXTRACTIVE:
        write(
            "No model is configured: the built-in extractive model answers with passages. Add one: nexi config\n",
            sys.stderr,
        )
