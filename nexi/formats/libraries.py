"""Libraries of references: the items of a CSL-JSON or BibTeX export, and the text under which an item is found. Pure.

Above sit `app.zotero` and `intake`. An entry that cannot be read is left out; the others are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct

from nexi.extract import one_line
from nexi.formats.latex import plain_latex

MAX_VALUE_CHARS = 200_000
_ENTRY = re.compile(r"@(\w{1,40})\s*[{(]\s*([^\s,{}]{1,200})\s*,")
_FIELD = re.compile(r"\s*([A-Za-z][\w-]{0,60})\s*=\s*")
_WORD = re.compile(r"[^\s,{}\"#]+")


class LibraryItem(Struct, frozen=True):
    """One item of a library. `files` are paths, as the library names them."""

    key: str
    title: str
    authors: tuple[str, ...] = ()
    venue: str = ""
    date: str = ""
    doi: str = ""
    url: str = ""
    abstract: str = ""
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def render_item(item: LibraryItem) -> str:
    """An item as Markdown: what a reference has, then the abstract and the notes."""
    reference = [("Authors", ", ".join(item.authors)), ("In", item.venue), ("Date", item.date), ("DOI", item.doi)]
    reference += [("URL", item.url), ("Tags", ", ".join(item.tags))]
    head = "  \n".join(f"{name}: {value}" for name, value in reference if value)
    abstract = f"## Abstract\n\n{item.abstract.strip()}" if item.abstract.strip() else ""
    notes = "\n\n".join(("## Notes", *item.notes)) if item.notes else ""
    return "\n\n".join(filter(None, (f"# {item.title}", head, abstract, notes)))


def parse_csl(text: str) -> list[LibraryItem]:
    """The items of a CSL-JSON export; none where the text is other JSON."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        return []
    entries = entries.get("items", []) if isinstance(entries, dict) else entries
    items: list[LibraryItem] = []
    for entry in entries if isinstance(entries, list) else []:
        title = entry.get("title") if isinstance(entry, dict) else None
        if not isinstance(title, str) or "type" not in entry or not (key := entry.get("id") or entry.get("citation-key")):
            continue
        authors: list[str] = []
        for person in entry.get("author") or entry.get("editor") or []:
            if isinstance(person, dict):
                parts = (person.get("given"), person.get("non-dropping-particle"), person.get("family"))
                authors.append(one_line(str(person.get("literal") or "") or " ".join(str(part) for part in parts if part)))
        keywords = entry.get("keyword")
        item = LibraryItem(
            key=str(key).rstrip("/").rpartition("/")[2],
            title=one_line(title),
            authors=tuple(filter(None, authors)),
            venue=one_line(str(entry.get("container-title") or entry.get("publisher") or "")),
            date=_date_of_csl(entry.get("issued")),
            doi=str(entry.get("DOI") or ""),
            url=str(entry.get("URL") or ""),
            abstract=str(entry.get("abstract") or ""),
            tags=_split_tags(keywords) if isinstance(keywords, str) else (),
            notes=(str(entry["note"]),) if entry.get("note") else (),
        )
        items.append(item)
    return items


def _date_of_csl(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    parts = value.get("date-parts")
    if isinstance(parts, list) and parts and isinstance(parts[0], list):
        with suppress(ValueError, TypeError):
            return "-".join(f"{int(part):0{2 if number else 4}}" for number, part in enumerate(parts[0][:3]))
        return ""
    return str(value.get("raw") or value.get("literal") or "")[:40]


def parse_bibtex(text: str) -> list[LibraryItem]:
    """The items of a BibTeX or BibLaTeX file."""
    items: list[LibraryItem] = []
    for entry in _ENTRY.finditer(text):
        fields = dict(_read_fields(text, entry.end()))
        if entry[1].casefold() in ("comment", "string", "preamble") or not fields.get("title"):
            continue
        plain = {name: one_line(plain_latex(value)) for name, value in fields.items() if name != "file"}
        people = re.split(r"\s+and\s+", plain.get("author") or plain.get("editor") or "")
        reversed_names = (" ".join(map(str.strip, reversed(name.split(",", 1)))).strip() for name in people)  # "Family, Given"
        venues = (plain[name] for name in ("journal", "journaltitle", "booktitle", "publisher") if name in plain)
        # Attachments: `/a/b.pdf;/a/c.pdf` of Better BibTeX, or `Name:/a/b.pdf:application/pdf` of Zotero.
        attachments = filter(None, map(str.strip, re.split(r"(?<!\\);", fields.get("file", ""))))
        pieces = (re.split(r"(?<!\\):", attachment) for attachment in attachments)
        paths = (own[1] if len(own) == 3 else ":".join(own) for own in pieces)
        item = LibraryItem(
            key=entry[2],
            title=plain["title"],
            authors=tuple(filter(None, reversed_names)),
            venue=next(venues, ""),
            date=plain.get("date") or plain.get("year", ""),
            doi=plain.get("doi", ""),
            url=fields.get("url", "").strip(),
            abstract=plain.get("abstract", ""),
            tags=_split_tags(plain.get("keywords", "")),
            notes=tuple(plain[name] for name in ("note", "annotation", "annote") if plain.get(name)),
            files=tuple(path.replace("\\:", ":").replace("\\;", ";") for path in paths),
        )
        items.append(item)
    return items


def _split_tags(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, re.split("[,;]", text))))


def _read_fields(text: str, at: int) -> Iterator[tuple[str, str]]:
    """The fields of an entry from a place on; an entry without an end ends where the next field cannot be read."""
    while name := _FIELD.match(text, at):
        at, value = name.end(), ""
        if text[at : at + 1] in ("{", '"'):
            closing, depth, start = "}" if text[at] == "{" else '"', 0, at + 1
            at = len(text)  # where it has no end
            for place in range(start, min(len(text), start + MAX_VALUE_CHARS)):
                char = text[place]
                if char == closing and depth == 0 and text[place - 1] != "\\":
                    value, at = text[start:place], place + 1
                    break
                depth += (char == "{") - (char == "}")
        else:
            word = _WORD.match(text, at)
            value, at = (word[0], word.end()) if word else ("", at + 1)
        yield name[1].casefold(), value
        while at < len(text) and text[at] in ", \t\r\n":
            at += 1
