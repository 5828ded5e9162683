"""Links that turn the pages of a manual or list, and menus that call themselves so: furniture that stands inside of the text.

Above sits `markup`; below, `layout` and its tree. "Prev" and "Next" are known by their words, "Up" and "Home" by
standing beside them. A box with a paragraph or a heading in it is never dropped.
"""

from __future__ import annotations

from nexi.extract.layout import Box, Layout, Node
from nexi.text.words import word_set

MAX_BAR_CHARS = 400
MAX_BAR_WORDS = 30
MAX_MENU_CHARS = 600
MIN_MENU_BLOCKS = 2
MIN_LINKED = 0.6  # of the text of a bar; more words than that are a sentence
MENU_LINKED = 0.95  # of the text of a menu

_MENUS = word_set("menu mainmenu submenu")
_KINDS = {
    "previous": "p", "prev": "p", "previous page": "p", "prev page": "p", "previous chapter": "p", "previous topic": "p",
    "next": "n", "next page": "n", "next chapter": "n", "next topic": "n", "up": "u", "home": "h", "contents": "h",
    "table of contents": "h", "index": "h", "top": "h",
}  # fmt: skip
_TEXT = "p, pre, h1, h2, h3, h4, dl, blockquote"
_GRIDS = word_set("tr tbody table ul ol nav")  # titles of pages may stand in them beside the links
_ROOTS = word_set("html body main article")


def drop_navigation(layout: Layout) -> Layout:
    """Drop bars of links to the pages before and after, and menus of nothing but links; the page as it is then."""
    bars: list[tuple[Node, Box | None]] = []
    for block in layout.blocks:
        if block.linked and block.words <= MAX_BAR_WORDS and ("rev" in block.text or "ext" in block.text):
            for link in block.box.node.query_selector_all("a[href]"):
                if (bar := _find_bar(link)) is not None:
                    bars.append((bar, next((box for box in block.box.climb() if box.node == bar), None)))
    last: Box | None = None
    for box in layout.boxes:
        if (
            "menu" in box.key
            and not (last and box.is_inside(last))
            and box.tag in ("div", "ul")
            and box.blocks >= MIN_MENU_BLOCKS
            and box.chars <= MAX_MENU_CHARS
            and box.linked >= MENU_LINKED * box.chars
            and not _MENUS.isdisjoint(box.key.split())
            and box.node.query_selector(_TEXT) is None
        ):
            bars.append((box.node, box))
            last = box
    for bar, _ in bars:
        if bar.parent is not None:
            bar.decompose()
    boxes = [box for _, box in bars if box is not None]
    if len(boxes) < len(bars):  # one of them was a part of a line
        return Layout(layout.root.node)
    layout.drop_boxes(boxes)
    return layout


def _kind_of(link: Node) -> str:
    return _KINDS.get(" ".join(link.text.split()).strip(" «»‹›←→<>|[]()").lower(), "")


def _find_bar(link: Node) -> Node:
    """The largest box around a link to another page that holds such links and their titles alone."""
    if link.parent is None or _kind_of(link) not in ("p", "n"):
        return None
    bar, node = None, link.parent
    while node is not None and node.tag and node.tag not in _ROOTS:
        size = len(node.text.strip())
        if size > MAX_BAR_CHARS or node.query_selector(_TEXT) is not None:
            break
        is_bar = (bar is not None and size <= len(bar.text.strip()) + 3) or node.tag in _GRIDS
        if not is_bar:
            chars = len("".join(node.text.split()))
            is_bar = sum(len("".join(a.text.split())) for a in node.query_selector_all("a")) >= MIN_LINKED * chars
        if is_bar:
            kinds = set(map(_kind_of, node.query_selector_all("a[href]"))) - {""}
            bar = node if len(kinds) > 1 else bar
        elif bar is not None:
            break
        node = node.parent
    return bar
