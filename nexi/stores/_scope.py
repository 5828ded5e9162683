"""A Scope as SQL over the stored sources, so that nothing is filtered in Python."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from nexi import urls
from nexi.types import EVERYTHING, Scope

Value = str | int


class Condition(Struct, frozen=True):
    """What follows WHERE, about a source `s`, and its values. Empty for everything."""

    sql: str = ""
    values: tuple[Value, ...] = ()


def scope_condition(scope: Scope) -> Condition:
    """The sources of a scope; `code` is about chunks and not part of it."""
    if scope == EVERYTHING:
        return Condition()
    clauses: list[str] = []
    values: list[Value] = []
    for sql, given in _scope_clauses(scope):
        clauses.append(sql)
        values.extend(given)
    return Condition(" AND ".join(clauses), tuple(values))


def _scope_clauses(scope: Scope) -> list[tuple[str, list[Value]]]:
    found: list[tuple[str, list[Value]]] = []
    if scope.urls:
        found.append((f"s.key IN ({', '.join('?' * len(scope.urls))})", [urls.hit_key(url) for url in scope.urls]))
    if scope.domains:
        found.append(_domain_clause(scope.domains, ""))
    if scope.excluded_domains:
        found.append(_domain_clause(scope.excluded_domains, "NOT "))
    if scope.languages:
        found.append(_language_clause(scope.languages))
    for tag in scope.tags:
        found.append(("s.id IN (SELECT source FROM tags WHERE tag = ?)", [tag]))
    if scope.since:
        found.append(("s.fetched_at >= ?", [normalise_time(scope.since)]))
    if scope.until:
        found.append(("s.fetched_at <= ?", [end_of(scope.until)]))
    return found


def _domain_clause(domains: tuple[str, ...], mark: str) -> tuple[str, list[Value]]:
    """Hosts are stored backwards, so a domain with its subdomains is a range: com.example. up to com.example/."""
    hosts = [reverse_domain(domain) for domain in domains]
    clause = " OR ".join(["(s.host >= ? AND s.host < ?)"] * len(hosts))
    return f"{mark}({clause})", [bound for host in hosts for bound in (host, host[:-1] + "/")]


def _language_clause(languages: tuple[str, ...]) -> tuple[str, list[Value]]:
    """`en` covers `en-GB`."""
    clause = " OR ".join(["s.language = ? OR (s.language >= ? AND s.language < ?)"] * len(languages))
    names = [language.lower() for language in languages]
    return f"({clause})", [bound for name in names for bound in (name, name + "-", name + ".")]


def reverse_domain(domain: str) -> str:
    """example.com as com.example. with a dot at its end."""
    labels = [label for label in domain.strip().strip(".").lower().split(".") if label]
    return ".".join(reversed(labels)) + "."


def normalise_time(text: str) -> str:
    """An ISO 8601 time in one form (UTC, seconds), so that times compare as text; what is no time stays as it is."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return text
    return when.replace(tzinfo=when.tzinfo or UTC).astimezone(UTC).isoformat(timespec="seconds")


def end_of(text: str) -> str:
    """The last moment of a day that is given without a time."""
    return normalise_time(f"{text}T23:59:59" if len(text) == len("2026-01-31") else text)
