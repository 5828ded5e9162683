"""Focus: where a question looks, as the services can be told.

A service that sorts its results by kind is told the kind. One that does not is asked for the sites where that kind is found,
or with the word that its pages carry.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.types import Query


class _Focus(Struct, frozen=True):
    """One kind of place. `sites` are where it is found, `words` what its pages say, `categories` SearXNG's names for it."""

    name: str
    sites: tuple[str, ...] = ()
    words: str = ""
    categories: str = ""
    backend: str = ""  # a service for this kind alone


_ROWS = msgspec.json.decode(Path(__file__).with_name("focus.json").read_bytes(), type=tuple[_Focus, ...])
FOCUSES: Mapping[str, _Focus] = {focus.name: focus for focus in _ROWS}


def within_focus(query: Query) -> Query:
    """The query for a service that knows no kinds; sites that were asked for stay the only ones."""
    focus = FOCUSES.get(query.focus)
    if focus is None:
        return query
    text = f"{query.text} {focus.words}" if focus.words and focus.words not in query.text.lower() else query.text
    return replace(query, text=text, sites=query.sites or focus.sites, focus="")
