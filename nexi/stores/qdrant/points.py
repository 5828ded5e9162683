"""Chunks and sources as Qdrant's points, and back.

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

from nexi.stores._writing import clean_source, clean_text, count_words, digest_of, fingerprint_of, key_of
from nexi.text import stems, terms
from nexi.types import IndexedPage, Passage, StoredSource

SPACE = uuid.UUID("6f0d3c0e-6a3b-5f0e-9a53-0f4e6e657869")
TYPICAL = 150  # terms in a chunk; BM25 wants the mean, which no server tells
SATURATION, LENGTH = 1.2, 0.75
TERMS = f"{terms.VERSION}.{stems.VERSION}"  # what made the numbers of the words; another is no longer found by ours

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


def sparse_vector(title: str, heading: str, context: str, text: str) -> tuple[list[int], list[float]]:
    """Terms and weights of a chunk with what stands above it, by their roots; of an unspaced script, every character too."""
    counts: Counter[int] = Counter()
    for term in terms.extract_terms(clean_text("\n".join((title, heading, context, text)))):
        forms = {term, term[0]} if terms.is_unspaced(term) else {stems.stem(term)}
        counts.update(_term_number(form) for form in forms)
    norm = SATURATION * (1 - LENGTH + LENGTH * counts.total() / TYPICAL)
    weights = {term: times * (SATURATION + 1) / (times + norm) for term, times in counts.items()}
    return list(weights), list(weights.values())


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
    """A chunk's point as a passage of one of its sources."""
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
