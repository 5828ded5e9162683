"""Guests: what stands between the guard and the doors of a server of one person.

A browser gets a cookie for the token in the link, and a plain page without one. Questions of guests go to an app of their own,
which is made with the first of them and has nothing that the owner keeps. Above is the guard, which has said who asks; below
are `access` and the doors.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from urllib.parse import parse_qsl, quote, urlencode

from starlette.applications import Starlette
from starlette.datastructures import Headers, State
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from nexi.app.pool import PersonalPool
from nexi.types import GUEST
from nexi.web.access import OwnerAccess, cookie_name
from nexi.web.guard import PAGES, PRINCIPAL, matches_any

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
        name, cookie = cookie_name(headers), self._access.owner.cookie
        reply.set_cookie(name, cookie, max_age=COOKIE_S, path="/", httponly=True, samesite="strict")
        return reply

    async def drain(self, patience_s: float) -> None:
        for app in self._apps.values:
            await app.state.host.drain(patience_s)

    async def close(self) -> None:
        await self._apps.close()


def _closed_page(title: str) -> Response:
    return HTMLResponse(PAGE_HEAD + CLOSED_PAGE.format(title=title), 401, SAFE)
