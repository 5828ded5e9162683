"""`nexi demo`: a search over nexi's own handbook."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from nexi import app, output
from nexi.cli.exits import Interrupts
from nexi.cli.options import screen_options
from nexi.cli.runner import follow_run, run_with_nexi
from nexi.config import Config
from nexi.output import set_plain_mode, write

NEXT_STEPS = """
Nothing was saved: the demo uses a temporary folder. What to do next:
  nexi "your question"    ask the web, without a key or a model
  nexi config setup       add a model and a search service
  nexi index notes        add your own files, here the folder notes
  nexi serve              open the web page
"""


@click.command("demo")
@click.argument("question", required=False)
@screen_options
def _demo_command(question: str | None, verbose: bool, plain: bool) -> None:
    """Ask nexi's own handbook three questions, or yours: no API key, no network."""
    from nexi.demo import QUESTIONS, serve_handbook

    set_plain_mode(plain)
    with Interrupts() as interrupts, serve_handbook() as address:
        write(f"Serving nexi's handbook on {address}.\n", sys.stderr)
        for text in (question,) if question else QUESTIONS:
            write(f"\nQuestion: {text}\n", sys.stderr)
            screen = output.Screen(verbose=verbose, usage=True)
            screen.finish(_search_handbook(address, text, screen, interrupts))
    write(NEXT_STEPS, sys.stderr)


def _search_handbook(address: str, question: str, screen: output.Screen, interrupts: Interrupts) -> app.RunResult:
    """One search in a home of its own, so that no question is answered from the pages of the one before."""
    with tempfile.TemporaryDirectory(prefix="nexi-demo-") as home:
        config = Config(
            model="extractive",
            searxng_url=f"http://{address}",
            search_backend="searxng",
            content_fetcher="http",
            allow_private=(address,),
            home=Path(home),
        )
        return run_with_nexi(lambda nexi: follow_run(nexi.search(question), screen, interrupts), config)
