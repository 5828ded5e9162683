"""What the embedded store does to its tables, one transaction at a time.

`sqlite.py` calls it in the writer's thread; below are the tables of `schema.py`. Contents are `bodies` (chunks, words,
vectors), known by digest; `sources` are the URLs that lead to them.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence

from nexi import terms, urls
from nexi.stores import faults, scope
from nexi.stores.schema import CHUNKS, meta, set_meta
from nexi.types import Chunk, IndexedPage, StoredSource, Vector, content_digest


def put(db: sqlite3.Connection, pages: Sequence[IndexedPage], embedder: str) -> None:
    for page in pages:
        _check(page)
    dims = next((len(v) for page in pages for v in page.vectors), 0)
    if dims:
        _claim(db, embedder, dims)
    for page in pages:
        _put_page(db, page, dims)
    _bump(db)


def link(db: sqlite3.Connection, source: StoredSource) -> bool:
    body = db.execute("SELECT id FROM bodies WHERE digest = ?", (source.digest,)).fetchone()
    if body is None:
        return False
    _put_source(db, source, int(body[0]))
    _bump(db)
    return True


def remove(db: sqlite3.Connection, addresses: Sequence[str]) -> int:
    removed = 0
    for url in addresses:
        found = db.execute("SELECT id, body FROM sources WHERE key = ?", (urls.hit_key(url),)).fetchone()
        if found is not None:
            db.execute("DELETE FROM tags WHERE source = ?", found[:1])
            db.execute("DELETE FROM sources WHERE id = ?", found[:1])
            _drop_unused(db, int(found[1]))
            removed += 1
    if removed:
        _bump(db)
    return removed


def _check(page: IndexedPage) -> None:
    if len(page.chunks) > CHUNKS:
        raise faults.too_many_chunks(page.source.url, len(page.chunks), CHUNKS)
    if page.vectors and len(page.vectors) != len(page.chunks):
        raise faults.bad_vectors(f"{len(page.vectors)} vectors for {len(page.chunks)} chunks of {page.source.url}")


def _claim(db: sqlite3.Connection, embedder: str, dims: int) -> None:
    """Remember who makes the vectors, or refuse another."""
    stored, stored_dims = meta(db, "embedder"), int(meta(db, "dims") or 0)
    if not stored_dims:
        set_meta(db, "embedder", embedder)
        set_meta(db, "dims", dims)
    elif (stored, stored_dims) != (embedder, dims):
        raise faults.other_embedder(f"{stored} ({stored_dims} dimensions)", f"{embedder} ({dims} dimensions)")


def _put_page(db: sqlite3.Connection, page: IndexedPage, dims: int) -> None:
    body = _put_body(db, page)
    _put_source(db, page.source, body)
    if page.vectors:
        _put_vectors(db, body, page.vectors, dims)


def _put_body(db: sqlite3.Connection, page: IndexedPage) -> int:
    """The body of this content; written anew where it is unknown or was cut another way."""
    digest = page.source.digest or _digest(page.chunks)
    fingerprint = _fingerprint(page)
    known = db.execute("SELECT id, fingerprint FROM bodies WHERE digest = ?", (digest,)).fetchone()
    if known and known[1] == fingerprint:
        return int(known[0])
    counts = (fingerprint, _clean(page.source.title), len(page.chunks), page.source.words or _words(page.chunks))
    if known:
        body = int(known[0])
        _drop_contents(db, body)
        db.execute("UPDATE bodies SET fingerprint = ?, title = ?, chunks = ?, words = ? WHERE id = ?", (*counts, body))
    else:
        cursor = db.execute(
            "INSERT INTO bodies(digest, fingerprint, title, chunks, words) VALUES (?, ?, ?, ?, ?)", (digest, *counts)
        )
        body = int(cursor.lastrowid or 0)
    _put_chunks(db, body, page)
    return body


def _put_chunks(db: sqlite3.Connection, body: int, page: IndexedPage) -> None:
    first = body * CHUNKS
    db.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)",
        (
            (first + n, _clean(c.text), _clean(c.heading), _clean(c.context), _clean(c.code), c.start)
            for n, c in enumerate(page.chunks)
        ),
    )
    db.executemany(
        "INSERT INTO words(rowid, text, head) VALUES (?, ?, ?)",
        ((first + n, *indexed(page.source.title, c)) for n, c in enumerate(page.chunks)),
    )


def indexed(title: str, chunk: Chunk) -> tuple[str, str]:
    """The terms of a chunk, and those of what stands above it."""
    head = f"{title}\n{chunk.heading}\n{chunk.context}"
    return " ".join(terms.terms(_clean(chunk.text))), " ".join(terms.terms(_clean(head)))


def _put_source(db: sqlite3.Connection, source: StoredSource, body: int) -> None:
    key = urls.hit_key(source.url)
    before = db.execute("SELECT id, body FROM sources WHERE key = ?", (key,)).fetchone()
    domain = source.domain or domain_of(source.url)
    row = (
        key,
        _clean(source.url),
        body,
        _clean(source.title),
        _clean(domain),
        scope.backwards(_clean(domain)) if domain else "",
        _clean(source.language.lower()),
        scope.moment(_clean(source.fetched_at)),
        json.dumps(source.tags),
    )
    names = "key, url, body, title, domain, host, language, fetched_at, tags"
    if before is None:
        cursor = db.execute(f"INSERT INTO sources({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608  # fixed names
        number = int(cursor.lastrowid or 0)
    else:
        number = int(before[0])
        db.execute(f"UPDATE sources SET ({names}) = (?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE id = ?", (*row, number))  # noqa: S608
        db.execute("DELETE FROM tags WHERE source = ?", (number,))
    db.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", ((_clean(tag), number) for tag in source.tags))
    if before is not None and int(before[1]) != body:
        _drop_unused(db, int(before[1]))


def _drop_unused(db: sqlite3.Connection, body: int) -> None:
    """A body to which no URL leads any more goes, with all it has."""
    if db.execute("SELECT 1 FROM sources WHERE body = ?", (body,)).fetchone() is None:
        _drop_contents(db, body)
        db.execute("DELETE FROM bodies WHERE id = ?", (body,))


def _drop_contents(db: sqlite3.Connection, body: int) -> None:
    """The index forgets a chunk only when told its terms again."""
    title = str(db.execute("SELECT title FROM bodies WHERE id = ?", (body,)).fetchone()[0])
    ids = (body * CHUNKS, body * CHUNKS + CHUNKS - 1)
    rows = db.execute("SELECT id, text, heading, context FROM chunks WHERE id BETWEEN ? AND ?", ids).fetchall()
    db.executemany(
        "INSERT INTO words(words, rowid, text, head) VALUES ('delete', ?, ?, ?)",
        ((row[0], *indexed(title, Chunk(row[1], row[2], row[3]))) for row in rows),
    )
    db.execute("DELETE FROM chunks WHERE id BETWEEN ? AND ?", ids)
    db.execute("DELETE FROM vectors WHERE body = ?", (body,))


def _put_vectors(db: sqlite3.Connection, body: int, vectors: Sequence[Vector], dims: int) -> None:
    from nexi.stores.vectors import matrix

    data = matrix(vectors, dims).tobytes()
    db.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (body, data))


def _bump(db: sqlite3.Connection) -> None:
    db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")


def domain_of(url: str) -> str:
    return urls.host_of(url) if urls.is_web_url(url) else ""


def _digest(chunks: Iterable[Chunk]) -> str:
    return content_digest("\n".join(chunk.text for chunk in chunks))


def _fingerprint(page: IndexedPage) -> str:
    parts = [page.source.title, *(f"{c.heading}\0{c.context}\0{c.code}\0{c.start}\0{c.text}" for c in page.chunks)]
    return hashlib.sha256("\0\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _words(chunks: Iterable[Chunk]) -> int:
    return sum(len(chunk.text.split()) for chunk in chunks)


def _clean(text: str) -> str:
    """Half a surrogate pair cannot be stored as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
