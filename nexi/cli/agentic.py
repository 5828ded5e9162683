"""`nexi agentic`: prints the passages that answer a question, from the knowledge base and, for what is missing, the web."""

from __future__ import annotations

from typing import Any

import click

from nexi.cli.options import HELP, make_json_option
from nexi.cli.runner import run_with_nexi
from nexi.errors import NoEvidenceError
from nexi.output import print_json, print_note, write

MAX_PASSAGE_CHARS = 600


@click.command("agentic", context_settings=HELP)
@click.argument("words", nargs=-1, required=True, metavar='"QUESTION"')
@click.option(
    "--threshold",
    "completeness_threshold",
    type=click.FloatRange(0, 1),
    metavar="N",
    help="Completeness, 0 to 1, that is enough.",
)
@click.option(
    "--max-iter", "max_iterations", type=click.IntRange(1, 20), metavar="N", help="Maximum rounds of searching and reading."
)
@click.option(
    "--max-urls", "max_urls_per_iteration", type=click.IntRange(1, 20), metavar="N", help="Maximum pages read in one round."
)
@click.option(
    "--url-threshold",
    "url_score_threshold",
    type=click.FloatRange(0, 1),
    metavar="N",
    help="Read results that score above N, 0 to 1.",
)
@click.option(
    "--hints", "use_search_hints", is_flag=True, help="Also search the knowledge base with terms of the pages just read."
)
@make_json_option("Print the response as one JSON object.")
def _agentic_command(words: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Find passages in the knowledge base, and on the web what is missing.

    \b
      nexi agentic "how far is the Moon from Earth on average"
      nexi agentic --json --max-iter 1 "how far is the Moon"
    """
    settings = {name: value for name, value in options.items() if value is not None and value is not False}
    response = run_with_nexi(lambda nexi: nexi.agentic_search(" ".join(words), **settings))
    if not response["results"]:
        raise NoEvidenceError("there are no passages", cause=f"the search ended with {response['status']}", fix="nexi doctor")
    if as_json:
        return print_json(response)
    for number, passage in enumerate(response["results"], 1):
        text = " ".join(passage["content"].split())
        write(f"{number}. {passage['url']} ({passage['similarity_score']:.2f})\n   {text[:MAX_PASSAGE_CHARS]}\n")
    rounds, usage = response["iterations"], response["usage"]
    calls = f"{usage['searches']} searches, {usage['pages_read']} pages read, {usage['model_calls']} model calls"
    after = f"{rounds} round{'' if rounds == 1 else 's'}"
    return print_note(f"{response['status']}: {response['completeness']:.0%} complete after {after}; {calls}")
