"""The source of a page without what no reader sees: scripts, styles, drawings and comments.

Above sits `extract`; below only searches that are linear in the page. It is half of an ordinary page, and everything after
this costs half. It knows how such parts begin and end and nothing else of HTML; what has no end stays, for the parser.
"""

from __future__ import annotations

import re

_START = re.compile(r"<(?=[!st])(?:!--|(s(?:cript|tyle|vg)|t(?:itle|extarea))(?=[\s/>])([^>]*+)>)", re.IGNORECASE)
_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "svg", "title", "textarea")}
_TEXT = frozenset({"title", "textarea"})  # these stay; a tag inside them is none


def shown(html: str) -> str:
    """The page with its invisible parts cut out; data that describes the page stays."""
    kept: list[str] = []
    start = place = 0
    while (found := _START.search(html, place)) is not None:
        name, attributes = (found[1] or "").lower(), found[2] or ""
        if name == "svg" and attributes.endswith("/"):
            place = found.end()
            continue
        end = _end(html, name, found.end())
        if end < 0:
            break
        if name not in _TEXT and not (name == "script" and "ld+json" in attributes):
            kept.append(html[start : found.start()])
            start = end
        place = end
    kept.append(html[start:])
    return "".join(kept) if len(kept) > 1 else html


def _end(html: str, name: str, start: int) -> int:
    """Where the part ends that is of this name, or a comment for no name; below zero where it does not."""
    if not name:
        # `<!-->` and `<!--->` are whole comments.
        short = 1 if html.startswith(">", start) else 2 if html.startswith("->", start) else 0
        end = html.find("-->", start)
        return start + short if short else end + 3 if end >= 0 else -1
    end = html.find(f"</{name}", start)
    if end < 0:
        found = _ENDS[name].search(html, start)
        end = found.start() if found else -1
    # One spelling is searched for fastest; the others that are in use may have come before it.
    for other in (f"</{name.upper()}",):
        earlier = html.find(other, start, max(end, start))
        end = earlier if earlier >= 0 else end
    return html.find(">", end) + 1 or -1 if end >= 0 else -1
