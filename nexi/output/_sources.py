"""The sources of an answer: their sites, and they and their conflicts as JSON."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from nexi.types import Conflict, Source
from nexi.urls import host_of


def site_of(url: str) -> str:
    """The host without `www.`; the URL itself if it has no host."""
    try:
        return host_of(url).removeprefix("www.") or url
    except ValueError:
        return url


def source_json(source: Source, work: int = 0) -> dict[str, Any]:
    """A source; `link` opens it at its evidence, author and date are what the page states, `work` is the first of its work."""
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
        **({"paper": asdict(about.paper)} if about.paper else {}),
        **({"same_work_as": work} if work and work != source.number else {}),
    }


def conflict_json(conflict: Conflict) -> dict[str, Any]:
    return {
        "kind": conflict.kind,
        "subject": conflict.subject,
        "settled": conflict.is_settled,
        "readings": [
            {
                "value": r.value,
                "sources": list(r.numbers),
                "independent": r.origins,
                "quote": r.quote,
                "date": r.day,
                "standing": r.standing,
            }
            for r in conflict.readings
        ],
    }
