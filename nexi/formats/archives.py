"""Archives to Markdown: the chapters of an EPUB book, each document of another zip, and the recorded pages of a WARC.

Above sits `extract`, which also reads the documents inside; below, `containers` unpacks them under caps and `markup` writes
chapters and pages. An archive inside an archive is not opened, neither are pictures, and nothing is fetched again. All has one
allowance of bytes; what a record says of its length is a bound and no promise.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, cast
from urllib.parse import unquote

from nexi.errors import FetchError
from nexi.extract import Extracted, charset, markup, one_line
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import BoundedArchive, broken_error, encrypted_error
from nexi.formats.ocr import Recognition
from nexi.formats.registry import is_readable, media_type

MAX_CHAPTERS = 2_000
MAX_TAGS = 300_000  # of all chapters but the last that is read; a long novel has a fifth of that
MAX_DOCUMENTS = 500
MAX_CPU_S = 15.0
MAX_NAMED_CHARS = 2_000
MAX_RECORDS = 20_000
MAX_RECORD_BYTES = 2_000_000
MAX_UNPACKED_BYTES = 100_000_000  # of all records
MAX_HEADER_LINES = 200
MAX_LINE_BYTES = 8_192
_NOT_OPENED = ("application/zip", "image/", "multipart/related", "application/warc")
_PIECE_BYTES = 65_536
_READ_TYPES = ("text/html", "application/xhtml+xml", "text/plain")


def read_epub(data: bytes, max_chars: int) -> Extracted:
    """The chapters of a book in their order. Raises FetchError."""
    archive = BoundedArchive(data)
    container = archive.find_elements("META-INF/container.xml", "rootfile")
    place = next((a["full-path"] for _, a, _ in container if "full-path" in a), "")
    if place not in archive:
        raise broken_error("it does not name its contents")
    folder = posixpath.dirname(place)
    parts = archive.find_elements(place, "title", "creator", "language", "date", "description", "item", "itemref")
    about = {name: one_line(text) for name, _, text in reversed(parts)}  # what comes first
    items = {a.get("id", ""): a for name, a, _ in parts if name == "item"}
    paths: list[str] = []  # of the book's spine, without its own table of contents
    for name, attributes, _ in parts:
        item = items.get(attributes.get("idref", "")) if name == "itemref" else None
        if item and "html" in item.get("media-type", "") and "nav" not in item.get("properties", "").split():
            paths.append(posixpath.normpath(posixpath.join(folder, unquote(item.get("href", "").partition("#")[0]))))
    references = archive.find_elements("META-INF/encryption.xml", "CipherReference")
    if not {unquote(a.get("URI", "")) for _, a, _ in references}.isdisjoint(paths):  # an encrypted font does not matter
        raise encrypted_error()
    tags = 0
    with MarkdownWriter(max_chars) as writer:
        writer.truncated = len(paths) > MAX_CHAPTERS
        for path in paths[:MAX_CHAPTERS]:
            if tags > MAX_TAGS:
                writer.truncated = True
                break
            html = charset.decode_body(archive.read(path), "")
            tags += html.count("<")
            chapter = markup.read_whole(html)
            writer.truncated = writer.truncated or chapter.truncated
            writer.add_block(chapter.text)
    fields = {
        "title": about.get("title", ""),
        "author": about.get("creator", ""),
        "language": about.get("language", "")[:35],
        "published": about.get("date", ""),
        "description": one_line(markup.read_whole(about.get("description", "")).text),
    }
    return writer.build_extracted(fields)


def read_zip(data: bytes, max_chars: int, recognition: Recognition = Recognition()) -> Extracted:  # noqa: B008 - frozen
    """The documents of an archive, in its order, each under its name; the others are named. Raises FetchError."""
    from nexi.formats import extract, find_type

    archive = BoundedArchive(data)
    unread, start_time = list[str](), time.process_time()
    names = [name for name in archive.names if not name.endswith("/") and "__MACOSX/" not in name]
    with MarkdownWriter(max_chars) as writer:
        writer.truncated = len(names) > MAX_DOCUMENTS
        for name in names[:MAX_DOCUMENTS]:
            if time.process_time() - start_time > MAX_CPU_S:
                writer.truncated = True
                break
            try:
                body = archive.read(name)
                kind = find_type(body, name)
                if kind.startswith(_NOT_OPENED) or not is_readable(kind):
                    unread.append(name)
                    continue
                document = extract(body, kind, "", max_chars=max_chars, recognition=recognition)
            except FetchError:
                unread.append(name)
                continue
            writer.truncated = writer.truncated or document.truncated
            writer.add_heading(1, one_line(name))
            writer.add_block(document.text)
        names_of_unread = ", ".join(map(one_line, unread))
        if len(unread) == len(names):
            cause, fix = f"it holds {names_of_unread[:300] or 'nothing'}", "unpack it and give nexi the files inside"
            message = "the archive holds no document that nexi reads"
            raise FetchError(message, reason="content_type", cause=cause, fix=fix)
        if unread:
            writer.add_paragraph(f"[not read: {names_of_unread[:MAX_NAMED_CHARS]}]")
    return writer.build_extracted({})


def read_warc(data: bytes, max_chars: int) -> Extracted:
    """The pages of a web archive in their order, each under its title with its address. Raises FetchError."""
    is_packed = data.startswith(b"\x1f\x8b")
    stream = cast(BinaryIO, gzip.GzipFile(fileobj=io.BytesIO(data))) if is_packed else io.BytesIO(data)
    has_records = False
    with MarkdownWriter(max_chars) as writer:
        for headers, body in _read_records(stream, writer):
            kind, is_cut, has_records = headers.get("content-type", ""), len(body) == MAX_RECORD_BYTES, True
            if headers.get("warc-type") not in ("response", "resource", "conversion"):
                continue
            if media_type(kind) == "application/http":
                answer = io.BytesIO(body)
                if b" 200" not in answer.readline(MAX_LINE_BYTES):
                    continue
                own = _parse_headers(answer)
                kind, body = own.get("content-type", ""), _decode_body(answer, own)
            if media_type(kind) not in _READ_TYPES:
                continue
            text, url = charset.decode_body(body, kind), one_line(headers.get("warc-target-uri", ""))
            page = markup.read_html(text, url) if "html" in kind else Extracted(text=text)
            writer.truncated = writer.truncated or page.truncated or is_cut
            if page.text.strip():
                writer.add_heading(1, page.title or url)
                writer.add_paragraph(url)
                writer.add_block(page.text)
    if not has_records:
        raise broken_error("it has no records")
    return writer.build_extracted({})


def _read_records(stream: BinaryIO, writer: MarkdownWriter) -> Iterator[tuple[dict[str, str], bytes]]:
    """The records of an archive, one at a time; `writer.truncated` says that not all of it was read."""
    count, left = 0, MAX_UNPACKED_BYTES
    try:
        while count < MAX_RECORDS and left > 0:
            for _ in range(MAX_HEADER_LINES):
                line = stream.readline(MAX_LINE_BYTES)
                if line.strip() or not line:
                    break
            headers = _parse_headers(stream) if line.startswith(b"WARC/") else {}
            if not headers:
                return  # its end, or something else stands here
            count += 1
            text = headers.get("content-length", "")
            length = int(text) if text.isdecimal() and len(text) < 12 else 0
            body = stream.read(min(length, MAX_RECORD_BYTES))
            left -= len(body)
            rest = length - len(body)
            while rest > 0 and left > 0 and (piece := stream.read(min(rest, _PIECE_BYTES))):
                rest -= len(piece)
                left -= len(piece)
            yield headers, body
    except (OSError, EOFError, zlib.error):
        pass  # it ends inside a record
    writer.truncated = True


def _parse_headers(stream: BinaryIO) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(MAX_HEADER_LINES):
        line = stream.readline(MAX_LINE_BYTES)
        if not line.strip():
            break
        name, _, value = line.decode("utf-8", "replace").partition(":")
        headers[name.strip().lower()] = value.strip()
    return headers


def _decode_body(stream: BinaryIO, headers: dict[str, str]) -> bytes:
    """Without the chunks it was sent in and without its compression; b"" for one that is not known."""
    is_chunked = "chunked" in headers.get("transfer-encoding", "").lower()
    parts: list[bytes] = [] if is_chunked else [stream.read()]
    while is_chunked and (line := stream.readline(MAX_LINE_BYTES)):
        try:
            size = int(line.partition(b";")[0].strip() or b"0", 16)
        except ValueError:
            parts += [line, stream.read()]  # it was recorded without its chunks
            break
        if size <= 0:
            break
        parts.append(stream.read(size))
        stream.readline(4)
    body = b"".join(parts)
    encoding = headers.get("content-encoding", "").lower()
    if encoding in ("gzip", "x-gzip", "deflate"):
        with suppress(zlib.error):
            return zlib.decompressobj(47).decompress(body, MAX_RECORD_BYTES)
    return body if encoding in ("", "identity") else b""
