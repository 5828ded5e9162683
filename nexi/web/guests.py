"""Guests: who may do what at a server of one person that has no token of its own, and what stands before its doors.

The owner is who sends the owner's token, or the cookie that a browser got for it. Everybody else on this machine is a guest,
who may ask questions and get what the web says; the rest is refused. A path that is not named here is the owner's. A browser
gets a cookie for the token in the link, and a plain page without one. Questions of guests go to an app of their own, which is
made with the first of them and has nothing that the owner keeps. Above is the guard, which asks `identify`; below, the doors.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from fnmatch import fnmatchcase
from urllib.parse import parse_qsl, quote, urlencode

from starlette.applications import Starlette
from starlette.datastructures import Headers, State
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from nexi.app.owner_token import OwnerToken
from nexi.app.pool import PersonalPool
from nexi.types import GUEST, Principal
from nexi.web.guard import PAGES, PRINCIPAL, given_token, matches_any
from nexi.web.payload import build_refusal

GUEST_PATHS = (
    "GET /openapi.json",
    "POST /v1/runs",
    "* /v1/runs/?*",  # by an id that nobody can guess
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/responses",
    "* /v1/responses/?*",
    "POST /v1/embeddings",
    "GET /v1/models",
    "GET /v1/models/*",
    "POST /v1/search",
    "POST /v1/snippet_rank",
    "* /searxng",
    "* /searxng/*",
    "POST /tavily/*",
    "GET /tavily/research/*",
    "POST /openwebui/*",
)
OWNER_FIX = "open the link that nexi serve printed, or send what `nexi token` prints as `Authorization: Bearer TOKEN`"
# a page for a browser that is not let in, also by `login`: the headers it is sent with, and its head
SAFE = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'",
}
PAGE_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>nexi</title>
<link rel="stylesheet" href="/static/style.css">
"""
PARAMETER = "token"
COOKIE_S = 365 * 24 * 3600
CLOSED_PAGE = """<main>
<h1>{title}</h1>
<p>This nexi keeps its owner's questions, answers and files, so its page opens only with its token.</p>
<p>If you started it, open the link that <code>nexi serve</code> printed, or enter here what <code>nexi token</code> prints:</p>
<form>
<label>Token <input name="token" type="password" autocomplete="off" required autofocus></label> <button>Open</button>
</form>
<p>If this browser has opened nexi before: <a href="">try again</a>.</p>
</main>
"""
NO_TOKEN, WRONG_TOKEN = "nexi needs its token", "This link has an old or wrong token"


class OwnerAccess:
    """Tells the owner from guests, and what is open to them."""

    def __init__(self, owner: OwnerToken, *, is_always_asked: bool = False) -> None:
        self.owner, self._is_always_asked = owner, is_always_asked

    async def identify(self, headers: Headers, scope: Scope) -> Principal:
        """Who asks; somebody with another key is a guest, since clients of other services send any word. Raises Refused."""
        if self.is_owner(headers):
            return Principal()
        if self.is_open_to_guests(scope["method"], scope["path"]):
            return GUEST
        message = "this is for the owner of the server, and the token is missing or wrong"
        raise build_refusal(401, "unauthorized", message, fix=OWNER_FIX)

    def is_owner(self, headers: Headers) -> bool:
        cookies = cookie_parser(headers.get("cookie", ""))
        return self.owner.is_token(given_token(headers)) or self.owner.is_cookie(cookies.get(_cookie_name(headers), ""))

    def is_open_to_guests(self, method: str, path: str) -> bool:
        if self._is_always_asked:
            return False
        operation = f"{'GET' if method == 'HEAD' else method} {path}"
        return any(fnmatchcase(operation, pattern) for pattern in GUEST_PATHS)


def _cookie_name(headers: Headers) -> str:
    """The name of the owner's cookie. It has the port, since all servers of a host see and set the same cookies."""
    port = headers["host"].rpartition(":")[2]
    return f"nexi-owner-{port}" if port.isdigit() else "nexi-owner"


class GuestDoor:
    """Lets browsers in, and leads guests to the app that `open_app` opens."""

    def __init__(self, access: OwnerAccess, open_app: Callable[[State], AbstractAsyncContextManager[Starlette]]) -> None:
        """`open_app` gets the state of the owner's app."""
        self._access = access
        self._owner = State()
        self._apps = PersonalPool(lambda _person: open_app(self._owner))

    def stand_before(self, app: ASGIApp) -> ASGIApp:
        """The doors of the owner behind this one: a middleware."""
        from nexi.web import UNROUTED  # which imports this module

        async def choose(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return await app(scope, receive, send)
            if scope["state"][PRINCIPAL] == GUEST:
                self._owner = scope["app"].state
                async with self._apps.use(GUEST.person) as guest_app:
                    guest_app.state.nexi.reconfigure(self._owner.nexi.config.for_guests())
                    scope["app"], scope["root_path"] = guest_app, ""  # in place, so that the guard learns which route it was
                    return await ExceptionMiddleware(guest_app.router, handlers=UNROUTED)(scope, receive, send)
            reply = self._stop_browser(scope) if matches_any(scope["path"], PAGES) else None
            return await (reply or app)(scope, receive, send)

        return choose

    def _stop_browser(self, scope: Scope) -> Response | None:
        """The reply to a browser that brings a token, or nothing; None for one that is known."""
        headers = Headers(scope=scope)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for name, value in query if name == PARAMETER), None)
        if token is None:
            return None if self._access.is_owner(headers) else _closed_page(NO_TOKEN)
        if not self._access.owner.is_token(token):
            return _closed_page(WRONG_TOKEN)
        rest = urlencode([(name, value) for name, value in query if name != PARAMETER])
        reply = RedirectResponse(quote(scope["path"]) + (f"?{rest}" if rest else ""), 303, SAFE)  # no token stays in an address
        name, cookie = _cookie_name(headers), self._access.owner.cookie
        reply.set_cookie(name, cookie, max_age=COOKIE_S, path="/", httponly=True, samesite="strict")
        return reply

    async def drain(self, patience_s: float) -> None:
        for app in self._apps.values:
            await app.state.host.drain(patience_s)

    async def close(self) -> None:
        await self._apps.close()


def _closed_page(title: str) -> Response:
    return HTMLResponse(PAGE_HEAD + CLOSED_PAGE.format(title=title), 401, SAFE)
