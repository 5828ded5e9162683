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
    must: list[Any] = [_match_any(key, values) for key, values in _values_by_key(scope).items() if values]
    must.extend(match_value("tags", tag) for tag in scope.tags)
    if scope.since:
        must.append(models.FieldCondition(key="fetched", range=models.Range(gte=to_seconds(normalise_time(scope.since)))))
    if scope.until:
        must.append(models.FieldCondition(key="fetched", range=models.Range(lte=to_seconds(end_of(scope.until)))))
    excluded = [_normalise_domain(domain) for domain in scope.excluded_domains]
    return must, [_match_any("within", excluded)] if excluded else []


def _values_by_key(scope: Scope) -> dict[str, list[str]]:
    """Of which a source must have one each, where there are any."""
    return {
        "key": [key_of(url) for url in scope.urls],
        "within": [_normalise_domain(domain) for domain in scope.domains],
        "languages": [language.lower() for language in scope.languages],
    }


def _normalise_domain(domain: str) -> str:
    return domain.strip().strip(".").lower()


def first_in_scope(sources: list[Payload], scope: Scope) -> Payload | None:
    """The first source of a chunk that a scope covers."""
    for source in sources:
        own_values = {"key": {source["key"]}, "within": set(source["within"]), "languages": set(source["languages"])}
        if (
            not any(values and own_values[key].isdisjoint(values) for key, values in _values_by_key(scope).items())
            and own_values["within"].isdisjoint(map(_normalise_domain, scope.excluded_domains))
            and set(source["tags"]).issuperset(scope.tags)
            and (not scope.since or source["fetched"] >= to_seconds(normalise_time(scope.since)))
            and (not scope.until or source["fetched"] <= to_seconds(end_of(scope.until)))
        ):
            return source
    return None
