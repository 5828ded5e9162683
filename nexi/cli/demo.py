"""`nexi demo`: a search over nexi's own handbook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from nexi.cli.exits import Interrupts, report_errors
from nexi.cli.runner import follow_run

if TYPE_CHECKING:
    from nexi.app import RunResult
    from nexi.config import Config
    from nexi.output import Screen


@click.command("demo")
@click.argument("question", required=False)
@click.option("-v", "--verbose", is_flag=True, help="Show every model call, tool call and token count.")
@click.option("--plain", is_flag=True, help="Disable colours and emoji.")
def demo_command(question: str | None, verbose: bool, plain: bool) -> None:
    """Ask nexi's own handbook: no API key, no network."""
    with report_errors():
        _run_demo(question, verbose, plain)


def _run_demo(question: str | None, verbose: bool, plain: bool) -> None:
    import tempfile
    from pathlib import Path

    from nexi.config import Config
    from nexi.demo import QUESTION, serve_handbook
    from nexi.output import Screen, set_plain_mode, write

    question = question or QUESTION
    set_plain_mode(plain)
    folder = tempfile.TemporaryDirectory(prefix="nexi-demo-")
    with Interrupts() as interrupts, serve_handbook() as address, folder as home:
        config = Config(
            model="extractive",
            searxng_url=f"http://{address}",
            search_backend="searxng",
            content_fetcher="http",
            allow_private=(address,),
            home=Path(home),
        )
        write(f"Serving nexi's handbook on {address}.\nQuestion: {question}\n", sys.stderr)
        screen = Screen(verbose=verbose, usage=True)
        result = _search_handbook(config, question, screen, interrupts)
        screen.finish(result)
        write("Nothing was saved: the demo uses a temporary folder.\n", sys.stderr)


def _search_handbook(config: Config, question: str, screen: Screen, interrupts: Interrupts) -> RunResult:
    import asyncio

    from nexi.app import Nexi

    async def search() -> RunResult:
        async with Nexi(config) as nexi:
            return await follow_run(nexi.search(question), screen, interrupts)

    return asyncio.run(search())
