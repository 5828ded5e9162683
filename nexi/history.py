"""Past answers: a JSON line each in a private file to which several processes append; damaged lines are skipped and counted."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from nexi import files
from nexi.text.words import contains_words
from nexi.types import HistoryEntry as HistoryEntry
from nexi.types import HistoryRead as HistoryRead

PREVIEW_CHARS = 200
PREVIEW_URLS = 3
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_TITLE = re.compile(r"\A\s*# [^\n]*\n+(?=\s*\S)")
_CONTROL_BUT_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def get_history_path() -> Path:
    from nexi.config import nexi_home

    return nexi_home() / "history.jsonl"


def create_entry(
    query: str,
    answer: str,
    urls: list[str],
    effort: str,
    iterations: int,
    duration_s: float,
    tokens: int,
    id: str | None = None,  # noqa: A002  # the field's documented name
    ts: str | None = None,
    space: str = "",
) -> HistoryEntry:
    """An entry of now, under a new id, unless both are given."""
    new_id, when = id or os.urandom(3).hex(), ts or datetime.now(UTC).isoformat(timespec="seconds")
    return HistoryEntry(new_id, when, query, answer, list(urls), effort, iterations, duration_s, tokens, space)


def add_history_entry(entry: HistoryEntry, path: Path | None = None) -> None:
    """Append an entry: one write under a lock, on the disk when this returns. Raises StoreError."""
    path = path or get_history_path()
    line = json.dumps(entry.to_dict()).encode("ascii") + b"\n"
    with files.translate_os_errors("Could not save the answer to the history", path):
        files.make_private_directory(path.parent)
        with files.open_locked(path) as fd:
            files.append_line(fd, line)


def read_history(path: Path | None = None) -> HistoryRead:
    reader = _HistoryReader(path or get_history_path())
    return HistoryRead(list(reader.entries()), reader.damaged)


def read_last(n: int, path: Path | None = None) -> HistoryRead:
    """The last n entries, and the damage met on the way; only as much of the file is read as that takes."""
    reader = _HistoryReader(path or get_history_path())
    return HistoryRead(list(islice(reader.entries(), max(0, n))), reader.damaged)


def get_last_n_entries(n: int, path: Path | None = None) -> list[HistoryEntry]:
    return read_last(n, path).entries


def get_latest_entry(path: Path | None = None) -> HistoryEntry | None:
    return next(_HistoryReader(path or get_history_path()).entries(), None)


def get_entry_by_id(entry_id: str, path: Path | None = None) -> HistoryEntry | None:
    """The entry with that id; the latest, should there be two."""
    reader = _HistoryReader(path or get_history_path(), holding=json.dumps(entry_id).encode("ascii"))
    return next((entry for entry in reader.entries() if entry.id == entry_id), None)


def find_entries(text: str, path: Path | None = None, count: int | None = None) -> HistoryRead:
    """Entries, all or the last so many, with each word of the text in question or answer, and the damage met on the way."""
    reader = _HistoryReader(path or get_history_path())
    matches = (entry for entry in reader.entries() if contains_words(f"{entry.query}\n{entry.answer}", text))
    return HistoryRead(list(islice(matches, count)), reader.damaged)


def search_history(text: str, path: Path | None = None) -> list[HistoryEntry]:
    return find_entries(text, path).entries


def remove_entry(entry_id: str, path: Path | None = None) -> int:
    """Blank the lines of an entry, and say how many there were. Raises StoreError."""
    # the file keeps its length, so that another process may append meanwhile
    path = path or get_history_path()
    with files.translate_os_errors("Could not change the history", path):
        try:
            file = path.open("r+b")
        except FileNotFoundError:
            return 0
        with file:
            files.wait_for_lock(file.fileno())
            places, position, mark = [], 0, json.dumps(entry_id).encode("ascii")
            for line in file:
                if mark in line and _parse_object(line).get("id") == entry_id:
                    places.append((position, len(line.rstrip(b"\n"))))
                position += len(line)
            for start, length in places:
                file.seek(start)
                file.write(b" " * length)
            file.flush()
            os.fsync(file.fileno())
            return len(places)


def clear_history(path: Path | None = None) -> None:
    path = path or get_history_path()
    with files.translate_os_errors("Could not delete the history", path):
        path.unlink(missing_ok=True)


def format_time_ago(ts: str, now: datetime | None = None) -> str:
    """How long ago that was, in its largest unit: 5m ago. A time without a zone is local."""
    try:
        then = datetime.fromisoformat(ts).astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return "unknown"
    seconds = max(0, int(((now or datetime.now(UTC)).astimezone(UTC) - then).total_seconds()))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"


def name_day(ts: str) -> str:
    """The day of a time, where this process runs: Today, Yesterday, or its date."""
    try:
        then = datetime.fromisoformat(ts).astimezone()
    except (ValueError, TypeError, OverflowError):
        return "Unknown day"
    days = (datetime.now(UTC).astimezone().date() - then.date()).days
    if days <= 0:  # a clock that ran ahead is no other day
        return "Today"
    return "Yesterday" if days == 1 else f"{then:%A}, {then.day} {then:%B %Y}"


def fold_repeats(entries: Iterable[HistoryEntry]) -> list[list[HistoryEntry]]:
    """Entries of one question in one space together, in the order of the first of each."""
    groups: dict[tuple[str, str], list[HistoryEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.space, " ".join(entry.query.casefold().split())), []).append(entry)
    return list(groups.values())


def format_entry_preview(entry: HistoryEntry, index: int, now: datetime | None = None) -> str:
    """A question with the beginning of its answer and its first URLs."""
    work = f"{entry.iterations} iter" if entry.iterations else "research"  # which has researchers instead of iterations
    took = f"{_one_line(entry.effort)}, {work}, {entry.duration_s:.0f}s"
    head = f'[{index}] {format_time_ago(entry.ts, now)} ({took}): "{_preview_text(entry.query)}"'
    answer = _preview_text(_TITLE.sub("", entry.answer))
    more = len(entry.urls) - PREVIEW_URLS
    urls = [f"    {_one_line(url)}" for url in entry.urls[:PREVIEW_URLS]] + ([f"    (+{more} more)"] if more > 0 else [])
    return "\n".join([head, *([f"    {answer}"] if answer else []), *urls, f"    ID: {_one_line(entry.id)}"])


def format_entry_full(entry: HistoryEntry) -> str:
    plural = "" if entry.iterations == 1 else "s"
    work = f"{entry.iterations} iteration{plural}" if entry.iterations else "research"
    facts = f"{work}, {entry.duration_s:.1f}s, {entry.tokens} tokens"
    urls = ["", "URLs:", *(f"  [{number}] {_one_line(url)}" for number, url in enumerate(entry.urls, 1))] if entry.urls else []
    about = f"ID: {_one_line(entry.id)} · {_one_line(entry.ts)} · effort {_one_line(entry.effort)} · {facts}"
    return "\n".join([f"Query: {_one_line(entry.query)}", about, "", _CONTROL_BUT_LINES.sub("", entry.answer), *urls])


class FileHistory:
    """The history of one home, as the port HistoryStore."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, entry: HistoryEntry) -> None:
        add_history_entry(entry, self._path)

    def read(self, count: int | None = None) -> HistoryRead:
        return read_history(self._path) if count is None else read_last(count, self._path)

    def find(self, text: str, count: int | None = None) -> HistoryRead:
        return find_entries(text, self._path, count)

    def get(self, entry_id: str) -> HistoryEntry | None:
        return get_entry_by_id(entry_id, self._path)

    def remove(self, entry_id: str) -> int:
        return remove_entry(entry_id, self._path)

    def clear(self) -> None:
        clear_history(self._path)


class _HistoryReader:
    """Entries from the end of the file, counting what is damaged; `holding` skips lines without those bytes unread."""

    def __init__(self, path: Path, holding: bytes = b"") -> None:
        self._path, self._holding, self.damaged = path, holding, 0

    def entries(self) -> Iterator[HistoryEntry]:
        with files.translate_os_errors("Could not read the history", self._path), suppress(FileNotFoundError):
            for line in files.lines_from_end(self._path):
                if line.strip() and self._holding in line and (entry := self._entry(line)):
                    yield entry

    def _entry(self, line: bytes) -> HistoryEntry | None:
        try:
            return HistoryEntry.from_dict(_parse_object(line))
        except ValueError:
            self.damaged += 1
            return None


def _parse_object(line: bytes) -> dict[str, Any]:
    """The JSON object in a line; an empty one for anything else."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _preview_text(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= PREVIEW_CHARS else line[:PREVIEW_CHARS].rstrip() + "… [truncated]"


def _one_line(text: str) -> str:
    """A text on one line that cannot move a cursor."""
    return _CONTROL.sub(" ", text).strip()
