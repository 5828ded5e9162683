"""A Zotero library by the local API of a running Zotero (zotero.org/support/dev/web_api/v3/local_api, 17 November 2026).

Above, `intake`; below, loopback. The API reads only, asks for no key and must be switched on in Zotero. It is asked where the
user names it on this machine, and at no other address: what it has is the user's own. No proxy is used, no redirect followed.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from nexi.app.zotero import Library, note_text, read_fields
from nexi.errors import NexiError
from nexi.formats import LibraryItem

__all__ = ["TARGET", "read_running_library"]

TARGET = "zotero:"
DEFAULT_BASE = "http://127.0.0.1:23119"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PAGE_ITEMS = 100
MAX_ITEMS = 100_000
MAX_ANSWER_BYTES = 50_000_000
TIMEOUT_S = 30.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def read_running_library(base: str = "") -> Library:
    """The items of the library of the Zotero that runs here. Raises NexiError where it does not, or will not, answer."""
    base = (base or DEFAULT_BASE).rstrip("/")
    if urlsplit(base).hostname not in LOOPBACK:
        raise NexiError(
            "the local API of Zotero is read on this machine only",
            cause=f"{base[:200]} is another one",
            fix="set service_urls.zotero to http://127.0.0.1:23119",
            code="bad_request",
        )
    rows: list[dict[str, Any]] = []
    while len(rows) < MAX_ITEMS:
        page = _read_rows(f"{base}/api/users/0/items?format=json&limit={PAGE_ITEMS}&start={len(rows)}")
        rows += page
        if len(page) < PAGE_ITEMS:
            break
    return build_library(rows)


def build_library(rows: list[dict[str, Any]]) -> Library:
    """Items with the notes and the files that belong to them. Pure."""
    notes: defaultdict[str, list[str]] = defaultdict(list)
    files: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        about = row.get("data")
        about = about if isinstance(about, dict) else {}
        parent = str(about.get("parentItem") or "")
        if parent and isinstance(note := about.get("note"), str) and about.get("itemType") == "note":
            notes[parent].append(note_text(note))
            continue
        links = row.get("links")
        enclosure = links.get("enclosure") if isinstance(links, dict) else None
        href = str(enclosure.get("href") or "") if isinstance(enclosure, dict) else ""
        if parent and href.startswith("file:///"):
            files[parent].append(unquote(urlsplit(href).path))
    items = tuple(item for row in rows if (item := _item_of(row, notes, files)))
    file_path = next((Path(file) for each in files.values() for file in each if Path(file).parts[-3:-2] == ("storage",)), None)
    return Library(items, file_path.parents[2] if file_path else Path.home() / "Zotero", "items", "zotero")


def _item_of(row: dict[str, Any], notes: defaultdict[str, list[str]], files: defaultdict[str, list[str]]) -> LibraryItem | None:
    about = row.get("data")
    if not isinstance(about, dict) or about.get("itemType") in ("attachment", "note", "annotation", None):
        return None
    key, people = str(row.get("key") or ""), about.get("creators")
    names = [person for person in people if isinstance(person, dict)] if isinstance(people, list) else []
    authors = (str(p.get("name") or f"{p.get('firstName') or ''} {p.get('lastName') or ''}").strip() for p in names)
    tags = about.get("tags")
    labels = [str(tag.get("tag")) for tag in tags if isinstance(tag, dict) and tag.get("tag")] if isinstance(tags, list) else []
    fields = {name: value for name, value in about.items() if isinstance(value, str)}
    return read_fields(key, fields, [a for a in authors if a], labels, notes[key], files[key]) if key.isalnum() else None


def _read_rows(url: str) -> list[dict[str, Any]]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    request = urllib.request.Request(url, headers={"Zotero-API-Version": "3"})  # noqa: S310 - http to loopback, as checked
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            body = answer.read(MAX_ANSWER_BYTES + 1)
    except urllib.error.HTTPError as error:
        switch = "Settings, Advanced, “Allow other applications on this computer to communicate with Zotero”"
        is_off = error.code == 403
        error.close()
        raise NexiError(
            "Zotero does not give its library",
            cause="its local API is switched off" if is_off else f"it answered with status {error.code}",
            fix=f"switch it on in Zotero: {switch}" if is_off else "update Zotero, or index its folder: nexi index ~/Zotero",
            code="zotero_refused",
        ) from error
    except OSError as error:
        raise NexiError(
            "Zotero does not answer",
            cause="it does not run on this machine, or its local API is at another port",
            fix="start Zotero, or index its folder: nexi index ~/Zotero",
            code="zotero_closed",
        ) from error
    return _parse_rows(body)


def _parse_rows(body: bytes) -> list[dict[str, Any]]:
    try:
        rows = json.loads(body) if len(body) <= MAX_ANSWER_BYTES else None
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        raise NexiError(
            "the program that answers is not Zotero",
            cause="it sent no list of items" if len(body) <= MAX_ANSWER_BYTES else "it sent too much",
            fix="see what listens at port 23119, or index the folder: nexi index ~/Zotero",
            code="bad_schema",
        )
    return [row for row in rows if isinstance(row, dict)]
