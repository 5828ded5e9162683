"""A Zotero library as sources: items with their notes from `zotero.sqlite`, and where their attachments lie.

Above, `intake`; below, a copy of the database. Zotero locks its file while it runs, so the copy is opened and the original
never is. What an item says is rendered by `nexi.formats.libraries`.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from nexi.errors import NexiError
from nexi.extract.words import one_line
from nexi.formats import LibraryItem, parse_bibtex, parse_csl, to_text

__all__ = ["Library", "find_library", "note_text", "read_fields"]

DATABASE = "zotero.sqlite"
MAX_EXPORT_BYTES = 100_000_000
_FIELDS = """SELECT itemData.itemID, fields.fieldName, itemDataValues.value FROM itemData
    JOIN fields USING (fieldID) JOIN itemDataValues USING (valueID)"""
_ITEMS = """SELECT itemID, key, typeName FROM items JOIN itemTypes USING (itemTypeID)
    WHERE typeName NOT IN ('attachment', 'note', 'annotation') AND itemID NOT IN (SELECT itemID FROM deletedItems)"""
_CREATORS = """SELECT itemID, firstName, lastName FROM itemCreators JOIN creators USING (creatorID)
    ORDER BY itemID, orderIndex"""
_TAGS = "SELECT itemID, name FROM itemTags JOIN tags USING (tagID)"
_NOTES = """SELECT parentItemID, note FROM itemNotes
    WHERE parentItemID IS NOT NULL AND itemID NOT IN (SELECT itemID FROM deletedItems)"""
_FILES = """SELECT parentItemID, key, path FROM itemAttachments JOIN items USING (itemID)
    WHERE parentItemID IS NOT NULL AND path IS NOT NULL AND itemID NOT IN (SELECT itemID FROM deletedItems)"""
_VENUES = ("publicationTitle", "proceedingsTitle", "bookTitle", "publisher", "university", "websiteTitle")
_DAY = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")


class Library(Struct, frozen=True):
    """The items of a library, the folder it lies in, and the part of their addresses before the key."""

    items: tuple[LibraryItem, ...]
    folder: Path
    base: str
    program: str = ""


def find_library(path: Path) -> Library | None:
    """The library that a path leads to: Zotero's folder or database, or an export; None for anything else. Raises NexiError."""
    database = path / DATABASE if path.is_dir() else path
    if database.name == DATABASE and database.is_file():
        return Library(tuple(read_library(database)), database.parent, "items", "zotero")
    parse = {".bib": parse_bibtex, ".json": parse_csl}.get(path.suffix.lower())
    if parse is None or not path.is_file() or path.stat().st_size > MAX_EXPORT_BYTES:
        return None
    items = parse(path.read_text("utf-8", "replace"))
    return Library(tuple(items), path.parent, path.name) if items else None


def read_library(database: Path) -> list[LibraryItem]:
    """The items of a library. Raises NexiError where it is locked, damaged or another kind of file."""
    try:
        with tempfile.TemporaryDirectory(prefix="nexi-zotero-") as folder:
            copy = Path(folder) / DATABASE
            for suffix in ("", "-journal", "-wal"):  # what Zotero has not written back yet
                if (part := Path(f"{database}{suffix}")).exists():
                    shutil.copyfile(part, f"{copy}{suffix}")
            with closing(sqlite3.connect(copy)) as db:
                return list(_read_items(db, database.parent))
    except sqlite3.Error as error:
        raise NexiError(
            f"{database.name} cannot be read as a Zotero library",
            cause=f"the copy of it is incomplete ({error})",
            fix="close Zotero, or wait until it has synchronised, and try again",
            code="locked",
        ) from error
    except OSError as error:
        raise NexiError(
            f"{database.name} cannot be copied",
            cause=error.strerror or "it is locked by another program",
            fix="close Zotero and try again, or export the library as CSL JSON and index that file",
            code="locked",
        ) from error


def _read_items(db: sqlite3.Connection, folder: Path) -> Iterator[LibraryItem]:
    fields: dict[int, dict[str, str]] = defaultdict(dict)
    for item, name, value in db.execute(_FIELDS):
        fields[item][name] = str(value)
    authors = _group(db, _CREATORS, lambda first, last: f"{first or ''} {last or ''}".strip())
    tags = _group(db, _TAGS, str)
    notes = _group(db, _NOTES, note_text)
    files = _group(db, _FILES, lambda key, path: str(_place_of(folder, key, path)))
    for item, key, _ in db.execute(_ITEMS):
        if read := read_fields(key, fields[item], authors[item], tags[item], notes[item], files[item]):
            yield read


def read_fields(
    key: str, fields: Mapping[str, str], authors: Sequence[str], tags: Sequence[str], notes: Sequence[str], files: Sequence[str]
) -> LibraryItem | None:
    """An item by the names of Zotero's fields; None for one without a title."""
    title = one_line(fields.get("title") or fields.get("caseName") or fields.get("subject") or "")
    day = _DAY.match(fields.get("date", ""))
    if not title:
        return None
    return LibraryItem(
        key=key,
        title=title,
        authors=tuple(filter(None, authors)),
        venue=next((fields[name] for name in _VENUES if fields.get(name)), ""),
        date="-".join(part for part in day.groups() if part and part != "00") if day else "",
        doi=fields.get("DOI", ""),
        url=fields.get("url", ""),
        abstract=fields.get("abstractNote", ""),
        tags=tuple(tags),
        notes=tuple(filter(None, notes)),
        files=tuple(files),
    )


def _group(db: sqlite3.Connection, query: str, make: Callable[..., str]) -> defaultdict[int, list[str]]:
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for item, *values in db.execute(query):
        groups[item].append(make(*values))
    return groups


def note_text(note: str | None) -> str:
    """Notes are HTML."""
    return to_text(note.encode(), content_type="text/html").text if note else ""


def _place_of(folder: Path, key: str, path: str) -> Path:
    return folder / "storage" / key / path.removeprefix("storage:") if path.startswith("storage:") else Path(path)
