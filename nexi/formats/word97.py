"""Word 97 documents to text: paragraphs, rows of tables, and footnotes. Fonts, styles and pictures are not read.

Above sits `extract`; below, `containers`. The text lies in pieces all over its stream; a list of them says where, and in which of
two encodings. What the list says is believed only as far as it fits into the file.
"""

from __future__ import annotations

import re
import struct
from itertools import pairwise

from nexi.extract.words import Extracted
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import CompoundFile, broken_error, build_extracted, encrypted_error, read_summary

_ENCRYPTED, _SECOND_TABLE = 0x0100, 0x0200
_FIELD_CODE = re.compile(r"\x13[^\x13-\x15]*\x14?|\x15")  # HYPERLINK "…", and the marks around what it shows
_SPECIAL = re.compile(r"[\x00-\x06\x08\x0e-\x1f]")


def read_doc(data: bytes, max_chars: int) -> Extracted:
    """The text of a document and its footnotes. Raises FetchError."""
    file = CompoundFile(data)
    head = file.read("WordDocument")
    try:
        text, notes = _read_text(file, head)
    except struct.error as error:
        raise broken_error("its list of pieces is cut") from error
    with MarkdownWriter(max_chars) as writer:
        for line in _clean(text).split("\r"):
            # Each cell of a table ends with a mark, and each row with one more.
            *rows, rest = line.split("\x07\x07")
            for row in [*rows, rest] if "\x07" in rest else rows:
                writer.add_row(row.split("\x07"))
            if "\x07" not in rest and rest.strip():
                writer.end_table()
                writer.add_paragraph(rest)
        writer.end_table()
        for number, note in enumerate(filter(None, map(str.strip, _clean(notes).split("\r"))), 1):
            writer.add_paragraph(f"[{number}] {note}")
    return build_extracted(writer, read_summary(file))


def _read_text(file: CompoundFile, head: bytes) -> tuple[str, str]:
    flags, main_size, note_size = *struct.unpack_from("<H", head, 10), *struct.unpack_from("<II", head, 76)
    if flags & _ENCRYPTED:
        raise encrypted_error()
    place, size = struct.unpack_from("<II", head, 418)
    table = file.read("1Table" if flags & _SECOND_TABLE else "0Table")[place : place + size]
    at = 0
    while table[at : at + 1] == b"\x01":  # properties of paragraphs
        at += 3 + struct.unpack_from("<H", table, at + 1)[0]
    if table[at : at + 1] != b"\x02":
        raise broken_error("it has no list of pieces")
    count = (struct.unpack_from("<I", table, at + 1)[0] - 4) // 12
    if not 0 < count <= len(table):
        raise broken_error("its list of pieces is cut")
    bounds = struct.unpack_from(f"<{count + 1}I", table, at + 5)
    pieces, room = list[str](), len(head)  # they lie side by side
    for number, (start, end) in enumerate(pairwise(bounds)):
        (place,) = struct.unpack_from("<I", table, at + 5 + 4 * (count + 1) + 8 * number + 2)
        is_narrow, size = place & 0x40000000, max(0, end - start)
        place &= 0x3FFFFFFF
        raw = head[place // 2 : place // 2 + size] if is_narrow else head[place : place + 2 * size]
        room -= len(raw)
        if room < 0:
            raise broken_error("its pieces overlap")
        pieces.append(raw.decode("cp1252" if is_narrow else "utf-16-le", "replace"))
    text = "".join(pieces)
    return text[:main_size], text[main_size : main_size + note_size]


def _clean(text: str) -> str:
    text = _FIELD_CODE.sub("", text).replace("\x0b", "\n").replace("\x0c", "\r").replace("\x1e", "-").replace("\x1f", "")
    return _SPECIAL.sub("", text)
