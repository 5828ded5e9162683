"""Bytes to text: which charset a page is really in.

Above sits `extract`; below, resiliparse's table of web labels and its detector. Order of trust: the byte-order mark,
UTF-8 where the bytes are that (which hardly happens by accident), what was declared (header, then meta tag), and a guess.
"""

from __future__ import annotations

import codecs
import re
from unicodedata import category

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_META = re.compile(
    rb"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)", re.I
)
_META_WINDOW = 4_096
_WIDE_WINDOW = 8_192
_USUAL = re.compile("[ -~\\n\\u3001\\u3002\\u3000\\uff0c]")  # signs that every language has among its letters
_ODD_CATEGORIES = frozenset({"Cc", "Cn", "Co", "Cs"})
_MAX_ODD, _MIN_USUAL = 0.01, 0.02


def decode_body(data: bytes, content_type: str = "") -> str:
    """The text of a body; bytes that fit nothing become replacement characters, never an error."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    if wide := guess_utf16(data):
        return data.decode(wide, "replace")
    declared = _declared_encoding(data, content_type)
    # Some charsets are written in ASCII bytes alone; there the declaration is all there is.
    order = (declared, "utf-8") if data.isascii() else ("utf-8", declared)
    for encoding in filter(None, order):
        text = _decode_strictly(data, encoding)
        if text is not None:
            return text
    return data.decode(_guess_encoding(data), "replace")


def guess_utf16(data: bytes) -> str:
    """The UTF-16 that a text without a byte-order mark is in, or "": only there does a text have zero bytes.

    The byte order is the one in which more of the usual signs of a text come out; a text has next to nothing unassigned.
    """
    sample = data[: _WIDE_WINDOW - _WIDE_WINDOW % 2]
    sample = sample[: len(sample) - len(sample) % 2]
    if b"\0" not in sample:
        return ""
    texts = {name: sample.decode(name, "replace") for name in ("utf-16-le", "utf-16-be")}
    name, text = max(texts.items(), key=lambda item: len(_USUAL.findall(item[1])))
    odd = sum(category(char) in _ODD_CATEGORIES for char in text if char not in "\r\n\t")
    return name if odd <= len(text) * _MAX_ODD and len(_USUAL.findall(text)) >= len(text) * _MIN_USUAL else ""


def _declared_encoding(data: bytes, content_type: str) -> str:
    if header := _HEADER.search(content_type):
        return _python_name(header[1])
    if meta := _META.search(data[:_META_WINDOW]):
        name = _python_name((meta[1] or meta[2]).decode("ascii", "replace"))
        # A tag that could be read as ASCII is not in UTF-16, whatever it says.
        return "utf-8" if name.startswith("utf-16") else name
    return ""


def _python_name(label: str) -> str:
    """A codec for a label of the web, or "" for one the web does not know (Python knows many that are no charsets)."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    return map_encoding_to_html5(label, fallback_utf8=False) or ""


def _decode_strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        # A body cut at its size limit may end inside a character.
        if error.start >= len(data) - 4 and error.reason.startswith(("unexpected end", "incomplete", "truncated")):
            return data[: error.start].decode(encoding)
        return None


def _guess_encoding(data: bytes) -> str:
    from resiliparse.parse.encoding import EncodingDetector

    detector = EncodingDetector()  # the library's shared one is not for threads
    detector.update(data[:131_072])
    return detector.encoding(html5_compatible=True) or "utf-8"
