"""The markup of Word as simple HTML: headings, paragraphs, lists, tables and links.

Above sits `archives`, which hands over elements as they are read; below only escaping. Fonts, pictures, fields, deleted text
and the second forms of drawings are not text and are left out. It keeps no tree: a document may be larger than memory likes.
"""

from __future__ import annotations

from html import escape

MAX_LEVEL = 8

_ATTRIBUTE_OF = {"pStyle": "style", "outlineLvl": "outline", "ilvl": "level", "numId": "number"}


class Numbering:
    """Which lists are numbered."""

    def __init__(self) -> None:
        self._formats: dict[str, str] = {}
        self._abstract: dict[str, str] = {}
        self._in_abstract = self._in_number = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "abstractNum":
            self._in_abstract = attributes.get("abstractNumId", "")
        elif name == "num":
            self._in_number = attributes.get("numId", "")
        elif name == "numFmt" and self._in_abstract:
            self._formats.setdefault(self._in_abstract, attributes.get("val", ""))
        elif name == "abstractNumId" and self._in_number:
            self._abstract[self._in_number] = attributes.get("val", "")

    def end(self, name: str) -> None:
        if name == "abstractNum":
            self._in_abstract = ""
        elif name == "num":
            self._in_number = ""

    def text(self, text: str) -> None:
        """Its text says nothing."""

    def ordered_lists(self) -> frozenset[str]:
        return frozenset(n for n, a in self._abstract.items() if self._formats.get(a, "bullet") not in ("bullet", "none"))


class Paragraphs:
    """Builds the HTML; `links` are addresses by their ids, `ordered` the ids of numbered lists."""

    def __init__(self, links: dict[str, str], ordered: frozenset[str], max_chars: int) -> None:
        self._links, self._ordered, self._left = links, ordered, max_chars
        self._html: list[str] = []
        self._lists: list[str] = []  # the tags of the open ones
        self._paragraphs: list[list[str]] = []  # open ones; a text box stands inside another
        self._about: dict[str, str] = {}
        self._silent = self._tables = 0
        self._in_text = False

    def html(self) -> str:
        self._close_lists(0)
        return "".join(self._html)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Fallback" or self._silent:
            self._silent += name == "Fallback"
        elif name == "p":
            self._paragraphs.append([])
            self._about = {}
        elif name in _ATTRIBUTE_OF:
            self._about[_ATTRIBUTE_OF[name]] = attributes.get("val", "")
        elif name == "t":
            self._in_text = True
        elif name in ("tab", "br", "cr") and self._paragraphs:
            self._paragraphs[-1].append(" ")
        elif name == "hyperlink" and self._paragraphs:
            self._paragraphs[-1].append(f'<a href="{escape(self._links.get(attributes.get("id", ""), ""))}">')
        elif name in ("tbl", "tr", "tc"):
            self._add_cell(name, opening=True)

    def end(self, name: str) -> None:
        if self._silent:
            self._silent -= name == "Fallback"
        elif name == "t":
            self._in_text = False
        elif name == "hyperlink" and self._paragraphs:
            self._paragraphs[-1].append("</a>")
        elif name == "p" and self._paragraphs:
            self._add_paragraph("".join(self._paragraphs.pop()))
        elif name in ("tbl", "tr", "tc"):
            self._add_cell(name, opening=False)

    def text(self, text: str) -> None:
        if self._in_text and not self._silent and self._paragraphs and self._left > 0:
            self._left -= len(text)
            self._paragraphs[-1].append(escape(text))

    def _add_cell(self, name: str, *, opening: bool) -> None:
        """Tables inside tables are text of their cell."""
        self._close_lists(0)
        self._tables += opening if name == "tbl" else 0
        if self._tables == 1:
            tag = {"tbl": "table", "tr": "tr", "tc": "td"}[name]
            self._html.append(f"<{tag}>" if opening else f"</{tag}>")
        self._tables -= not opening if name == "tbl" else 0

    def _add_paragraph(self, text: str) -> None:
        if not text.strip():
            return
        level = _heading_level(self._about)
        if level and not self._tables:
            self._close_lists(0)
            self._html.append(f"<h{level}>{text}</h{level}>")
        elif self._about.get("number", "0") != "0" and not self._tables:
            self._add_item(text)
        else:
            self._close_lists(0)
            self._html.append(f"<p>{text}</p>")

    def _add_item(self, text: str) -> None:
        depth = min(_parse_number(self._about.get("level", "")), MAX_LEVEL) + 1
        tag = "ol" if self._about.get("number") in self._ordered else "ul"
        self._close_lists(depth)
        if len(self._lists) == depth and self._lists[-1] != tag:
            self._close_lists(depth - 1)
        while len(self._lists) < depth:
            self._html.append(f"<{tag}>")
            self._lists.append(tag)
        self._html.append(f"<li>{text}")  # ended by the next, so that a list inside is inside

    def _close_lists(self, depth: int) -> None:
        while len(self._lists) > depth:
            self._html.append(f"</{self._lists.pop()}>")


def _heading_level(about: dict[str, str]) -> int:
    """The level of a heading, 0 for none; styles are called so in English whatever the language of the program."""
    style = about.get("style", "").lower().replace(" ", "")
    if style == "title":
        return 1
    if style.startswith("heading") and style[7:8].isdecimal():
        return min(int(style[7:8]) or 1, 6)
    outline = about.get("outline", "")
    return _parse_number(outline) + 1 if outline.isdecimal() and int(outline) < 6 else 0


def _parse_number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 3 else 0
