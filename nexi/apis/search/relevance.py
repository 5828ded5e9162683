"""How much of a query a hit holds, from 0 to 1, by the roots of its words. Pure, and cheap enough for every hit.

A root counts where a word of the title, the snippet or the address, or a number in it, begins with it; in scripts without
spaces, anywhere.
"""

from __future__ import annotations

from nexi.knowledge.coverage import weights_of
from nexi.text.terms import fold_text, is_unspaced
from nexi.types import Hit


class Relevance:
    """The measure for one query."""

    def __init__(self, query: str) -> None:
        weights = weights_of(query)
        self._roots = [(root, weight, is_unspaced(root)) for root, weight in weights.items()]
        self._total = sum(weights.values())

    def of(self, hit: Hit) -> float:
        if not self._total:
            return 0.0
        text = fold_text(f"{hit.title} {hit.snippet} {hit.url}")
        share = sum(weight for root, weight, anywhere in self._roots if _holds_root(text, root, anywhere)) / self._total
        return round(share, 2)


def _holds_root(text: str, root: str, anywhere: bool) -> bool:
    place = text.find(root)
    # inside a word it does not count; digits and letters part, as in bm25
    while place > 0 and not anywhere and text[place - 1].isalnum() and text[place - 1].isdigit() == root[0].isdigit():
        place = text.find(root, place + 1)
    return place >= 0
