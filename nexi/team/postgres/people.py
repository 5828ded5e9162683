"""People of a team server: who they are, by token, session or identity provider, what they may use, and what was done.

`team.web` asks who a request comes from and `nexi admin` changes things; below is `database`. Secrets are random and stored as
their SHA-256 alone. A person who is disabled or deleted is refused from the next request on.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec import Struct, convert, to_builtins

from nexi.errors import NexiError, StoreError
from nexi.notices import Notice
from nexi.team import limits
from nexi.team.postgres.database import UNLIMITED, Database, clean_text, read_statements
from nexi.text.controls import clean_line
from nexi.types import Principal, RunAudience, Usage

__all__ = ["SCOPES", "People", "PersonUsage", "PersonalRows", "Quotas", "describe_limits", "list_limits", "quota_error"]

SCOPES = ("read", "ask")  # to look at one's own, and to change and ask
TOKEN_PREFIX = "nexi_"  # noqa: S105 - so that scanners recognise a token that was published by mistake
SECRET_BYTES = 32
NAMES_LOCK = 0x6E657871
SQL = read_statements(__file__)
ACCESS_ACTIONS = ("link_made_by", "sign_in_by_link", "token_made_by", "exported_by")  # in the audit log, under the person's id


class Quotas(Struct, frozen=True):
    """What one person may use a day, at once and in storage; None is without limit. The fields are the columns of the table."""

    runs_per_day: int | None = None
    tokens_per_day: int | None = None
    cost_per_day: float | None = None
    running: int | None = None
    storage_bytes: int | None = None
    models: tuple[str, ...] | None = None  # that she may ask for, in the place of the team's


class PersonUsage(Struct, frozen=True):
    """What one person has used today, and what is kept of her."""

    runs: int = 0
    tokens: int = 0
    cost: float = 0.0
    running: int = 0
    storage_bytes: int = 0


class StoredToken(Struct, frozen=True):
    """A token as it is listed; its secret is not known."""

    id: str
    name: str
    scopes: tuple[str, ...]
    expires: datetime | None
    last_used: datetime | None


class AccountAccess(Struct, frozen=True):
    """What an administrator did with the account of a person, or somebody with what the administrator made."""

    at: datetime
    action: str
    by: str
    address: str


class People:
    """Everybody of one team server. Its methods block; each raises StoreError."""

    def __init__(self, database: Database, *, patience_s: float | None = None) -> None:
        self.database, self._patience_s = database, patience_s

    def add(self, name: str, role: str = "user") -> str:
        """A new person, by her id, with a name that only she has: what is shared names its owner. Raises NexiError."""
        with self.database.transaction() as connection:
            if _is_taken(connection, name):
                raise NexiError(f"there is already a person named {name}", fix="choose another name", code="bad_request")
            row = connection.execute("insert into people (name, role) values (%s, %s) returning id", (clean_text(name), role))
            return str(row.fetchone()[0])

    def list_all(self) -> list[tuple[str, str, str, bool]]:
        """Id, name and role of everybody, and whether she is disabled."""
        rows = self._fetch("select id, name, role, disabled from people order by created, id")
        return [(str(row[0]), row[1], row[2], row[3]) for row in rows]

    def find(self, words: str) -> str:
        """The id of a person, by her id or her name. Raises NexiError where that names nobody, or several."""
        rows = self._fetch("select id from people where id::text = %(words)s or name = %(words)s", words=clean_text(words))
        if len(rows) == 1:
            return str(rows[0][0])
        if rows:
            raise NexiError(
                f"several people are called {words!r}", fix="use the id, which an administrator can tell you", code="not_found"
            )
        raise NexiError(
            Notice("person.unknown", "there is no one called {name}", name=words),
            fix=Notice("person.spelling", "check the spelling; nexi admin users lists everyone"),
            code="not_found",
        )

    def find_names(self, ids: Sequence[str]) -> dict[str, str]:
        """The names of people, by id."""
        rows = self._fetch("select id, name from people where id = any(%(ids)s::uuid[])", ids=list(ids)) if ids else []
        return {str(person): name for person, name in rows}

    def name_audience(self, ids: Sequence[Any]) -> RunAudience:
        """Who reads what is shared with these ids, in their order; None among them is the whole team."""
        people = [str(person) for person in ids if person]
        names = self.find_names(people)
        return RunAudience(None in ids, tuple(names[person] for person in people))

    def change(self, person: str, *, role: str | None = None, is_disabled: bool | None = None) -> None:
        self._fetch(SQL["change"], person=person, role=role, disabled=is_disabled)

    def remove(self, person: str) -> None:
        """Delete a person with everything of hers. What others have read too stays theirs; the audit log keeps her id."""
        with self.database.transaction(wait_s=limits.MAX_DELETION_S) as connection:
            connection.execute(UNLIMITED)
            texts = connection.execute(SQL["find_texts"], {"person": person}).fetchall()
            connection.execute("delete from people where id = %(person)s", {"person": person})
            connection.execute(SQL["remove_texts"], {"digests": [digest for (digest,) in texts]})

    # proofs

    def add_token(self, person: str, name: str, scopes: tuple[str, ...] = SCOPES, days: float | None = None) -> str:
        """A new token; this is the only time it is shown."""
        secret = TOKEN_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        seconds = None if days is None else days * 86_400
        self._fetch(SQL["add_token"], person=person, digest=_digest(secret), name=name, scopes=list(scopes), seconds=seconds)
        return secret

    def list_tokens(self, person: str) -> list[StoredToken]:
        sql = "select id, name, scopes, expires, last_used from tokens where person = %(person)s order by created"
        return [StoredToken(str(row[0]), row[1], tuple(row[2]), *row[3:]) for row in self._fetch(sql, person=person)]

    def revoke_token(self, token_id: str, person: str | None = None) -> bool:
        """Whether there was such a token; with `person`, among hers."""
        sql = "delete from tokens where id::text = %(id)s and person = coalesce(%(person)s::uuid, person) returning id"
        return bool(self._fetch(sql, id=clean_text(token_id), person=person))

    def find_by_token(self, secret: str) -> Principal | None:
        """Who sent this token; None where it is unknown, expired, or its person disabled."""
        rows = self._fetch(SQL["find_by_token"], digest=_digest(secret))
        if not rows:
            return None
        person, name, role, scopes, token, is_stale = rows[0]
        if is_stale:
            with suppress(StoreError):  # a database that is read-only still says who somebody is
                self._fetch("update tokens set last_used = now() where id = %(id)s", id=token)
        return Principal(str(person), name, role, tuple(scopes))

    def begin_session(self, person: str) -> str:
        """The secret of a new session, for a cookie."""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        old = "delete from sessions where created < now() - make_interval(days => %(days)s)"
        self._fetch(old, days=limits.MAX_SESSION_DAYS)
        sql = "insert into sessions (digest, person) values (%(digest)s, %(person)s)"
        self._fetch(sql, digest=_digest(secret), person=person)
        return secret

    def find_by_session(self, secret: str) -> Principal | None:
        """Whose session this is; None where it is unknown, idle for too long, too old, or its person disabled."""
        digest = _digest(secret)
        times = {"idle": limits.MAX_SESSION_IDLE_HOURS, "days": limits.MAX_SESSION_DAYS}
        rows = self._fetch(SQL["find_by_session"], digest=digest, **times)
        if not rows:
            return None
        person, name, role, is_stale = rows[0]
        if is_stale:
            with suppress(StoreError):
                self._fetch("update sessions set used = now() where digest = %(digest)s", digest=digest)
        return Principal(str(person), name, role, SCOPES)

    def end_session(self, secret: str) -> None:
        self._fetch("delete from sessions where digest = %(digest)s", digest=_digest(secret))

    def add_link(self, person: str) -> str:
        """A secret that signs a person in once, within the hour."""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        sql = "insert into sign_in_links values (%(digest)s, %(person)s, now() + make_interval(mins => %(minutes)s))"
        self._fetch(sql, digest=_digest(secret), person=person, minutes=limits.MAX_LINK_MINUTES)
        return secret

    def use_link(self, secret: str) -> str | None:
        """Whose link this is; it works once."""
        sql = "delete from sign_in_links where digest = %(digest)s returning person, expires > now()"
        rows = self._fetch(sql, digest=_digest(secret))
        return str(rows[0][0]) if rows and rows[0][1] else None

    def keep_login(self, data: dict[str, Any], seconds: float) -> str:
        """Keep what one browser must bring back from its provider, under a secret for its cookie."""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        self._fetch("delete from logins where expires < now()")
        sql = "insert into logins values (%(digest)s, %(data)s, now() + make_interval(secs => %(seconds)s))"
        self._fetch(sql, digest=_digest(secret), data=json.dumps(data), seconds=seconds)
        return secret

    def take_login(self, secret: str) -> dict[str, Any] | None:
        """What was kept for a login, once."""
        sql = "delete from logins where digest = %(digest)s returning data, expires > now()"
        rows = self._fetch(sql, digest=_digest(secret))
        login: dict[str, Any] | None = json.loads(rows[0][0]) if rows and rows[0][1] else None
        return login

    def sign_in(self, issuer: str, subject: str, name: str, email: str) -> str:
        """The person behind an identity, made at her first visit. The first of all is an administrator."""
        with self.database.transaction() as connection:
            connection.execute("lock table identities in share row exclusive mode")  # two first visits make one administrator
            key = (clean_text(issuer), clean_text(subject))
            identity = connection.execute("select person from identities where issuer = %s and subject = %s", key).fetchone()
            if identity:
                sql = "update identities set email = %s where issuer = %s and subject = %s"
                connection.execute(sql, (clean_text(email), *key))
                return str(identity[0])
            display_name = _clean_name(name or email or subject)
            if _is_taken(connection, display_name):
                display_name = _clean_name(f"{display_name} ({email or subject})")
            (person,) = connection.execute(SQL["add_with_role"], {"name": display_name}).fetchone()
            connection.execute("insert into identities values (%s, %s, %s, %s)", (*key, person, clean_text(email)))
            return str(person)

    # what may be used

    def set_quotas(self, person: str, quotas: Quotas) -> None:
        names, values = Quotas.__struct_fields__, to_builtins(quotas)
        places = ", ".join(f"%({name})s" for name in names)
        changes = ", ".join(f"{name} = excluded.{name}" for name in names)
        self._fetch(
            f"insert into quotas (person, {', '.join(names)}) values (%(person)s, {places}) "  # noqa: S608
            f"on conflict (person) do update set {changes}",
            person=person,
            **{**values, "models": None if quotas.models is None else list(quotas.models)},
        )

    def take_run(self, person: str, *, is_queued: bool = False) -> str:
        """Count a run that is let in: "", or the quota that is reached, and then nothing is counted."""
        return self._fetch("select take_run(%(person)s, %(is_queued)s)", person=person, is_queued=is_queued)[0][0] or ""

    def take_call(self, person: str, tokens: int, *, is_new: bool) -> str:
        """Count a model call outside a run: "", or the quota that is reached, and then nothing is counted."""
        rows = self._fetch("select take_call(%(person)s, %(tokens)s, %(is_new)s)", person=person, tokens=tokens, is_new=is_new)
        return rows[0][0] or ""

    def settle_call(self, person: str, estimate: int, usage: Usage) -> None:
        """Replace the estimate that `take_call` counted by what the call did cost."""
        sql, difference = "select settle_call(%(person)s, %(difference)s, %(cost)s)", usage.total - estimate
        self._fetch(sql, person=person, difference=difference, cost=usage.cost or 0.0)

    def quotas_of(self, person: str) -> Quotas:
        sql = f"select {', '.join(Quotas.__struct_fields__)} from quotas where person = %(person)s"  # noqa: S608
        rows = self._fetch(sql, person=person)
        return convert(dict(zip(Quotas.__struct_fields__, rows[0], strict=True)), Quotas) if rows else Quotas()

    def usage_of(self, person: str) -> PersonUsage:
        """What a person has used today, runs that wait included."""
        return PersonUsage(*self._fetch(SQL["usage"], person=person)[0])

    # what was done

    def record(self, person: str | None, action: str, subject: str = "", address: str = "") -> None:
        """Add a line to the audit log."""
        sql = "insert into audit (person, action, subject, address) values (%(person)s, %(action)s, %(subject)s, %(address)s)"
        self._fetch(sql, person=person, action=action, subject=clean_text(subject)[:500], address=clean_text(address)[:100])

    def read_audit(self, count: int = 100) -> list[tuple[datetime, str, str, str, str]]:
        """The newest lines of the audit log: time, person, action, subject, address."""
        sql = "select at, person, action, subject, address from audit order by number desc limit %(count)s"
        return [(row[0], str(row[1] or ""), row[2], row[3], row[4]) for row in self._fetch(sql, count=count)]

    def list_access(self, person: str) -> list[AccountAccess]:
        """What administrators did with the account of a person, the newest first."""
        rows = self._fetch(SQL["access"], person=person, actions=list(ACCESS_ACTIONS), count=limits.MAX_ACCESS_LISTED)
        return [AccountAccess(*row) for row in rows]

    def list_runs(self, count: int = 20) -> list[tuple[str, str, str, str, datetime]]:
        """The newest runs of everybody: id, owner, state, mode, time. What was asked stays with its owner."""
        return self._fetch(SQL["runs"], count=count)

    def export(self, person: str) -> dict[str, Any]:
        """Everything that is kept of a person in the database, as JSON values without secrets; run logs line by line."""
        data: dict[str, Any] = {}
        for name, query in SQL.items():
            kind, _, table = name.partition(" ")
            if kind == "export":
                rows = self._read_all(f"select row_to_json(t)::text from ({query}) t", person=person)  # noqa: S608
                data[table] = [json.loads(row) for (row,) in rows]
        entries = self._read_all("select entry from history where owner = %(person)s order by number", person=person)
        data["history"] = [json.loads(entry) for (entry,) in entries]
        data["sources"] = [
            {"url": url, "title": title, "fetched_at": fetched_at, "passages": [json.loads(bytes(c))[0] for c in contents]}
            for url, title, fetched_at, contents in self._read_all(SQL["sources"], person=person)
        ]
        texts = self._read_all(SQL["texts"], person=person)
        data["pages"] = {digest: bytes(body).decode("utf-8", "replace") for digest, body in texts}
        runs = self._read_all("select run, header from runs where owner = %(person)s order by created", person=person)
        data["runs"] = {
            run: [header.rstrip("\n"), *(line.rstrip("\n") for (line,) in self._read_all(SQL["lines"], run=run))]
            for run, header in runs
        }
        return data

    def _read_all(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        return self.database.fetch(statement, values, patience_s=self._patience_s, wait_s=limits.MAX_STATEMENT_S)

    def _fetch(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        return self.database.fetch(statement, values, patience_s=self._patience_s)


class PersonalRows:
    """What belongs to one person: its statements see and change nothing else, and know her as `owner`."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database, self._owner = database, owner
        self._people = People(database)

    def _fetch(
        self, statement: str, *, is_alone: bool = False, patience_s: float | None = None, **values: Any
    ) -> list[tuple[Any, ...]]:
        values = {"owner": self._owner, **values}
        return self._database.fetch_as(self._owner, statement, values, is_alone=is_alone, patience_s=patience_s)


def describe_limits(changes: Mapping[str, Any]) -> str:
    """Changed limits for the audit log; where there is no change, all were removed."""
    values = {name: "/".join(value) if isinstance(value, tuple) else value for name, value in changes.items()}
    words = (f"{name.replace('_', ' ')} {'none' if value is None else value}" for name, value in values.items())
    return ", ".join(words) or "none"


def list_limits(quotas: Quotas, usage: PersonUsage) -> Iterator[tuple[str, float, float | None]]:
    """What may be limited: its name, how much is used, and how much may be."""
    yield "runs a day", usage.runs, quotas.runs_per_day
    yield "tokens a day", usage.tokens, quotas.tokens_per_day
    yield "dollars a day", usage.cost, quotas.cost_per_day
    yield "runs at once", usage.running, quotas.running
    yield "megabytes", usage.storage_bytes / 1e6, None if quotas.storage_bytes is None else quotas.storage_bytes / 1e6


def quota_error(limit: str, quotas: Quotas, usage: PersonUsage) -> NexiError:
    """The error for a person who has reached a quota, by the name that `take_run` gives it."""
    tomorrow, wait = "ask again tomorrow, or ask an administrator for more", "wait for a run to end"
    freeing = "delete runs or stored sources, or ask an administrator for more"
    name, most, now, fix = {
        "runs": (Notice("quota.runs", "runs a day"), quotas.runs_per_day, usage.runs, tomorrow),
        "tokens": (Notice("quota.tokens", "tokens a day"), quotas.tokens_per_day, usage.tokens, tomorrow),
        "cost": (Notice("quota.cost", "dollars a day"), quotas.cost_per_day, usage.cost, tomorrow),
        "running": (Notice("quota.running", "runs at once"), quotas.running, usage.running, wait),
        "storage": (Notice("quota.storage", "storage"), (quotas.storage_bytes or 0) / 1e6, usage.storage_bytes / 1e6, freeing),
    }[limit]
    cause = f"{now:g} of {most or 0:g}{' MB' * (limit == 'storage')} are used"
    message = Notice("quota.reached", "you have reached your quota of {quota}", quota=name)
    return NexiError(message, cause=cause, fix=fix, code="quota_reached")


def _is_taken(connection: Any, name: str) -> bool:
    """Whether somebody has this name, in whatever case, or this id. Nobody else gets it until the transaction ends."""
    connection.execute("select pg_advisory_xact_lock(%s)", (NAMES_LOCK,))
    sql = "select from people where lower(name) = lower(%(name)s) or id::text = %(name)s"
    return connection.execute(sql, {"name": clean_text(name)}).fetchone() is not None


def _clean_name(name: str) -> str:
    """A name as it is shown: one line, nothing that turns or hides what stands beside it."""
    return clean_text(clean_line(unicodedata.normalize("NFKC", name))).strip()[: limits.MAX_NAME_CHARS] or "unnamed"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
