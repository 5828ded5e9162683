"""What doors say about whether an answer answers its question. The words about sentences and sources are elsewhere."""

from __future__ import annotations

from nexi.types import Answered

__all__ = ["describe_answered"]

_TEXTS: dict[Answered, str] = {
    "likely": "Likely answer: the pages match only part of the question.",
    "no": "Not answered: the pages do not seem to answer the question.",
    "depends": "It depends: the question can mean several things, so say which one is meant.",
}


def describe_answered(answered: Answered) -> str:
    """A sentence for the reader; "" where the question is answered, or where nothing rated it."""
    return _TEXTS.get(answered, "")
