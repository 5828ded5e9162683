"""`nexi open`: opens a source of the last answer in the browser."""

from __future__ import annotations

import sys

import click

from nexi.app.folders import Folders
from nexi.cli.history import latest_entry, sources_of
from nexi.cli.options import HELP
from nexi.config import load_config
from nexi.errors import NexiError
from nexi.output import clean_line, write
from nexi.urls import is_note_link, is_web_url, parse


@click.command("open", context_settings=HELP)
@click.argument("n", type=click.IntRange(1))
@click.option("--print", "only_print", is_flag=True, help="Print the URL instead of opening it.")
def _open_command(n: int, only_print: bool) -> None:
    """Open source N of the last answer in the browser."""
    entry = latest_entry()
    if n > len(entry.urls):
        has = f"it has {len(entry.urls)} source{'' if len(entry.urls) == 1 else 's'}"
        raise NexiError(f"the last answer has no source {n}", cause=has, code="not_found", fix="`nexi --prev` lists them")
    page_url = entry.urls[n - 1]
    link = next((s.link for s in sources_of(entry) if s.number == n and s.url == page_url), "")
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
        raise NexiError(
            f"cannot open source {n}", cause=f"{clean_line(url)[:200]} is not a web address", fix="`nexi --prev` shows it"
        )
    return link if is_web_url(link) else str(parse(url).href)


def open_browser(url: str) -> bool:
    import webbrowser

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
