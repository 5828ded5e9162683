"""`nexi open`: a source of the last answer, in the browser."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nexi.cli.exits import report_errors
from nexi.errors import NexiError


@click.command("open", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("n", type=click.IntRange(1))
@click.option("--print", "only_print", is_flag=True, help="Print the address instead of opening it.")
def open_command(n: int, only_print: bool) -> None:
    """Open source N of the last answer in the browser."""
    from nexi.output import write

    with report_errors():
        url = _source_address(n)
        if only_print or not sys.stdout.isatty() or not _open_browser(url):
            write(f"{url}\n")


def _source_address(n: int) -> str:
    """The address of source n. Raises NexiError when there is none, or none that a browser should see."""
    from nexi.cli.history import latest_entry, sources_of
    from nexi.output import clean_line
    from nexi.urls import is_web_url, parse

    entry = latest_entry()
    urls = entry.urls
    if n > len(urls):
        has = f"it has {len(urls)} source{'' if len(urls) == 1 else 's'}"
        raise NexiError(f"the last answer has no source {n}", cause=has, code="not_found", fix="nexi --prev shows them")
    if urls[n - 1].startswith("file:///") and (path := _local_file(urls[n - 1])):
        return path.as_uri()
    if not is_web_url(urls[n - 1]):
        raise NexiError(
            f"source {n} is not opened", cause=f"{clean_line(urls[n - 1])[:200]} is no web address", fix="nexi --prev shows it"
        )
    link = next((s.link for s in sources_of(entry) if s.number == n and s.url == urls[n - 1]), "")
    return link if is_web_url(link) else str(parse(urls[n - 1]).href)


def _local_file(url: str) -> Path | None:
    """The file behind an address of the knowledge store, where it still is."""
    from nexi.app.folders import Folders
    from nexi.config import load_config

    path = Folders(load_config().state_dir / "folders.json").path_of(url)
    return path if path and path.exists() else None


def _open_browser(url: str) -> bool:
    """Whether there is a browser that took the address."""
    import webbrowser

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
