"""The page on which the administrators of a team server see and change people, quotas and tokens.

`team` mounts it and lets only administrators in; below are `Team` and `People`. Plain forms without scripts: each names its
action, and the reply is the page again. The tables show what is used, never what was asked.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from nexi.errors import NexiError
from nexi.team.assembly import Team
from nexi.team.limits import MAX_NAME_CHARS, MAX_RUNS_LISTED
from nexi.team.postgres.people import People, Quotas, describe_limits, list_limits
from nexi.types import Principal
from nexi.web.guard import address_of, principal_of

ADMIN_PATH = "/admin"
SAFE = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
}
STYLE = (
    ":root{color-scheme:light dark}body{font:14px/1.5 system-ui;margin:2rem auto;padding:0 1rem;max-width:72rem}"
    "td,th{text-align:start;padding:.2rem .8rem .2rem 0;vertical-align:top}form{display:inline-flex;gap:.4rem;flex-wrap:wrap;"
    "align-items:end;margin:.1rem .6rem .1rem 0}input[type=number]{width:7rem}"
    "button,input,select{font:inherit;min-height:1.8rem}"
    "label{display:grid}.scroll{overflow-x:auto}[role=status]{border:1px solid;padding:.6rem;overflow-wrap:anywhere}"
)
QUOTA_FIELDS = {  # the field of the form, its label, and how many of the stored unit one is
    "runs_per_day": ("runs a day", 1),
    "tokens_per_day": ("tokens a day", 1),
    "cost_per_day": ("dollars a day", 1),
    "running": ("runs at once", 1),
    "storage_bytes": ("megabytes", 1_000_000),
}
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,6})?", re.ASCII)

Fields = Mapping[str, str]


class AdministrationDoor:
    """What an administrator sees and changes in the browser."""

    def __init__(self, team: Team, people: People) -> None:
        self._team, self._people = team, people
        self._actions: dict[str, Callable[[Fields, Principal], tuple[str, str]]] = {
            "add_user": self._add_user,
            "add_link": self._add_link,
            "disable_user": self._change_access,
            "enable_user": self._change_access,
            "remove_user": self._remove_user,
            "set_role": self._set_role,
            "set_quotas": self._set_quotas,
            "revoke_token": self._revoke_token,
        }

    def routes(self) -> list[Route]:
        return [Route(ADMIN_PATH, self._show, methods=["GET"]), Route(ADMIN_PATH, self._change, methods=["POST"])]

    async def _show(self, request: Request) -> Response:
        return HTMLResponse(await asyncio.to_thread(self._render_page), headers=SAFE)

    async def _change(self, request: Request) -> Response:
        """Do what a form asks. A secret is shown in the reply itself, once; else the page is loaded anew."""
        fields = dict(parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True))
        try:
            notice = await asyncio.to_thread(self._apply, fields, principal_of(request), address_of(request))
        except NexiError as error:
            problem = ". ".join(part[:1].upper() + part[1:] for part in (error.message, error.cause, error.fix) if part) + "."
            return HTMLResponse(await asyncio.to_thread(self._render_page, problem), 400, headers=SAFE)
        if notice:
            return HTMLResponse(await asyncio.to_thread(self._render_page, notice), headers=SAFE)
        return RedirectResponse(ADMIN_PATH, 303)  # to load it again does nothing twice

    def _apply(self, fields: Fields, me: Principal, address: str) -> str:
        action = fields.get("action", "")
        if action not in self._actions:
            raise NexiError("this form is of another version of the page", fix="load the page again", code="bad_request")
        notice, subject = self._actions[action](fields, me)
        self._people.record(me.person, action, subject, address)
        return notice

    # actions: each gives what to show, and the subject for the audit log

    def _add_user(self, fields: Fields, me: Principal) -> tuple[str, str]:
        name = fields.get("name", "").strip()
        if not 0 < len(name) <= MAX_NAME_CHARS:
            raise NexiError("a person needs a name", fix=f"give one of at most {MAX_NAME_CHARS} characters", code="bad_request")
        person = self._people.add(name, "administrator" if fields.get("administrator") else "user")
        return self._make_link(person, name, me), person

    def _add_link(self, fields: Fields, me: Principal) -> tuple[str, str]:
        person, name = self._find(fields)
        return self._make_link(person, name, me), person

    def _make_link(self, person: str, name: str, me: Principal) -> str:
        """A link, in words; that there is one is shown to the person on their account."""
        self._people.record(person, "link_made_by", me.name)
        return f"This path of the server signs {name} in once, within the hour: /login/link/{self._people.add_link(person)}"

    def _change_access(self, fields: Fields, me: Principal) -> tuple[str, str]:
        is_disabled = fields["action"] == "disable_user"
        person, _ = self._find_other(fields, me) if is_disabled else self._find(fields)
        self._people.change(person, is_disabled=is_disabled)
        return "", person

    def _set_role(self, fields: Fields, me: Principal) -> tuple[str, str]:
        person, _ = self._find_other(fields, me)
        role = "administrator" if fields.get("role") == "administrator" else "user"
        self._people.change(person, role=role)
        return "", f"{person} {role}"

    def _remove_user(self, fields: Fields, me: Principal) -> tuple[str, str]:
        person, name = self._find_other(fields, me)
        if fields.get("name", "").strip() != name:
            raise NexiError(
                f"{name} was not deleted", cause="the name typed is another", fix=f"type {name}", code="bad_request"
            )
        self._team.remove_person(person)
        return f"{name} was deleted with everything of theirs.", person

    def _set_quotas(self, fields: Fields, me: Principal) -> tuple[str, str]:
        person, _ = self._find(fields)
        quotas: dict[str, Any] = {}
        for field, (label, unit) in QUOTA_FIELDS.items():
            text, quotas[field] = fields.get(field, ""), None
            if not text.strip():
                continue
            if not _NUMBER.fullmatch(text.strip()):
                fix = "use digits, or leave it empty"
                raise NexiError(f"the limit of {label} is not a number: {text[:40]}", fix=fix, code="bad_request")
            number = float(text) * unit
            if label == "runs at once" and number < 1:
                raise NexiError("at least one run at once is needed", fix="disable the person instead", code="bad_request")
            quotas[field] = number if label.startswith("dollars") else int(number)
        self._people.set_quotas(person, replace(self._people.quotas_of(person), **quotas))
        return "", f"{person}: {describe_limits(quotas)}"

    def _revoke_token(self, fields: Fields, me: Principal) -> tuple[str, str]:
        token = fields.get("token", "")
        if not self._people.revoke_token(token):
            raise NexiError("this token is revoked already", fix="load the page again", code="not_found")
        return "", token

    def _find(self, fields: Fields) -> tuple[str, str]:
        for person, name, _, _ in self._people.list_all():
            if person == fields.get("person"):
                return person, name
        raise NexiError("this person is not there any more", fix="load the page again", code="not_found")

    def _find_other(self, fields: Fields, me: Principal) -> tuple[str, str]:
        """Somebody else: an administrator who shut herself out could not undo it here."""
        person, name = self._find(fields)
        if person == me.person:
            raise NexiError("you cannot do this to your own account", fix="ask another administrator", code="bad_request")
        return person, name

    # the page

    def _render_page(self, notice: str = "") -> str:
        people, users, limits, tokens = self._people, [], [], []
        for person, name, role, is_disabled in people.list_all():
            quotas = people.quotas_of(person)
            usage = []
            for label, amount, most in list_limits(quotas, people.usage_of(person)):
                limit = "" if most is None else f" of {_show_number(most)}"
                if amount or limit:
                    usage.append(html.escape(f"{label.removesuffix(' a day')}: {_show_number(amount)}{limit}"))
            state = role + ", disabled" * is_disabled
            forms = _render_forms(person, role, is_disabled)
            users.append((html.escape(name), html.escape(state), "<br>".join(usage), forms))
            limits.append((html.escape(name), _render_quotas(person, quotas)))
            for t in people.list_tokens(person):
                revoke = _render_form("revoke_token", "Revoke", _render_hidden("token", t.id))
                tokens.append((*map(_show_value, (name, t.name, " ".join(t.scopes), t.last_used)), revoke))
        runs = [map(_show_value, (*row[1:], row[0])) for row in people.list_runs(MAX_RUNS_LISTED)]
        return "".join(
            (
                '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">',
                '<meta name="referrer" content="same-origin">',  # else its own forms would arrive from an unknown origin
                f"<title>nexi: administration</title><style>{STYLE}</style><h1>Administration</h1>",
                f'<p role="status">{html.escape(notice)}</p>' if notice else "",
                _render_table("People", ("name", "role", "used today", "change"), users),
                _render_form(
                    "add_user",
                    "Add",
                    f'<label>Name<input name="name" required maxlength="{MAX_NAME_CHARS}"></label>'
                    '<label>Administrator<input type="checkbox" name="administrator" value="1"></label>',
                ),
                _render_table("Limits (empty: none)", ("name", "limits"), limits),
                _render_table("Tokens", ("name", "token", "may", "last used", ""), tokens),
                _render_table("Runs", ("name", "state", "mode", "begun", "id"), runs),
                '<p><a href="/">Back to the page</a></p>',
            )
        )


def _show_number(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _render_forms(person: str, role: str, is_disabled: bool) -> str:
    other = "user" if role == "administrator" else "administrator"
    access = ("enable_user", "Let in again") if is_disabled else ("disable_user", "Disable")
    name = '<input name="name" placeholder="type the name" aria-label="Name, to delete">'
    hidden = _render_hidden("person", person)
    return (
        _render_form("add_link", "Link to sign in", hidden)
        + _render_form(*access, hidden)
        + _render_form("set_role", f"Make {other}", hidden + _render_hidden("role", other))
        + _render_form("remove_user", "Delete", hidden + name)
    )


def _render_quotas(person: str, quotas: Quotas) -> str:
    inputs = [_render_hidden("person", person)]
    for field, (label, unit) in QUOTA_FIELDS.items():
        limit = getattr(quotas, field)
        value = "" if limit is None else f"{limit / unit:.6f}".rstrip("0").rstrip(".")
        inputs.append(f'<label>{label}<input type="number" min="0" step="any" name="{field}" value="{value}"></label>')
    return _render_form("set_quotas", "Save", "".join(inputs))


def _render_hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{name}" value="{html.escape(value)}">'


def _render_form(action: str, label: str, fields: str) -> str:
    hidden = _render_hidden("action", action)
    return f'<form method="post" action="{ADMIN_PATH}">{hidden}{fields}<button>{html.escape(label)}</button></form>'


def _render_table(title: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f"<th>{html.escape(name)}" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) for row in rows)
    return f'<h2>{html.escape(title)}</h2><div class="scroll"><table><tr>{head}{body}</table></div>'


def _show_value(value: Any) -> str:
    text = "" if value is None else value.strftime("%Y-%m-%d %H:%M") if hasattr(value, "strftime") else str(value)
    return html.escape(text)
