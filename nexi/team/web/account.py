"""One's own account on a team server.

`team` mounts these routes before the apps of people; below are `Team` and `People`. A person takes along or deletes what is
kept of her, without an administrator.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.notices import Notice
from nexi.team.assembly import Team
from nexi.team.limits import MAX_NAME_CHARS, MAX_TOKEN_DAYS, MAX_TOKENS
from nexi.team.postgres.people import SCOPES, People, list_limits
from nexi.web.guard import address_of, principal_of
from nexi.web.payload import build_refusal, json_reply, read_body


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
            message = Notice("limit.tokens", "you have {most} tokens, the most that one person may have", most=MAX_TOKENS)
            raise build_refusal(409, "too_many_tokens", message, fix=Notice("limit.revoke", "revoke one first"))
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
