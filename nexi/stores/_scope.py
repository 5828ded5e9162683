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
    clauses: list[tuple[str, list[Value]]] = []
    if scope.urls:
        clauses.append((f"s.key IN ({', '.join('?' * len(scope.urls))})", [urls.hit_key(url) for url in scope.urls]))
    if scope.domains:
        clauses.append(_domain_clause(scope.domains, ""))
    if scope.excluded_domains:
        clauses.append(_domain_clause(scope.excluded_domains, "NOT "))
    if scope.languages:
        # `en` covers `en-GB`
        clause = " OR ".join(["s.language = ? OR (s.language >= ? AND s.language < ?)"] * len(scope.languages))
        names = [language.lower() for language in scope.languages]
        clauses.append((f"({clause})", [limit for name in names for limit in (name, name + "-", name + ".")]))
    for tag in scope.tags:
        clauses.append(("s.id IN (SELECT source FROM tags WHERE tag = ?)", [tag]))
    if scope.since:
        clauses.append(("s.fetched_at >= ?", [normalise_time(scope.since)]))
    if scope.until:
        clauses.append(("s.fetched_at <= ?", [end_of(scope.until)]))
    return Condition(" AND ".join(sql for sql, _ in clauses), tuple(value for _, values in clauses for value in values))


def _domain_clause(domains: tuple[str, ...], mark: str) -> tuple[str, list[Value]]:
    """Hosts are stored backwards, so a domain with its subdomains is a range: com.example. up to com.example/."""
    hosts = [reverse_domain(domain) for domain in domains]
    clause = " OR ".join(["(s.host >= ? AND s.host < ?)"] * len(hosts))
    return f"{mark}({clause})", [limit for host in hosts for limit in (host, host[:-1] + "/")]


def reverse_domain(domain: str) -> str:
    """example.com as com.example. with a dot at its end."""
    return ".".join(reversed([label for label in domain.strip().strip(".").lower().split(".") if label])) + "."


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
