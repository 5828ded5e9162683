"""An answer as the page shows it: safe HTML in which citations and sentences lead to their evidence. Pure.

Markdown is rendered with everything escaped; only then are our own two kinds of marks put in, at places named by characters
that no answer can contain.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from nexi.events import AnswerChecked, Fact, RunFinished, RunStarted
from nexi.types import Claim, Review, Source, Verdict
from nexi.urls import host_of
from nexi.values import frozen

OPEN, CLOSE = "\ue000", "\ue001"  # around the number of a claim, while Markdown is rendered
SIGNS = {
    Verdict.SUPPORTED: "✓",
    Verdict.PARTLY: "~",
    Verdict.CONTRADICTED: "✗",
    Verdict.NOT_FOUND: "?",
    Verdict.UNCHECKED: "·",
}
WORST = (Verdict.CONTRADICTED, Verdict.NOT_FOUND, Verdict.PARTLY, Verdict.UNCHECKED, Verdict.SUPPORTED)

_MARKS = re.compile(f"[{OPEN}{CLOSE}]")
_CLAIM = re.compile(f"{OPEN}([0-9]{{1,6}}){CLOSE}")
_TAG = re.compile(r"(<[^>]*>)")
_CITATION = re.compile(r"\[([1-9][0-9]{0,2})\]")


@frozen
class Answered:
    """A run that ended with an answer."""

    id: str
    started: RunStarted
    end: RunFinished
    facts: tuple[Fact, ...]

    @property
    def review(self) -> Review | None:
        return next((f.review for f in reversed(self.facts) if isinstance(f, AnswerChecked) and not f.agent), None)


def view_of(answered: Answered) -> dict[str, Any]:
    """Everything the page shows of an answer."""
    end, review = answered.end, answered.review
    claims = review.proof.claims if review else ()
    return {
        "id": answered.id,
        "question": answered.started.query,
        "mode": answered.started.mode,
        "model": answered.started.model,
        "text": end.answer,
        "html": answer_html(end.answer, claims, end.sources),
        "figures": review.proof.figures() if review and review.proof.checked else "",
        "claims": [_claim(claim) for claim in claims],
        "sources": [_source(source, claims) for source in end.sources],
        "conflicts": [conflict.sentence() for conflict in end.conflicts],
        "stop": end.stop.value,
        "seconds": end.seconds,
        "tokens": end.usage.total,
        "cost": end.usage.cost,
        "pages": end.pages,
        "model_calls": end.model_calls,
    }


def safe_html(text: str) -> str:
    """Markdown as HTML: raw markup is shown as text, images become their words, links lead to web addresses only."""
    return _rendered(_MARKS.sub("\ufffd", text))


def _rendered(text: str) -> str:
    from nexi.web.statuses import html_of

    return html_of(text).replace("<a href=", '<a rel="noreferrer noopener nofollow" target="_blank" href=')


def answer_html(text: str, claims: Sequence[Claim], sources: Sequence[Source]) -> str:
    """An answer whose citations and checked sentences can be followed to their evidence."""
    clean = _MARKS.sub("\ufffd", text)
    checked = [c for c in claims if c.evidence or c.needs_citation]
    for claim in sorted(checked, key=lambda c: c.end, reverse=True):
        end = len(clean[: claim.end].rstrip())
        clean = f"{clean[:end]}{OPEN}{claim.index}{CLOSE}{clean[end:]}"
    return _linked(_rendered(clean), {c.index: c for c in checked}, {s.number for s in sources})


def _linked(made: str, claims: dict[int, Claim], numbers: set[int]) -> str:
    """Citations and marks in the text between tags, outside code; a citation belongs to the claim that ends after it."""
    parts = _TAG.split(made)
    follows = _claims_ahead(parts)
    depth, out = 0, []
    for at, part in enumerate(parts):
        if part.startswith("<"):
            depth += part.startswith(("<code", "<pre")) - part.startswith(("</code", "</pre"))
            out.append(part)
        elif depth > 0:
            out.append(_CLAIM.sub("", part))
        else:
            out.append(_text(part, follows[at], claims, numbers))
    return "".join(out)


def _claims_ahead(parts: Sequence[str]) -> list[int]:
    """For every part, the first claim that ends after it; -1 where none does."""
    ahead, found = -1, [-1] * len(parts)
    for at in range(len(parts) - 1, -1, -1):
        found[at] = ahead
        if match := _CLAIM.search(parts[at]):
            ahead = int(match[1])
    return found


def _text(part: str, ahead: int, claims: dict[int, Claim], numbers: set[int]) -> str:
    pieces = _CLAIM.split(part)  # text, index, text, index, … text
    out = []
    for at in range(0, len(pieces), 2):
        owner = int(pieces[at + 1]) if at + 1 < len(pieces) else ahead
        out.append(_CITATION.sub(lambda m, o=owner: _cite(int(m[1]), o, numbers), pieces[at]))
        if at + 1 < len(pieces):
            out.append(_check(claims.get(owner)))
    return "".join(out)


def _cite(number: int, claim: int, numbers: set[int]) -> str:
    if number not in numbers:
        return f"[{number}]"
    about = f' data-claim="{claim}"' if claim >= 0 else ""
    return f'<button type="button" class="cite" data-n="{number}"{about} aria-label="Source {number}">[{number}]</button>'


def _check(claim: Claim | None) -> str:
    if claim is None:
        return ""
    verdict = claim.verdict.value
    label = html.escape(f"{verdict.replace('_', ' ')}: show the evidence", quote=True)
    sign = SIGNS[claim.verdict]
    return f'<button type="button" class="check v-{verdict}" data-claim="{claim.index}" aria-label="{label}">{sign}</button>'


def _claim(claim: Claim) -> dict[str, Any]:
    evidence = [
        {"n": e.number, "verdict": e.verdict.value, "reason": e.reason, "start": e.start, "end": e.end, "page": e.page}
        for e in claim.evidence
    ]
    return {"text": claim.text, "verdict": claim.verdict.value, "reason": claim.reason, "evidence": evidence}


def _source(source: Source, claims: Sequence[Claim]) -> dict[str, Any]:
    found = {e.verdict for c in claims for e in c.evidence if e.number == source.number}
    verdict = next((v.value for v in reversed(WORST) if v in found), "")
    return {
        "n": source.number,
        "url": source.url,
        "link": source.link or source.url,
        "title": source.title,
        "host": host_of(source.url),
        "published": source.imprint.published[:10],
        "verdict": verdict,
    }
