"""`nexi serve`: starts the HTTP server; `nexi token` prints the token of its owner."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from nexi.app.owner_token import OwnerToken
from nexi.cli.evidence import open_browser
from nexi.cli.flags import COUNT, HELP, LOG_LEVELS, flag
from nexi.config import load_config
from nexi.errors import ConfigError
from nexi.output import print_note, print_warning, write

_setting = partial(click.option, show_default=True)
_limit = partial(_setting, metavar="N")


@click.command("serve", context_settings=HELP)
@_setting("--host", default="127.0.0.1", help="Address to listen on.")
@_setting("--port", type=click.IntRange(0, 65535), default=8000, help="Port to listen on; 0 picks a free one.")
@click.option(
    "--token", default="", metavar="TEXT", help="Token that clients must send. Visible in the process list; prefer NEXI_TOKEN."
)
@_limit("--workers", type=click.IntRange(1, 64), default=1, help="Number of processes.")
@_limit("--max-runs", "most_runs", type=click.IntRange(1, 1000), default=8, help="Maximum parallel runs per process.")
@_limit("--rate", "per_minute", type=COUNT, default=600, help="Maximum requests per minute from one client.")
@_limit("--drain", "drain_s", type=click.FloatRange(0), default=10, metavar="S", help="Seconds for runs to finish on shutdown.")
@_setting("--log-level", type=click.Choice(LOG_LEVELS), default="info", help="Log level; questions are logged only at debug.")
@click.option(
    "--searcher-config",
    default="",
    metavar="PATH",
    help="The searcher.yaml of the Search API; by default the one in nexi's folder.",
)
@flag("--open", "opens_browser", help="Open the page in the browser.")
def _serve_command(opens_browser: bool, **options: Any) -> None:
    """Run the HTTP server: web page, runs, and the OpenAI, SearXNG, Tavily and Open WebUI APIs.

    By default it listens on loopback only. The link that it prints has your token, which the page and everything that nexi
    keeps for you need; programs without it can ask questions, answered from the web alone. Other addresses need a token of
    their own: set NEXI_TOKEN, or `token` in the config.
    """
    from nexi.web import server

    config = load_config()
    for text in config.notes:
        print_warning(text)

    def show_link(link: str) -> None:
        print_note(f"Listening on {link}")
        if opens_browser:
            open_browser(link)

    server.serve(config, server.ServerOptions(**options), on_listening=show_link)


@click.command("token", context_settings=HELP)
@flag("--new", "makes_new", help="Replace the token: browsers and programs that have the old one are out.")
def _token_command(makes_new: bool) -> None:
    """Print the token that a server on this machine knows its owner by.

    Programs send it as `Authorization: Bearer TOKEN`. Browsers get it from the link that `nexi serve` prints, or
    ask for it.
    """
    config = load_config()
    if makes_new and config.token:
        cause = "it is set by NEXI_TOKEN, or by token in the config"
        raise ConfigError("the token was not replaced", cause=cause, fix="change it there")
    owner = OwnerToken(config.state_dir)
    token = config.token or (owner.renew() if makes_new else owner.ensure())
    write(f"{token}\n")
