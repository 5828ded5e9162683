"""Running the MCP server: `python -m nexi.mcp_server_cli` over stdio, `... http HOST PORT` over streamable HTTP.

On stdio, stdout belongs to the protocol: everything else goes to stderr, in words.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import logging
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nexi.errors import ConfigError, NexiError
from nexi.net.causes import plain_cause

if TYPE_CHECKING:
    from nexi.config import Config

HOST, PORT = "127.0.0.1", 8000
EXIT_CANCELLED = 130
DRAIN_S = 5
BACKLOG = 512
MAX_PORT = 65535


def main(argv: Sequence[str] | None = None) -> int:
    """The command; the exit code is 0, 1 for a failure, 2 for wrong use, 130 for Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m nexi.mcp_server_cli", description="nexi for MCP clients.")
    parser.add_argument("transport", nargs="?", choices=["stdio", "http"], default="stdio")
    parser.add_argument("host", nargs="?", default=HOST, help="the address to listen on (http)")
    parser.add_argument("port", nargs="?", type=_parse_port, default=PORT, help="the port to listen on (http)")
    arguments = parser.parse_args(argv)
    try:
        if arguments.transport == "http":
            serve_http(arguments.host, arguments.port)
        else:
            serve_stdio()
    except NexiError as error:
        _say(f"Error: {error}" + (f"\n{error.fix}" if error.fix else ""))
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_CANCELLED
    return 0


def _parse_port(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to {MAX_PORT}")
    return int(text)


def serve_stdio() -> None:
    """Serve one client on stdin and stdout until it leaves. Raises NexiError."""
    from nexi.app import Nexi
    from nexi.app.folders import with_project

    config = with_project(_load_config())

    async def run() -> None:
        from nexi.mcp import create_server

        async with Nexi(config) as nexi:
            await create_server(nexi).run_stdio_async()

    asyncio.run(run())


def serve_http(host: str = HOST, port: int = PORT) -> None:
    """Serve clients over HTTP until a signal ends it. Raises NexiError: off loopback a token must be set."""
    asyncio.run(_run_http(_load_config(), host, port))


async def _run_http(config: Config, host: str, port: int) -> None:
    import uvicorn

    from nexi.app import Nexi
    from nexi.mcp import PATH, HttpDoor
    from nexi.web.server import GC_THRESHOLDS, MAX_CONNECTIONS, strict_config

    gc.set_threshold(*GC_THRESHOLDS)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    async with Nexi(config) as nexi:
        door: Any = HttpDoor(nexi, host=host, token=config.token)
        try:  # before anything else is said
            listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        except OSError as error:
            is_taken = error.errno == errno.EADDRINUSE
            cause = "something else listens there" if is_taken else plain_cause(error.strerror or str(error))
            fix = "choose another port or address, or stop what listens there; port 0 chooses a free one"
            raise ConfigError(f"the MCP server cannot listen on {host} port {port}", cause=cause, fix=fix) from error
        with listener:
            settings = strict_config(door.app, drain_s=DRAIN_S, log_level="warning", limit_concurrency=MAX_CONNECTIONS)
            where = f"[{host}]" if ":" in host else host
            which = "the token" if config.token else "the token that `nexi token` prints"
            _say(f"MCP at http://{where}:{listener.getsockname()[1]}{PATH}, with {which}")
            await uvicorn.Server(settings).serve(sockets=[listener])


def _load_config() -> Config:
    """The config, the SDK and a log on stderr, or an error that says what is missing. Raises ConfigError."""
    from nexi.config import load_config
    from nexi.mcp import require_sdk

    require_sdk()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="nexi mcp: %(message)s")
    config = load_config()
    for note in config.notes:
        _say(f"Note: {note}")
    return config


def _say(text: str) -> None:
    """A line on stderr, whatever became of it."""
    from nexi.output import write

    write(f"{text}\n", sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
