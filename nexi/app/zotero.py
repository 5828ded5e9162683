"""A Zotero library as sources: items with their notes and where their attachments lie, from its file or a running Zotero.

The file is copied, since Zotero locks it while it runs. The local API of a running Zotero
(zotero.org/support/dev/web_api/v3/local_api, 17 November 2026) reads only, asks for no key and must be switched on there. It is
asked on this machine alone, without a proxy or a redirect: what it has is the user's own.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from nexi.errors import NexiError
from nexi.extract import one_line
from nexi.formats import LibraryItem, parse_bibtex, parse_csl, to_text
from nexi.structured.json_reader import as_mapping

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

# the local API
TARGET = "zotero:"
DEFAULT_BASE = "http://127.0.0.1:23119"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PAGE_ITEMS = 100
MAX_ITEMS = 100_000
MAX_ANSWER_BYTES = 50_000_000
TIMEOUT_S = 30.0


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
        return Library(tuple(_read_library(database)), database.parent, "items", "zotero")
    parse = {".bib": parse_bibtex, ".json": parse_csl}.get(path.suffix.lower())
    if parse is None or not path.is_file() or path.stat().st_size > MAX_EXPORT_BYTES:
        return None
    items = parse(path.read_text("utf-8", "replace"))
    return Library(tuple(items), path.parent, path.name) if items else None


def _read_library(database: Path) -> list[LibraryItem]:
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
        cause, fix = f"the copy of it is incomplete ({error})", "close Zotero, or wait until it has synchronised, and try again"
        raise NexiError(f"{database.name} cannot be read as a Zotero library", cause=cause, fix=fix, code="locked") from error
    except OSError as error:
        cause = error.strerror or "it is locked by another program"
        fix = "close Zotero and try again, or export the library as CSL JSON and index that file"
        raise NexiError(f"{database.name} cannot be copied", cause=cause, fix=fix, code="locked") from error


def _read_items(db: sqlite3.Connection, folder: Path) -> Iterator[LibraryItem]:
    fields: dict[int, dict[str, str]] = defaultdict(dict)
    for item, name, value in db.execute(_FIELDS):
        fields[item][name] = str(value)
    authors = _group(db, _CREATORS, lambda first, last: f"{first or ''} {last or ''}".strip())
    tags = _group(db, _TAGS, str)
    notes = _group(db, _NOTES, _note_text)
    files = _group(db, _FILES, lambda key, path: str(_place_of(folder, key, path)))
    for item, key, _ in db.execute(_ITEMS):
        if read := _read_fields(key, fields[item], authors[item], tags[item], notes[item], files[item]):
            yield read


def _read_fields(
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


def _note_text(note: str | None) -> str:
    return to_text(note.encode(), content_type="text/html").text if note else ""


def _place_of(folder: Path, key: str, path: str) -> Path:
    return folder / "storage" / key / path.removeprefix("storage:") if path.startswith("storage:") else Path(path)


# a running Zotero


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def read_running_library(base: str = "") -> Library:
    """The items of the library of the Zotero that runs here. Raises NexiError where it does not, or will not, answer."""
    base = (base or DEFAULT_BASE).rstrip("/")
    if urlsplit(base).hostname not in LOOPBACK:
        cause, fix = f"{base[:200]} is another one", "set service_urls.zotero to http://127.0.0.1:23119"
        raise NexiError("the local API of Zotero is read on this machine only", cause=cause, fix=fix, code="bad_request")
    rows: list[dict[str, Any]] = []
    while len(rows) < MAX_ITEMS:
        page = _read_rows(f"{base}/api/users/0/items?format=json&limit={PAGE_ITEMS}&start={len(rows)}")
        rows += page
        if len(page) < PAGE_ITEMS:
            break
    # items with the notes and the files that belong to them
    notes: defaultdict[str, list[str]] = defaultdict(list)
    files: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        about = as_mapping(row.get("data"))
        parent = str(about.get("parentItem") or "")
        if parent and isinstance(note := about.get("note"), str) and about.get("itemType") == "note":
            notes[parent].append(_note_text(note))
            continue
        href = str(as_mapping(as_mapping(row.get("links")).get("enclosure")).get("href") or "")
        if parent and href.startswith("file:///"):
            files[parent].append(unquote(urlsplit(href).path))
    items = tuple(item for row in rows if (item := _item_of(row, notes, files)))
    file_path = next((Path(file) for each in files.values() for file in each if Path(file).parts[-3:-2] == ("storage",)), None)
    return Library(items, file_path.parents[2] if file_path else Path.home() / "Zotero", "items", "zotero")


def _item_of(row: dict[str, Any], notes: defaultdict[str, list[str]], files: defaultdict[str, list[str]]) -> LibraryItem | None:
    key, about = str(row.get("key") or ""), as_mapping(row.get("data"))
    if about.get("itemType") in ("attachment", "note", "annotation", None):
        return None
    people = _list_objects(about.get("creators"))
    authors = (str(p.get("name") or f"{p.get('firstName') or ''} {p.get('lastName') or ''}").strip() for p in people)
    labels = [str(tag["tag"]) for tag in _list_objects(about.get("tags")) if tag.get("tag")]
    fields = {name: value for name, value in about.items() if isinstance(value, str)}
    return _read_fields(key, fields, [a for a in authors if a], labels, notes[key], files[key]) if key.isalnum() else None


def _list_objects(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _read_rows(url: str) -> list[dict[str, Any]]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    request = urllib.request.Request(url, headers={"Zotero-API-Version": "3"})  # noqa: S310 - http to loopback, as checked
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            body = answer.read(MAX_ANSWER_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        switch = "Settings, Advanced, “Allow other applications on this computer to communicate with Zotero”"
        is_off = error.code == 403
        cause = "its local API is switched off" if is_off else f"it answered with status {error.code}"
        fix = f"switch it on in Zotero: {switch}" if is_off else "update Zotero, or index its folder: nexi index ~/Zotero"
        raise NexiError("Zotero does not give its library", cause=cause, fix=fix, code="zotero_refused") from error
    except OSError as error:
        cause = "it does not run on this machine, or its local API is at another port"
        fix = "start Zotero, or index its folder: nexi index ~/Zotero"
        raise NexiError("Zotero does not answer", cause=cause, fix=fix, code="zotero_closed") from error
    try:
        rows = json.loads(body) if len(body) <= MAX_ANSWER_BYTES else None
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        cause = "it sent no list of items" if len(body) <= MAX_ANSWER_BYTES else "it sent too much"
        fix = "see what listens at port 23119, or index the folder: nexi index ~/Zotero"
        raise NexiError("the program that answers is not Zotero", cause=cause, fix=fix, code="bad_schema")
    return _list_objects(rows)
