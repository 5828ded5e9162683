"""The Model Context Protocol door: nexi's tools, past runs and a research prompt, for any MCP client.

Above are `mcp_server_cli` (stdio, streamable HTTP) and a web server that mounts `/mcp`; below is `nexi.app`. The tools
decide nothing: they call `Nexi`, follow the events of its runs and show what came out. The SDK is imported here alone, and
only when a server is made. The rest of nexi uses the names below and imports none of the modules.

    server = create_server(nexi)          # stdio: await server.run_stdio_async()
    door = HttpDoor(nexi)                 # HTTP: door.app at /mcp, inside `async with door.run_sessions()`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexi.errors import ConfigError
from nexi.install import install_command

if TYPE_CHECKING:
    from nexi.app import Nexi
    from nexi.mcp._entries import CLIENT_NAMES, entry_text, install_entry, place_of
    from nexi.mcp.server import PATH, HttpDoor, NexiServer

__all__ = ["CLIENT_NAMES", "PATH", "HttpDoor", "create_server", "entry_text", "install_entry", "place_of", "require_sdk"]


def require_sdk() -> None:
    """Say how to install the SDK where it is missing. Raises ConfigError."""
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        cause, fix = "the mcp package, 2.3 or newer, is not installed", f"install it: {install_command('mcp')}"
        raise ConfigError("the MCP server cannot start", cause=cause, fix=fix)


def create_server(nexi: Nexi) -> NexiServer:
    """A server over the clients of this Nexi. Raises ConfigError where the SDK is missing."""
    require_sdk()
    from nexi.mcp.server import NexiServer

    return NexiServer(nexi)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a name of the list above from its module; the door over HTTP says what to install where its SDK is missing."""
        from importlib import import_module

        if name in ("HttpDoor", "PATH"):
            require_sdk()
            return getattr(import_module(f"{__name__}.server"), name)
        if name in ("CLIENT_NAMES", "entry_text", "install_entry", "place_of"):
            return getattr(import_module(f"{__name__}._entries"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
