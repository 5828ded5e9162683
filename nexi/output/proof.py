"""The verification of sentences against their pages, for people and for programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import Any

from msgspec.structs import asdict

from nexi.text.controls import clean_line
from nexi.text.plain import plain
from nexi.types import STANDINGS, Claim, Evidence, Proof, Review, Verdict

MAX_SPAN_CHARS = 300
GOOD = (Verdict.SUPPORTED, Verdict.FOUND)
_MARKUP = re.compile(r"""!?\[([^\[\]]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+"[^"]*")?\)|\*\*|__""")
REJECTED = (Verdict.NOT_FOUND, Verdict.CONTRADICTED)
SIGNS = dict(zip(Verdict, "✓○✗?··", strict=True))
VERDICT_WORDS = {verdict: verdict.value.replace("_", " ") for verdict in Verdict} | {Verdict.UNCHECKED: "not checked"}


def proof_json(proof: Proof, marked: Collection[int] = ()) -> dict[str, Any]:
    """Figures and verdicts. Presence: how much of the sentences is in the pages; fit: how much the pages support."""
    return {
        "figures": proof.figures(),
        "supported": proof.supported,
        "found": proof.found,
        "checked": len(proof.checked),
        "retracted": proof.count_citing("retracted"),
        "concern": proof.count_citing("concern"),
        "presence": round(proof.presence, 4),
        "fit": round(proof.fit, 4),
        "sentences": [{**claim_json(claim), "marked": claim.index in marked} for claim in proof.claims],
    }


def review_json(review: Review) -> dict[str, Any]:
    """The proof of a printed answer, with the changes made before printing."""
    return {
        **proof_json(review.proof, review.marked),
        "dropped": [claim_json(claim) for claim in review.dropped],
        "recited": review.recited,
        "corrected": review.corrected,
        "asked": review.asked,
        "strict": review.strict,
        "judges": [asdict(judge) for judge in review.judges],
        "gap": review.gap,
        "corrections": [asdict(correction) for correction in review.corrections],
        # beside the text: where each sentence that states something stands, its verdict, and why
        "marks": [
            {"start": c.start, "end": c.end, "verdict": c.verdict.value, "reason": c.reason, "judge": c.judge}
            for c in review.proof.checked
        ],
    }


def claim_json(claim: Claim) -> dict[str, Any]:
    return {
        "text": claim.text,
        "start": claim.start,
        "end": claim.end,
        "verdict": claim.verdict.value,
        "needs_citation": claim.needs_citation,
        "reason": claim.reason,
        "judge": claim.judge,
        "evidence": [
            {
                "n": evidence.number,
                "url": evidence.url,
                "digest": evidence.digest,
                "verdict": evidence.verdict.value,
                "presence": round(evidence.presence, 4),
                "fit": round(evidence.fit, 4),
                "start": evidence.start,
                "end": evidence.end,
                "span": evidence.span,
                "reason": evidence.reason,
                "missing": list(evidence.missing),
                "other": evidence.other,
                "page": evidence.page,
                **({"standing": evidence.standing} if evidence.standing else {}),
            }
            for evidence in claim.evidence
        ],
    }


def figures_line(review: Review | None, sources: int = 0, conflicts: int = 0) -> str:
    """The verification line of an answer, with its sources and their disagreements; "" if it claims nothing."""
    if review is None or not (review.proof.checked or review.dropped):
        return ""
    rejections = sum(bool(c.judge) and c.verdict in REJECTED for c in review.proof.checked)
    line = f"Checked: {review.proof.figures()}"
    line += f", {len(review.marked)} marked [unverified]" if review.marked else ""
    line += f", {rejections} rejected by the judge" if rejections else ""
    line += f", {len(review.dropped)} omitted" if review.dropped else ""
    line += f" · {sources} source{'s' * (sources != 1)}" if sources else ""
    line += f" · sources disagree on {conflicts} point{'s' * (conflicts != 1)}" if conflicts else ""
    return f"{line}. {clean_line(review.gap).rstrip('.')}." if review.gap else f"{line}."


def support_by_source(proof: Proof) -> dict[int, tuple[int, int]]:
    """For each source: how many of the sentences that cite it are found there or supported, and how many cite it."""
    totals: Counter[int] = Counter()
    good: Counter[int] = Counter()
    for claim in proof.claims:
        for evidence in claim.evidence:
            totals[evidence.number] += 1
            good[evidence.number] += claim.verdict in GOOD and evidence.verdict in GOOD
    return {number: (good[number], total) for number, total in totals.items()}


def verdict_words(claim: Claim) -> str:
    return VERDICT_WORDS[claim.verdict] if claim.evidence else "no citation"


def describe_evidence(evidence: Evidence) -> str:
    """Why a passage has its verdict, in a sentence or two; "" if nothing is known beyond it."""
    parts = [part for part in evidence.missing if part not in evidence.reason]
    paper = f"it is {STANDINGS[evidence.standing]}" if evidence.standing in STANDINGS else ""
    absence = f"{'also ' * bool(evidence.reason)}not in this passage: {', '.join(parts)}" if parts else ""
    other = f"the page has: {evidence.other}" if evidence.other and evidence.other not in evidence.reason else ""
    return clean_line("; ".join(filter(None, (paper, evidence.reason, absence, other))))


def plain_passage(evidence: Evidence) -> str:
    """The passage as a reader sees it, on one line: the marks of Markdown and the addresses of links are left out."""
    return clean_line(plain(_MARKUP.sub(r"\1", evidence.span)).text)


def evidence_line(evidence: Evidence) -> str:
    parts = [f"[{evidence.number}] {VERDICT_WORDS[evidence.verdict]}", describe_evidence(evidence)]
    if span := plain_passage(evidence):
        closest = "" if evidence.verdict in (*GOOD, Verdict.CONTRADICTED) else "closest passage: "
        parts.append(f"{closest}“{span[:MAX_SPAN_CHARS]}{'…' * (len(span) > MAX_SPAN_CHARS)}”")
    return clean_line("; ".join(filter(None, parts)))
