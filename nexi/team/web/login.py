"""Signing in to a team server: by an identity provider (OpenID Connect), or by a link that works once.

`team` mounts these routes; below are authlib, which is loaded with the first login, and `People`. State, nonce and code
verifier of a login are kept in the database for one browser and one callback. A person is the issuer and the subject of the ID
token, never an e-mail address.
"""

from __future__ import annotations

import asyncio
import html
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from nexi.config import Config
from nexi.team.limits import MAX_CLOCK_SKEW_S, MAX_LOGIN_S, MAX_SESSION_DAYS
from nexi.team.postgres.people import People
from nexi.web.guard import address_of
from nexi.web.guests import PAGE_HEAD, SAFE
from nexi.web.payload import Refused, build_refusal

log = logging.getLogger("nexi.web")
COOKIE = "__Host-nexi"
LOGIN_COOKIE = "__Host-nexi-login"
REFUSAL_PAGE = """<main>
<h1>You are not signed in</h1>
<p>{message}</p>
<p>What to do: {fix}</p>
<p><a href="/login">Sign in again</a></p>
</main>
"""
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class LoginDoor:
    """The routes of signing in and out."""

    def __init__(self, config: Config, people: People) -> None:
        self._config, self._people = config, people
        self._client: Any = None

    def routes(self) -> list[Route]:
        return [
            Route("/login", _show_refusals(self._begin), methods=["GET"]),
            Route("/login/callback", _show_refusals(self._finish), methods=["GET"]),
            Route("/login/link/{secret}", self._show_link, methods=["GET"]),
            Route("/login/link/{secret}", _show_refusals(self._use_link), methods=["POST"]),
            Route("/logout", self._end, methods=["POST"]),
        ]

    async def _begin(self, request: Request) -> Response:
        """To the provider, with a state that only this browser can bring back."""
        client = self._provider()
        request.scope["session"] = {}  # where authlib leaves the state of the login
        base_url = self._config.public_url.rstrip("/") or f"{request.url.scheme}://{request.headers['host']}"
        try:
            reply: Response = await client.authorize_redirect(request, f"{base_url}/login/callback")
        except Exception as error:
            raise self._provider_error(error) from error
        secret = await asyncio.to_thread(self._people.keep_login, dict(request.scope["session"]), MAX_LOGIN_S)
        _set_cookie(reply, LOGIN_COOKIE, secret, MAX_LOGIN_S)
        return reply

    async def _finish(self, request: Request) -> Response:
        """From the provider: a session, if the state, the nonce and the ID token are sound."""
        from authlib.common.errors import AuthlibBaseError
        from joserfc.errors import JoseError

        client = self._provider()
        login = await asyncio.to_thread(self._people.take_login, request.cookies.get(LOGIN_COOKIE, ""))
        if login is None:
            raise _login_refusal("this login was not begun in this browser, or is over")
        request.scope["session"] = login
        try:
            claims = (await client.authorize_access_token(request, leeway=MAX_CLOCK_SKEW_S)).get("userinfo") or {}
        except (AuthlibBaseError, JoseError, ValueError) as error:
            if getattr(error, "error", "") in ("invalid_client", "unauthorized_client"):
                # a person cannot put this right by beginning again
                log.warning("the identity provider refused this server", extra={"why": str(error)[:300]})
                message = "the identity provider refused this server: it does not accept its client id and secret"
                fix = "an administrator must correct oidc_client and oidc_secret"
                raise build_refusal(502, "provider_failed", message, fix=fix) from error
            raise _login_refusal(f"the identity provider's answer cannot be used: {error}"[:300]) from error
        except Exception as error:
            raise self._provider_error(error) from error
        issuer, subject = str(claims.get("iss") or ""), str(claims.get("sub") or "")
        if not issuer or not subject:
            raise _login_refusal("the identity provider did not say who you are")
        name, email = str(claims.get("name") or ""), str(claims.get("email") or "")
        person = await asyncio.to_thread(self._people.sign_in, issuer, subject, name, email)
        return await self._open_session(request, person, "sign_in")

    async def _show_link(self, request: Request) -> Response:
        """A button, since programs that preview links would use them up."""
        action = html.escape(request.url.path)
        origin = '<meta name="referrer" content="same-origin">'  # without it a browser hides where the form comes from
        form = f'<form method="post" action="{action}"><button>Sign in to nexi</button></form>'
        return HTMLResponse(f'<!doctype html><html lang="en"><title>nexi</title>{origin}{form}', headers=SAFE)

    async def _use_link(self, request: Request) -> Response:
        person = await asyncio.to_thread(self._people.use_link, request.path_params["secret"])
        if person is None:
            raise _login_refusal("this link was used already, or is too old")
        return await self._open_session(request, person, "sign_in_by_link")

    async def _end(self, request: Request) -> Response:
        await asyncio.to_thread(self._people.end_session, request.cookies.get(COOKIE, ""))
        reply = RedirectResponse("/", 303)
        _set_cookie(reply, COOKIE, "", 0)
        return reply

    async def _open_session(self, request: Request, person: str, action: str) -> Response:
        await asyncio.to_thread(self._people.record, person, action, "", address_of(request))
        reply = RedirectResponse("/", 303)
        _set_cookie(reply, COOKIE, await asyncio.to_thread(self._people.begin_session, person), MAX_SESSION_DAYS * 24 * 3600)
        _set_cookie(reply, LOGIN_COOKIE, "", 0)
        return reply

    def _provider(self) -> Any:
        if not self._config.oidc_issuer:
            fix = "ask an administrator for a token or a link"
            raise build_refusal(404, "no_provider", "no identity provider is set up", fix=fix)
        if self._client is None:
            from authlib.integrations.starlette_client import OAuth

            registry, config = OAuth(), self._config
            self._client = registry.register(
                "nexi",
                client_id=config.oidc_client,
                client_secret=config.oidc_secret,
                server_metadata_url=f"{config.oidc_issuer.rstrip('/')}/.well-known/openid-configuration",
                client_kwargs={"scope": "openid email profile", "code_challenge_method": "S256"},
            )
        return self._client

    def _provider_error(self, error: Exception) -> Refused:
        """The provider did not answer, or what answers there is none."""
        log.warning("the identity provider failed", extra={"why": f"{type(error).__name__}: {error}"[:300]})
        issuer, status = self._config.oidc_issuer, getattr(getattr(error, "response", None), "status_code", 0)
        if isinstance(error, ValueError | RuntimeError) or 0 < status < 500:
            message = f"the identity provider could not be asked: {issuer} has no OpenID configuration"
            return build_refusal(502, "provider_failed", message, fix="an administrator must correct oidc_issuer")
        cause = f"{issuer} answered HTTP {status}" if status else f"nothing answers at {issuer}"
        message = f"the identity provider could not be asked: {cause}"
        fix = "try again soon; if it stays, an administrator must correct oidc_issuer"
        return build_refusal(502, "provider_failed", message, fix=fix, retry_after=5)


def _show_refusals(handle: Handler) -> Handler:
    """The same, with a page in place of JSON where a person signs in by a browser."""

    async def handle_and_show(request: Request) -> Response:
        try:
            return await handle(request)
        except Refused as refused:
            if "text/html" not in request.headers.get("accept", ""):
                raise
            texts = {"message": refused.problem.message, "fix": refused.problem.fix}
            sentences = {name: html.escape(f"{text[:1].upper()}{text[1:]}.") for name, text in texts.items()}
            return HTMLResponse(PAGE_HEAD + REFUSAL_PAGE.format(**sentences), refused.problem.status, SAFE)

    return handle_and_show


def _set_cookie(reply: Response, name: str, value: str, seconds: int) -> None:
    reply.set_cookie(name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax")


def _login_refusal(message: str) -> Refused:
    return build_refusal(400, "login_refused", message, fix="begin again at /login")
