"""A question on the command line: who asks for what, and one search from start to end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from nexi.cli.exits import Interrupts

if TYPE_CHECKING:
    from nexi.app import Run, RunResult, SearchOptions
    from nexi.config import Config
    from nexi.output import Screen


def dispatch(ctx: click.Context, words: tuple[str, ...], options: dict[str, Any]) -> None:
    """The seeds' precedence: config commands, history commands, argument, --query-text, stdin, REPL."""
    if options["show_config"] or options["edit_config"]:
        from nexi.cli.settings import show_or_edit

        return show_or_edit(edit=options["edit_config"])
    if options["last"] or options["prev"] or options["show"] or options["clear_history"]:
        from nexi.cli.history import history_command

        return history_command(options)
    question = " ".join(words) or options["query_text"] or ""
    if not question and not sys.stdin.isatty():
        question = _read_stdin()
    if not question and not words and sys.stdin.isatty():
        from nexi.cli.repl import _interactive_mode

        return _interactive_mode(options)
    return _run_search_command(question, options)


def _read_stdin() -> str:
    return sys.stdin.buffer.read(4_000_000).decode("utf-8", "replace")


def _run_search_command(question: str, options: dict[str, Any]) -> None:
    """One question, one answer."""
    import asyncio

    from nexi.output import set_plain_mode

    config = load(options)
    set_plain_mode(options["plain"])
    with Interrupts(as_json=options["as_json"]) as interrupts:
        result = asyncio.run(_search(config, question, options, interrupts))
        print_result(result, question, config, options)


def print_result(result: RunResult, question: str, config: Config, options: dict[str, Any]) -> None:
    from nexi.output import print_answer, print_result_summary, write

    if options["as_json"]:
        import json

        from nexi.output import answer_json

        write(json.dumps(answer_json(result, question, config.endpoint("answer").model), ensure_ascii=False) + "\n")
        return
    sources = {s.url: s.number for s in result.answer.sources}
    print_answer(result.answer.text, url_citations=sources, url_to_title={s.url: s.title for s in result.answer.sources})
    end = result.finished
    if options["verbose"] or sys.stderr.isatty():
        print_result_summary(end.iterations, end.seconds, end.usage.total, [s.url for s in result.session.book.sources])


async def _search(config: Config, question: str, options: dict[str, Any], interrupts: Interrupts) -> RunResult:
    from nexi.app import Nexi
    from nexi.output import Screen

    say_what_answers(config)
    screen = Screen(verbose=options["verbose"], quiet=options["as_json"])
    async with Nexi(config) as nexi:
        return await follow(nexi.search(question, options=search_options(options)), screen, interrupts)


async def follow(search: Run, screen: Screen, interrupts: Interrupts) -> RunResult:
    """Show a run to its end, or to the signal that ends it."""
    async with search as run:
        with interrupts.heard_by(run.stop):
            try:
                async for event in run:
                    screen.show(event)
            finally:
                screen.end()
        return run.result()


def search_options(options: dict[str, Any]) -> SearchOptions:
    from nexi.app import SearchOptions

    return SearchOptions(
        effort=options["effort"] or "",
        max_iterations=options["max_iter"],
        time_target=options["time_target"],
        max_output_tokens=options["max_len"],
    )


def load(options: dict[str, Any]) -> Config:
    from nexi.config import load_config
    from nexi.output import print_warning

    config = load_config()
    for note in config.notes:
        print_warning(note)
    flags = {"model": options["model"], "max_cost": options["max_cost"], "max_tokens": options["max_tokens"]}
    return config.override(**{k: v for k, v in flags.items() if v is not None})


def say_what_answers(config: Config) -> None:
    """An answer without a model is said to be one."""
    from nexi.output import write

    if config.endpoint("answer").model == "extractive":
        write(
            "No model is configured: the built-in extractive model answers with passages. Add one: nexi --edit-config\n",
            sys.stderr,
        )
