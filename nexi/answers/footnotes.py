"""Footnotes for a file: a sign behind each sentence that its pages contradict or do not say, and why at the end. Pure.

The text itself stays as it was written; the renderers of Markdown and of reports put the notes below it.
"""

from __future__ import annotations

import re

from nexi.types import REVIEW_VERSION, Claim, Review, Verdict

__all__ = ["add_footnotes", "find_mark_place"]

HEADS = {Verdict.CONTRADICTED: "Contradicted by the page", Verdict.NOT_FOUND: "Not found in the pages"}
_SYNTAX = re.compile(r"([\\`*_\[\]<>#|])")


def add_footnotes(text: str, review: Review | None) -> tuple[str, str]:
    """The text with the signs, and the notes; answers of an earlier check carry their marks as text."""
    if review is None or review.version < REVIEW_VERSION:
        return text, ""
    doubtful = [claim for claim in review.proof.checked if claim.verdict in HEADS and claim.end <= len(text)]
    notes = [f"[^check{n}]: {HEADS[claim.verdict]}{_say_reason(claim)}." for n, claim in enumerate(doubtful, 1)]
    for n, claim in reversed(list(enumerate(doubtful, 1))):
        place = find_mark_place(text, claim)
        text = f"{text[:place]}[^check{n}]{text[place:]}"
    return text, "\n\n".join(notes)


def _say_reason(claim: Claim) -> str:
    said = claim.reason or next((e.reason for e in claim.evidence if e.verdict is claim.verdict), "")
    reason = _SYNTAX.sub(r"\\\1", " ".join(said.split())).rstrip(".")
    return f": {reason}" if reason else ""


def find_mark_place(text: str, claim: Claim) -> int:
    """Where the mark of a claim goes: at its end, and inside the last cell of a row of a table."""
    body = text[: claim.end].rstrip()
    is_row = text[claim.start : claim.end].lstrip().startswith("|") and body.endswith("|")
    return len(body[:-1].rstrip()) if is_row else len(body)
