"""Web archives (WARC) to Markdown: the pages that were recorded, each under its title with its address.

Above sits `extract`; below, the standard library and `markup`. Requests, pictures and scripts are passed over; nothing is
fetched again, and what a record says of its length is a bound and no promise.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, cast

from nexi.extract import charset, markup
from nexi.extract.words import Extracted, one_line
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import broken_error
from nexi.formats.registry import media_type

MAX_RECORDS = 20_000
MAX_RECORD_BYTES = 2_000_000
MAX_BYTES = 100_000_000  # of all that is unpacked
MAX_HEADER_LINES = 200
MAX_LINE_BYTES = 8_192
_PIECE_BYTES = 65_536
_READ_TYPES = ("text/html", "application/xhtml+xml", "text/plain")

Headers = dict[str, str]


def read_warc(data: bytes, max_chars: int) -> Extracted:
    """The pages in their order. Raises FetchError."""
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


def _read_records(stream: BinaryIO, writer: MarkdownWriter) -> Iterator[tuple[Headers, bytes]]:
    """The records of an archive, one at a time; `writer.truncated` says that not all of it was read."""
    count, left = 0, MAX_BYTES
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


def _parse_headers(stream: BinaryIO) -> Headers:
    headers: Headers = {}
    for _ in range(MAX_HEADER_LINES):
        line = stream.readline(MAX_LINE_BYTES)
        if not line.strip():
            break
        name, _, value = line.decode("utf-8", "replace").partition(":")
        headers[name.strip().lower()] = value.strip()
    return headers


def _decode_body(stream: BinaryIO, headers: Headers) -> bytes:
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
