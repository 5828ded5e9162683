"""The prompt for questions and follow-ups."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nexi.cli.ask import follow, load, say_what_answers, search_options
from nexi.cli.exits import Interrupts
from nexi.errors import NexiError

if TYPE_CHECKING:
    from nexi.config import Config


def _interactive_mode(options: dict[str, Any]) -> None:
    """Questions and follow-ups in one session, until exit."""
    import asyncio

    with Interrupts() as interrupts:
        asyncio.run(_converse(load(options), options, interrupts))


async def _converse(config: Config, options: dict[str, Any], interrupts: Interrupts) -> None:
    import asyncio

    from nexi.app import Nexi
    from nexi.output import Screen, print_answer, print_failure, set_plain_mode, write
    from nexi.session import Session

    set_plain_mode(options["plain"])
    say_what_answers(config)
    write("Ask a question. exit, quit or q leaves; help or h helps.\n", sys.stderr)
    session = Session()
    async with Nexi(config) as nexi:
        while (line := await asyncio.to_thread(_read_line)) is not None:
            if line in ("help", "h"):
                write("Type a question; a follow-up may refer to what was said. exit, quit or q leaves.\n", sys.stderr)
                continue
            try:
                run = nexi.search(line, options=search_options(options), session=session)
                result = await follow(run, Screen(verbose=options["verbose"]), interrupts)
            except NexiError as error:
                print_failure(error)
                continue
            cited = result.answer.sources
            print_answer(
                result.answer.text, url_citations={s.url: s.number for s in cited}, url_to_title={s.url: s.title for s in cited}
            )
    interrupts.code = 0  # leaving by the prompt is no interruption


def _read_line() -> str | None:
    """The next question; None when the user leaves."""
    while True:
        try:
            line = input("nexi> ").strip()
        except EOFError:
            return None
        if line in ("exit", "quit", "q"):
            return None
        if line:
            return line
