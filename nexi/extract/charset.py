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
# What browsers decode these names as: pages are written with the signs that a vendor added to the standard.
_WEB_CODECS = {
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gbk": "gb18030",
    "gb2312": "gb18030",
    "big5": "big5hkscs",
    "iso8859-11": "cp874",
}
_MAX_LOST = 0.01  # share of a declared text that may fit nothing: a stray byte does not make another charset of a page
# East Asian charsets with where their everyday ideographs end, as lead bytes of the national standard.
_EAST_ASIAN = {
    "cp949": ("", 0),
    "cp932": ("euc_jp", 0xD0),
    "euc_jp": ("euc_jp", 0xD0),
    "gb18030": ("gb2312", 0xD8),
    "big5hkscs": ("big5", 0xC9),
}
_SAMPLE_BYTES = 16_384
_MIN_IDEOGRAPHS, _MIN_FIT = 8, 0.7


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
    if declared and declared != "utf-8":
        text = data.decode(declared, "replace")
        if text.count("\ufffd") <= _MAX_LOST * len(text):
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

    name = map_encoding_to_html5(label, fallback_utf8=False) or ""
    return _WEB_CODECS.get(name, name)


def _decode_strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        # A body cut at its size limit may end inside a character.
        if error.start >= len(data) - 4 and error.reason.startswith(("unexpected end", "incomplete", "truncated")):
            return data[: error.start].decode(encoding)
        return None


def _guess_encoding(data: bytes) -> str:
    """The detector's word, unless the bytes are clearly a text in an East Asian charset, of which it misses some."""
    from resiliparse.parse.encoding import EncodingDetector

    sample = data[:_SAMPLE_BYTES]
    fit, name = max((_east_asian_fit(sample, name), name) for name in _EAST_ASIAN)
    if fit >= _MIN_FIT:
        return name
    detector = EncodingDetector()  # the library's shared one is not for threads
    detector.update(data[:131_072])
    detected = detector.encoding(html5_compatible=True) or "utf-8"
    return _WEB_CODECS.get(detected, detected)


def _east_asian_fit(sample: bytes, encoding: str) -> float:
    """How much of what is not ASCII reads as everyday text of that charset's language, from 0 to 1."""
    letters = [char for char in sample.decode(encoding, "replace") if not char.isascii()]
    if len(letters) < _MIN_IDEOGRAPHS or letters.count("\ufffd") > max(1, _MAX_LOST * len(letters)):
        return 0.0
    return sum(_letter_fit(char, encoding) for char in letters) / len(letters)


def _is_everyday_hangul(char: str) -> bool:
    """Whether it is one of the syllables in use; the wide charset has every other one, and any bytes may read as those."""
    try:
        return len(char.encode("euc_kr")) == 2
    except UnicodeEncodeError:
        return False


def _letter_fit(char: str, encoding: str) -> float:
    if "\u3041" <= char <= "\u30ff":
        return 1.0 if encoding in ("cp932", "euc_jp") else 0.2  # the Chinese charsets have kana too, for quoting
    if "\uac00" <= char <= "\ud7a3":
        return 1.0 if _is_everyday_hangul(char) else 0.2
    if "\u3000" <= char <= "\u303f" or "\uff01" <= char <= "\uff5e":  # punctuation, wide letters
        return 0.8
    standard, end = _EAST_ASIAN[encoding]
    try:
        is_everyday = bool(standard) and "\u4e00" <= char <= "\u9fff" and char.encode(standard)[0] < end
    except UnicodeEncodeError:
        is_everyday = False
    return 0.9 if is_everyday else 0.2
