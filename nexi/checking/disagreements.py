"""What is added to a checked answer: where its sources disagree, and links to the places it rests on.

The loop above shows both; below, `proof` does the comparing, off the event loop, over the pages of every number there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nexi.checking.snapshots import Snapshots
from nexi.types import Claim, Conflict, Review, Source

if TYPE_CHECKING:
    from nexi.checking.pages import Snapshot


async def find_disagreements(
    question: str, review: Review, snapshots: Snapshots, titles: Mapping[int, str]
) -> tuple[Conflict, ...]:
    """Where the pages that were read disagree on what the answer says."""
    pages = await snapshots.of(snapshots.numbers)
    return await asyncio.to_thread(_find_conflicts, question, review.proof.claims, pages, titles) if len(pages) > 1 else ()


async def link_sources(sources: Sequence[Source], review: Review, snapshots: Snapshots) -> tuple[Source, ...]:
    """The sources of an answer with links that open them at their evidence."""
    pages = await snapshots.of([source.number for source in sources])
    return await asyncio.to_thread(_link_sources, sources, review.proof.claims, pages)


def _find_conflicts(
    question: str, claims: Sequence[Claim], pages: Mapping[int, Snapshot | None], titles: Mapping[int, str]
) -> tuple[Conflict, ...]:
    from nexi.checking.conflicts import find_conflicts

    return find_conflicts(question, claims, pages, titles)


def _link_sources(
    sources: Sequence[Source], claims: Sequence[Claim], pages: Mapping[int, Snapshot | None]
) -> tuple[Source, ...]:
    from nexi.checking.links import with_links

    return with_links(sources, claims, pages)
