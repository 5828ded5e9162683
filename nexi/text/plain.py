"""Markdown to plain text: a page as readers see it with the way back to the stored text, and one block as a line of text.

Below `checking.pages` and the extractive model, above nothing. Every pass is linear in the length of the text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from functools import partial

from msgspec import Struct

_ESCAPED = r"[\\`*_{}\[\]()#+.!|<>~$-]"
_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_COMBINING = "\u0300-\u036f\u3099\u309a"
_MARK = re.compile(rf"[{_INVISIBLE}\]\[&<\\]|(?<=[a-z])-\n")
_MARK_OR_COMBINING = re.compile(rf"{_MARK.pattern}|\w[{_COMBINING}]+")
_ODD = re.compile(
    rf"(?P<gone>[{_INVISIBLE}]+"
    r"|\]\([^()\s]{0,2000}(?:\([^()\s]{0,300}\)[^()\s]{0,500})?(?:\s+\"[^\"\n]{0,300}\")?\)"
    r"|\[\^?(?:\d{1,3}|[a-z]|note \d{1,3}|citation needed)\](?!\((?!#))"
    r"|</?(?:a|b|i|u|em|strong|sup|sub|span|small|mark|code|q|cite|abbr|p|li|td|th|tr)\b[^<>\n]{0,200}>"
    rf"|\\(?!\|)(?={_ESCAPED})"  # a bar that ends no cell stays marked
    r"|-\n[ \t]*(?=[a-z]))"
    r"|(?P<break><br\s*/?>)"
    r"|(?P<entity>&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});)"
    rf"|(?P<letter>\w[{_COMBINING}]+)"
)
_HARD_SPACES = re.compile(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_DASHES = re.compile(r"[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
_SINGLE_QUOTES = re.compile(r"[\u2018\u2019\u201a\u201b\u2032\u02bc`´]")
_DOUBLE_QUOTES = re.compile(r"[\u201c\u201d\u201e\u201f\u2033«»„‟]")
_RAISED = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ]+")
_OTHER_DIGITS = re.compile(r"(?![0-9])\d")
_CODE_SPAN = re.compile(r"(`{1,2})[^\n]{1,300}?\1")
_IMAGE = re.compile(r"!\[[^\]\n]{0,300}\]\([^()\n]{0,2000}\)")
_LINK = re.compile(r"\[((?:[^\[\]\n]|\[[^\[\]\n]{0,200}\]){0,500})\]\((?:[^()\n]|\([^()\n]{0,300}\)){0,2000}\)")
_NOTE = re.compile(r"\[\^?(?:\d{1,3}|note \d+|citation needed)\]", re.I)
_STRONG = re.compile(r"(?<![\w*\\])(\*{1,3})(?=[^\s*])([^*\n]{1,400}?)(?<=[^\s*\\])\1(?![\w*])")
_EMPHASIS = re.compile(r"(?<![\w_\\])(_{1,2})(?=[^\s_])([^_\n]{1,400}?)(?<=[^\s_\\])\1(?![\w_])")
# Of HTML alone: "<file>" in a manual stands for a name.
_TAG = re.compile(
    r"</?(?:a|abbr|b|big|blockquote|br|center|cite|code|dd|del|dfn|div|dl|dt|em|figure|font|h[1-6]|hr|i|img|ins|kbd|li|mark|ol|p|"
    r"pre|q|s|samp|small|span|strike|strong|sub|sup|table|tbody|td|th|thead|tr|tt|u|ul|var|wbr)\b"
    r"(?:\s+[\w:-]{1,40}\s*=[^<>\n]{0,200})?\s*/?>|<!--",
    re.IGNORECASE,
)
_ESCAPE = re.compile(rf"\\({_ESCAPED})")
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_SPACE = re.compile(r"\s+")


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
    """The text without what readers do not see, such as targets of links and soft hyphens, with the way back."""
    marks = _MARK if unicodedata.is_normalized("NFC", text) else _MARK_OR_COMBINING
    out: list[str] = []
    places: list[int] = []
    shifts: list[int] = []
    source_end = target_end = 0
    for mark in marks.finditer(text):
        odd = _ODD.match(text, mark.start()) if mark.start() >= source_end else None
        if odd is None:
            continue
        if odd["entity"]:
            replacement = html.unescape(odd["entity"])
        elif odd["letter"]:
            replacement = unicodedata.normalize("NFC", odd["letter"])
        else:
            replacement = " " if odd["break"] else ""
        out += [text[source_end : odd.start()], replacement]
        target_end += odd.start() - source_end + len(replacement)
        source_end = odd.end()
        places.append(target_end)
        shifts.append(source_end - target_end)
    return Plain("".join([*out, text[source_end:]]), tuple(places), tuple(shifts)) if places else Plain(text)


def fold_text(text: str) -> str:
    """One spelling of dashes, quotes, spaces, ligatures, wide letters and digits; case is kept."""
    if text.isascii():
        return text.replace("`", "'") if "`" in text else text
    text = _HARD_SPACES.sub(" ", _DASHES.sub("-", _SINGLE_QUOTES.sub("'", _DOUBLE_QUOTES.sub('"', text))))
    text = _RAISED.sub(lambda match: f"^{match[0]}", text)  # 10²³ is not 1023
    text = unicodedata.normalize("NFKC", text)
    return _OTHER_DIGITS.sub(lambda m: str(unicodedata.decimal(m[0])), text)


def strip_markdown(markdown: str) -> str:
    """The text of one block of Markdown: links by their labels, no images, notes or emphasis; code keeps its backticks."""
    text = _IMAGE.sub(" ", markdown) if "![" in markdown else markdown
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "[" in text:
        text = _NOTE.sub("", text)
    marks = (("<", _TAG, " "), ("*", _STRONG, r"\2"), ("_", _EMPHASIS, r"\2"), ("\\", _ESCAPE, r"\1"))
    for mark, pattern, replacement in marks:
        if mark in text:
            text = change_outside(_CODE_SPAN, text, partial(pattern.sub, replacement))
    return _SPACE.sub(" ", text.replace("¶", " ")).strip()


def strip_heading_marks(markdown: str) -> str:
    """Stored Markdown as its page shows it: headings without their number signs."""
    return _HEADING.sub("", markdown)


def change_outside(kept: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """A text that is changed wherever a pattern does not match, such as outside of code."""
    out: list[str] = []
    start = 0
    for match in kept.finditer(text):
        out += [change(text[start : match.start()]), match[0]]
        start = match.end()
    return "".join([*out, change(text[start:])])
