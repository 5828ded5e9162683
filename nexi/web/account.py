"""One's own account on a team server, and the list of everybody for its administrators.

`team` mounts these routes before the apps of people; below are `Team` and `People`. A person takes along or deletes what is
kept of her, without an administrator. The list shows what is used, never what was asked.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from nexi.app.team import SCOPES, People, PersonUsage, Quotas, Team
from nexi.types import Principal
from nexi.web.guard import PRINCIPAL
from nexi.web.payload import json_reply, read_json
from nexi.web.problems import build_refusal

__all__ = ["ADMIN_PATH", "AccountDoor"]

ADMIN_PATH = "/admin"
MAX_RUNS_LISTED = 100
SAFE = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}
STYLE = "body{font:14px system-ui;margin:2rem}td,th{text-align:left;padding:.2rem .8rem}"
MAX_TOKENS = 50  # of one person
NEW_TOKEN: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
        "read_only": {"type": "boolean"},
        "days": {"type": "number", "minimum": 0.001, "maximum": 3660},
    },
}
LEAVING: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {"name": {"type": "string", "maxLength": 200}},
}


class AccountDoor:
    """What a person does with her account, and what an administrator sees of all."""

    def __init__(self, team: Team, people: People) -> None:
        self._team, self._people = team, people

    def routes(self) -> list[Route]:
        return [
            Route("/account", self._show, methods=["GET"]),
            Route("/account", self._remove, methods=["DELETE"]),
            Route("/account/export", self._export, methods=["GET"]),
            Route("/account/tokens", self._list_tokens, methods=["GET"]),
            Route("/account/tokens", self._add_token, methods=["POST"]),
            Route("/account/tokens/{id}", self._revoke_token, methods=["DELETE"]),
            Route(ADMIN_PATH, self._list_everybody, methods=["GET"]),
        ]

    async def _show(self, request: Request) -> Response:
        """Who one is, what one may use, and what is used."""
        me = _principal_of(request)
        quotas, usage = await asyncio.to_thread(self._read_usage, me.person)
        limits = [{"name": name, "used": used, "most": most} for name, used, most in _list_limits(quotas, usage)]
        return json_reply({"name": me.name, "role": me.role, "limits": limits})

    def _read_usage(self, person: str) -> tuple[Quotas, PersonUsage]:
        return self._people.quotas_of(person), self._people.usage_of(person)

    async def _export(self, request: Request) -> Response:
        """Everything the database keeps of oneself, as `nexi admin users export` prints it."""
        me = _principal_of(request)
        kept = await asyncio.to_thread(self._people.export, me.person)
        await asyncio.to_thread(self._people.record, me.person, "export_user", me.person, _address_of(request))
        headers = {"content-disposition": 'attachment; filename="nexi-export.json"', "cache-control": "no-store"}
        return json_reply({"schema": "nexi-person-1", **kept}, headers=headers)

    async def _list_tokens(self, request: Request) -> Response:
        """One's own tokens, without their secrets."""
        found = await asyncio.to_thread(self._people.list_tokens, _principal_of(request).person)
        return json_reply({"tokens": [msgspec.to_builtins(token) for token in found]})

    async def _add_token(self, request: Request) -> Response:
        """A new token of one's own; this is the only time it is shown."""
        me, wanted = _principal_of(request), await read_json(request, NEW_TOKEN)
        if len(await asyncio.to_thread(self._people.list_tokens, me.person)) >= MAX_TOKENS:
            raise build_refusal(409, "too_many_tokens", f"you have {MAX_TOKENS} tokens", fix="revoke one first")
        scopes = SCOPES[:1] if wanted.get("read_only") else SCOPES
        secret = await asyncio.to_thread(self._people.add_token, me.person, wanted["name"], scopes, wanted.get("days"))
        await asyncio.to_thread(self._people.record, me.person, "add_token", wanted["name"], _address_of(request))
        return json_reply({"name": wanted["name"], "token": secret}, 201, {"cache-control": "no-store"})

    async def _revoke_token(self, request: Request) -> Response:
        me, token = _principal_of(request), request.path_params["id"]
        if not await asyncio.to_thread(self._people.revoke_token, token, me.person):
            raise build_refusal(404, "not_found", f"you have no token {token[:40]}", fix="GET /account/tokens lists yours")
        await asyncio.to_thread(self._people.record, me.person, "revoke_token", token, _address_of(request))
        return Response(status_code=204)

    async def _remove(self, request: Request) -> Response:
        """Delete oneself with everything; the name is asked for so that it does not happen by accident."""
        me = _principal_of(request)
        if (await read_json(request, LEAVING))["name"] != me.name:
            fix = 'send {"name": "..."} with your own name'
            raise build_refusal(400, "not_confirmed", "the name is not yours", fix=fix)
        if me.is_administrator and await asyncio.to_thread(self._is_last_administrator, me.person):
            fix = "make somebody else an administrator first"
            raise build_refusal(409, "last_administrator", "you are the only administrator", fix=fix)
        await asyncio.to_thread(self._people.record, me.person, "remove_user", me.person, _address_of(request))
        await asyncio.to_thread(self._team.remove_person, me.person)
        return Response(status_code=204)

    def _is_last_administrator(self, person: str) -> bool:
        everybody = self._people.list_all()
        return len(everybody) > 1 and not any(
            role == "administrator" and not disabled and other != person for other, _, role, disabled in everybody
        )

    async def _list_everybody(self, request: Request) -> Response:
        """People, tokens, quotas and runs, as one page of tables."""
        return HTMLResponse(await asyncio.to_thread(self._render_everybody), headers=SAFE)

    def _render_everybody(self) -> str:
        people, users, limits, tokens = self._people, [], [], []
        for person, name, role, is_disabled in people.list_all():
            users.append((name, role, "disabled" if is_disabled else "", person))
            limits += [(name, *row) for row in _show_limits(*self._read_usage(person))]
            tokens += [(name, t.name, " ".join(t.scopes), t.last_used, t.id) for t in people.list_tokens(person)]
        runs = [(owner, state, mode, at, run) for run, owner, state, mode, at in people.list_runs(MAX_RUNS_LISTED)]
        return "".join(
            (
                f"<!doctype html><title>nexi: administration</title><style>{STYLE}</style><h1>Administration</h1>",
                _render_table("People", ("name", "role", "", "id"), users),
                _render_table("Used today, and limits", ("name", "what", "used", "limit"), limits),
                _render_table("Tokens", ("name", "token", "may", "last used", "id"), tokens),
                _render_table("Runs", ("name", "state", "mode", "begun", "id"), runs),
                "<p>Change them with <code>nexi admin</code>.</p>",
            )
        )


def _principal_of(request: Request) -> Principal:
    principal: Principal = request.scope["state"][PRINCIPAL]
    return principal


def _address_of(request: Request) -> str:
    return request.client.host if request.client else ""


def _list_limits(quotas: Quotas, usage: PersonUsage) -> Iterator[tuple[str, float, float | None]]:
    yield "runs a day", usage.runs, quotas.runs_per_day
    yield "tokens a day", usage.tokens, quotas.tokens_per_day
    yield "dollars a day", usage.cost, quotas.cost_per_day
    yield "runs at once", usage.running, quotas.running
    yield "megabytes", usage.storage_bytes / 1e6, None if quotas.storage_bytes is None else quotas.storage_bytes / 1e6


def _show_limits(quotas: Quotas, usage: PersonUsage) -> Iterator[tuple[str, str, str]]:
    for name, used, most in _list_limits(quotas, usage):
        if used or most is not None:
            yield name, f"{used:g}", "no limit" if most is None else f"{most:g}"


def _render_table(title: str, heads: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> str:
    head = "".join(f"<th>{html.escape(name)}" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(_show_value(value))}" for value in row) for row in rows)
    return f"<h2>{html.escape(title)}</h2><table><tr>{head}{body}</table>"


def _show_value(value: Any) -> str:
    return "" if value is None else value.strftime("%Y-%m-%d %H:%M") if hasattr(value, "strftime") else str(value)
