"""`nexi searxng start|stop|status`: manages the local SearXNG container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from nexi.cli.exits import report_errors

if TYPE_CHECKING:
    from nexi.backends.container import ContainerStatus, Lifecycle
    from nexi.config import Config

SCHEMA = "nexi-searxng-1"
START_S = 600.0  # the first start downloads the image
STOP_S = 60.0
_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("searxng", context_settings=_HELP)
def searxng_command() -> None:
    """Start, stop and inspect a local SearXNG container.

    It needs docker or podman, and only this machine can reach it. A container started here runs until it is stopped; with
    `searxng_autostart` the first search starts it, and it stops when the last nexi process that uses it ends.
    """


_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@searxng_command.command("start", context_settings=_HELP)
@_as_json
def _start_command(as_json: bool) -> None:
    """Start it, wait until it responds, and print its URL."""
    with report_errors(as_json=as_json):
        config, lifecycle = _open_lifecycle()
        _print_status(lifecycle.keep(lifecycle.patience(START_S)), lifecycle, as_json=as_json)
        _print_usage_hint(config, as_json=as_json)


@searxng_command.command("stop", context_settings=_HELP)
@click.option("--force", is_flag=True, help="Stop it even if other processes use it.")
@_as_json
def _stop_command(force: bool, as_json: bool) -> None:
    """Stop it, or let it stop when the last process that uses it ends."""
    with report_errors(as_json=as_json):
        _, lifecycle = _open_lifecycle()
        _print_status(lifecycle.stop(lifecycle.patience(STOP_S), force=force), lifecycle, as_json=as_json)


@searxng_command.command("status", context_settings=_HELP)
@_as_json
def _status_command(as_json: bool) -> None:
    """Show whether it runs and responds, and how many processes use it."""
    with report_errors(as_json=as_json):
        _, lifecycle = _open_lifecycle()
        _print_status(lifecycle.status(lifecycle.patience(STOP_S)), lifecycle, as_json=as_json)


def _open_lifecycle() -> tuple[Config, Lifecycle]:
    from nexi.app import container_lifecycle
    from nexi.config import load_config

    config = load_config()
    return config, container_lifecycle(config)


def _print_status(status: ContainerStatus, lifecycle: Lifecycle, *, as_json: bool) -> None:
    from nexi.output import print_json, print_note, write

    if as_json:
        return print_json(_status_json(status, lifecycle))
    if status.running:
        write(f"{status.url}\n")
    return print_note(_describe_status(status, lifecycle))


def _status_json(status: ContainerStatus, lifecycle: Lifecycle) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        **asdict(status),
        "users": list(status.users),
        "settings": str(lifecycle.options.own_settings),
        "state": str(lifecycle.state_path),
    }


def _describe_status(status: ContainerStatus, lifecycle: Lifecycle) -> str:
    if not status.running:
        used = " although it should be: the next search restarts it" if status.container else ""
        return f"SearXNG is not running{used}. Settings: {lifecycle.options.own_settings}"
    health = "is running" if status.healthy else "is running but does not respond yet"
    count = len(status.users)
    users = f"{count} process uses it" if count == 1 else f"{count} processes use it"
    until = "it runs until `nexi searxng stop`" if status.kept else "it stops when the last one ends"
    return f"SearXNG {health}: {status.image}, container {status.container} ({status.command}). {users}; {until}."


def _print_usage_hint(config: Config, *, as_json: bool) -> None:
    """Print a hint if no search would use the container."""
    from nexi.output import print_note

    if as_json:
        return
    if config.searxng_url:
        print_note("Searches still use the instance set by SEARXNG_URL or searxng_url.")
    elif not config.searxng_autostart:
        print_note("To use it for searches: nexi config set searxng_autostart true")
