"""MCP over streamable HTTP: the ASGI app, what it lets in, and its life.

Above is `mcp_server_cli`, or a web server that mounts it at `/mcp`; below is the server. On loopback the SDK's transport checks
Host and Origin, and the owner's token is wanted where no other is set, since the tools read what the owner keeps; anywhere else
a token must be set. A web server with a guard of its own passes `guarded=True`.
"""

from __future__ import annotations

import hmac
import json
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from nexi.app.owner_token import OwnerToken
from nexi.errors import ConfigError
from nexi.mcp.server import NexiServer
from nexi.net.addresses import MIN_TOKEN_CHARS, is_loopback_host

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from nexi.app import Nexi

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

__all__ = ["PATH", "HttpDoor"]

PATH = "/mcp"
MAX_BODY_BYTES = 2_000_000
MAX_SESSIONS = 1000
ORIGINS = ("http://{host}:*", "http://{host}", "https://{host}:*", "https://{host}")
REFUSAL = "a token is needed: send Authorization: Bearer and what `nexi token` prints on the server (NEXI_TOKEN, if it is set)"
LOCAL = ("127.0.0.1", "localhost", "[::1]")


class HttpDoor:
    """`app` serves one path, as in `Route("/mcp", endpoint=door.app)`.

    It works inside `async with door.run_sessions()`, which owns the sessions and the research.
    """

    def __init__(self, nexi: Nexi, *, host: str = "127.0.0.1", token: str = "", guarded: bool = False) -> None:
        """Raises ConfigError for an address that needs a token and has none, StoreError if the owner's cannot be kept."""
        self.server = NexiServer(nexi)
        self.app = build_http_app(self.server, host=host, token=token, guarded=guarded)
        if not (token or guarded):
            owner = OwnerToken(nexi.config.state_dir)
            owner.ensure()
            self.app = _TokenGate(self.app, owner.is_token)

    def run_sessions(self) -> AbstractAsyncContextManager[None]:
        return self.server.session_manager.run()


def build_http_app(server: MCPServer[Any], *, host: str, token: str = "", guarded: bool = False, **transport: Any) -> App:
    """The app of any MCP server under our rules. Raises ConfigError for an address that needs a token and has none."""
    local = is_loopback_host(host)
    if token and len(token) < MIN_TOKEN_CHARS and not (local or guarded):
        message = f"the MCP server does not listen on {host} with a token of {len(token)} characters"
        cause = f"a token shorter than {MIN_TOKEN_CHARS} characters can be guessed"
        raise ConfigError(message, cause=cause, fix="set NEXI_TOKEN to a longer random text, for example: openssl rand -hex 24")
    if not (local or token or guarded):
        message = f"the MCP server does not listen on {host} without a token"
        cause = "anyone who reaches that address could search and spend in your name"
        fix = "set NEXI_TOKEN to a long secret and give it to your clients, or listen on 127.0.0.1"
        raise ConfigError(message, cause=cause, fix=fix)
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=local and not guarded,
        allowed_hosts=[name for h in LOCAL for name in (h, f"{h}:*")],
        allowed_origins=[form.format(host=h) for h in LOCAL for form in ORIGINS],
    )
    app: App = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        max_request_body_size=MAX_BODY_BYTES,
        max_sessions=MAX_SESSIONS,
        **transport,
    )
    if guarded or not token:
        return app
    return _TokenGate(app, lambda secret: hmac.compare_digest(secret.encode(), token.encode()))


class _TokenGate:
    """Lets in who sends `Authorization: Bearer TOKEN`."""

    def __init__(self, app: App, is_token: Callable[[str], bool]) -> None:
        self._app, self._is_token = app, is_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        header = next((value for name, value in scope.get("headers", ()) if name == b"authorization"), b"")
        kind, _, secret = header.partition(b" ")
        is_known = kind.lower() == b"bearer" and self._is_token(secret.strip().decode("utf-8", "replace"))
        if is_known or scope["type"] != "http":
            return await self._app(scope, receive, send)
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": REFUSAL}}).encode()
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        return await send({"type": "http.response.body", "body": body})
