"""Notes of a page as citations: a mark that leads to a note becomes [n], and n stands for the address that the note names.

For a page that is a report somebody wants checked; other pages are read without it. Above is `markup`; below is its tree. A
mark is a short number or sign that links to a place on the same page, or to the source itself.
"""

from __future__ import annotations

import re
from contextlib import suppress

from nexi import urls
from nexi.extract.layout import Node, Tree

MAX_NOTES = 999  # a marker has at most three digits
MAX_NOTE_CHARS = 2_000  # more is a section and no note
MAX_CLIMB = 3  # elements above the place a mark leads to, until one has the address

_MARK = re.compile(r"\W{0,3}(?P<number>[1-9]\d{0,2})\W{0,3}|[*†‡§]{1,3}")


def cite_notes(tree: Tree, base: str) -> dict[int, str]:
    """Put [n] in the place of every mark whose source is known, and take out its note; return the addresses by number."""
    numbers: dict[str, int] = {}
    notes: list[Node] = []
    marks = [(link, mark) for link in tree.body.query_selector_all("a[href]") if (mark := _MARK.fullmatch(link.text.strip()))]
    mark_numbers = {int(mark["number"]) for _, mark in marks if mark["number"]}
    for link, mark in marks:
        url, note = _find_source(tree, link.getattr("href") or "", base)
        if not url or link.parent is None:
            continue
        if url not in numbers:
            own = int(mark["number"] or 0)
            number = own if own and own not in numbers.values() else max((*mark_numbers, *numbers.values()), default=0) + 1
            if number > MAX_NOTES:
                continue
            numbers[url] = number
        link.parent.insert_before(tree.create_text_node(f"[{numbers[url]}]"), link)
        link.decompose()
        notes += [note] if note is not None else []
    for note in notes:
        if note.parent is not None:
            note.decompose()
    return {number: url for url, number in numbers.items()}


def _find_source(tree: Tree, href: str, base: str) -> tuple[str, Node]:
    """The address that a link leads to, "" for none; by way of a note, which is returned too, where it names a place here."""
    if not href.startswith("#"):
        return _web_address(href, base), None
    node = tree.document.get_element_by_id(href[1:])
    for _ in range(MAX_CLIMB):
        if node is None or node.tag in ("body", "html", "ol", "ul", "table") or len(node.text) > MAX_NOTE_CHARS:
            break
        links = (_web_address(link.getattr("href") or "", base) for link in node.query_selector_all("a[href]"))
        if url := next(filter(None, links), "") or next(iter(urls.find_urls(node.text)), ""):
            return url, node
        node = node.parent
    return "", None


def _web_address(href: str, base: str) -> str:
    with suppress(ValueError):
        url = urls.join(base, href) if base else href
        return url if urls.is_web_url(url) and not href.startswith("#") else ""
    return ""
