"""Decides on parsed Markdown what an answer would load or link to in the program that shows it.

Above are the stream and the checker of answers and the writers of files; below, markdown-it. Text is untrusted: a page can
make a model write anything, and a chat program loads an image by itself. So an answer has no image, no HTML and no link but
to an address that was given. Two parsers decide, since a reader with tables sees other code than one without.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from nexi.answers.citations import outside_code

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = [
    "ADDRESS",
    "MarkdownGuard",
    "Place",
    "escape_markup",
    "find_exits",
    "is_inert",
    "load_parsers",
    "make_inert",
    "remove_markup",
]

# The citation number of an address, 0 for one that the user or a page that was read wrote down, None for any other.
Place: TypeAlias = Callable[[str], int | None]

MIN_TRIM_CHARS = 4_000
MAX_PARSED_CHARS = 2_000_000  # of one answer; beyond, only text that cannot be markup is added

_TAIL = r"[^\s()<>\[\]\"'`]*(?:\([^\s()<>]*\)[^\s()<>\[\]\"'`]*)*"
# What readers make a link of where it stands alone: GitHub's autolinks.
ADDRESS = rf"(?:(?:https?|ftp)://|(?<![\w@./-])www\.|(?<!\w)(?:mailto|xmpp):){_TAIL}|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_BARE = re.compile(rf"(?:{ADDRESS})(?<![.,;:!?*_])", re.IGNORECASE)
_RISKY = re.compile(r"[<@\\&]|\]\(|\]:|\[[^\]]*\]\s*\[|://|www\.|mailto:|xmpp:", re.IGNORECASE)
_PLAIN = re.compile(r"(?:(?!--)[^`~<>|&\\()\[\]:@/])*")
_MARKUP = re.compile(r"[`~<>|&\\()\[\]:@/]|-(?=-)")

_UNESCAPED = r"(?<!\\)((?:\\\\)*)"  # an escape that is escaped escapes nothing
_TAG = re.compile(rf"{_UNESCAPED}<(?!https?://[^\s<>]*>)(?=[A-Za-z/!?])")
_IMAGE = re.compile(rf"{_UNESCAPED}!(?=\[)")
_LINK = re.compile(rf"{_UNESCAPED}\](?=\()")
_FOREIGN_LINK = re.compile(rf"{_UNESCAPED}\](?=\((?!\s*<?(?:https?://|#)))", re.IGNORECASE)
_DEFINITION = re.compile(r"^([\s>*+-]*)\[(?=(?:[^\]\\]|\\.)*\]:)", re.MULTILINE)
_OPENING = re.compile(r"[<\[\]]")  # without these there is neither tag nor link nor image


@cache
def load_parsers() -> tuple[MarkdownIt, ...]:
    """The parsers, imported at the first call: the loop makes it while a model thinks."""
    from markdown_it import MarkdownIt

    plain = MarkdownIt("commonmark", {"html": True})
    parsers = (plain, MarkdownIt("commonmark", {"html": True}).enable("table"))
    for parser in parsers:
        parser.validateLink = lambda url: True  # type: ignore[method-assign]
        parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    return parsers


def find_targets(text: str) -> Iterator[tuple[str, str]]:
    """What a reader of this Markdown loads, runs or links to: html, image, link, definition or text, and the address."""
    for parser in load_parsers():
        definitions: dict[str, Any] = {}
        tokens = parser.parse(text, definitions)
        yield from (("definition", str(found["href"])) for found in definitions.get("references", {}).values())
        for token in _flatten(tokens):
            yield from _targets_of(token)


def _flatten(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flatten(token.children or [])


def _targets_of(token: Token) -> Iterator[tuple[str, str]]:
    if token.type in ("html_block", "html_inline"):
        yield "html", token.content
    elif token.type == "image":
        yield "image", str(token.attrs["src"])
    elif token.type == "link_open":
        yield "link", str(token.attrs["href"])
    elif token.type == "text":
        yield from (("text", found[0]) for found in _BARE.finditer(token.content))


def find_exits(text: str, place: Place) -> set[str]:
    """What a reader of this Markdown would load, run or link to without having been given it."""
    return {target for kind, target in find_targets(text) if kind not in ("link", "text") or not _is_given(target, place)}


def _is_given(address: str, place: Place) -> bool:
    known = address.lower()
    if known.startswith("#"):
        return True
    if known.startswith("mailto:"):
        return place(address[7:]) is not None
    if known.startswith("www."):
        return any(place(f"{scheme}{address}") is not None for scheme in ("https://", "http://", ""))
    return (known.startswith(("http://", "https://")) or ":" not in known) and place(address) is not None


class MarkdownGuard:
    """The end of one answer, and whether more text may be added to it.

    Text that was added cannot be taken back, and what follows may change how it reads: a row of dashes makes a line a table
    and cuts its code open. So each addition is parsed together with the block that is still open. Blanks at the start do not
    count: an answer begins with a word, and without its indentation what was code is markup.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._end = ""
        self._trim_at = MIN_TRIM_CHARS
        self._parsed = 0

    def find_exits(self, text: str) -> set[str]:
        """What the answer would load or link to with this text added."""
        text = text if self._end else text.lstrip()
        whole = self._end + text
        if not _RISKY.search(whole) or self._is_plain(text):
            return set()
        if self._parsed > MAX_PARSED_CHARS:
            return {"too much markup"}
        self._parsed += len(whole)
        return find_exits(whole, self._place)

    def _is_plain(self, text: str) -> bool:
        """Whether a text is neither markup nor an address, nor goes on with one."""
        is_apart = not self._end or self._end[-1].isspace() or text[:1].isspace()
        return is_apart and bool(_PLAIN.fullmatch(text)) and not _RISKY.search(text)

    def add(self, text: str) -> None:
        self._end += text if self._end else text.lstrip()
        if len(self._end) > self._trim_at:
            starts = (_last_block_line(parser.parse(self._end)) for parser in load_parsers())
            self._end = "".join(self._end.splitlines(keepends=True)[min(starts) :])
            self._trim_at = max(MIN_TRIM_CHARS, 2 * len(self._end))


def _last_block_line(tokens: list[Token]) -> int:
    return max((token.map[0] for token in tokens if token.level == 0 and token.map), default=0)


def escape_markup(text: str) -> str:
    """The text with tags, images, links and definitions escaped, also where it is code."""
    text = _LINK.sub(r"\1\\]", _IMAGE.sub(r"\1\\!", _TAG.sub(r"\1\\<", text)))
    return _DEFINITION.sub(r"\1\\[", text)


def remove_markup(text: str) -> str:
    """The text without any character that can be markup or part of an address."""
    return _MARKUP.sub(" ", text)


def make_inert(text: str) -> str:
    """Markdown that neither runs nor loads anything in whatever shows it; code is left as it is where that is sure."""
    gentle = (outside_code(text, _make_part_inert), _make_part_inert(text))
    return next((made for made in gentle if is_inert(made)), _OPENING.sub(lambda found: f"&#{ord(found[0])};", text))


def is_inert(text: str) -> bool:
    """Whether a reader finds no tag, no image and no link but to web addresses."""
    webs = ("https://", "http://", "#")
    return all(kind == "text" or (kind != "image" and target.lower().startswith(webs)) for kind, target in find_targets(text))


def _make_part_inert(part: str) -> str:
    part = _IMAGE.sub(r"\1\\!", _TAG.sub(r"\1\\<", part))
    return _DEFINITION.sub(r"\1\\[", _FOREIGN_LINK.sub(r"\1\\]", part))
