"""Zip archives of XML, read under caps, which EPUB, Office and OpenDocument files are; and the compound files of Office 97.

Above sit the readers of these formats; below, the standard library's zip reader and XML parser. A file is hostile: what it says
of its sizes and places is believed only as far as it fits, nothing in it is unpacked to the disk, a declared document type ends
the reading, and archives inside are left alone. A document that cannot be read is a FetchError.
"""

from __future__ import annotations

import io
import posixpath
import struct
import zipfile
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote
from xml.parsers import expat

from nexi.errors import FetchError
from nexi.extract import one_line

MAX_MEMBERS = 10_000
MAX_MEMBER_BYTES = 8_000_000
MAX_BYTES = 32_000_000  # of all that is unpacked
MAX_ELEMENTS = 400_000  # of one part; a book in Word has a third of that
MAX_DEPTH = 256
MAX_ATTRIBUTES = 256  # of one element
MAX_ENTRIES = 20_000  # streams and folders; elements that are kept with their attributes: chapters, links, lists
MAX_ENTRY_CHARS = 20_000
MAX_STREAM_BYTES = 32_000_000
_PIECE_BYTES = 65_536
_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)

# The elements that say what a document is, in their order; a template keeps its own date of creation.
_PROPERTIES = {
    "title": ("title",), "author": ("initial-creator", "creator"), "language": ("language",), "updated": ("modified", "date"),
    "published": ("modified", "date", "created", "creation-date"), "description": ("description", "subject"),
}  # fmt: skip

_COMPOUND_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_NO_SECTOR = 0xFFFFFFFA  # sectors from here on have another meaning
_STREAM, _ROOT, _MINI_SHIFT, _MINI_LIMIT = 2, 5, 6, 4_096
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_SUMMARY = {2: "title", 4: "author", 12: "created", 13: "modified"}

Attributes = dict[str, str]
Element = tuple[str, Attributes, str]


class XmlHandler:
    """Gets the elements of a part as they come, without their namespaces; what it does not override says nothing to it."""

    def start(self, name: str, attributes: Attributes) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...


class BoundedArchive:
    """The members of a zip by name, and how much of it may still be unpacked."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise broken_error(str(error)) from error
        if len(self._zip.filelist) > MAX_MEMBERS:
            raise too_large_error(f"it has more than {MAX_MEMBERS:,} parts")
        self._left = MAX_BYTES
        self.names = self._zip.namelist()  # in the order of the archive

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """One member; b"" for one that is not there."""
        return b"".join(self.stream(name, MAX_MEMBER_BYTES))

    def stream(self, name: str, max_bytes: int = MAX_BYTES) -> Iterator[bytes]:
        """One member in pieces; none for one that is not there."""
        if name not in self:
            return
        if self._zip.NameToInfo[name].flag_bits & 1:
            raise encrypted_error()
        most = room = min(max_bytes, self._left)
        try:
            with self._zip.open(name) as member:
                while piece := member.read(_PIECE_BYTES):
                    room -= len(piece)
                    if room < 0:
                        raise too_large_error(f"a part of it unpacks to more than {most:,} bytes")
                    self._left -= len(piece)
                    yield piece
        except _ZIP_FAULTS as error:
            raise broken_error(str(error)) from error

    def relationships(self, name: str) -> dict[str, Attributes]:
        """What an Office part refers to, by id; targets inside the archive become names of members."""
        folder, file = posixpath.split(name)
        targets = {}
        for _, attributes, _ in self.find_elements(f"{folder}/_rels/{file}.rels".lstrip("/"), "Relationship"):
            if attributes.get("TargetMode") != "External":
                target = unquote(attributes.get("Target", ""))
                attributes["Target"] = posixpath.normpath(posixpath.join(f"/{folder}", target)).lstrip("/")
            targets[attributes.get("Id", "")] = attributes
        return targets

    def read_properties(self, member: str = "docProps/core.xml") -> dict[str, str]:
        """What a document of Office or OpenDocument says of itself."""
        names = {name for own in _PROPERTIES.values() for name in own}
        about = {name: one_line(text) for name, _, text in reversed(self.find_elements(member, *names))}
        fields = {field: next(filter(None, map(about.get, own)), "") for field, own in _PROPERTIES.items()}
        return fields | {"language": fields["language"][:35]}

    def find_elements(self, member: str, *names: str) -> list[Element]:
        """The elements of these names in a member."""
        return Elements(*names).of(self.read(member))

    def parse_member(self, member: str, handler: XmlHandler, max_elements: int = MAX_ELEMENTS) -> None:
        parse_xml(self.stream(member), handler, max_elements=max_elements)


class Elements(XmlHandler):
    """The elements of these names in a document, each with its attributes and the beginning of its text."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._open: list[tuple[str, Attributes, list[str]]] = []
        self._found: list[Element] = []
        self._chars = 0

    def of(self, xml: bytes) -> list[Element]:
        parse_xml((xml,), self)
        return self._found

    def start(self, name: str, attributes: Attributes) -> None:
        if name in self._names:
            self._open.append((name, attributes, []))
            self._chars = 0
            if len(self._found) + len(self._open) > MAX_ENTRIES:
                raise too_large_error(f"it lists more than {MAX_ENTRIES:,} things")

    def text(self, text: str) -> None:
        if self._open and self._chars < MAX_ENTRY_CHARS:
            self._chars += len(text)
            self._open[-1][2].append(text[:MAX_ENTRY_CHARS])

    def end(self, name: str) -> None:
        if self._open and self._open[-1][0] == name:
            _, attributes, parts = self._open.pop()
            self._found.append((name, attributes, "".join(parts)))


def parse_xml(pieces: Iterable[bytes], handler: XmlHandler, *, max_elements: int = MAX_ELEMENTS) -> None:
    """Hand the elements over as they come; nothing of the document is kept here. An empty document has none."""
    elements = depth = 0
    start, end = handler.start, handler.end

    def enter(name: str, pairs: list[str]) -> None:
        nonlocal elements, depth
        elements, depth = elements + 1, depth + 1
        if elements > max_elements or depth > MAX_DEPTH or len(pairs) > 2 * MAX_ATTRIBUTES:
            raise too_large_error("a part of it has too many elements, or too many inside one another, or attributes")
        attributes: Attributes = {}
        for place in range(0, len(pairs), 2):
            prefix, _, local_name = pairs[place].rpartition(":")
            if prefix or local_name not in attributes:  # where two are alike, the one that had a namespace
                attributes[local_name] = pairs[place + 1]
        start(name.rpartition(":")[2], attributes)

    def leave(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(name.rpartition(":")[2])

    def refuse_doctype(*_: Any) -> None:
        raise broken_error("it declares a document type")

    parser = expat.ParserCreate()
    parser.buffer_text = parser.ordered_attributes = True
    parser.StartElementHandler, parser.EndElementHandler = enter, leave
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = refuse_doctype
    is_empty = True
    try:
        for piece in pieces:
            for place in range(0, len(piece), _PIECE_BYTES):
                is_empty = False
                parser.Parse(piece[place : place + _PIECE_BYTES], False)
        if not is_empty:
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        if error.code == expat.errors.codes[expat.errors.XML_ERROR_NO_MEMORY]:
            raise MemoryError from error
        raise broken_error(str(error)) from error


class CompoundFile:
    """The streams of a file by their paths, with "/" between folders."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 512 or not data.startswith(_COMPOUND_MAGIC):
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
            words = _whole_words(self._sector(at)) if at < _NO_SECTOR else []
            if len(words) < (1 << self._shift) // 4:
                break
            sectors += words[:-1]
            at = words[-1]
        self._table = array("I", (word for at in sectors if at < _NO_SECTOR for word in _whole_words(self._sector(at))))
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

    def read_properties(self) -> dict[str, str]:
        """What a document of Office 97 says of itself; a template keeps its day of creation."""
        data = self.read("\x05SummaryInformation")
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


def broken_error(cause: str) -> FetchError:
    return FetchError("the document is broken", reason="error", cause=cause, fix="look for another version of it")


def too_large_error(cause: str) -> FetchError:
    return FetchError("the document is too large", reason="too_large", cause=cause, fix="look for another version of it")


def encrypted_error() -> FetchError:
    cause, fix = "encrypted: needs a password or a licence", "look for a version without a lock"
    return FetchError("the document is encrypted", reason="content_type", cause=cause, fix=fix)
