"""The verification of sentences against their pages, for people and for programs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nexi.answers.answered import describe_answered
from nexi.output.controls import clean_line
from nexi.output.streams import columns_of, is_tty, open_console, takes_colors, write
from nexi.output.wrapping import wrap_text

if TYPE_CHECKING:
    from nexi.checking.recheck import SourceState, Verification
    from nexi.types import Answered, Claim, Evidence, Proof, Review

VERIFICATION_SCHEMA = "nexi-verification-1"
MAX_SPAN_CHARS = 300
GOOD = ("supported", "found")
REJECTED = ("not_found", "contradicted")
_VERDICT_WORDS = {
    "supported": "supported",
    "found": "found",
    "contradicted": "contradicted",
    "not_found": "not found",
    "not_confirmed": "not confirmed",
    "unchecked": "not checked",
}


def _proof_json(proof: Proof, marked: Collection[int] = ()) -> dict[str, Any]:
    """Figures and verdicts. Presence: how much of the sentences is in the pages; fit: how much the pages support."""
    return {
        "figures": proof.figures(),
        "supported": proof.supported,
        "found": proof.found,
        "checked": len(proof.checked),
        "presence": round(proof.presence, 4),
        "fit": round(proof.fit, 4),
        "sentences": [{**claim_json(claim), "marked": claim.index in marked} for claim in proof.claims],
    }


def review_json(review: Review | None) -> dict[str, Any] | None:
    """The proof of a printed answer, with the changes made before printing."""
    if review is None:
        return None
    return {
        **_proof_json(review.proof, review.marked),
        "dropped": [claim_json(claim) for claim in review.dropped],
        "recited": review.recited,
        "corrected": review.corrected,
        "asked": review.asked,
        "strict": review.strict,
        "judges": [{"name": j.name, "accuracy": j.accuracy, "pairs": j.pairs} for j in review.judges],
        "gap": review.gap,
        "corrections": [{"before": c.before, "after": c.after, "reason": c.reason} for c in review.corrections],
        "marks": marks_json(review),
    }


def marks_json(review: Review) -> list[dict[str, Any]]:
    """The marks beside the text: where each sentence that states something stands, its verdict, and why."""
    return [
        {"start": c.start, "end": c.end, "verdict": c.verdict.value, "reason": c.reason, "judge": c.judge}
        for c in review.proof.checked
    ]


def claim_json(claim: Claim) -> dict[str, Any]:
    return {
        "text": claim.text,
        "start": claim.start,
        "end": claim.end,
        "verdict": claim.verdict.value,
        "needs_citation": claim.needs_citation,
        "reason": claim.reason,
        "judge": claim.judge,
        "evidence": [_evidence_json(evidence) for evidence in claim.evidence],
    }


def _evidence_json(evidence: Evidence) -> dict[str, Any]:
    return {
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
    }


def figures_line(review: Review | None) -> str:
    """The verification line of an answer; "" if it claims nothing."""
    if review is None or not (review.proof.checked or review.dropped):
        return ""
    marked = f", {len(review.marked)} marked [unverified]" if review.marked else ""
    rejected = sum(bool(c.judge) and c.verdict.value in REJECTED for c in review.proof.checked)
    marked += f", {rejected} rejected by the judge" if rejected else ""
    left_out = f", {len(review.dropped)} omitted" if review.dropped else ""
    gap = f" {clean_line(review.gap).rstrip('.')}." if review.gap else ""
    return f"Checked: {review.proof.figures()}{marked}{left_out}.{gap}"


def print_figures(review: Review | None, plain: bool | None = None) -> None:
    """Print the verification line to stdout, as part of the answer."""
    line = figures_line(review)
    if not line or review is None:
        return None
    if not takes_colors(sys.stdout, plain):
        return write(f"\n{line}\n")
    from rich.text import Text

    sign, style = _sign_of_review(review)
    screen = open_console("stdout")
    screen.print()
    return screen.print(Text(wrap_text(f"{sign} {line}", columns_of(sys.stdout)), style=style), soft_wrap=True)


def _sign_of_review(review: Review) -> tuple[str, str]:
    """A green tick needs a judge for every sentence; what is only found has a neutral sign."""
    proof = review.proof
    if review.dropped or any(c.verdict.value in REJECTED for c in proof.checked):
        return "!", "yellow"
    return ("✓", "green") if proof.supported == len(proof.checked) else ("○", "cyan")


def print_answered(answered: Answered, plain: bool | None = None) -> None:
    """Print whether the question is answered, unless it is: as part of the answer on a terminal, else as a warning."""
    line = describe_answered(answered)
    if not line:
        return None
    if not is_tty():
        return write(f"{line}\n", sys.stderr) if answered == "no" else None
    if not takes_colors(sys.stdout, plain):
        return write(f"\n{line}\n")
    from rich.text import Text

    screen = open_console("stdout")
    screen.print()
    wrapped = wrap_text(f"? {line}", columns_of(sys.stdout))
    return screen.print(Text(wrapped, style="yellow" if answered == "no" else "dim"), soft_wrap=True)


def support_by_source(proof: Proof) -> dict[int, tuple[int, int]]:
    """For each source: how many of the sentences that cite it are found there or supported, and how many cite it."""
    cited: Counter[int] = Counter()
    good: Counter[int] = Counter()
    for claim in proof.claims:
        for evidence in claim.evidence:
            cited[evidence.number] += 1
            good[evidence.number] += claim.verdict in GOOD and evidence.verdict in GOOD
    return {number: (good[number], total) for number, total in cited.items()}


def claim_lines(review: Review) -> Iterator[tuple[str, str]]:
    """For `-v`: yield a line with its style for each sentence and for each passage found for it."""
    for claim in review.proof.checked:
        good = claim.verdict in GOOD
        yield f"   {verdict_words(claim)}: {clean_line(claim.text)}", "dim" if good else "yellow"
        for evidence in claim.evidence:
            yield f"      {_evidence_line(evidence)}", "dim"
    if review.gap:
        yield f"   {clean_line(review.gap)}", "yellow"
    for claim in review.dropped:
        yield f"   omitted, {verdict_words(claim)}: {clean_line(claim.text)}", "yellow"


def verdict_words(claim: Claim) -> str:
    return _VERDICT_WORDS[claim.verdict.value] if claim.evidence else "no citation"


def describe_evidence(evidence: Evidence) -> str:
    """Why a passage has its verdict; "" if nothing is known beyond it."""
    missing = f"missing: {', '.join(evidence.missing)}" if evidence.missing else ""
    other = f"the page has: {evidence.other}" if evidence.other else ""
    return clean_line("; ".join(filter(None, (evidence.reason, missing, other))))


def _evidence_line(evidence: Evidence) -> str:
    parts = [f"[{evidence.number}] {_VERDICT_WORDS[evidence.verdict.value]}", describe_evidence(evidence)]
    if evidence.span:
        parts.append(f"“{evidence.span[:MAX_SPAN_CHARS]}{'…' * (len(evidence.span) > MAX_SPAN_CHARS)}”")
    return clean_line("; ".join(filter(None, parts)))


# nexi verify


def verification_json(found: Verification, target: str, *, strict: bool) -> dict[str, Any]:
    lines = {claim.index: found.line_of(claim) for claim in found.proof.claims}
    failed = {claim.index for claim in found.failed(strict=strict)}
    proof = _proof_json(found.proof)
    for claim, entry in zip(found.proof.claims, proof["sentences"], strict=True):
        del entry["marked"]
        entry |= {"line": lines[claim.index], "failed": claim.index in failed}
    return {
        "schema": VERIFICATION_SCHEMA,
        "target": target,
        "ok": not failed,
        "strict": strict,
        "refetched": found.refetched,
        "run": found.document.run,
        "proof": proof,
        "sources": [_source_json(state) for state in found.sources],
        "changes": [
            {"sentence": change.index, "before": change.before.value, "after": change.after.value} for change in found.changes
        ],
        "unlisted": list(found.document.lost),
    }


def _source_json(state: SourceState) -> dict[str, Any]:
    source = state.source
    return {
        "n": source.number,
        "url": source.url,
        "title": source.title,
        "state": state.state,
        "reason": state.reason,
        "stored_digest": source.digest,
        "digest": state.digest,
    }


def verification_markdown(found: Verification, target: str, *, strict: bool, verbose: bool = False) -> str:
    """Render a report: figures, failed sentences with their evidence, and sources."""
    failed = {claim.index for claim in found.failed(strict=strict)}
    shown = [c for c in found.proof.checked if verbose or c.verdict not in GOOD]
    parts = [f"# Verification of {clean_line(target)}", f"{found.proof.figures()}. {_outcome_sentence(len(failed))}"]
    if shown:
        before = {change.index: change.before.value for change in found.changes}
        parts.append(
            "\n".join(line for claim in shown for line in _claim_markdown(found, claim, claim.index in failed, before))
        )
    if found.sources:
        parts += ["## Sources", "\n".join(map(_source_markdown, found.sources))]
    if found.document.unread:
        parts.append(f"{found.document.unread} more URLs were not checked: the limit is 999.")
    return "\n\n".join(parts) + "\n"


def _outcome_sentence(failed: int) -> str:
    if not failed:
        return "No sentence failed."
    return f"{failed} sentence{'s' * (failed != 1)} failed."


def _claim_markdown(found: Verification, claim: Claim, failed: bool, before: Mapping[int, str]) -> Iterator[str]:
    was = f" (was {_VERDICT_WORDS[before[claim.index]]})" if claim.index in before else ""
    mark = "✗" if failed else {"supported": "✓", "found": "○"}.get(claim.verdict.value, "·")
    yield f"- {mark} line {found.line_of(claim)}, {verdict_words(claim)}{was}: {clean_line(claim.text)}"
    if not claim.evidence and claim.reason:
        yield f"  - {clean_line(claim.reason)}"
    for evidence in claim.evidence:
        yield f"  - {_evidence_line(evidence)}"


def _source_markdown(state: SourceState) -> str:
    source = state.source
    named = f"{clean_line(source.title)} - " if source.title else ""
    why = f": {clean_line(state.reason)}" if state.reason else ""
    return f"- [{source.number}] {named}{clean_line(source.url)} ({state.state}{why})"
