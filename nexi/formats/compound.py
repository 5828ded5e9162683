"""Compound files, the containers of Word 97 and Outlook: streams in folders inside one file.

Above sit the readers of these formats; below, nothing. A file is hostile: chains of sectors are followed only as far as the
file has sectors, and names and numbers are believed only as far as they fit into it.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from nexi.formats._containers import broken_error, too_large_error

MAX_ENTRIES = 20_000
MAX_STREAM_BYTES = 32_000_000
_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_NONE = 0xFFFFFFFA  # sectors from here on have another meaning
_STREAM, _ROOT, _MINI_SHIFT, _MINI_LIMIT = 2, 5, 6, 4_096
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_SUMMARY = {2: "title", 4: "author", 12: "created", 13: "modified"}


class CompoundFile:
    """The streams of a file by their paths, with "/" between folders."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 512 or not data.startswith(_MAGIC):
            raise broken_error("it is no compound file")
        self._data = data
        (self._shift,) = struct.unpack_from("<H", data, 30)
        if self._shift not in (9, 12):
            raise broken_error("its sectors have no size")
        first_folder, first_mini = struct.unpack_from("<I", data, 48)[0], struct.unpack_from("<I", data, 60)[0]
        # Which sector follows which.
        sectors = list(struct.unpack_from("<109I", data, 76))
        (at,) = struct.unpack_from("<I", data, 68)
        for _ in range(len(data) >> self._shift):
            words = _whole_words(self._sector(at)) if at < _NONE else []
            if len(words) < (1 << self._shift) // 4:
                break
            sectors += words[:-1]
            at = words[-1]
        self._table = array("I", (word for at in sectors if at < _NONE for word in _whole_words(self._sector(at))))
        folders = self._read_chain(first_folder, MAX_ENTRIES * 128)
        self._mini_table = array("I", _whole_words(self._read_chain(first_mini, len(data))))
        entries = [folders[at : at + 128] for at in range(0, len(folders) - 127, 128)][:MAX_ENTRIES]
        if not entries or entries[0][66] != _ROOT:
            raise broken_error("it has no root")
        start, size = struct.unpack_from("<IQ", entries[0], 116)
        self._mini = self._read_chain(start, min(size, len(data)))
        # Every stream once; the entries of a folder are a tree of neighbours.
        self.streams: dict[str, tuple[int, int]] = {}
        visited_numbers: set[int] = set()
        stack = [(struct.unpack_from("<I", entries[0], 76)[0], "")]
        while stack:
            number, folder = stack.pop()
            if number >= len(entries) or number in visited_numbers:
                continue
            visited_numbers.add(number)
            entry = entries[number]
            length = min(max(struct.unpack_from("<H", entry, 64)[0] - 2, 0), 62)
            path = folder + entry[:length].decode("utf-16-le", "replace")
            left, right, child = struct.unpack_from("<III", entry, 68)
            stack += [(left, folder), (right, folder), (child, f"{path}/")]
            if entry[66] == _STREAM:
                start, size = struct.unpack_from("<IQ", entry, 116)
                self.streams[path] = start, size & 0xFFFFFFFF

    def __contains__(self, path: str) -> bool:
        return path in self.streams

    def read(self, path: str) -> bytes:
        """One stream; b"" for one that is not there."""
        if path not in self.streams:
            return b""
        start, size = self.streams[path]
        if size > MAX_STREAM_BYTES:
            raise too_large_error(f"a part of it has more than {MAX_STREAM_BYTES:,} bytes")
        if size >= _MINI_LIMIT:
            return self._read_chain(start, size)[:size]
        places = _follow_chain(self._mini_table, start, (size >> _MINI_SHIFT) + 1)
        return b"".join(self._mini[at << _MINI_SHIFT : (at + 1) << _MINI_SHIFT] for at in places)[:size]

    def _sector(self, number: int) -> bytes:
        return self._data[(number + 1) << self._shift : (number + 2) << self._shift]

    def _read_chain(self, sector: int, size: int) -> bytes:
        sectors = _follow_chain(self._table, sector, min(len(self._table), (size >> self._shift) + 1))
        return b"".join(map(self._sector, sectors))


def _whole_words(data: bytes) -> list[int]:
    return [word for (word,) in struct.iter_unpack("<I", data[: len(data) // 4 * 4])]


def _follow_chain(table: Sequence[int], start: int, most: int) -> Iterator[int]:
    """The numbers of a chain, where each entry of the table names the next; at most so many, since it may be a circle."""
    for _ in range(most):
        if start >= len(table):
            return
        yield start
        start = table[start]


def read_summary(file: CompoundFile) -> dict[str, str]:
    """What the program that wrote a document says of it, by the fields of `Extracted`; a template keeps its day of creation."""
    data = file.read("\x05SummaryInformation")
    try:
        start = struct.unpack_from("<I", data, 44)[0]
        count = min(struct.unpack_from("<I", data, start + 4)[0], 100)
        places = [struct.unpack_from("<II", data, start + 8 + 8 * n) for n in range(count)]
        page = next((struct.unpack_from("<H", data, start + at + 4)[0] for key, at in places if key == 1), 1252)
        about = {_SUMMARY[key]: _read_property(data, start + at, page) for key, at in places if key in _SUMMARY}
    except (struct.error, LookupError):
        return {}
    title, author, created, modified = (about.get(name, "") for name in _SUMMARY.values())
    return {"title": title, "author": author, "published": modified or created, "updated": modified}


def _read_property(data: bytes, at: int, code_page: int) -> str:
    (kind,) = struct.unpack_from("<I", data, at)
    if kind == 64:
        return read_filetime(data, at + 4)
    if kind not in (30, 31):
        return ""
    (size,) = struct.unpack_from("<I", data, at + 4)
    raw = data[at + 8 : at + 8 + min(size * (kind - 29), 4_000)]
    encoding = "utf-16-le" if kind == 31 else {65001: "utf-8", 1200: "utf-16-le"}.get(code_page, f"cp{code_page}")
    return " ".join(raw.decode(encoding, "replace").replace("\0", "").split())


def read_filetime(data: bytes, at: int) -> str:
    """A time of Windows as ISO 8601; "" for none."""
    (ticks,) = struct.unpack_from("<Q", data, at)
    with suppress(OverflowError):
        return (_EPOCH + timedelta(microseconds=ticks // 10)).isoformat() if ticks else ""
    return ""
