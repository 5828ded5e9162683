"""The source of a page without what no reader sees: scripts, styles, drawings and comments.

Above sits `extract`; below only searches that are linear in the page. It is half of an ordinary page, and everything after
this costs half. It knows how such parts begin and end and nothing else of HTML; what has no end stays, for the parser.
"""

from __future__ import annotations

import re

_START = re.compile(r"<(?=[!st])(?:!--|(s(?:cript|tyle|vg)|t(?:itle|extarea))(?=[\s/>])([^>]*+)>)", re.IGNORECASE)
_TEXT = frozenset({"title", "textarea"})  # these stay; a tag inside them is none


def remove_invisible(html: str) -> str:
    """The page with its invisible parts cut out; data that describes the page stays."""
    parts: list[str] = []
    start = place = 0
    next_ends: dict[str, int] = {}
    while (match := _START.search(html, place)) is not None:
        name, attributes = (match[1] or "").lower(), match[2] or ""
        if name == "svg" and attributes.endswith("/"):
            place = match.end()
            continue
        end = _find_end(html, name, match.end(), next_ends)
        if end < 0:
            break
        if name not in _TEXT and not (name == "script" and "ld+json" in attributes):
            parts.append(html[start : match.start()])
            start = end
        place = end
    parts.append(html[start:])
    return "".join(parts) if len(parts) > 1 else html


def _find_end(html: str, name: str, start: int, next_ends: dict[str, int]) -> int:
    """Where a part of this name ends, or a comment without one; below zero where it has no end."""
    if not name:
        if html.startswith((">", "->"), start):  # `<!-->` and `<!--->` are whole comments
            return html.index(">", start) + 1
        end = html.find("-->", start)
        return end + 3 if end >= 0 else -1
    # Ends are written in small letters or in capitals. Each is searched for once, however many parts the page has.
    end = next_ends.get(name, -1)
    if end < start:
        end = html.find(f"</{name}", start)
        next_ends[name] = end = end if end >= 0 else len(html)
    if (capitals := html.find(f"</{name.upper()}", start, end)) >= 0:
        end = capitals
    return html.find(">", end) + 1 or -1
