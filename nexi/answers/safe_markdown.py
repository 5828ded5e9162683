"""Decides on parsed Markdown what an answer would load or link to in the program that shows it.

Above are the stream and the checker of answers and the writers of files; below, markdown-it. Text is untrusted: a page can
make a model write anything, and a chat program loads an image by itself. So an answer has no image, no HTML and no link but
to an address that was given. Two parsers decide, since a reader with tables sees other code than one without. Once private
text is in a conversation, code has no other address either: programs exist that run the code of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from html import unescape
from typing import TYPE_CHECKING, Any, TypeAlias

from nexi.answers.citations import outside_code

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# The citation number of an address, 0 for one that the user or a page that was read wrote down, None for any other.
Place: TypeAlias = Callable[[str], int | None]

MIN_TRIM_CHARS = 2_000
MAX_PARSED_CHARS = 2_000_000  # of one answer; beyond, only text that cannot be markup is added

_TAIL = r"[^\s()<>\[\]\"'`]*(?:\([^\s()<>]*\)[^\s()<>\[\]\"'`]*)*"
# Names and schemes are bounded: in a line of 45,000 letters, each of them could begin one. Of a longer one the end is found.
_USER = r"[\w.+-]{1,64}"
# What readers make a link of where it stands alone: GitHub's autolinks.
ADDRESS = rf"(?:(?:https?|ftp)://|(?<![\w@./-])www\.|(?<!\w)(?:mailto|xmpp):){_TAIL}|{_USER}@[\w-]+(?:\.[\w-]+)+"
_BARE = re.compile(rf"(?:{ADDRESS})(?<![.,;:!?*_])", re.IGNORECASE)
_RISK = r"[<@\\&]|\]\(|\]:|\]\s*\[|://|www\.|mailto:|xmpp:"
_RISKY = re.compile(_RISK, re.IGNORECASE)
_RISKY_CODE = re.compile(rf"{_RISK}|//|:/", re.IGNORECASE)  # where code is searched for addresses
_RISK_CHARS = len("mailto:")
# In code an address needs no scheme that readers link: a script loads from any, and from one that begins with two slashes.
_CODE_ADDRESS = re.compile(
    rf"(?:[a-z][a-z0-9+.-]{{1,40}}://|(?:https?|ftp|wss?):[/\\]{{0,9}}(?=[\w\[])|(?<![\w:/\\])/[/\\](?=(?:[\w-]+\.)+[\w-]|\[)"
    rf"|(?<![\w@./-])www\.|(?<!\w)(?:mailto|xmpp):){_TAIL}(?<![.,;:!?*_])"
    rf"|{_USER}@(?:[\w-]+\.)+[a-z]{{2,}}",
    re.IGNORECASE,
)
_SCRIPT_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|(/))")
CUT_ADDRESS = "[address removed]"
_HOST = re.compile(r"(?://|@|\bwww\.)((?:[a-z0-9-]{1,63}\.)*[a-z0-9-]{1,63})(?![\w-])", re.IGNORECASE)
_PLAIN = re.compile(r"(?:(?!--)[^`~<>|&\\()\[\]:@/])*")


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


def _find_targets(text: str) -> Iterator[tuple[str, str]]:
    """What a reader of this Markdown loads, runs or links to: html, image, link, definition, text or code, and the address."""
    for parser in load_parsers():
        definitions: dict[str, Any] = {}
        tokens = parser.parse(text, definitions)
        yield from (("definition", str(reference["href"])) for reference in definitions.get("references", {}).values())
        for token in _flatten(tokens):
            if token.type in ("html_block", "html_inline"):
                yield "html", token.content
            elif token.type == "image":
                yield "image", str(token.attrs["src"])
            elif token.type == "link_open":
                yield "link", str(token.attrs["href"])
            elif token.type == "text":
                yield from (("text", match[0]) for match in _BARE.finditer(token.content))
            elif token.type in ("fence", "code_block", "code_inline"):
                yield from (("code", address) for address in _find_code_addresses(f"{token.info}\n{token.content}"))


def _flatten(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flatten(token.children or [])


def _find_code_addresses(code: str) -> set[str]:
    """The addresses in code, also those that a browser reads out of escapes."""

    def read_escape(match: re.Match[str]) -> str:
        digits = match[1] or match[2] or match[3]
        return match[4] or (chr(int(digits, 16)) if int(digits, 16) <= 0x10FFFF else "")

    forms = {code, unescape(code), _SCRIPT_ESCAPE.sub(read_escape, unescape(code))}
    return {match[0] for form in forms for match in _CODE_ADDRESS.finditer(form)}


def find_exits(text: str, place: Place, *, guards_code: bool = False) -> set[str]:
    """What a reader of this Markdown would load, run or link to without having been given it."""
    exits = set()
    for kind, target in _find_targets(text):
        if kind == "code":
            is_exit = guards_code and place(target) is None
        else:
            is_exit = kind not in ("link", "text") or not _is_given(target, place)
        if is_exit:
            exits.add(target)
    return exits


def name_hosts(targets: Iterable[str]) -> list[str]:
    """The ends of the hosts' names; what stands before them, like the rest of an address, may spell private text."""
    hosts = (match[1].lower().split(".") for target in targets for match in _HOST.finditer(target))
    return sorted({".".join(labels[-2:]) for labels in hosts})


def _is_given(address: str, place: Place) -> bool:
    lower = address.lower()
    if lower.startswith("#"):
        return True
    if lower.startswith("mailto:"):
        return place(address[7:]) is not None
    if lower.startswith("www."):
        return any(place(f"{scheme}{address}") is not None for scheme in ("https://", "http://", ""))
    return (lower.startswith(("http://", "https://")) or ":" not in lower) and place(address) is not None


class MarkdownGuard:
    """The end of one answer, and whether more text may be added to it; `guards_code` is for private conversations."""

    # A row of dashes makes a line a table and cuts its code open, so each addition is parsed with the block that is still open.

    def __init__(self, place: Place, *, guards_code: bool = False, max_parsed_chars: int = MAX_PARSED_CHARS) -> None:
        self._place = place
        self._guards_code = guards_code
        self._risky = _RISKY_CODE if guards_code else _RISKY
        self._max_parsed_chars = max_parsed_chars
        self._end = ""
        self._is_risky = False  # whether the end has what can be markup or an address
        self._seam = ""  # the last characters of the end, with which more text may become either
        self._trim_at = MIN_TRIM_CHARS
        self._parsed = 0

    def find_exits(self, text: str) -> set[str]:
        """What the answer would load or link to with this text added."""
        text = text if self._end else text.lstrip()
        if not self._is_risky and not self._risky.search(self._seam + text):
            return set()
        # A text that is neither markup nor an address, nor goes on with one, changes nothing.
        is_apart = not self._end or self._end[-1].isspace() or text[:1].isspace()
        if is_apart and _PLAIN.fullmatch(text) and not _RISKY.search(text):
            return set()
        if self._parsed > self._max_parsed_chars:
            return {"too much markup"}
        self._parsed += len(self._end) + len(text)
        return find_exits(self._end + text, self._place, guards_code=self._guards_code)

    def cut_addresses(self, text: str) -> str:
        """The text without addresses that were not given, where code is guarded; elsewhere as it is."""
        if not self._guards_code:
            return text
        return _CODE_ADDRESS.sub(lambda match: match[0] if self._place(match[0]) is not None else CUT_ADDRESS, text)

    def add(self, text: str) -> None:
        text = text if self._end else text.lstrip()
        # the end is not searched again, so that time stays linear
        self._is_risky = self._is_risky or self._risky.search(self._seam + text) is not None
        self._seam = _cut_seam(self._seam + text)
        self._end += text
        if len(self._end) <= self._trim_at:
            return
        # Forget what came before the last block or, in a list, the last item: nothing that follows changes how that reads.
        if fence := _shorten_open_fence(self._end):
            self._end, self._trim_at = fence, 0  # each line of code is looked at alone, which takes no quadratic time
        else:
            starts = []  # of the last block, as each parser sees it
            for parser in load_parsers():
                tokens = parser.parse(self._end)
                blocks = [t for t in tokens if t.level == 0 or (t.level == 1 and t.type == "list_item_open")]
                starts.append(max((block.map[0] for block in blocks if block.map), default=0))
            self._end = "".join(self._end.splitlines(keepends=True)[min(starts) :])
            self._trim_at = max(MIN_TRIM_CHARS, 2 * len(self._end))
        self._is_risky = self._risky.search(self._end) is not None
        self._seam = _cut_seam(self._end)


def _cut_seam(text: str) -> str:
    return text[max(0, len(text.rstrip()) - _RISK_CHARS) :]


def _shorten_open_fence(text: str) -> str:
    """The first line and the unfinished last one of code that is still open and has no block before it; "" of other text."""
    # The empty line between them is code as well; without it the next line could make a table of the first.
    lines, _, last = text.rpartition("\n")
    for parser in load_parsers():
        tokens = parser.parse(f"{lines}\nx")
        if len(tokens) != 1 or tokens[0].type != "fence" or tokens[0].map is None or tokens[0].map[0] != 0:
            return ""
    return lines.partition("\n")[0] + f"\n\n{last}"


def escape_markup(text: str, links: re.Pattern[str] = _LINK) -> str:
    """The text with tags, images, these links and definitions escaped, also where it is code."""
    text = links.sub(r"\1\\]", _IMAGE.sub(r"\1\\!", _TAG.sub(r"\1\\<", text)))
    return _DEFINITION.sub(r"\1\\[", text)


def make_inert(text: str) -> str:
    """Markdown that neither runs nor loads anything in whatever shows it; code is left as it is where that is sure."""
    escape = partial(escape_markup, links=_FOREIGN_LINK)
    gentle = (outside_code(text, escape), escape(text))
    return next((form for form in gentle if _is_inert(form)), _OPENING.sub(lambda match: f"&#{ord(match[0])};", text))


def _is_inert(text: str) -> bool:
    """Whether a reader finds no tag, no image and no link but to web addresses."""
    webs = ("https://", "http://", "#")
    return all(
        kind in ("text", "code") or (kind != "image" and target.lower().startswith(webs))
        for kind, target in _find_targets(text)
    )
