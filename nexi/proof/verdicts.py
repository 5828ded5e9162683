"""The verdict on each sentence of an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from nexi.citations import extract_citation_markers, normalise_markers
from nexi.proof.snapshots import Snapshot
from nexi.types import Claim, Evidence, Proof, Verdict

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
Judge = Callable[[Claim, Evidence], Verdict]
_ORDER = (Verdict.SUPPORTED, Verdict.PARTLY, Verdict.UNCHECKED, Verdict.NOT_FOUND, Verdict.CONTRADICTED)


def check_claim(
    text: str,
    cited: Mapping[int, Snapshot | None],
    similarity: Similarity | None = None,
    *,
    index: int = 0,
    start: int = 0,
) -> Claim:
    """One sentence against the sources it cites; a source that is None has no stored text, which is said."""
    evidence = tuple(_compare(text, number, snapshot) for number, snapshot in cited.items())
    verdict = min((e.verdict for e in evidence), key=_ORDER.index, default=Verdict.NOT_FOUND)
    reason = evidence[0].reason if evidence else "no source is cited"
    return Claim(index, text, start, start + len(text), verdict, True, reason, evidence)


def check_answer(
    text: str,
    snapshots: Mapping[int, Snapshot | None],
    similarity: Similarity | None = None,
    judge: Judge | None = None,
) -> Proof:
    """Every sentence of an answer, in order; `start` and `end` of a claim are offsets into `text`."""
    claims = []
    for match in re.finditer(r"\S[^.!?\n]*[.!?]*(?:\s*\[\d+\])*\.?", text):
        numbers = sorted(extract_citation_markers(normalise_markers(match[0])))
        cited = {n: snapshots.get(n) for n in numbers}
        claims.append(check_claim(match[0], cited, similarity, index=len(claims), start=match.start()))
    return Proof(tuple(_judged(claim, judge) for claim in claims) if judge else tuple(claims))


def lowered(claim: Claim, number: int, verdict: Verdict, reason: str = "") -> Claim:
    """The claim after a judge has spoken on one of its sources; a higher verdict than before changes nothing."""
    evidence = tuple(
        replace(e, verdict=verdict, fit=0.0, reason=reason or e.reason)
        if e.number == number and _ORDER.index(verdict) > _ORDER.index(e.verdict)
        else e
        for e in claim.evidence
    )
    best = min((e.verdict for e in evidence), key=_ORDER.index, default=claim.verdict)
    return replace(claim, evidence=evidence, verdict=max(claim.verdict, best, key=_ORDER.index))


def _judged(claim: Claim, judge: Judge) -> Claim:
    for evidence in claim.evidence:
        claim = lowered(claim, evidence.number, judge(claim, evidence))
    return claim


def _compare(text: str, number: int, snapshot: Snapshot | None) -> Evidence:
    if snapshot is None:
        return Evidence(number, reason="no stored text of this source")
    plain = re.sub(r"\s*\[\d+\]", "", text).strip()
    at = snapshot.text.lower().find(plain.lower().rstrip("."))
    if at < 0:
        return Evidence(number, snapshot.url, snapshot.digest, Verdict.NOT_FOUND, reason="no passage says this")
    end = at + len(plain)
    span = snapshot.text[at:end]
    return Evidence(number, snapshot.url, snapshot.digest, Verdict.SUPPORTED, 1.0, 1.0, at, end, span, "word for word")
