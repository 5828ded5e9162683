"""Signing in to a team server, by an identity provider (OpenID Connect) or by a link that works once, and one's own account.

`app` mounts these routes; below are authlib, which is loaded with the first login, `Team` and `People`. State, nonce and code
verifier of a login are kept in the database for one browser and one callback. A person is the issuer and the subject of the ID
token, never an e-mail address; she takes along or deletes what is kept of her, without an administrator.
"""

from __future__ import annotations

import asyncio
import html
import logging
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from nexi.config import Config
from nexi.notices import Notice
from nexi.team.assembly import Team
from nexi.team.limits import MAX_CLOCK_SKEW_S, MAX_LOGIN_S, MAX_NAME_CHARS, MAX_SESSION_DAYS, MAX_TOKEN_DAYS, MAX_TOKENS
from nexi.team.postgres.people import SCOPES, People, list_limits
from nexi.web.guard import address_of, principal_of
from nexi.web.guests import PAGE_HEAD, SAFE
from nexi.web.payload import Refused, build_refusal, json_reply, read_body

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


class _NewToken(Struct, frozen=True, forbid_unknown_fields=True):
    """A token to make."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_CHARS)]
    read_only: bool = False
    days: Annotated[float, Meta(ge=0.001, le=MAX_TOKEN_DAYS)] | None = None


class _Leaving(Struct, frozen=True, forbid_unknown_fields=True):
    """One's own name, so that an account is not deleted by accident."""

    name: Annotated[str, Meta(max_length=MAX_NAME_CHARS)]


class AccountDoor:
    """What a person does with her account."""

    def __init__(self, team: Team, people: People) -> None:
        self._team, self._people = team, people

    def routes(self) -> list[Route]:
        return [
            Route("/account", self._show, methods=["GET"]),
            Route("/account", self._remove, methods=["DELETE"]),
            Route("/account/export", self._export, methods=["GET"]),
            Route("/account/access", self._list_access, methods=["GET"]),
            Route("/account/tokens", self._list_tokens, methods=["GET"]),
            Route("/account/tokens", self._add_token, methods=["POST"]),
            Route("/account/tokens/{id}", self._revoke_token, methods=["DELETE"]),
        ]

    async def _show(self, request: Request) -> Response:
        """Who one is, what one may use, and what is used."""
        me = principal_of(request)
        people, person = self._people, me.person
        quotas, usage = await asyncio.to_thread(lambda: (people.quotas_of(person), people.usage_of(person)))
        limits = [{"name": name, "used": amount, "most": most} for name, amount, most in list_limits(quotas, usage)]
        return json_reply({"name": me.name, "role": me.role, "limits": limits})

    async def _export(self, request: Request) -> Response:
        """Everything the database keeps of oneself, as `nexi admin users export` prints it."""
        me = principal_of(request)
        data = await asyncio.to_thread(self._people.export, me.person)
        await asyncio.to_thread(self._people.record, me.person, "export_user", me.person, address_of(request))
        headers = {"content-disposition": 'attachment; filename="nexi-export.json"', "cache-control": "no-store"}
        return json_reply({"schema": "nexi-person-1", **data}, headers=headers)

    async def _list_access(self, request: Request) -> Response:
        """What administrators did with this account: links that sign in as its person, tokens, exports."""
        access = await asyncio.to_thread(self._people.list_access, principal_of(request).person)
        return json_reply({"access": [msgspec.to_builtins(one) for one in access]})

    async def _list_tokens(self, request: Request) -> Response:
        """One's own tokens, without their secrets."""
        tokens = await asyncio.to_thread(self._people.list_tokens, principal_of(request).person)
        return json_reply({"tokens": [msgspec.to_builtins(token) for token in tokens]})

    async def _add_token(self, request: Request) -> Response:
        """A new token of one's own; this is the only time it is shown."""
        me, wish = principal_of(request), await read_body(request, _NewToken)
        if len(await asyncio.to_thread(self._people.list_tokens, me.person)) >= MAX_TOKENS:
            limit = Notice("limit.tokens", "you have {most} tokens, the most that one person may have", most=MAX_TOKENS)
            raise build_refusal(409, "too_many_tokens", limit, fix=Notice("limit.revoke", "revoke one first"))
        scopes = SCOPES[:1] if wish.read_only else SCOPES
        secret = await asyncio.to_thread(self._people.add_token, me.person, wish.name, scopes, wish.days)
        await asyncio.to_thread(self._people.record, me.person, "add_token", wish.name, address_of(request))
        return json_reply({"name": wish.name, "token": secret}, 201, {"cache-control": "no-store"})

    async def _revoke_token(self, request: Request) -> Response:
        me, token = principal_of(request), request.path_params["id"]
        if not await asyncio.to_thread(self._people.revoke_token, token, me.person):
            raise build_refusal(404, "not_found", f"you have no token {token[:40]}", fix="GET /account/tokens lists yours")
        await asyncio.to_thread(self._people.record, me.person, "revoke_token", token, address_of(request))
        return Response(status_code=204)

    async def _remove(self, request: Request) -> Response:
        """Delete oneself with everything; the name is asked for so that it does not happen by accident."""
        me = principal_of(request)
        if (await read_body(request, _Leaving)).name != me.name:
            fix = 'send {"name": "..."} with your own name'
            raise build_refusal(400, "not_confirmed", "the name is not yours", fix=fix)
        everybody = await asyncio.to_thread(self._people.list_all) if me.is_administrator else []
        has_another = any(
            role == "administrator" and not is_disabled and person != me.person for person, _, role, is_disabled in everybody
        )
        if len(everybody) > 1 and not has_another:
            fix = "make somebody else an administrator first"
            raise build_refusal(409, "last_administrator", "you are the only administrator", fix=fix)
        await asyncio.to_thread(self._people.record, me.person, "remove_user", me.person, address_of(request))
        await asyncio.to_thread(self._team.remove_person, me.person)
        return Response(status_code=204)
