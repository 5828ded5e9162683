"""`nexi searxng start|stop|status`: manages the local SearXNG container."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from nexi.cli.flags import HELP, flag, json_option
from nexi.config import Config, load_config
from nexi.output import print_json, print_note, write

if TYPE_CHECKING:
    from nexi.backends.container import ContainerStatus, Lifecycle

START_S = 600.0  # the first start downloads the image
STOP_S = 60.0


@click.group("searxng", context_settings=HELP)
def _searxng_command() -> None:
    """Start, stop and inspect a local SearXNG container.

    It needs docker or podman, and only this machine can reach it. A container started here runs until it is stopped; with
    `searxng_autostart` the first search starts it, and it stops when the last nexi process that uses it ends.
    """


@_searxng_command.command("start", context_settings=HELP)
@json_option
def _start_command(as_json: bool) -> None:
    """Start it, wait until it responds, and print its URL."""
    config, lifecycle = _open_lifecycle()
    _print_status(lifecycle.keep(lifecycle.patience(START_S)), lifecycle, as_json=as_json)
    if config.searxng_url and not as_json:
        print_note("Searches still use the instance set by SEARXNG_URL or searxng_url.")
    elif not config.searxng_autostart and not as_json:
        print_note("To use it for searches: nexi config set searxng_autostart true")


@_searxng_command.command("stop", context_settings=HELP)
@flag("--force", help="Stop it even if other processes use it.")
@json_option
def _stop_command(force: bool, as_json: bool) -> None:
    """Stop it, or let it stop when the last process that uses it ends."""
    _, lifecycle = _open_lifecycle()
    _print_status(lifecycle.stop(lifecycle.patience(STOP_S), force=force), lifecycle, as_json=as_json)


@_searxng_command.command("status", context_settings=HELP)
@json_option
def _status_command(as_json: bool) -> None:
    """Show whether it runs and responds, and how many processes use it."""
    _, lifecycle = _open_lifecycle()
    _print_status(lifecycle.status(lifecycle.patience(STOP_S)), lifecycle, as_json=as_json)


def _open_lifecycle() -> tuple[Config, Lifecycle]:
    from nexi.app.factory import container_lifecycle

    config = load_config()
    return config, container_lifecycle(config)


def _print_status(status: ContainerStatus, lifecycle: Lifecycle, *, as_json: bool) -> None:
    settings, count = str(lifecycle.options.own_settings), len(status.users)
    if as_json:
        fields = {"users": list(status.users), "settings": settings, "state": str(lifecycle.state_path)}
        return print_json({"schema": "nexi-searxng-1", **asdict(status), **fields})
    if not status.running:
        note = " although it should be: the next search restarts it" if status.container else ""
        return print_note(f"SearXNG is not running{note}. Settings: {settings}")
    write(f"{status.url}\n")
    health = "is running" if status.healthy else "is running but does not respond yet"
    users = f"{count} process uses it" if count == 1 else f"{count} processes use it"
    until = "it runs until `nexi searxng stop`" if status.kept else "it stops when the last one ends"
    return print_note(f"SearXNG {health}: {status.image}, container {status.container} ({status.command}). {users}; {until}.")
