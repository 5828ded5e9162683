"""`nexi mcp`: runs the MCP server, and adds it to the config of a client."""

from __future__ import annotations

from pathlib import Path

import click

from nexi.cli.flags import FILE, HELP, flag
from nexi.output import print_note, print_success, write


@click.group("mcp", invoke_without_command=True, context_settings=HELP)
@click.pass_context
def _mcp_command(ctx: click.Context) -> None:
    """Run the MCP server on stdin and stdout, or over HTTP."""
    if ctx.invoked_subcommand:
        return
    from nexi.mcp_server_cli import serve_stdio

    serve_stdio()


@_mcp_command.command("http", context_settings=HELP)
@click.argument("host", default="127.0.0.1")
@click.argument("port", default=8000, type=click.IntRange(0, 65535))
def _http_command(host: str, port: int) -> None:
    """Serve MCP over streamable HTTP at http://HOST:PORT/mcp.

    Clients send what `nexi token` prints as `Authorization: Bearer TOKEN`; other hosts than loopback need NEXI_TOKEN.
    """
    from nexi.mcp_server_cli import serve_http

    serve_http(host, port)


@_mcp_command.command("install", context_settings=HELP)
@click.argument("client", type=click.Choice(["claude", "cursor", "codex"]))
@flag("--print", "only_prints", help="Print the entry and write nothing.")
@flag("--write", hidden=True, expose_value=False)  # what it does anyway
@click.option("--file", "path", type=FILE, metavar="FILE", help="Use this config file instead of the default.")
def _install_command(client: str, only_prints: bool, path: Path | None) -> None:
    """Add nexi to a client's config file, and show what was added."""
    from nexi.mcp import CLIENT_NAMES, entry_text, install_entry, place_of

    place = path or place_of(client)
    if only_prints:
        write(entry_text(client))
        print_note(f"Add this to {place}, or run: nexi mcp install {client}")
        return
    installation = install_entry(client, place)
    print_success(f"{place} {installation.told}:")
    print_note(entry_text(client))
    if installation.backup:
        print_note(f"Saved a backup of the file as {installation.backup}.")
    print_note(f"Restart {CLIENT_NAMES[client]} to use it.")
