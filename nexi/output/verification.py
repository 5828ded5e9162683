"""What `nexi verify` prints, for people and for programs: verdicts sentence by sentence, and the figures of an audit.

Above are the doors, which show the same; below are the values of `checking`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nexi.output.controls import clean_line
from nexi.output.proof import GOOD, VERDICT_WORDS, claim_json, evidence_line, proof_json
from nexi.types import STANDINGS

if TYPE_CHECKING:
    from nexi.checking.recheck import CitationFigures, SourceState, Verification
    from nexi.types import Claim

VERIFICATION_SCHEMA = "nexi-verification-1"
AUDIT_SCHEMA = "nexi-audit-1"
MAX_SENTENCE_CHARS = 500
SIGNS = {"supported": "✓", "found": "○", "contradicted": "✗", "not_found": "?", "not_confirmed": "·", "unchecked": "·"}
NO_JUDGE = (
    "No judge read this text: rules compared its words and values with the pages. "
    "What they do not confirm may still be true. `nexi doctor` says how to set up a judge."
)
_UNREADABLE = ("dead", "refused", "unread", "missing")
_BASES = {
    "cited": "the pages it cites",
    "given": "the pages and files given",
    "knowledge": "the knowledge base",
    "web": "pages found on the web",
}


def verification_json(found: Verification, target: str, *, strict: bool) -> dict[str, Any]:
    """A check, or an audit, as one object."""
    return _audit_json(found, found.citations, target) if found.citations else _check_json(found, target, strict=strict)


def verification_markdown(found: Verification, target: str, *, strict: bool, verbose: bool = False) -> str:
    """A check, or an audit, for people."""
    if found.citations:
        return _audit_markdown(found, found.citations, target, verbose=verbose)
    return _check_markdown(found, target, strict=strict, verbose=verbose)


def verification_lines(found: Verification, *, strict: bool = False) -> list[str]:
    """The figures in a few sentences, who judged, and what was not done."""
    return _audit_lines(found, found.citations) if found.citations else _check_lines(found, strict=strict)


def _check_json(found: Verification, target: str, *, strict: bool) -> dict[str, Any]:
    failed = {claim.index for claim in found.failed(strict=strict)}
    proof = proof_json(found.proof)
    for claim, entry in zip(found.proof.claims, proof["sentences"], strict=True):
        del entry["marked"]
        entry |= {"line": found.line_of(claim), "failed": claim.index in failed}
    return {
        "schema": VERIFICATION_SCHEMA,
        "target": target,
        "ok": not failed,
        "contradicted": found.is_contradicted,
        "strict": strict,
        "refetched": found.refetched,
        "basis": found.basis,
        "run": found.document.run,
        "counts": found.counts,
        **_judge_json(found),
        "proof": proof,
        "sources": [_source_json(state) for state in found.sources],
        "changes": [
            {"sentence": change.index, "before": change.before.value, "after": change.after.value} for change in found.changes
        ],
        "unlisted": list(found.document.lost),
    }


def _audit_json(found: Verification, figures: CitationFigures, target: str) -> dict[str, Any]:
    failed = {claim.index for claim in found.failed()}
    sentences = []
    for claim in found.proof.checked:
        entry = claim_json(claim)
        entry["citations"] = [] if found.is_uncited(claim) else entry["evidence"]
        del entry["evidence"]
        sentences.append({**entry, "line": found.line_of(claim), "failed": claim.index in failed})
    return {
        "schema": AUDIT_SCHEMA,
        "target": target,
        "ok": not failed,
        "contradicted": found.is_contradicted,
        "precision": _share(figures.precision),
        "recall": _share(figures.recall),
        "lower_bound": figures.is_bound,
        "citations": figures.citations,
        "supporting": figures.supporting,
        "unreadable": figures.unreadable,
        "sentences_checked": figures.sentences,
        "sentences_supported": figures.supported,
        "sentences_uncited": figures.uncited,
        "retracted": found.proof.count_citing("retracted"),
        "concern": found.proof.count_citing("concern"),
        "counts": found.counts,
        **_judge_json(found),
        "sentences": sentences,
        "sources": [_source_json(state) for state in found.sources],
        "unlisted": list(found.document.lost),
    }


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _judge_json(found: Verification) -> dict[str, Any]:
    judges = [{"name": j.name, "accuracy": j.accuracy, "pairs": j.pairs} for j in found.judges]
    return {"judge": found.judge, "judges": judges, "gap": found.gap}


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


def _check_markdown(found: Verification, target: str, *, strict: bool, verbose: bool = False) -> str:
    """Render a report: figures, sentences that are not found with their evidence, and sources."""
    shown = [c for c in found.proof.checked if verbose or c.verdict not in GOOD]
    parts = [f"# Verification of {clean_line(target)}", *_check_lines(found, strict=strict)]
    if shown:
        before = {change.index: change.before.value for change in found.changes}
        parts.append("\n".join(line for claim in shown for line in _claim_markdown(found, claim, before)))
    if found.sources:
        parts += ["## Sources", "\n".join(map(_source_markdown, found.sources))]
    if found.document.unread:
        parts.append(f"{found.document.unread} more URLs were not checked: the limit is 999.")
    return "\n\n".join(parts) + "\n"


def _check_lines(found: Verification, *, strict: bool = False) -> list[str]:
    """The figures of a check in a sentence or two, who judged, and what was not done."""
    failed = sum(claim.verdict.value != "not_confirmed" for claim in found.failed(strict=strict))  # that is no failure
    outcome = f"{failed} sentence{'s' * (failed != 1)} failed." if failed else "No sentence failed."
    basis = "" if found.basis == "cited" else f" Checked against {_BASES[found.basis]}."
    return [f"{_figures(found)}. {outcome}{basis}", *_judge_lines(found)]


def _figures(found: Verification) -> str:
    figures = found.proof.figures()
    figures = figures if found.basis == "cited" else figures.replace("in the cited pages", "in the pages")
    uncited = sum(found.is_uncited(claim) and claim.verdict.value == "unchecked" for claim in found.proof.checked)
    counts = {**found.counts, "unchecked": found.counts["unchecked"] - uncited}
    others = [
        f"{counts[v]} {VERDICT_WORDS[v]}" for v in ("contradicted", "not_found", "not_confirmed", "unchecked") if counts[v]
    ]
    return ", ".join([figures, *others, *([f"{uncited} without a citation"] if uncited else [])])


def _judge_lines(found: Verification) -> list[str]:
    if found.judges:
        right = found.judges[0]
        judge = f"Judged by {clean_line(right.name)}, right in {right.accuracy:.0%} of a test of {right.pairs} pairs."
    else:
        judge = f"Judged by {clean_line(found.judge)}." if found.judge else NO_JUDGE
    gap = clean_line(found.gap).rstrip(".")
    return [judge, f"{gap}."] if gap else [judge]


def _verdict_of(found: Verification, claim: Claim) -> str:
    is_open = claim.verdict.value in ("unchecked", "not_confirmed", "not_found")
    return "no citation" if found.is_uncited(claim) and is_open else VERDICT_WORDS[claim.verdict.value]


def _claim_markdown(found: Verification, claim: Claim, before: Mapping[int, str]) -> Iterator[str]:
    was = f" (was {VERDICT_WORDS[before[claim.index]]})" if claim.index in before else ""
    sign, verdict = SIGNS[claim.verdict.value], _verdict_of(found, claim)
    yield f"- {sign} line {found.line_of(claim)}, {verdict}{was}: {_shorten(claim.text)}"
    if not claim.evidence and claim.reason:
        yield f"  - {clean_line(claim.reason)}"
    for evidence in claim.evidence:
        yield f"  - {evidence_line(evidence)}"


def _shorten(text: str) -> str:
    line = clean_line(text)
    return f"{line[:MAX_SENTENCE_CHARS].rstrip()}…" if len(line) > MAX_SENTENCE_CHARS else line


def _source_markdown(state: SourceState) -> str:
    source = state.source
    named = f"{clean_line(source.title)} - " if source.title else ""
    why = f": {clean_line(state.reason)}" if state.reason else ""
    return f"- [{source.number}] {named}{clean_line(source.url)} ({state.state}{why})"


# an audit


def _audit_lines(found: Verification, figures: CitationFigures) -> list[str]:
    """The figures of an audit in sentences, who judged, and what was not done."""
    least, lines, citing = "at least " if figures.is_bound else "", [], found.proof.count_citing
    if figures.precision is not None:
        share, total = f"{least}{figures.precision:.0%}", _count(figures.citations, "citation")
        lines.append(f"Precision {share}: the page supports the sentence for {figures.supporting} of {total}.")
    if figures.recall is not None:
        share, total = f"{least}{figures.recall:.0%}", _count(figures.sentences, "sentence")
        lines.append(f"Recall {share}: its citations fully support the sentence for {figures.supported} of {total}.")
    parts = [
        f"The page says otherwise: {_count(figures.contradicted, 'citation')}." if figures.contradicted else "",
        f"The page could not be read: {_count(figures.unreadable, 'citation')}." if figures.unreadable else "",
        f"Nothing is cited: {_count(figures.uncited, 'sentence')}." if figures.uncited else "",
        *(f"Cited is {words}: {_count(n, 'sentence')}." for standing, words in STANDINGS.items() if (n := citing(standing))),
    ]
    lines += [" ".join(filter(None, parts))] if any(parts) else []
    return [*lines, *_judge_lines(found)]


def _audit_markdown(found: Verification, figures: CitationFigures, target: str, *, verbose: bool = False) -> str:
    """Render an audit: figures, every sentence with its citations, and the links that could not be read."""
    cited = [claim for claim in found.proof.checked if not found.is_uncited(claim)]
    uncited = [claim for claim in found.proof.checked if found.is_uncited(claim)]
    unread = [state for state in found.sources if state.state in _UNREADABLE]
    parts = [f"# Audit of {clean_line(target)}", *_audit_lines(found, figures)]
    if cited:
        parts += ["## Sentences with citations", "\n".join(line for c in cited for line in _audited_claim(found, c, verbose))]
    if uncited:
        parts += ["## Sentences without a citation", "\n".join(_uncited_line(found, claim) for claim in uncited)]
    if unread or found.document.lost:
        lost = [f"- [{number}] names nothing: no source with this number is listed" for number in found.document.lost]
        parts += ["## Links that could not be read", "\n".join([*map(_source_markdown, unread), *lost])]
    readable = [state for state in found.sources if state.state not in _UNREADABLE]
    if readable:
        parts += ["## Pages read", "\n".join(_page_line(state) for state in readable)]
    if found.document.unread:
        parts.append(f"{found.document.unread} more URLs were not checked: the limit is 999.")
    return "\n\n".join(parts) + "\n"


def _audited_claim(found: Verification, claim: Claim, verbose: bool) -> Iterator[str]:
    verdict = claim.verdict.value
    yield f"- {SIGNS[verdict]} line {found.line_of(claim)}, {VERDICT_WORDS[verdict]}: {_shorten(claim.text)}"
    for evidence in claim.evidence:
        if verbose or evidence.standing or evidence.verdict not in GOOD:
            yield f"  - {evidence_line(evidence)}"
        else:
            yield f"  - [{evidence.number}] {VERDICT_WORDS[evidence.verdict.value]}"


def _uncited_line(found: Verification, claim: Claim) -> str:
    elsewhere = [f"[{e.number}]" for e in claim.evidence if e.verdict in GOOD]
    note = f" ({', '.join(elsewhere)} would support it)" if elsewhere else ""
    note = f" ({clean_line(claim.reason)})" if found.is_covered(claim) else note
    note = f" ({VERDICT_WORDS['contradicted']}: {clean_line(claim.reason)})" if claim.verdict.value == "contradicted" else note
    return f"- {SIGNS[claim.verdict.value]} line {found.line_of(claim)}: {_shorten(claim.text)}{note}"


def _page_line(state: SourceState) -> str:
    named = f"{clean_line(state.source.title)} - " if state.source.title else ""
    return f"- [{state.source.number}] {named}{clean_line(state.source.url)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
