"""A Zotero library with the tables that nexi reads, as `zotero.sqlite` of Zotero 7 has them (schema userdata 120)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

TABLES = """
CREATE TABLE itemTypes(itemTypeID INTEGER PRIMARY KEY, typeName TEXT);
CREATE TABLE items(itemID INTEGER PRIMARY KEY, itemTypeID INT, libraryID INT, key TEXT);
CREATE TABLE fields(fieldID INTEGER PRIMARY KEY, fieldName TEXT, fieldFormatID INT);
CREATE TABLE itemDataValues(valueID INTEGER PRIMARY KEY, value);
CREATE TABLE itemData(itemID INT, fieldID INT, valueID INT, PRIMARY KEY (itemID, fieldID));
CREATE TABLE creators(creatorID INTEGER PRIMARY KEY, firstName TEXT, lastName TEXT, fieldMode INT);
CREATE TABLE itemCreators(itemID INT, creatorID INT, creatorTypeID INT, orderIndex INT);
CREATE TABLE tags(tagID INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE itemTags(itemID INT, tagID INT, type INT);
CREATE TABLE itemNotes(itemID INTEGER PRIMARY KEY, parentItemID INT, note TEXT, title TEXT);
CREATE TABLE itemAttachments(itemID INTEGER PRIMARY KEY, parentItemID INT, linkMode INT, contentType TEXT, path TEXT);
CREATE TABLE deletedItems(itemID INTEGER PRIMARY KEY, dateDeleted TEXT);
INSERT INTO itemTypes VALUES (1, 'journalArticle'), (2, 'attachment'), (3, 'note');
"""


def write_library(database: Path, items: Iterable[Mapping[str, Any]]) -> None:
    """Each item has `key` and the names of Zotero's fields; also `authors`, `tags`, `note`, `file` and `deleted`."""
    with closing(sqlite3.connect(database)) as db, db:
        db.executescript(TABLES)
        fields: dict[str, int] = {}
        for number, item in enumerate(items):
            row = 10 * number + 10
            db.execute("INSERT INTO items VALUES (?, 1, 1, ?)", (row, item["key"]))
            for name in item.keys() - {"key", "authors", "tags", "note", "file", "deleted"}:
                field = fields.setdefault(name, len(fields) + 1)
                db.execute("INSERT OR IGNORE INTO fields VALUES (?, ?, NULL)", (field, name))
                value = db.execute("INSERT INTO itemDataValues(value) VALUES (?)", (item[name],)).lastrowid
                db.execute("INSERT INTO itemData VALUES (?, ?, ?)", (row, field, value))
            for order, (first, last) in enumerate(item.get("authors", ())):
                creator = db.execute("INSERT INTO creators(firstName, lastName) VALUES (?, ?)", (first, last)).lastrowid
                db.execute("INSERT INTO itemCreators VALUES (?, ?, 1, ?)", (row, creator, order))
            for tag in item.get("tags", ()):
                made = db.execute("INSERT INTO tags(name) VALUES (?)", (tag,)).lastrowid
                db.execute("INSERT INTO itemTags VALUES (?, ?, 0)", (row, made))
            if "note" in item:
                db.execute("INSERT INTO items VALUES (?, 3, 1, ?)", (row + 1, f"N{item['key'][1:]}"))
                db.execute("INSERT INTO itemNotes VALUES (?, ?, ?, '')", (row + 1, row, item["note"]))
            if "file" in item:
                key, path = item["file"]
                db.execute("INSERT INTO items VALUES (?, 2, 1, ?)", (row + 2, key))
                db.execute("INSERT INTO itemAttachments VALUES (?, ?, 0, 'application/pdf', ?)", (row + 2, row, path))
            if item.get("deleted"):
                db.execute("INSERT INTO deletedItems VALUES (?, '')", (row,))
