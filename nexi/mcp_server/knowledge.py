"""The knowledge store behind `agentic_search` and `nexi_index`, where this Nexi has one.

Above are the tools; below is `Nexi`. Which tools a server offers depends on what is found here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nexi.app import Nexi
from nexi.events import Delta, Fact
from nexi.mcp_server import shapes
from nexi.mcp_server.following import Teller


class TellingEmit:
    """The Emit port over a client's progress."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller

    async def __call__(self, fact: Fact) -> None:
        await self._teller.take(fact)

    def delta(self, delta: Delta) -> None:
        return None


def can_search(nexi: Nexi) -> bool:
    return hasattr(nexi, "agentic_search")


def can_index(nexi: Nexi) -> bool:
    return hasattr(nexi, "index")


async def agentic(nexi: Nexi, query: str, settings: Mapping[str, Any], teller: Teller) -> dict[str, Any]:
    """The seed's response. Raises QuestionError or ConfigError."""
    search: Any = nexi.agentic_search  # type: ignore[attr-defined]
    found: dict[str, Any] = await search(query, emit=TellingEmit(teller), **settings)
    return found


async def indexed(nexi: Nexi, urls: Sequence[str], tags: Sequence[str], teller: Teller) -> shapes.Indexed:
    index: Any = nexi.index  # type: ignore[attr-defined]
    reports = [await index(url, tags=tags, emit=TellingEmit(teller)) for url in urls]
    pages = [shapes.IndexedPage(url=r.url, outcome=r.outcome, chunks=r.chunks) for r in reports]
    return shapes.Indexed(pages=pages, stored=len(pages), failed=0)
