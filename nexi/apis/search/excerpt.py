"""What of a page or a hit is about a query. Pure, and the same for the same text.

An excerpt has at most a number of characters. A short page is given whole. Of a longer one the paragraphs that hold most of
the query's words are taken, then those beside them, in the order of the page, each gap marked; where no paragraph holds any,
the beginning.
"""

from __future__ import annotations

from nexi.knowledge.coverage import covered_roots, covered_share, weights_of
from nexi.text.terms import fold_text, is_unspaced
from nexi.types import Hit

GAP = "[...]"
BESIDE = 0.4  # what a paragraph has of its neighbours: a heading holds the words, and what follows it the answer
MIN_PIECE_CHARS = 80  # less of a paragraph than this says nothing
MAX_PARAGRAPHS = 400


def excerpt_text(text: str, query: str, room: int) -> str:
    """At most `room` characters of a text."""
    text = text.strip()
    if room <= 0:
        return ""
    if len(text) <= room:
        return text
    paragraphs = [p for p in (piece.strip() for piece in text.split("\n\n")) if p][:MAX_PARAGRAPHS]
    fits = _score_paragraphs(paragraphs, query)
    # The best first, as long as there is room for them and for the marks of the gaps.
    pieces: dict[int, str] = {}
    free = room
    for place in sorted(range(len(paragraphs)), key=lambda i: (-fits[i], i)):
        own = free - len(GAP) - 4
        if not fits[place] or own < MIN_PIECE_CHARS:
            break
        pieces[place] = cut_at_word(paragraphs[place], own)
        free -= len(pieces[place]) + len(GAP) + 4
    if not pieces:
        return cut_at_word(text, room)
    parts: list[str] = []
    for place in sorted(pieces):
        if place and place - 1 not in pieces:
            parts.append(GAP)
        parts.append(pieces[place])
    return "\n\n".join(parts)[:room]


def best_paragraphs(text: str, query: str, count: int, room: int) -> list[str]:
    """The best `count` paragraphs for a query, each cut to `room`, in the order of the page."""
    paragraphs = [p for p in (" ".join(piece.split()) for piece in text.split("\n\n")) if p][:MAX_PARAGRAPHS]
    fits = _score_paragraphs(paragraphs, query)
    best = sorted(range(len(paragraphs)), key=lambda i: (-fits[i], i))[:count]
    return [cut_at_word(paragraphs[i], room) for i in sorted(best)]


def cut_at_word(text: str, room: int) -> str:
    """The beginning of a text, ended at a word and marked, where it is too long."""
    if len(text) <= room:
        return text
    if room < 2:
        return ""
    head = text[: room - 1]
    space = head.rfind(" ")
    return (head[:space] if space > room * 0.6 else head).rstrip() + "…"


def _score_paragraphs(paragraphs: list[str], query: str) -> list[float]:
    """How much each paragraph has of the query, itself and by its neighbours."""
    weights = weights_of(query)
    own = [0.0, *(covered_share(weights, covered_roots(weights, p)) for p in paragraphs), 0.0]
    return [fit + BESIDE * max(before, after) for before, fit, after in zip(own, own[1:], own[2:], strict=False)]


class Relevance:
    """How much of a query a hit holds, from 0 to 1, by the roots of its words; cheap enough for every hit.

    A root counts where a word of the title, the snippet or the address, or a number in it, begins with it; in scripts without
    spaces, anywhere.
    """

    def __init__(self, query: str) -> None:
        weights = weights_of(query)
        self._roots = [(root, weight, is_unspaced(root)) for root, weight in weights.items()]
        self._total = sum(weights.values())

    def of(self, hit: Hit) -> float:
        if not self._total:
            return 0.0
        text = fold_text(f"{hit.title} {hit.snippet} {hit.url}")
        weights = (weight for root, weight, anywhere in self._roots if _holds_root(text, root, anywhere))
        return round(sum(weights) / self._total, 2)


def _holds_root(text: str, root: str, anywhere: bool) -> bool:
    place = text.find(root)
    # inside a word it does not count; digits and letters part, as in bm25
    while place > 0 and not anywhere and text[place - 1].isalnum() and text[place - 1].isdigit() == root[0].isdigit():
        place = text.find(root, place + 1)
    return place >= 0
