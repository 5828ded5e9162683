"""EPUB and DOCX to Markdown: zip archives of markup, read under caps.

Above sits `extract`; below, the standard library's zip reader and XML parser, and `markup`, which writes the Markdown. An
archive is hostile: what it says of its sizes is not believed, nothing in it is unpacked to the disk, a declared document
type ends the reading, and archives inside are left alone. A document that cannot be read is a FetchError.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote
from xml.parsers import expat

from nexi.errors import FetchError
from nexi.extract import charset, markup
from nexi.extract.wordml import Numbering, Paragraphs
from nexi.extract.words import Extracted, one_line, read_outline

MAX_MEMBERS = 10_000
MAX_MEMBER_BYTES = 8_000_000
MAX_BYTES = 32_000_000  # of all that is unpacked
MAX_CHARS = 300_000
MAX_PIECE = 65_536
MAX_ELEMENTS = 400_000  # of one part; a book in Word has a third of that
MAX_DEPTH = 256
MAX_ATTRIBUTES = 256  # of one element
MAX_ENTRIES = 20_000  # elements that are kept with their attributes: chapters, links, lists
MAX_ENTRY_CHARS = 20_000
MAX_CHAPTERS = 2_000

Attributes = dict[str, str]


class _BoundedArchive:
    """The members of a zip by name, and how much of it may still be unpacked."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise _broken_error(str(error)) from error
        if len(self._zip.filelist) > MAX_MEMBERS:
            raise _too_large(f"it has more than {MAX_MEMBERS:,} parts")
        self._left = MAX_BYTES

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """One member; b"" for one that is not there."""
        if name not in self:
            return b""
        if self._zip.NameToInfo[name].flag_bits & 1:
            raise _encrypted_error()
        most = min(MAX_MEMBER_BYTES, self._left)
        try:
            with self._zip.open(name) as member:
                data = member.read(most + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
            raise _broken_error(str(error)) from error
        if len(data) > most:
            raise _too_large(f"a part of it unpacks to more than {most:,} bytes")
        self._left -= len(data)
        return data


def read_epub(data: bytes) -> Extracted:
    """The chapters of a book in their order. Raises FetchError."""
    archive = _BoundedArchive(data)
    container = _Elements("rootfile").of(archive.read("META-INF/container.xml"))
    place = next((a["full-path"] for _, a, _ in container if "full-path" in a), "")
    if place not in archive:
        raise _broken_error("it does not name its contents")
    parts = _Elements("title", "creator", "language", "date", "description", "item", "itemref").of(archive.read(place))
    about: dict[str, str] = {}
    for name, _, text in parts:
        about.setdefault(name, one_line(text))
    if _has_locked_chapters(archive, paths := list(_chapter_paths(parts, place))):
        raise _encrypted_error()
    text = _join_texts(markup.whole_text(charset.decode_body(archive.read(path), ""), "") for path in paths[:MAX_CHAPTERS])
    return _build_extracted(
        text,
        title=about.get("title", ""),
        author=about.get("creator", ""),
        language=about.get("language", "")[:35],
        published=about.get("date", ""),
        description=one_line(markup.whole_text(about.get("description", ""), "")),
    )


def _chapter_paths(parts: list[tuple[str, Attributes, str]], place: str) -> Iterator[str]:
    """The paths of the book's spine; its own table of contents is left out."""
    folder = posixpath.dirname(place)
    items = {a.get("id", ""): a for name, a, _ in parts if name == "item"}
    for name, attributes, _ in parts:
        item = items.get(attributes.get("idref", "")) if name == "itemref" else None
        if item and "html" in item.get("media-type", "") and "nav" not in item.get("properties", "").split():
            yield posixpath.normpath(posixpath.join(folder, unquote(item.get("href", "").partition("#")[0])))


def _has_locked_chapters(archive: _BoundedArchive, paths: list[str]) -> bool:
    """Whether chapters are encrypted; fonts often are, and do not matter."""
    references = _Elements("CipherReference").of(archive.read("META-INF/encryption.xml"))
    return not {unquote(a.get("URI", "")) for _, a, _ in references}.isdisjoint(paths)


def read_docx(data: bytes) -> Extracted:
    """The paragraphs, lists and tables of a document. Raises FetchError."""
    archive = _BoundedArchive(data)
    if "word/document.xml" not in archive:
        raise _broken_error("it has no text part")
    links = {
        a.get("Id", ""): a.get("Target", "")
        for _, a, _ in _Elements("Relationship").of(archive.read("word/_rels/document.xml.rels"))
        if a.get("TargetMode") == "External"
    }
    numbering = Numbering()
    _parse_xml(archive.read("word/numbering.xml"), numbering.start, numbering.end, numbering.text)
    paragraphs = Paragraphs(links, numbering.ordered_lists(), MAX_CHARS)
    _parse_xml(archive.read("word/document.xml"), paragraphs.start, paragraphs.end, paragraphs.text)
    parts = _Elements("title", "creator", "language", "created", "subject", "description").of(archive.read("docProps/core.xml"))
    about = {name: one_line(text) for name, _, text in reversed(parts)}
    return _build_extracted(
        markup.whole_text(paragraphs.html(), ""),
        title=about.get("title", ""),
        author=about.get("creator", ""),
        language=about.get("language", "")[:35],
        published=about.get("created", ""),
        description=about.get("description", "") or about.get("subject", ""),
    )


def _build_extracted(text: str, *, title: str, author: str, language: str, published: str, description: str) -> Extracted:
    if not text.strip():
        raise FetchError("the document has no text", reason="content_type", cause="it is empty, or its pages are pictures")
    headings, code_languages = read_outline(text)
    return Extracted(
        text=text,
        title=title or next(iter(headings), ""),
        author=author,
        language=language,
        published=published,
        description=description,
        headings=headings,
        code_languages=code_languages,
    )


def _join_texts(texts: Iterator[str]) -> str:
    found: list[str] = []
    chars = 0
    for text in texts:
        if text:
            found.append(text)
            chars += len(text)
        if chars > MAX_CHARS:
            break
    return "\n\n".join(found)


class _Elements:
    """The elements of these names in a document, each with its attributes and the beginning of its text."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._open: list[tuple[str, Attributes, list[str]]] = []
        self._found: list[tuple[str, Attributes, str]] = []
        self._chars = 0

    def of(self, xml: bytes) -> list[tuple[str, Attributes, str]]:
        _parse_xml(xml, self._start, self._end, self._text)
        return self._found

    def _start(self, name: str, attributes: Attributes) -> None:
        if name in self._names:
            self._open.append((name, attributes, []))
            self._chars = 0
            if len(self._found) + len(self._open) > MAX_ENTRIES:
                raise _too_large(f"it lists more than {MAX_ENTRIES:,} things")

    def _text(self, text: str) -> None:
        if self._open and self._chars < MAX_ENTRY_CHARS:
            self._chars += len(text)
            self._open[-1][2].append(text[:MAX_ENTRY_CHARS])

    def _end(self, name: str) -> None:
        if self._open and self._open[-1][0] == name:
            _, attributes, parts = self._open.pop()
            self._found.append((name, attributes, "".join(parts)))


def _parse_xml(
    xml: bytes, start: Callable[[str, Attributes], None], end: Callable[[str], None], text: Callable[[str], None]
) -> None:
    """Hand the elements over as they come, without their namespaces; nothing of the document is kept here."""
    if not xml:
        return
    elements = depth = 0

    def enter(name: str, given: list[str]) -> None:
        nonlocal elements, depth
        elements, depth = elements + 1, depth + 1
        if elements > MAX_ELEMENTS or depth > MAX_DEPTH or len(given) > 2 * MAX_ATTRIBUTES:
            raise _too_large("a part of it has too many elements, or too many inside one another, or attributes")
        start(_local_name(name), {_local_name(key): value for key, value in zip(given[::2], given[1::2], strict=True)})

    def leave(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(_local_name(name))

    parser = expat.ParserCreate()
    parser.buffer_text = parser.ordered_attributes = True
    parser.StartElementHandler, parser.EndElementHandler = enter, leave
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = _refuse_entity
    try:
        for place in range(0, len(xml), MAX_PIECE):
            parser.Parse(xml[place : place + MAX_PIECE], place + MAX_PIECE >= len(xml))
    except expat.ExpatError as error:
        if error.code == expat.errors.codes[expat.errors.XML_ERROR_NO_MEMORY]:
            raise MemoryError from error
        raise _broken_error(str(error)) from error


def _local_name(name: str) -> str:
    return name.rpartition(":")[2]


def _refuse_entity(*_: Any) -> None:
    raise _broken_error("it declares a document type")


def _broken_error(cause: str) -> FetchError:
    return FetchError("the document is broken", reason="error", cause=cause, fix="look for another version of it")


def _too_large(cause: str) -> FetchError:
    return FetchError("the document is too large", reason="too_large", cause=cause, fix="look for another version of it")


def _encrypted_error() -> FetchError:
    return FetchError(
        "the document is encrypted",
        reason="content_type",
        cause="encrypted: needs a password or a licence",
        fix="look for a version without a lock",
    )
