"""The formats of files: what they are called, how they are known, who reads them, and what to do about the others.

Above sit `extract`, the fetchers and the reader of local files; below, nothing. A format is known by the type a server names,
by what a name ends with, and by its bytes; the bytes of a document win over both. The formats are rows of `registry.json`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from nexi.errors import FetchError
from nexi.extract import charset
from nexi.formats.ocr import can_recognise

UNKNOWN = "application/octet-stream"


class _Format(msgspec.Struct, frozen=True):
    """One format: `reader` is a function of a module here, `whole` one is not read in part, `advice` is for what is unread."""

    name: str
    types: tuple[str, ...]
    extensions: tuple[str, ...] = ()
    reader: str = ""
    whole: bool = False
    is_text: bool = False
    advice: str = ""

    @property
    def recognises(self) -> bool:
        """Whether words in pictures may be part of it."""
        return self.reader in ("pdf.read_pdf", "ocr.read_picture", "archives.read_zip")


class _Registry(msgspec.Struct, frozen=True):
    """All formats, the types and names of text, and the bytes, as Latin-1, that tell a type: a text may begin with `magic`."""

    formats: tuple[_Format, ...]
    text_types: frozenset[str]
    text_extensions: dict[str, str]
    magic: tuple[tuple[str, str], ...]
    marks: tuple[tuple[str, str], ...]
    members: tuple[tuple[str, str], ...]
    streams: tuple[tuple[str, str], ...]


def _encode_marks(marks: Iterable[tuple[str, str]], encoding: str = "latin-1") -> tuple[tuple[bytes, str], ...]:
    return tuple((mark.encode(encoding), kind) for mark, kind in marks)


_REGISTRY = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Registry)
_BY_TYPE = {kind: known for known in _REGISTRY.formats for kind in known.types}
_BY_EXTENSION = {end: known.types[0] for known in _REGISTRY.formats for end in known.extensions} | _REGISTRY.text_extensions
_MAGIC, _MARKS, _INSIDE = map(_encode_marks, (_REGISTRY.magic, _REGISTRY.marks, _REGISTRY.members))
_OLE_STREAMS = _encode_marks(_REGISTRY.streams, "utf-16-le")
_DECLARED = re.compile(rb"mimetype(application/[a-z.+-]+)")
_HTML_START = re.compile(rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body|title|div|p|h1|table)\b", re.I | re.S)


def media_type(content_type: str) -> str:
    """`text/html` of `Text/HTML; charset=utf-8`."""
    return content_type.partition(";")[0].partition(",")[0].strip().lower()


def find_format(kind: str) -> _Format | None:
    """The format of a media type; None for text and for what is not known."""
    return _BY_TYPE.get(kind)


def canonical_type(kind: str) -> str:
    """The first of the media types of a format, for any of them."""
    return document_format.types[0] if (document_format := find_format(kind)) else kind


def is_readable(kind: str) -> bool:
    """Whether there is a reader for a media type."""
    if document_format := find_format(kind):
        return bool(document_format.reader) and (not document_format.advice or can_recognise())
    return kind in _REGISTRY.text_types or (kind.startswith("application/") and kind.endswith(("+json", "+xml")))


def type_of_name(name: str) -> str:
    """The media type that the end of a file's name stands for, or "" for one that stands for none."""
    return _BY_EXTENSION.get(name.rpartition(".")[2].lower(), "")


def sniff_type(data: bytes) -> str:
    """The type of a body that came without one; what is neither a document, HTML nor text is called so."""
    if b"%PDF-" in data[:1_024]:
        return "application/pdf"
    if data.startswith(b"PK\x03\x04"):
        # By the type that it declares in its first member, else by the names in its directory, which stands at the end.
        if declaration := _DECLARED.search(data[:200]):
            return canonical_type(declaration[1].decode("ascii"))
        end = data.rfind(b"PK\x05\x06")
        place = int.from_bytes(data[end + 16 : end + 20], "little") if end >= 0 else 0
        directory = data[place:] if data[place : place + 4] == b"PK\x01\x02" else data
        return next((kind for name, kind in _INSIDE if name in directory), "application/zip")
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return next((kind for name, kind in _OLE_STREAMS if name in data), "application/x-ole-storage")
    if _HTML_START.match(data):
        return "text/html"
    start = data[:1_024]
    if type_by_mark := next((kind for magic, kind in _MARKS if start.startswith(magic)), ""):
        return type_by_mark
    # Two letters that begin some format are no proof of it: a text may begin so too.
    is_text = not any(start.startswith(magic) for magic, _ in _MAGIC if len(magic) > 3 or not magic.isalnum())
    if b"\0" not in start and is_text:
        has_cells = b'"nbformat"' in data and (b'"cells"' in data or b'"worksheets"' in data)
        return "application/x-ipynb+json" if data[:200].lstrip()[:1] == b"{" and has_cells else "text/plain"
    if data.startswith(b"\x1f\x8b"):
        with suppress(zlib.error):
            if zlib.decompressobj(31).decompress(data[:4_096], 16).startswith(b"WARC/"):
                return "application/warc"
        return "application/gzip"
    if data[4:8] == b"ftyp":
        return "image/heic" if data[8:12] in (b"heic", b"heix", b"heim", b"mif1", b"msf1", b"avif") else "video/mp4"
    if data.startswith(b"RIFF"):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], UNKNOWN)
    if data[257:262] == b"ustar":
        return "application/x-tar"
    if data[60:68] == b"BOOKMOBI":
        return "application/x-mobipocket-ebook"
    type_by_magic = next((kind for magic, kind in _MAGIC if data.startswith(magic)), "")
    return type_by_magic or (UNKNOWN if b"\0" in start and not charset.guess_utf16(data) else "text/plain")


def refuse_format(kind: str, name: str = "") -> FetchError:
    """Why what is of this type is not read; `name` is its address, or "" where the reader knows which file it is."""
    document_format = find_format(kind)
    description, fix = "not a format nexi reads", "give it as text, HTML, PDF or an Office document"
    if document_format:
        article = "an" if document_format.name.startswith(("A", "E", "O", "RTF", "SRT", "MHTML", "e", "old")) else "a"
        description, fix = f"{article} {document_format.name}, which nexi does not read", document_format.advice
    return FetchError(
        f"{name[:200]} is {description}" if name else description,
        reason="content_type",
        cause=f"its type is {kind[:100] or 'unknown'}" if name else "",
        content_type=kind[:100],
        fix=fix,
    )
