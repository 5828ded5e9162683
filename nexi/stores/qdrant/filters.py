"""A Scope as Qdrant's filter, and the same test for one source at hand."""

from __future__ import annotations

from typing import Any

from qdrant_client import models

from nexi.stores._scope import end_of, normalise_time
from nexi.stores._writing import key_of
from nexi.stores.qdrant.points import Payload, to_seconds
from nexi.types import EVERYTHING, Scope


def for_sources(scope: Scope) -> models.Filter:
    must, must_not = _conditions(scope)
    return models.Filter(must=[match_value("kind", "source"), *must], must_not=must_not or None)


def for_chunks(scope: Scope) -> models.Filter | None:
    """One and the same source of a chunk must meet every condition."""
    if scope == EVERYTHING:
        return None
    conditions: list[Any] = []
    must, must_not = _conditions(scope)
    if must or must_not:
        inner = models.Filter(must=must or None, must_not=must_not or None)
        conditions.append(models.NestedCondition(nested=models.Nested(key="sources", filter=inner)))
    if scope.code is not None:
        conditions.append(match_value("is_code", scope.code))
    return models.Filter(must=conditions)


def match_value(key: str, value: str | bool) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def _match_any(key: str, values: list[str]) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchAny(any=values))


def _conditions(scope: Scope) -> tuple[list[Any], list[Any]]:
    """What must hold for a source in scope, and what must not."""
    must: list[Any] = []
    if scope.urls:
        must.append(_match_any("key", [key_of(url) for url in scope.urls]))
    if scope.domains:
        must.append(_match_any("within", [_normalise_domain(domain) for domain in scope.domains]))
    if scope.languages:
        must.append(_match_any("languages", [language.lower() for language in scope.languages]))
    must.extend(match_value("tags", tag) for tag in scope.tags)
    if scope.since:
        must.append(models.FieldCondition(key="fetched", range=models.Range(gte=to_seconds(normalise_time(scope.since)))))
    if scope.until:
        must.append(models.FieldCondition(key="fetched", range=models.Range(lte=to_seconds(end_of(scope.until)))))
    excluded = [_normalise_domain(domain) for domain in scope.excluded_domains]
    return must, [_match_any("within", excluded)] if excluded else []


def _normalise_domain(domain: str) -> str:
    return domain.strip().strip(".").lower()


def first_in_scope(sources: list[Payload], scope: Scope) -> Payload | None:
    """The first source of a chunk that a scope covers."""
    for source in sources:
        within, languages, tags = set(source["within"]), set(source["languages"]), set(source["tags"])
        if (
            (not scope.urls or source["key"] in {key_of(url) for url in scope.urls})
            and (not scope.domains or not within.isdisjoint(map(_normalise_domain, scope.domains)))
            and within.isdisjoint(map(_normalise_domain, scope.excluded_domains))
            and (not scope.languages or not languages.isdisjoint(language.lower() for language in scope.languages))
            and tags.issuperset(scope.tags)
            and (not scope.since or source["fetched"] >= to_seconds(normalise_time(scope.since)))
            and (not scope.until or source["fetched"] <= to_seconds(end_of(scope.until)))
        ):
            return source
    return None
