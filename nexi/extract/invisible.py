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
    ends = _Ends(html)
    while (match := _START.search(html, place)) is not None:
        name, attributes = (match[1] or "").lower(), match[2] or ""
        if name == "svg" and attributes.endswith("/"):
            place = match.end()
            continue
        end = ends.of_part(name, match.end()) if name else ends.of_comment(match.end())
        if end < 0:
            break
        if name not in _TEXT and not (name == "script" and "ld+json" in attributes):
            parts.append(html[start : match.start()])
            start = end
        place = end
    parts.append(html[start:])
    return "".join(parts) if len(parts) > 1 else html


class _Ends:
    """Where parts end. Each spelling of an end is searched for once over the whole page, however many parts there are."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._next: dict[str, int] = {}

    def of_comment(self, start: int) -> int:
        """Below zero where it has none; `<!-->` and `<!--->` are whole comments."""
        if self._html.startswith(">", start):
            return start + 1
        if self._html.startswith("->", start):
            return start + 2
        end = self._html.find("-->", start)
        return end + 3 if end >= 0 else -1

    def of_part(self, name: str, start: int) -> int:
        """Below zero where it has none; in small letters or in capitals, which is how ends are written."""
        end = self._next.get(name, -1)
        if end < start:
            end = self._html.find(f"</{name}", start)
            self._next[name] = end = end if end >= 0 else len(self._html)
        if (capitals := self._html.find(f"</{name.upper()}", start, end)) >= 0:
            end = capitals
        return self._html.find(">", end) + 1 or -1
