"""A Scope as Qdrant's filter, and the same test for one source at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qdrant_client import models

from nexi.stores.qdrant.points import key_of, seconds
from nexi.stores.scope import end_of, moment
from nexi.types import EVERYTHING, Scope


def for_sources(scope: Scope) -> models.Filter:
    return models.Filter(must=[is_(key="kind", value="source"), *_must(scope)], must_not=_must_not(scope) or None)


def for_chunks(scope: Scope) -> models.Filter | None:
    """One and the same source of a chunk must meet every condition."""
    if scope == EVERYTHING:
        return None
    must: list[Any] = []
    inner = models.Filter(must=_must(scope) or None, must_not=_must_not(scope) or None)
    if inner.must or inner.must_not:
        must.append(models.NestedCondition(nested=models.Nested(key="sources", filter=inner)))
    if scope.code is not None:
        must.append(is_(key="is_code", value=scope.code))
    return models.Filter(must=must)


def is_(key: str, value: str | bool) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def _any(key: str, values: list[str]) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchAny(any=values))


def _must(scope: Scope) -> list[Any]:
    found: list[Any] = []
    if scope.urls:
        found.append(_any("key", [key_of(url) for url in scope.urls]))
    if scope.domains:
        found.append(_any("within", [_domain(domain) for domain in scope.domains]))
    if scope.languages:
        found.append(_any("languages", [language.lower() for language in scope.languages]))
    found.extend(is_("tags", tag) for tag in scope.tags)
    if scope.since:
        found.append(models.FieldCondition(key="fetched", range=models.Range(gte=seconds(moment(scope.since)))))
    if scope.until:
        found.append(models.FieldCondition(key="fetched", range=models.Range(lte=seconds(end_of(scope.until)))))
    return found


def _must_not(scope: Scope) -> list[Any]:
    return [_any("within", [_domain(domain) for domain in scope.excluded_domains])] if scope.excluded_domains else []


def _domain(domain: str) -> str:
    return domain.strip().strip(".").lower()


def first_in_scope(sources: list[Mapping[str, Any]], scope: Scope) -> Mapping[str, Any] | None:
    """The first source of a chunk that a scope covers."""
    return next((source for source in sources if _covers(scope, source)), None)


def _covers(scope: Scope, source: Mapping[str, Any]) -> bool:
    within, languages, tags = set(source["within"]), set(source["languages"]), set(source["tags"])
    return (
        (not scope.urls or source["key"] in {key_of(url) for url in scope.urls})
        and (not scope.domains or not within.isdisjoint(map(_domain, scope.domains)))
        and within.isdisjoint(map(_domain, scope.excluded_domains))
        and (not scope.languages or not languages.isdisjoint(language.lower() for language in scope.languages))
        and tags.issuperset(scope.tags)
        and (not scope.since or source["fetched"] >= seconds(moment(scope.since)))
        and (not scope.until or source["fetched"] <= seconds(end_of(scope.until)))
    )
