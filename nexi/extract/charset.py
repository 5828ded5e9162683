"""Bytes to text: which charset a page is really in.

Above sits `extract`; below, resiliparse's table of web labels and its detector. Order of trust: the byte-order mark,
UTF-8 where the bytes are that (which hardly happens by accident), what was declared (header, then meta tag), and a guess.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from pathlib import Path
from unicodedata import category, name

import msgspec
from msgspec import Struct

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
# UTF-8 that was read as windows-1252 or as Latin-1, letter by letter.
_BYTE_OF = {bytes([byte]).decode("cp1252"): byte for byte in range(128, 160) if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}
_NEXT = f"[\x80-\xbf{''.join(map(re.escape, _BYTE_OF))}]"
_DOUBLE_STARTS = "âÃÂ"  # of quotation marks and dashes, of accented letters, of signs such as the no-break space
_DOUBLE = re.compile(f"[\xc2-\xdf]{_NEXT}|[\xe0-\xef]{_NEXT}{{2}}|[\xf0-\xf4]{_NEXT}{{3}}")
_MAYBE_DOUBLE = re.compile(f"[{_DOUBLE_STARTS}]{_NEXT}")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_MIN_DOUBLE = 4  # times as many as other signs


class _Tables(Struct, frozen=True):
    """What browsers decode names of charsets as, and by how many bits each charset is less likely than the detector's."""

    web_codecs: dict[str, str]  # pages are written with the signs that a vendor added to the standard
    candidates: dict[str, int]  # first those of short files and old pages, then those that no one writes any more
    everyday_ideographs: dict[str, tuple[str, int, float]]  # a standard, the lead byte where its everyday ones end, their bits
    frequent_ideographs: str
    frequent_hangul: str


_TABLES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Tables)
_MAX_LOST = 0.01  # share of a declared text that may fit nothing: a stray byte does not make another charset of a page
_ORDINARY_SIGNS = frozenset("’“”„«»–—…€£°№¿¡،؟\xa0")
_CASED_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK"})
_ALPHABETS = _CASED_SCRIPTS | {"HEBREW", "ARABIC", "THAI"}
_WORD_WITH_SIGNS = re.compile(rb"[\x21-\x7e]{0,9}(?:[\x80-\xff]+[\x21-\x7e]{0,9})+")
_SEARCHED_BYTES, _SAMPLE_BYTES = 65_536, 2_048
_RARE_BITS, _BROKEN_BITS = 15.0, 40.0
_MIXTURE_BITS = 8.0  # two scripts, a letter and a sign, or a capital after a small letter, with nothing between them
_SWITCH_BITS = 2.0  # for a word in another alphabet than the word before it


def decode_body(data: bytes, content_type: str = "") -> str:
    """The text of a body; bytes that fit nothing become replacement characters, never an error."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    if wide := guess_utf16(data):
        return data.decode(wide, "replace")
    label = ""
    if header := _HEADER.search(content_type):
        label = _python_name(header[1])
    elif meta := _META.search(data[:_META_WINDOW]):
        codec = _python_name((meta[1] or meta[2]).decode("ascii", "replace"))
        # A tag that could be read as ASCII is not in UTF-16, whatever it says.
        label = "utf-8" if codec.startswith("utf-16") else codec
    # Some charsets are written in ASCII bytes alone; there the declaration is all there is.
    for encoding in filter(None, (label, "utf-8") if data.isascii() else ("utf-8", label)):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            # A body cut at its size limit may end inside a character, but a single sign at the end is no evidence.
            is_cut = error.reason.startswith(("unexpected end", "incomplete", "truncated"))
            if is_cut and error.start >= len(data) - 4 and not data[: error.start].isascii():
                return data[: error.start].decode(encoding)
    if label and label != "utf-8":
        text = data.decode(label, "replace")
        if text.count("\ufffd") <= _MAX_LOST * len(text):
            return text
    from resiliparse.parse.encoding import EncodingDetector

    # The charset in which the bytes are the most ordinary text; where several are as good, what the detector says.
    detector = EncodingDetector()  # the library's shared one is not for threads
    detector.update(data[:131_072])
    guess: str = detector.encoding(html5_compatible=True) or "utf-8"
    costs = _TABLES.candidates | {_TABLES.web_codecs.get(guess, guess): 0}
    sample = b" ".join(_WORD_WITH_SIGNS.findall(data, 0, _SEARCHED_BYTES))[:_SAMPLE_BYTES]
    return data.decode(min(costs, key=lambda codec: costs[codec] + _text_bits(sample, codec)), "replace")


def undo_double_encoding(text: str) -> str:
    """A text whose UTF-8 was taken for single letters and encoded again: "donâ€™t" says "don’t"."""
    # Nearly all signs beyond ASCII must read so, since a page about encodings shows such signs beside its own.
    if not any(letter in text for letter in _DOUBLE_STARTS) or not _MAYBE_DOUBLE.search(text):
        return text
    new_text, count = _DOUBLE.subn(_decode_again, text)
    others = len(_BEYOND_ASCII.findall(_DOUBLE.sub("", text))) if count else 0
    return new_text if count > _MIN_DOUBLE * others else text


def _decode_again(sequence: re.Match[str]) -> str:
    with suppress(ValueError):
        return bytes(_BYTE_OF.get(char, ord(char)) for char in sequence[0]).decode("utf-8")
    return sequence[0]


def guess_utf16(data: bytes) -> str:
    """The UTF-16 that a text without a byte-order mark is in, by the order that gives more usual signs; "" for none."""
    # Only there does a text have zero bytes, and it has next to nothing unassigned.
    sample = data[: min(len(data) // 2 * 2, _WIDE_WINDOW)]
    if b"\0" not in sample:
        return ""
    texts = {codec: sample.decode(codec, "replace") for codec in ("utf-16-le", "utf-16-be")}
    order, text = max(texts.items(), key=lambda item: len(_USUAL.findall(item[1])))
    odd = sum(category(char) in _ODD_CATEGORIES for char in text if char not in "\r\n\t")
    return order if odd <= len(text) * _MAX_ODD and len(_USUAL.findall(text)) >= len(text) * _MIN_USUAL else ""


def _python_name(label: str) -> str:
    """A codec for a label of the web, or "" for one the web does not know (Python knows many that are no charsets)."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    codec = map_encoding_to_html5(label, fallback_utf8=False) or ""
    return _TABLES.web_codecs.get(codec, codec)


def _text_bits(sample: bytes, encoding: str) -> float:
    """About how many bits a text takes in a charset: few where its signs are usual ones and stand beside their like."""
    bits, last_script, word_script, was_small = 0.0, "", "", False
    signs: dict[str, tuple[float, str]] = {}
    for char in sample.decode(encoding, "replace"):
        if char not in signs:
            is_east_asian = encoding in _TABLES.everyday_ideographs
            signs[char] = _east_asian_sign(char, encoding) if is_east_asian else _alphabetic_sign(char)
        sign_bits, script = signs[char]
        bits += sign_bits
        if script and last_script:
            is_odd_capital = was_small and script in _CASED_SCRIPTS and char.isupper()
            bits += _MIXTURE_BITS * (script != last_script or is_odd_capital)
        if script in _ALPHABETS:
            bits += _SWITCH_BITS * (bool(word_script) and script != word_script)
            word_script = script
        last_script, was_small = script, char.islower()
    return bits


def _alphabetic_sign(char: str) -> tuple[float, str]:
    """The bits of a sign, and the script that its neighbours have too ("" next to which anything may stand)."""
    if char.isascii():
        return 5.0, "LATIN" if char.isalpha() else ""
    if char == "\ufffd" or category(char) in _ODD_CATEGORIES:
        return _BROKEN_BITS, "broken"
    if char in _ORDINARY_SIGNS:
        return 7.0, ""
    script = name(char, "").partition(" ")[0]
    if script in _ALPHABETS - _CASED_SCRIPTS:
        return 5.0, script
    if not char.isalpha():
        return 11.0, "sign"
    if script not in _CASED_SCRIPTS:
        return _RARE_BITS, "rare"
    return (7.0 if script == "LATIN" else 5.0) + char.isupper(), script


def _east_asian_sign(char: str, encoding: str) -> tuple[float, str]:
    if char.isascii() or char == "\ufffd" or category(char) in _ODD_CATEGORIES:
        return _alphabetic_sign(char)
    if "\u3041" <= char <= "\u30ff":  # the Chinese charsets have kana too, for quoting
        return 6.0 if encoding in ("cp932", "euc_jp") else _RARE_BITS, "ideographs"
    if "\u3000" <= char <= "\u303f" or "\uff01" <= char <= "\uff5e":  # punctuation, wide letters
        return 8.0, ""
    if "\uff61" <= char <= "\uff9f":
        return 10.0, "halfwidth"
    if "\uac00" <= char <= "\ud7a3":  # the wide charset has every syllable, and any bytes may read as the unused ones
        is_everyday = _fits_standard(char, "euc_kr", 0xFF)
        return (7.0 if char in _TABLES.frequent_hangul else 10.0 if is_everyday else _RARE_BITS), "ideographs"
    standard, end, bits = _TABLES.everyday_ideographs[encoding]
    if "\u4e00" <= char <= "\u9fff" and _fits_standard(char, standard, end):
        return (7.0 if char in _TABLES.frequent_ideographs else bits), "ideographs"
    return _RARE_BITS, "ideographs" if char.isalpha() else ""


def _fits_standard(char: str, standard: str, end: int) -> bool:
    with suppress(UnicodeEncodeError, LookupError):  # where there is no standard, nothing fits it
        return len(data := char.encode(standard)) == 2 and data[0] < end
    return False
