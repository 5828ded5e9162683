"""Has a tested pair model judge the claims that rules found, all claims of an answer in one call.

Above it is the answer checker, which says when and until when; below it is the PairModel port. A verdict raises a claim from
found to supported or lowers it to not found. A gap changes nothing: the claim stays found, and the reason says that no model
judged it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.citations import set_citations
from nexi.ports import PairModel
from nexi.types import Claim, Evidence, JudgeFigure, PairScore, Verdict
from nexi.verify.edits import find_opening
from nexi.verify.snapshots import Snapshots

if TYPE_CHECKING:
    from nexi.proof import Snapshot

__all__ = ["JudgedClaims", "judge_claims"]


MAX_WINDOWS = 2  # of one claim
CONTEXT_CHARS = 240  # on either side of a passage
MAX_WINDOW_CHARS = 900
MAX_GAP_REASONS = 2

_SENTENCE_START = re.compile(r"(?:[.!?。！？]['\"”’)]?\s+|\n+)(?=\S)")
_SENTENCE_END = re.compile(r"[.!?。！？]['\"”’)]?(?=\s|$)|\n")


class JudgedClaims(Struct, frozen=True):
    """Claims with the verdicts of a judge, in their order; the models that judged, and why some claims were not judged."""

    claims: tuple[Claim, ...]
    judges: tuple[JudgeFigure, ...] = ()
    gap: str = ""


async def judge_claims(
    model: PairModel, claims: Sequence[Claim], snapshots: Snapshots, *, deadline: float | None = None
) -> JudgedClaims:
    """Ask for every found claim, those that rules were least sure of first: what a budget cuts off matters least."""
    found = sorted((c for c in claims if c.verdict is Verdict.FOUND), key=lambda c: (_fit_of(c), c.start))
    texts = await snapshots.of({number for claim in found for number in claim.numbers})
    windows = {id(claim): choose_windows(claim, texts) for claim in found}
    asked = [claim for claim in found if windows[id(claim)]]
    pairs = [(window, hypothesis_of(claim)) for claim in asked for window in windows[id(claim)]]
    scores = iter(await model.score(pairs, deadline=deadline) if pairs else ())
    of_claim = {id(claim): [score for _, score in zip(windows[id(claim)], scores)] for claim in asked}  # noqa: B905 - the iterator is shared
    known = [score for claim in asked for score in of_claim[id(claim)] if score.known]
    judges = tuple(dict.fromkeys(score.judge for score in known if score.judge))
    return JudgedClaims(
        tuple(apply_scores(claim, of_claim[id(claim)]) if id(claim) in of_claim else claim for claim in claims),
        judges,
        describe_gap([of_claim[id(claim)] for claim in asked]),
    )


def apply_scores(claim: Claim, scores: Sequence[PairScore]) -> Claim:
    """The claim with the best of its scores; without a known score it stays as it is and says why."""
    known = [score for score in scores if score.known]
    if not known:
        reason = next((score.reason for score in scores), "there is no score")
        return replace(claim, reason=f"not judged: {reason}")
    best = max(known, key=lambda score: score.supported)
    name = best.judge.name if best.judge else "the judge"
    if best.supports:
        evidence = (replace(e, verdict=Verdict.SUPPORTED) if e.verdict is Verdict.FOUND else e for e in claim.evidence)
        return replace(claim, verdict=Verdict.SUPPORTED, evidence=tuple(evidence), judge=name)
    reason = f"{name} says that the passage does not support it" + (f": {best.reason}" if best.reason else "")
    lowered = (
        replace(e, verdict=Verdict.NOT_FOUND, fit=0.0, reason=reason) if e.verdict is Verdict.FOUND else e
        for e in claim.evidence
    )
    return replace(claim, verdict=Verdict.NOT_FOUND, reason=reason, evidence=tuple(lowered), judge=name)


def describe_gap(scores_of_claims: Sequence[Sequence[PairScore]]) -> str:
    """Why claims were not judged, in one sentence; "" where every claim was."""
    gaps = [scores for scores in scores_of_claims if not any(score.known for score in scores)]
    if not gaps:
        return ""
    reasons = list(dict.fromkeys(score.reason for scores in gaps for score in scores if score.reason))
    total = len(scores_of_claims)
    count = f"{len(gaps)} of {total} sentences were" if len(gaps) < total else "The sentences were"
    return f"{count} not judged: {'; '.join(reasons[:MAX_GAP_REASONS])}"


def hypothesis_of(claim: Claim) -> str:
    """The sentence without its citations and without the bullet or number before it."""
    return set_citations(claim.text[len(find_opening(claim.text)) :], ()).strip()


def choose_windows(claim: Claim, snapshots: Mapping[int, Snapshot | None]) -> tuple[str, ...]:
    """The passages that a claim is judged by: of one source its passage alone and with its neighbours, of more the best two."""
    best = sorted((e for e in claim.evidence if e.span), key=lambda e: (e.verdict is not Verdict.FOUND, -e.fit, -e.presence))
    wide = [widen_span(e, snapshots.get(e.number)) for e in best[:MAX_WINDOWS]]
    windows = [best[0].span, *wide] if len(best) == 1 else wide
    return tuple(dict.fromkeys(window[:MAX_WINDOW_CHARS] for window in windows))


def widen_span(evidence: Evidence, snapshot: Snapshot | None) -> str:
    """The passage with the whole sentences next to it."""
    if snapshot is None or len(evidence.span) >= MAX_WINDOW_CHARS:
        return evidence.span
    before = snapshot.text[max(0, evidence.start - CONTEXT_CHARS) : evidence.start]
    after = snapshot.text[evidence.end : evidence.end + CONTEXT_CHARS]
    begins = _SENTENCE_START.search(before) if evidence.start > CONTEXT_CHARS else None
    ends = list(_SENTENCE_END.finditer(after))
    head = before[begins.end() :] if begins else before if evidence.start <= CONTEXT_CHARS else ""
    tail = after[: ends[-1].end()] if ends else after if len(after) < CONTEXT_CHARS else ""
    return f"{head}{evidence.span}{tail}".strip()


def _fit_of(claim: Claim) -> float:
    return max((e.fit for e in claim.evidence), default=0.0)
