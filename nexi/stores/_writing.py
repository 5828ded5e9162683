"""What the embedded store does to its tables, one transaction at a time.

Contents are `bodies` (chunks, words, vectors), known by digest; `sources` are the URLs that lead to them.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from msgspec.structs import astuple, replace

from nexi import urls
from nexi.errors import StoreError
from nexi.stores import _schema
from nexi.stores._schema import CHUNKS, IndexedBody, index_bodies, read_body, read_meta, set_meta, span_of, unindex_body
from nexi.stores._vectors import Array, VectorReader, VectorWriter, bad_vectors, empty_rows, other_embedder, unit_rows
from nexi.types import Chunk, IndexedPage, StoredSource, Vector, content_digest

MAX_HOLE_SHARE = 0.25


class StoreTransaction:
    """One transaction's work. `after_commit` blanks the slots it frees; below `min_holes` empty ones no vectors are moved."""

    def __init__(self, db: sqlite3.Connection, vectors: VectorWriter, min_holes: int) -> None:
        self._db, self._vectors, self._min_holes = db, vectors, min_holes
        self._freed: list[tuple[int, int]] = []
        self._to_index: list[IndexedBody] = []
        self._wrote = False

    def put(self, pages: Sequence[IndexedPage], embedder: str) -> None:
        for page in pages:
            check_chunks(page)
        dims = next((len(v) for page in pages for v in page.vectors), 0)
        if dims:
            self._claim_embedder(embedder, dims)
        for page in pages:
            body = self._put_body(page)
            self._put_source(page.source, body)
            if page.vectors:  # into new slots: a reader may be looking at the old ones
                slot, count = self._db.execute("SELECT slot, chunks FROM bodies WHERE id = ?", (body,)).fetchone()
                if slot >= 0:
                    self._free_slots(slot, count)
                rows = unit_rows(page.vectors, dims)
                self._write_rows(self._take_slots(body, len(rows)), rows)
                self._db.execute("DELETE FROM unembedded WHERE id BETWEEN ? AND ?", span_of(body))
        self._index_words()
        self._next_slot()

    def link(self, source: StoredSource) -> bool:
        body = self._db.execute("SELECT id FROM bodies WHERE digest = ?", (source.digest,)).fetchone()
        if body:
            self._put_source(source, *body)
            self._next_slot()
        return body is not None

    def remove(self, addresses: Sequence[str]) -> int:
        count = 0
        for url in addresses:
            row = self._db.execute("SELECT id, body FROM sources WHERE key = ?", (key_of(url),)).fetchone()
            if row is not None:
                self._db.execute("DELETE FROM tags WHERE source = ?", row[:1])
                self._db.execute("DELETE FROM sources WHERE id = ?", row[:1])
                self._drop_unused(row[1])
                count += 1
        self._next_slot()
        return count

    def add_vectors(self, vectors: Mapping[str, Vector], embedder: str) -> None:
        """A body gets slots for all its chunks with the first of their vectors."""
        dims = next((len(v) for v in vectors.values()), 0)
        if not dims:
            return
        self._claim_embedder(embedder, dims)
        for name, vector in vectors.items():
            body, number = divmod(int(name), CHUNKS)
            row = self._db.execute("SELECT slot, chunks FROM bodies WHERE id = ?", (body,)).fetchone()
            if row is None or number >= row[1]:
                continue
            slot, count = row
            if slot < 0:
                slot = self._take_slots(body, count)
                self._write_rows(slot, empty_rows(count, dims))
            self._write_rows(slot + number, unit_rows([vector], dims))
            self._db.execute("DELETE FROM unembedded WHERE id = ?", (int(name),))
        self._next_slot()

    def forget_vectors(self) -> None:
        self._db.execute("UPDATE bodies SET slot = -1 WHERE slot >= 0")
        self._db.execute("INSERT OR IGNORE INTO unembedded SELECT id FROM chunks")
        self._set_meta(embedder="", dims=0, epoch=self._read_number("epoch") + 1, slots=0, holes=0)
        self._next_slot()

    def after_commit(self) -> None:
        """After the commit: blank what was freed, and remove the files of former epochs."""
        epoch, dims = self._read_number("epoch"), self._read_number("dims")
        for slot, count in self._freed:
            self._vectors.blank_rows(epoch, slot, count, dims)
        self._vectors.drop_before(epoch)

    def _read_number(self, key: str) -> int:
        return int(read_meta(self._db, key))

    def _claim_embedder(self, embedder: str, dims: int) -> None:
        """Remember who makes the vectors, or refuse another."""
        stored_embedder, stored_dims = read_meta(self._db, "embedder"), self._read_number("dims")
        if not stored_dims:
            self._set_meta(embedder=embedder, dims=dims)
        elif (stored_embedder, stored_dims) != (embedder, dims):
            raise other_embedder(stored_embedder, stored_dims, embedder, dims)

    def _set_meta(self, **values: str | int) -> None:
        for key, value in values.items():
            set_meta(self._db, key, value)

    def _put_body(self, page: IndexedPage) -> int:
        """The body of this content; written anew where it is unknown or was cut another way."""
        digest, fingerprint = digest_of(page), fingerprint_of(page)
        row = self._db.execute("SELECT id, fingerprint FROM bodies WHERE digest = ?", (digest,)).fetchone()
        if row and row[1] == fingerprint:
            return int(row[0])
        title = clean_text(page.source.title)
        about = (fingerprint, title, len(page.chunks), count_words(page))
        if row:
            body = int(row[0])
            self._drop_contents(body)
            self._db.execute("UPDATE bodies SET fingerprint = ?, title = ?, chunks = ?, words = ? WHERE id = ?", (*about, body))
        else:
            sql = "INSERT INTO bodies(digest, fingerprint, title, chunks, words) VALUES (?, ?, ?, ?, ?)"
            body = cast("int", self._db.execute(sql, (digest, *about)).lastrowid)
        chunks = []
        for number, chunk in enumerate(page.chunks, body * CHUNKS):
            text, heading, context, code = map(clean_text, (chunk.text, chunk.heading, chunk.context, chunk.code))
            chunks.append((number, Chunk(text, heading, context, code, chunk.start)))
        self._db.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)", ((i, *astuple(chunk)) for i, chunk in chunks))
        self._to_index.append(IndexedBody(body, title, chunks))
        if not page.vectors:
            self._db.executemany("INSERT INTO unembedded VALUES (?)", ((i,) for i, _ in chunks))
        return body

    def _index_words(self) -> None:
        """Index what was written since; before its contents go again, a body must be in the index."""
        index_bodies(self._db, self._to_index)
        self._to_index.clear()

    def _put_source(self, source: StoredSource, body: int) -> None:
        clean = clean_source(source)
        host = _schema.reverse_domain(clean.domain) if clean.domain else ""
        times_and_tags = (clean.fetched_at, json.dumps(clean.tags), clean.published, clean.updated)
        row = (key_of(source.url), clean.url, body, clean.title, clean.domain, host, clean.language, *times_and_tags)
        number, former_body = self._db.execute("SELECT id, body FROM sources WHERE key = ?", row[:1]).fetchone() or (None, body)
        if number is None:
            number = self._db.execute(_NEW_SOURCE, row).lastrowid
        else:
            self._db.execute(_SAME_SOURCE, (*row, number))
            self._db.execute("DELETE FROM tags WHERE source = ?", (number,))
        self._db.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", ((tag, number) for tag in clean.tags))
        if former_body != body:
            self._drop_unused(former_body)

    def _drop_unused(self, body: int) -> None:
        """A body to which no URL leads any more goes, with all it has."""
        if self._db.execute("SELECT 1 FROM sources WHERE body = ?", (body,)).fetchone() is None:
            self._drop_contents(body)
            self._db.execute("DELETE FROM bodies WHERE id = ?", (body,))

    def _drop_contents(self, body: int) -> None:
        self._index_words()
        title, slot, count = self._db.execute("SELECT title, slot, chunks FROM bodies WHERE id = ?", (body,)).fetchone()
        unindex_body(self._db, read_body(self._db, body, title))
        self._db.execute("DELETE FROM chunks WHERE id BETWEEN ? AND ?", span_of(body))
        self._db.execute("DELETE FROM unembedded WHERE id BETWEEN ? AND ?", span_of(body))
        if slot >= 0:
            self._db.execute("UPDATE bodies SET slot = -1 WHERE id = ?", (body,))
            self._free_slots(slot, count)

    def _take_slots(self, body: int, count: int) -> int:
        slot = self._read_number("slots")
        self._set_meta(slots=slot + count)
        self._db.execute("UPDATE bodies SET slot = ? WHERE id = ?", (slot, body))
        return slot

    def _free_slots(self, slot: int, count: int) -> None:
        self._freed.append((slot, count))
        self._set_meta(holes=self._read_number("holes") + count)

    def _write_rows(self, slot: int, rows: Array) -> None:
        self._vectors.write(self._read_number("epoch"), slot, rows)
        self._wrote = True

    def _next_slot(self) -> None:
        if self._read_number("holes") > max(self._min_holes, self._read_number("slots") * MAX_HOLE_SHARE):
            # move the vectors that are left into files of a new epoch, without holes
            epoch, dims, slots = self._read_number("epoch"), self._read_number("dims"), self._read_number("slots")
            self._vectors.flush()
            vectors = VectorReader(self._vectors.store).read_vectors(epoch, slots, dims)
            end = 0
            sql = "SELECT id, slot, chunks FROM bodies WHERE slot >= 0 ORDER BY slot"
            for body, slot, count in self._db.execute(sql).fetchall():
                self._vectors.write(epoch + 1, end, vectors.rows[slot : slot + count])
                self._db.execute("UPDATE bodies SET slot = ? WHERE id = ?", (end, body))
                end += count
            self._set_meta(epoch=epoch + 1, slots=end, holes=0)
            self._freed.clear()
            self._wrote = True
        if self._wrote:
            self._vectors.flush()
        self._db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")


_NAMES = "key, url, body, title, domain, host, language, fetched_at, tags, published, updated"
_NEW_SOURCE = f"INSERT INTO sources({_NAMES}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  # names of ours
_SAME_SOURCE = f"UPDATE sources SET ({_NAMES}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE id = ?"  # noqa: S608


def clean_text(text: str) -> str:
    """Half a surrogate pair cannot be stored as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def key_of(url: str) -> str:
    return clean_text(urls.hit_key(url))


def clean_source(source: StoredSource, clean: Callable[[str], str] = clean_text) -> StoredSource:
    """A source as it is stored: with its domain, its language in lower case, its time in one form, and only clean texts."""
    domain = source.domain or (urls.host_of(source.url) if urls.is_web_url(source.url) else "")
    return replace(
        source,
        **{name: clean(getattr(source, name)) for name in ("url", "title", "published", "updated")},
        domain=clean(domain),
        language=clean(source.language.lower()),
        fetched_at=_schema.normalise_time(clean(source.fetched_at)),
        tags=tuple(map(clean, source.tags)),
    )


def fingerprint_of(page: IndexedPage) -> str:
    parts = [page.source.title, *(f"{c.heading}\0{c.context}\0{c.code}\0{c.start}\0{c.text}" for c in page.chunks)]
    return hashlib.sha256("\0\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def digest_of(page: IndexedPage) -> str:
    return page.source.digest or content_digest("\n".join(chunk.text for chunk in page.chunks))


def count_words(page: IndexedPage) -> int:
    return page.source.words or sum(len(chunk.text.split()) for chunk in page.chunks)


def check_chunks(page: IndexedPage) -> None:
    """Raise StoreError for a page with too many chunks, or with some that have a vector and some that have none."""
    if len(page.chunks) > CHUNKS:
        cause = f"{page.source.url} has {len(page.chunks)} chunks, and {CHUNKS} is the most"
        raise StoreError("The page is too long to be stored", cause=cause, fix="Split it, or choose larger chunks.")
    _check_count(page)


def _check_count(page: IndexedPage) -> None:
    if page.vectors and len(page.vectors) != len(page.chunks):
        raise bad_vectors(f"{len(page.vectors)} vectors for {len(page.chunks)} chunks of {page.source.url}")


def vector_length(pages: Sequence[IndexedPage]) -> int:
    """The length of the vectors, 0 for none; all are looked at before the first is written."""
    dims = next((len(vector) for page in pages for vector in page.vectors), 0)
    for page in pages:
        _check_count(page)
        check_vectors(page.vectors, dims)
    return dims


def check_vectors(vectors: Sequence[Vector], dims: int) -> None:
    for vector in vectors:
        if len(vector) != dims or not all(map(math.isfinite, vector)):
            raise bad_vectors(f"not all of them are {dims} finite numbers")
