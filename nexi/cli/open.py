"""`nexi open`: opens a source of the last answer in the browser."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nexi.cli.exits import report_errors
from nexi.errors import NexiError


@click.command("open", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("n", type=click.IntRange(1))
@click.option("--print", "only_print", is_flag=True, help="Print the URL instead of opening it.")
def open_command(n: int, only_print: bool) -> None:
    """Open source N of the last answer in the browser."""
    from nexi.output import write

    with report_errors():
        url = _source_address(n)
        if only_print or not sys.stdout.isatty() or not open_browser(url):
            write(f"{url}\n")


def _source_address(n: int) -> str:
    """The URL of source n of the last answer. Raises NexiError if there is none, or none for a browser."""
    from nexi.cli.history import latest_entry, sources_of

    entry = latest_entry()
    urls = entry.urls
    if n > len(urls):
        has = f"it has {len(urls)} source{'' if len(urls) == 1 else 's'}"
        raise NexiError(f"the last answer has no source {n}", cause=has, code="not_found", fix="`nexi --prev` lists them")
    link = next((s.link for s in sources_of(entry) if s.number == n and s.url == urls[n - 1]), "")
    return browser_address(n, urls[n - 1], link)


def browser_address(n: int, url: str, link: str) -> str:
    """What a browser opens for a source, at its evidence if the link says where. Raises NexiError if it cannot."""
    from nexi.output import clean_line
    from nexi.urls import is_note_link, is_web_url, parse

    if is_note_link(link):
        return link
    if url.startswith("file:///") and (path := _local_file(url)):
        return path.as_uri()
    if not is_web_url(url):
        raise NexiError(
            f"cannot open source {n}", cause=f"{clean_line(url)[:200]} is not a web address", fix="`nexi --prev` shows it"
        )
    return link if is_web_url(link) else str(parse(url).href)


def _local_file(url: str) -> Path | None:
    """The file behind a URL of the knowledge base, if it still exists."""
    from nexi.app.folders import Folders
    from nexi.config import load_config

    path = Folders(load_config().state_dir / "folders.json").path_of(url)
    return path if path and path.exists() else None


def open_browser(url: str) -> bool:
    """Open the URL; False without a browser."""
    import webbrowser

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
