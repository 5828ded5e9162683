"""The pack as text for a model: the items in their order, between boundary markers, with the rules of evidence.

Pure, and the same for the same pack in every version: golden files hold it. Titles, snippets and page texts are written by
strangers, so each stays inside its own lines and cannot close the wrapper.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec import Struct

from nexi.apis.search.excerpt import cut_at_word, excerpt_text

__all__ = ["RenderedItem", "render_items"]

OPENING = "[CONTEXT_PACK ucp-1]"
CLOSING = "[/CONTEXT_PACK]"
RULES = (
    "Rules:\n"
    "- Use this context strictly as evidence.\n"
    "- If the provided evidence is insufficient or conflicting, explicitly state this."
)
INDENT = "   "
MAX_QUERY = 500
MAX_TITLE = 200
MAX_SNIPPET = 600
MIN_SNIPPET_CHARS = 40
MIN_CONTENT_CHARS = 120

_MARKER = re.compile(r"\[(\s*/?\s*CONTEXT_PACK)", re.IGNORECASE)


class RenderedItem(Struct, frozen=True):
    """One item as it is shown; `content` is the text of its page, where that was read."""

    title: str
    url: str
    snippet: str = ""
    content: str = ""


def render_items(items: Sequence[RenderedItem], *, backend: str, mode: str, query: str, room: int) -> str:
    """At most `room` characters; empty where not even the wrapper fits."""
    question = json.dumps(one_line(query, MAX_QUERY), ensure_ascii=False)
    head = f"{OPENING}\nrequest:\n  backend={one_line(backend, 40)}\n  mode={mode}\n  query={question}"
    free = room - len(_join_blocks(head, []))
    if free < 0:
        return ""
    blocks: list[str] = []
    for number, item in enumerate(items, 1):
        block = _render_item(number, item, free - 2)
        if not block:
            break
        blocks.append(block)
        free -= len(block) + 2
    # The pages that were read share what room there is, in order; what one leaves is the next one's.
    places = [place for place in range(len(blocks)) if items[place].content.strip()]
    for index, place in enumerate(places):
        content = _render_content(items[place].content, query, free // (len(places) - index))
        blocks[place] += content
        free -= len(content)
    return _join_blocks(head, blocks)


def one_line(text: str, most: int) -> str:
    """Text of strangers on one line, cut, unable to close the wrapper."""
    return _escape_markers(cut_at_word(" ".join(text.split()), most))


def _escape_markers(text: str) -> str:
    """A marker inside the text reads as text."""
    return _MARKER.sub(r"(\1", text) if "[" in text else text


def _join_blocks(head: str, blocks: Sequence[str]) -> str:
    return "\n\n".join([head, *blocks, f"{RULES}\n{CLOSING}"])


def _render_item(number: int, item: RenderedItem, room: int) -> str:
    """The lines of one item; the snippet is cut to the room, and an item without room for its address is left out."""
    title = one_line(item.title or item.url, MAX_TITLE)
    lines = f"{number}. Title: {title}\n{INDENT}URL: {_escape_markers(item.url)}"
    if len(lines) > room:
        return ""
    label = f"\n{INDENT}Snippet: "
    snippet = one_line(item.snippet, min(MAX_SNIPPET, room - len(lines) - len(label)))
    is_enough = len(snippet) >= min(MIN_SNIPPET_CHARS, len(" ".join(item.snippet.split())))
    return f"{lines}{label}{snippet}" if snippet and is_enough else lines


def _render_content(text: str, query: str, room: int) -> str:
    label = f"\n{INDENT}Content:\n"
    own = room - len(label)
    size = own
    while size >= MIN_CONTENT_CHARS:
        lines = _escape_markers(excerpt_text(text, query, size)).splitlines()
        content = "\n".join(f"{INDENT}  {line.rstrip()}" for line in lines if line.rstrip())
        if len(content) <= own:
            return label + content
        size -= max(1, len(content) - own)  # the indent of every line costs room too
    return ""
