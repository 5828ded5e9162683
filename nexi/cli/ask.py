"""A question on the command line: who asks for what, and one search from start to end."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nexi.cli.exits import Interrupts
from nexi.cli.stdin import read_question, with_piped_text

if TYPE_CHECKING:
    from nexi.app import Nexi, Run, RunResult, SearchOptions
    from nexi.app.knowledge import Knowledge
    from nexi.cli.keys import Keys
    from nexi.config import Config
    from nexi.events import Event
    from nexi.output import Screen
    from nexi.runs.session import Session

WINDOW_S = 0.5  # a server on this machine that takes longer to say what it has is not waited for


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
            print_json(answer_json(result, question, config.endpoint("answer").model))
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

    say_what_answers(config)
    async with Nexi(await measured(config)) as nexi, shelf_for(nexi, options) as shelf:
        session = await earlier(nexi) if options["go_on"] else None
        asked = replace(search_options(options), shelf=shelf)
        return await follow(nexi.search(question, options=asked, session=session), screen, interrupts)


@asynccontextmanager
async def shelf_for(nexi: Nexi, options: dict[str, Any]) -> AsyncIterator[Knowledge | None]:
    """The files that came with the question, to look into first."""
    if not options["files"]:
        yield None
        return
    from nexi.app.intake import shelf_of

    async with shelf_of(nexi, options["files"]) as shelf:
        yield shelf


async def earlier(nexi: Nexi) -> Session:
    """The conversation of the last answer, to go on from. Raises NexiError when there is none."""
    from nexi.runs.conversation import last_conversation

    return await last_conversation(nexi.config, nexi.clock)


async def follow(
    search: Run, screen: Screen, interrupts: Interrupts, asks: Callable[[Event, Keys], Awaitable[None]] | None = None
) -> RunResult:
    """Show a run to its end, or to the signal that ends it; `asks` may turn to the person after an event."""
    from nexi.cli.keys import unseen

    async with search as run:
        with interrupts.heard_by(run.stop), unseen() as keys:
            try:
                async for event in run:
                    screen.show(event)
                    if asks:
                        await asks(event, keys)
            finally:
                screen.end()
        return run.result()


def search_options(options: dict[str, Any]) -> SearchOptions:
    from nexi.app import SearchOptions
    from nexi.cli.filters import query_of
    from nexi.cli.templates import instructions

    return SearchOptions(
        effort=options["effort"] or "",
        max_iterations=options["max_iter"],
        time_target=options["time_target"],
        max_output_tokens=options["max_len"],
        query=query_of("", options),
        system_prompt=instructions(options),
        only_local=bool(options.get("local")),
    )


def load(options: dict[str, Any]) -> Config:
    """The config under the flags; from here on the screen is as both want it."""
    from nexi.config import load_config
    from nexi.output import print_warning, set_plain_mode

    set_plain_mode(options["plain"])
    config = load_config()
    set_plain_mode(options["plain"] or not config.color)
    for note in config.notes:
        print_warning(note)
    flags = {"model": options["model"], "max_cost": options["max_cost"], "max_tokens": options["max_tokens"]}
    flags["stream"] = False if options["no_stream"] else None
    flags["strict"] = True if options.get("strict") else None
    config = config.override(**{k: v for k, v in flags.items() if v is not None})
    return restrict_to_local(config) if options.get("local") else config


def restrict_to_local(config: Config) -> Config:
    """The config under `--local`, with its notices on stderr."""
    from nexi.app.local_scope import restrict_to_local as restrict
    from nexi.output import print_warning

    local, notices = restrict(config)
    for notice in notices:
        print_warning(notice)
    return local


async def measured(config: Config) -> Config:
    """The config with the window that a server of this machine really gives its model, where nobody chose one."""
    from nexi.config import DEFAULT_CONFIG

    default, endpoint = DEFAULT_CONFIG["max_context"], config.endpoint("answer")
    if endpoint.is_extractive or config.origin.file.get("max_context", default) != default:
        return config
    from nexi.llm.local import describe

    server = await describe(endpoint.base_url, patience_s=WINDOW_S)
    model = server.model(endpoint.model) if server else None
    return config.override(max_context=model.context) if model and model.context else config


def say_what_answers(config: Config) -> None:
    """An answer without a model is said to be one, unless that was asked for."""
    from nexi.config import EXTRACTIVE
    from nexi.output import write

    if config.endpoint("answer").is_extractive and config.model != EXTRACTIVE:
        write(
            "No model is configured: the built-in extractive model answers with passages. Add one: nexi config\n",
            sys.stderr,
        )
