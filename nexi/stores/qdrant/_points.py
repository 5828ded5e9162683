"""Chunks and sources as Qdrant's points and back, and a Scope as its filter, or as a test for one source at hand.

An id is made of the URL and the chunk's number, so storing a page again writes over it. Words are a sparse vector: BM25's
weight of each term, to which the server adds its rarity.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from qdrant_client import models

from nexi.stores._schema import end_of, normalise_time
from nexi.stores._writing import clean_source, clean_text, count_words, digest_of, fingerprint_of, key_of
from nexi.text import stems, terms
from nexi.types import EVERYTHING, IndexedPage, Passage, Scope, StoredSource

SPACE = uuid.UUID("6f0d3c0e-6a3b-5f0e-9a53-0f4e6e657869")
TYPICAL = 150  # terms in a chunk; BM25 wants the mean, which no server tells
SATURATION, LENGTH = 1.2, 0.75

_OF_BODY = ("kind", "digest", "fingerprint", "chunks", "words", "person")
Payload = dict[str, Any]


def source_id(key: str) -> str:
    return str(uuid.uuid5(SPACE, key))


def chunk_id(key: str, number: int) -> str:
    return str(uuid.uuid5(SPACE, f"{key}#{number}"))


def asked_words(text: str) -> list[int]:
    return sorted({_term_number(t if terms.is_unspaced(t) else stems.stem(t)) for t in terms.question_terms(clean_text(text))})


def _term_number(term: str) -> int:
    return zlib.crc32(term.encode("utf-8", "replace"))


def sparse_vector(title: str, heading: str, context: str, text: str) -> models.SparseVector:
    """Terms and weights of a chunk with what stands above it, by their roots; of an unspaced script, every character too."""
    counts: Counter[int] = Counter()
    for term in terms.extract_terms(clean_text("\n".join((title, heading, context, text)))):
        forms = {term, term[0]} if terms.is_unspaced(term) else {stems.stem(term)}
        counts.update(_term_number(form) for form in forms)
    norm = SATURATION * (1 - LENGTH + LENGTH * counts.total() / TYPICAL)
    weights = {term: times * (SATURATION + 1) / (times + norm) for term, times in counts.items()}
    return models.SparseVector(indices=list(weights), values=list(weights.values()))


def about_source(page: IndexedPage) -> Payload:
    """What is kept of a source, as chunks carry it too: a filter must hold for one source, not for several together."""
    source = clean_source(page.source)
    labels = [label for label in source.domain.lower().strip(".").split(".") if label]
    # `en-gb` is also `en`
    parts = [part for part in source.language.split("-") if part]
    names = ("url", "title", "domain", "language", "fetched_at", "published", "updated")
    return {
        "key": key_of(page.source.url),
        **{name: getattr(source, name) for name in names},
        "within": [".".join(labels[i:]) for i in range(len(labels))],
        "languages": ["-".join(parts[: i + 1]) for i in range(len(parts))],
        "fetched": to_seconds(source.fetched_at),
        "tags": list(source.tags),
    }


def strip_body(payload: Payload) -> Payload:
    """What `about_source` gave, of a source that is stored."""
    return {key: value for key, value in payload.items() if key not in _OF_BODY} | _dates_of(payload)


def source_payload(page: IndexedPage) -> Payload:
    return {
        **about_source(page),
        "kind": "source",
        "digest": digest_of(page),
        "fingerprint": fingerprint_of(page),
        "chunks": len(page.chunks),
        "words": count_words(page),
    }


def chunk_payload(page: IndexedPage, number: int, owner: str, sources: Sequence[Payload]) -> Payload:
    chunk = page.chunks[number]
    return {
        "owner": owner,
        "digest": digest_of(page),
        "number": number,
        **{name: clean_text(getattr(chunk, name)) for name in ("text", "heading", "context", "code")},
        "is_code": bool(chunk.code),
        "start": chunk.start,
        "embedded": bool(page.vectors),
        "sources": list(sources),
    }


def stored_source(payload: Payload, owner: str = "") -> StoredSource:
    about = {name: payload[name] for name in ("url", "title", "domain", "language", "fetched_at", "digest", "words")}
    return StoredSource(**about, **_dates_of(payload), chunk_count=payload["chunks"], tags=tuple(payload["tags"]), owner=owner)


def _dates_of(source: Payload) -> Payload:
    return {name: source.get(name, "") for name in ("published", "updated")}  # older points have none


def build_passage(point: Any, source: Payload, score: float, owner: str = "") -> Passage:
    of_source = {name: source[name] for name in ("url", "title", "domain", "language", "fetched_at")} | _dates_of(source)
    of_chunk = {name: point.payload[name] for name in ("number", "text", "heading", "context", "code", "start")}
    return Passage(id=str(point.id), score=score, tags=tuple(source["tags"]), owner=owner, **of_source, **of_chunk)


def to_seconds(when: str) -> float:
    """A time as a number, which every version of the server can compare; 0 for none."""
    try:
        return datetime.fromisoformat(when).timestamp()
    except ValueError:
        return 0.0


def slugify(name: str) -> str:
    """A model's name as part of a collection's name."""
    plain = "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")[:60]
    return f"{plain}-{zlib.crc32(json.dumps(name).encode()):08x}"


def filter_sources(scope: Scope) -> models.Filter:
    must, must_not = _conditions(scope)
    return models.Filter(must=[match_value("kind", "source"), *must], must_not=must_not or None)


def filter_chunks(scope: Scope) -> models.Filter | None:
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
