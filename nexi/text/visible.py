"""A page's Markdown without what readers do not see, and the way back to the stored text.

Below `snapshots`, above nothing. What is taken out: targets of links, note marks, inline tags, escapes, soft hyphens and other
invisible characters, hyphens at line ends; letters written with combining marks become one character. Every pass is linear.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right

from msgspec import Struct

_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_COMBINING = "\u0300-\u036f\u3099\u309a"
_MARK = re.compile(rf"[{_INVISIBLE}\]\[&<\\]|(?<=[a-z])-\n")
_MARK_OR_COMBINING = re.compile(rf"{_MARK.pattern}|\w[{_COMBINING}]+")
_ODD = re.compile(
    rf"(?P<gone>[{_INVISIBLE}]+"
    r"|\]\([^()\s]{0,2000}(?:\([^()\s]{0,300}\)[^()\s]{0,500})?(?:\s+\"[^\"\n]{0,300}\")?\)"
    r"|\[\^?(?:\d{1,3}|[a-z]|note \d{1,3}|citation needed)\](?!\((?!#))"
    r"|</?(?:a|b|i|u|em|strong|sup|sub|span|small|mark|code|q|cite|abbr|p|li|td|th|tr)\b[^<>\n]{0,200}>"
    r"|\\(?=[\\`*_{}\[\]()#+.!|<>~$-])"
    r"|-\n[ \t]*(?=[a-z]))"
    r"|(?P<break><br\s*/?>)"
    r"|(?P<entity>&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});)"
    rf"|(?P<letter>\w[{_COMBINING}]+)"
)
_HARD_SPACES = re.compile(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_DASHES = re.compile(r"[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
_SINGLE_QUOTES = re.compile(r"[\u2018\u2019\u201a\u201b\u2032\u02bc`´]")
_DOUBLE_QUOTES = re.compile(r"[\u201c\u201d\u201e\u201f\u2033«»„‟]")
_OTHER_DIGITS = re.compile(r"(?![0-9])\d")


class Plain(Struct, frozen=True):
    """A text as it is read; `places` and `shifts` say where something was taken out before."""

    text: str
    places: tuple[int, ...] = ()
    shifts: tuple[int, ...] = ()

    def stored_place(self, place: int) -> int:
        """The offset in the stored text of an offset in this one."""
        index = bisect_right(self.places, place) - 1
        return place + self.shifts[index] if index >= 0 else place


def plain(text: str) -> Plain:
    """The text without marks, with the way back."""
    marks = _MARK if unicodedata.is_normalized("NFC", text) else _MARK_OR_COMBINING
    out: list[str] = []
    places: list[int] = []
    shifts: list[int] = []
    done = made = 0
    for mark in marks.finditer(text):
        odd = _ODD.match(text, mark.start()) if mark.start() >= done else None
        if odd is None:
            continue
        kept = _replacement(odd)
        out += [text[done : odd.start()], kept]
        made += odd.start() - done + len(kept)
        done = odd.end()
        places.append(made)
        shifts.append(done - made)
    return Plain("".join([*out, text[done:]]), tuple(places), tuple(shifts)) if places else Plain(text)


def _replacement(odd: re.Match[str]) -> str:
    if odd["entity"]:
        return html.unescape(odd["entity"])
    if odd["letter"]:
        return unicodedata.normalize("NFC", odd["letter"])
    return " " if odd["break"] else ""


def fold_text(text: str) -> str:
    """One spelling of dashes, quotes, spaces, ligatures, wide letters and digits; case is kept."""
    if text.isascii():
        return text.replace("`", "'") if "`" in text else text
    text = _HARD_SPACES.sub(" ", _DASHES.sub("-", _SINGLE_QUOTES.sub("'", _DOUBLE_QUOTES.sub('"', text))))
    text = unicodedata.normalize("NFKC", text)
    return _OTHER_DIGITS.sub(lambda m: str(unicodedata.decimal(m[0])), text)
