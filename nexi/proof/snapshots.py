"""A page's stored text, prepared once so that many sentences can be compared with it cheaply."""

from __future__ import annotations

from nexi.types import content_digest
from nexi.values import frozen


@frozen
class Snapshot:
    """The stored text of a page, ready to be asked."""

    text: str
    url: str = ""
    digest: str = ""


def prepare(text: str, url: str = "", digest: str = "") -> Snapshot:
    """Read a page's stored text once."""
    return Snapshot(text, url, digest or content_digest(text))
