"""The sources of an answer and their conflicts, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nexi.types import Conflict, Source


def source_json(source: Source) -> dict[str, Any]:
    """A source; `link` opens it at its evidence, author and date are what the page states."""
    about = source.imprint
    return {
        "n": source.number,
        "url": source.url,
        "title": source.title,
        "digest": source.digest,
        "link": source.link or source.url,
        "author": about.author,
        "published": about.published,
        "modified": about.updated,
        "site": about.site,
        "accessed": about.accessed,
    }


def conflict_json(conflict: Conflict) -> dict[str, Any]:
    return {
        "kind": conflict.kind,
        "subject": conflict.subject,
        "readings": [
            {"value": r.value, "sources": list(r.numbers), "independent": r.origins, "quote": r.quote}
            for r in conflict.readings
        ],
    }
