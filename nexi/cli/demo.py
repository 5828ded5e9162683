"""`nexi demo`: a search over nexi's own handbook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from nexi.cli.exits import Interrupts, report_errors
from nexi.cli.runner import follow_run

if TYPE_CHECKING:
    from nexi.app import RunResult
    from nexi.output import Screen

NEXT_STEPS = """
Nothing was saved: the demo uses a temporary folder. What to do next:
  nexi "your question"    ask the web, without a key or a model
  nexi config setup       add a model and a search service
  nexi index notes        add your own files, here the folder notes
  nexi serve              open the web page
"""


@click.command("demo")
@click.argument("question", required=False)
@click.option("-v", "--verbose", is_flag=True, help="Show every model call, tool call and token count.")
@click.option("--plain", is_flag=True, help="Disable colours and emoji.")
def demo_command(question: str | None, verbose: bool, plain: bool) -> None:
    """Ask nexi's own handbook three questions, or yours: no API key, no network."""
    with report_errors():
        _run_demo(question, verbose, plain)


def _run_demo(question: str | None, verbose: bool, plain: bool) -> None:
    from nexi.demo import QUESTIONS, serve_handbook
    from nexi.output import Screen, set_plain_mode, write

    set_plain_mode(plain)
    with Interrupts() as interrupts, serve_handbook() as address:
        write(f"Serving nexi's handbook on {address}.\n", sys.stderr)
        for asked in (question,) if question else QUESTIONS:
            write(f"\nQuestion: {asked}\n", sys.stderr)
            screen = Screen(verbose=verbose, usage=True)
            screen.finish(_search_handbook(address, asked, screen, interrupts))
    write(NEXT_STEPS, sys.stderr)


def _search_handbook(address: str, question: str, screen: Screen, interrupts: Interrupts) -> RunResult:
    """One search in a home of its own, so that no question is answered from the pages of the one before."""
    import asyncio
    import tempfile
    from pathlib import Path

    from nexi.app import Nexi
    from nexi.config import Config

    async def search(home: str) -> RunResult:
        config = Config(
            model="extractive",
            searxng_url=f"http://{address}",
            search_backend="searxng",
            content_fetcher="http",
            allow_private=(address,),
            home=Path(home),
        )
        async with Nexi(config) as nexi:
            return await follow_run(nexi.search(question), screen, interrupts)

    with tempfile.TemporaryDirectory(prefix="nexi-demo-") as home:
        return asyncio.run(search(home))
