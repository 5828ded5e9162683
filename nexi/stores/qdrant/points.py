"""Chunks and sources as Qdrant's points, and back.

`store.py` sends them; nothing here speaks to a server. An id is made of the URL and the chunk's number, so storing a page
again writes over it. Words are a sparse vector: BM25's weight of each term, to which the server adds its rarity.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from nexi import urls
from nexi.stores.scope import moment
from nexi.stores.writing import clean, domain_of, fingerprint_of
from nexi.text import stems, terms
from nexi.types import IndexedPage, Passage, StoredSource, content_digest

SPACE = uuid.UUID("6f0d3c0e-6a3b-5f0e-9a53-0f4e6e657869")
TYPICAL = 150  # terms in a chunk; BM25 wants the mean, which no server tells
SATURATION, LENGTH = 1.2, 0.75
TERMS = f"{terms.VERSION}.{stems.VERSION}"  # what made the numbers of the words; another is no longer found by ours

Payload = dict[str, Any]


def key_of(url: str) -> str:
    return clean(urls.hit_key(url))


def source_id(key: str) -> str:
    return str(uuid.uuid5(SPACE, key))


def chunk_id(key: str, number: int) -> str:
    return str(uuid.uuid5(SPACE, f"{key}#{number}"))


def words_of(text: str) -> Counter[int]:
    """Numbers of the terms of a text, by their roots; of an unspaced script, every character too."""
    found: Counter[int] = Counter()
    for term in terms.terms(clean(text)):
        forms = {term, term[0]} if terms.is_unspaced(term) else {stems.stem(term)}
        found.update(_number(form) for form in forms)
    return found


def asked_words(text: str) -> list[int]:
    return sorted({_number(t if terms.is_unspaced(t) else stems.stem(t)) for t in terms.asked(clean(text))})


def _number(term: str) -> int:
    return zlib.crc32(term.encode("utf-8", "replace"))


def sparse(title: str, heading: str, context: str, text: str) -> tuple[list[int], list[float]]:
    """Terms and weights of a chunk with what stands above it."""
    counts = words_of("\n".join((title, heading, context, text)))
    norm = SATURATION * (1 - LENGTH + LENGTH * counts.total() / TYPICAL)
    weights = {term: times * (SATURATION + 1) / (times + norm) for term, times in counts.items()}
    return list(weights), list(weights.values())


def about_source(page: IndexedPage) -> Payload:
    """What is kept of a source, as chunks carry it too: a filter must hold for one source, not for several together."""
    source = page.source
    domain = clean(source.domain or domain_of(source.url))
    when = moment(clean(source.fetched_at))
    return {
        "key": key_of(source.url),
        "url": clean(source.url),
        "title": clean(source.title),
        "domain": domain,
        "within": _suffixes(domain),
        "language": clean(source.language.lower()),
        "languages": _prefixes(clean(source.language.lower())),
        "fetched_at": when,
        "fetched": seconds(when),
        "tags": [clean(tag) for tag in source.tags],
    }


def source_payload(page: IndexedPage) -> Payload:
    source = page.source
    return {
        **about_source(page),
        "kind": "source",
        "digest": digest_of(page),
        "fingerprint": fingerprint_of(page),
        "chunks": len(page.chunks),
        "words": source.words or sum(len(chunk.text.split()) for chunk in page.chunks),
    }


def digest_of(page: IndexedPage) -> str:
    return page.source.digest or content_digest("\n".join(chunk.text for chunk in page.chunks))


def chunk_payload(page: IndexedPage, number: int, owner: str, sources: Sequence[Payload]) -> Payload:
    chunk = page.chunks[number]
    return {
        "owner": owner,
        "digest": digest_of(page),
        "number": number,
        "text": clean(chunk.text),
        "heading": clean(chunk.heading),
        "context": clean(chunk.context),
        "code": clean(chunk.code),
        "is_code": bool(chunk.code),
        "start": chunk.start,
        "embedded": bool(page.vectors),
        "sources": list(sources),
    }


def indexed_texts(payload: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """What `sparse` takes, of a chunk that is stored."""
    return payload["sources"][0]["title"], payload["heading"], payload["context"], payload["text"]


def stored_source(payload: Mapping[str, Any]) -> StoredSource:
    return StoredSource(
        payload["url"],
        payload["title"],
        payload["domain"],
        payload["language"],
        payload["fetched_at"],
        payload["digest"],
        payload["chunks"],
        payload["words"],
        tuple(payload["tags"]),
    )


def passage(point: str, payload: Mapping[str, Any], source: Mapping[str, Any], score: float) -> Passage:
    return Passage(
        id=point,
        url=source["url"],
        number=payload["number"],
        text=payload["text"],
        score=score,
        title=source["title"],
        domain=source["domain"],
        heading=payload["heading"],
        context=payload["context"],
        code=payload["code"],
        language=source["language"],
        fetched_at=source["fetched_at"],
        tags=tuple(source["tags"]),
        start=payload["start"],
    )


def seconds(when: str) -> float:
    """A time as a number, which every version of the server can compare; 0 for none."""
    try:
        return datetime.fromisoformat(when).timestamp()
    except ValueError:
        return 0.0


def _suffixes(domain: str) -> list[str]:
    labels = [label for label in domain.lower().strip(".").split(".") if label]
    return [".".join(labels[i:]) for i in range(len(labels))]


def _prefixes(language: str) -> list[str]:
    """`en-gb` is also `en`."""
    parts = [part for part in language.split("-") if part]
    return ["-".join(parts[: i + 1]) for i in range(len(parts))]


def slug(name: str) -> str:
    """A model's name as part of a collection's name."""
    plain = "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")[:60]
    return f"{plain}-{zlib.crc32(json.dumps(name).encode()):08x}"
