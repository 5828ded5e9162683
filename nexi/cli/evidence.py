"""`nexi evidence` shows the passages behind a source of an answer; `nexi open` opens the source in the browser."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from nexi.app.folders import Folders
from nexi.app.history import open_runs
from nexi.cli.completion import complete_run
from nexi.cli.flags import HELP, flag, make_json_option
from nexi.cli.history import latest_entry
from nexi.config import Config, load_config
from nexi.errors import NexiError
from nexi.events import RunFinished, find_end, find_review
from nexi.output import clean_line, print_json, set_plain_mode, write
from nexi.output.proof import evidence_json, print_evidence
from nexi.types import Review, Source
from nexi.urls import is_note_link, is_web_url, parse


@click.command("evidence", context_settings=HELP)
@click.argument("n", type=click.IntRange(1), required=False)
@click.option("--run", "run_id", metavar="ID", shell_complete=complete_run, help="Use this run instead of the last answer.")
@flag("--plain", help="Disable colours and emoji.")
@make_json_option("Print one JSON object for each source.")
def _evidence_command(n: int | None, run_id: str | None, plain: bool, as_json: bool) -> None:
    """Show the passages behind source N of the last answer, or behind all its sources.

    The passages are those of the stored pages, so nothing is fetched.
    """
    config = load_config()
    set_plain_mode(plain or not config.color)
    run_id = run_id or latest_entry().id
    facts = open_runs(config).open_log(run_id).bare_facts
    end = find_end(facts)
    if not isinstance(end, RunFinished):
        raise NexiError(f"run {run_id} has no answer", code="not_found", fix=f"continue it: nexi resume {run_id}")
    show_evidence(config, run_id, select_sources(end.sources, n), find_review(facts), as_json=as_json)


def select_sources(sources: Sequence[Source], n: int | None) -> Sequence[Source]:
    """Source n, or all. Raises NexiError if there is none."""
    matches = [source for source in sources if n in (None, source.number)]
    if not matches:
        numbers = ", ".join(str(source.number) for source in sources)
        cause = f"it cites {numbers}" if sources else "it cites no sources"
        raise NexiError(f"the answer has no source {n}" if n else "there is no evidence", cause=cause, code="not_found")
    return matches


def show_evidence(
    config: Config, run_id: str, sources: Sequence[Source], review: Review | None, *, as_json: bool = False
) -> None:
    """Print the evidence of these sources to stdout, with the stored texts around it."""
    pages = open_runs(config).pages
    for place, source in enumerate(sources):
        if as_json:
            print_json(evidence_json(run_id, source, review))
            continue
        write("\n" * bool(place))
        print_evidence(source, review, pages.read_text)


@click.command("open", context_settings=HELP)
@click.argument("n", type=click.IntRange(1))
@flag("--print", "only_print", help="Print the URL instead of opening it.")
def _open_command(n: int, only_print: bool) -> None:
    """Open source N of the last answer in the browser."""
    from nexi.app.conversation import cited_sources

    entry = latest_entry()
    if n > len(entry.urls):
        has = f"it has {len(entry.urls)} source{'' if len(entry.urls) == 1 else 's'}"
        raise NexiError(f"the last answer has no source {n}", cause=has, code="not_found", fix="`nexi --prev` lists them")
    page_url = entry.urls[n - 1]
    sources = cited_sources(open_runs(load_config()), entry)
    link = next((source.link for source in sources if source.number == n and source.url == page_url), "")
    url = browser_address(n, page_url, link)
    if only_print or not sys.stdout.isatty() or not open_browser(url):
        write(f"{url}\n")


def browser_address(n: int, url: str, link: str) -> str:
    """What a browser opens for a source, at its evidence if the link says where. Raises NexiError if it cannot."""
    if is_note_link(link):
        return link
    if url.startswith("file:///"):
        path = Folders(load_config().state_dir / "folders.json").path_of(url)
        if path and path.exists():
            return path.as_uri()
    if not is_web_url(url):
        cause = f"{clean_line(url)[:200]} is not a web address"
        raise NexiError(f"cannot open source {n}", cause=cause, fix="`nexi --prev` shows it")
    return link if is_web_url(link) else str(parse(url).href)


def open_browser(url: str) -> bool:
    import webbrowser

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
