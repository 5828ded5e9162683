"""What `nexi verify` prints: verdicts sentence by sentence, and the figures of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from nexi.output.proof import GOOD, SIGNS, VERDICT_WORDS, claim_json, evidence_line, proof_json
from nexi.text.controls import clean_line
from nexi.types import STANDINGS, Verdict

if TYPE_CHECKING:
    from nexi.checking.recheck import CitationFigures, SourceState, Verification

MAX_SENTENCE_CHARS = 500
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


def verification_json(result: Verification, target: str, *, strict: bool) -> dict[str, Any]:
    if result.citations:
        return _audit_json(result, result.citations, target)
    failures = {claim.index for claim in result.failed(strict=strict)}
    proof = proof_json(result.proof)
    for claim, entry in zip(result.proof.claims, proof["sentences"], strict=True):
        del entry["marked"]
        entry |= {"line": result.line_of(claim), "failed": claim.index in failures}
    return {
        "schema": "nexi-verification-1",
        "target": target,
        "ok": not failures,
        "contradicted": result.is_contradicted,
        "strict": strict,
        "refetched": result.refetched,
        "basis": result.basis,
        "run": result.document.run,
        "counts": result.counts,
        **_judge_json(result),
        "proof": proof,
        "sources": [_source_json(state) for state in result.sources],
        "changes": [
            {"sentence": change.index, "before": change.before.value, "after": change.after.value} for change in result.changes
        ],
        "unlisted": list(result.document.lost),
    }


def verification_markdown(result: Verification, target: str, *, strict: bool, verbose: bool = False) -> str:
    title = f"# {'Audit' if result.citations else 'Verification'} of {clean_line(target)}"
    sections = _list_audit_sections(result, verbose) if result.citations else _list_check_sections(result, verbose)
    limit = [f"{result.document.unread} more URLs were not checked: the limit is 999."] if result.document.unread else []
    return "\n\n".join((title, *verification_lines(result, strict=strict), *sections, *limit)) + "\n"


def verification_lines(result: Verification, *, strict: bool = False) -> list[str]:
    if result.citations:
        return _audit_lines(result, result.citations)
    figures = [result.proof.figures()]
    if result.basis != "cited":
        figures = [figures[0].replace("in the cited pages", "in the pages")]
    without_citation = sum(result.is_uncited(claim) and claim.verdict.value == "unchecked" for claim in result.proof.checked)
    counts = {**result.counts, "unchecked": result.counts["unchecked"] - without_citation}
    verdicts = (Verdict.CONTRADICTED, Verdict.NOT_FOUND, Verdict.NOT_CONFIRMED, Verdict.UNCHECKED)
    figures += [f"{counts[verdict]} {VERDICT_WORDS[verdict]}" for verdict in verdicts if counts[verdict]]
    figures += [f"{without_citation} without a citation"] if without_citation else []
    failures = sum(claim.verdict.value != "not_confirmed" for claim in result.failed(strict=strict))  # that is no failure
    outcome = f"{failures} sentence{'s' * (failures != 1)} failed." if failures else "No sentence failed."
    basis = "" if result.basis == "cited" else f" Checked against {_BASES[result.basis]}."
    return [f"{', '.join(figures)}. {outcome}{basis}", *_judge_lines(result)]


def _audit_json(result: Verification, figures: CitationFigures, target: str) -> dict[str, Any]:
    failures = {claim.index for claim in result.failed()}
    sentences = []
    for claim in result.proof.checked:
        entry = claim_json(claim)
        entry["citations"] = [] if result.is_uncited(claim) else entry["evidence"]
        del entry["evidence"]
        sentences.append({**entry, "line": result.line_of(claim), "failed": claim.index in failures})
    return {
        "schema": "nexi-audit-1",
        "target": target,
        "ok": not failures,
        "contradicted": result.is_contradicted,
        "precision": figures.precision and round(figures.precision, 4),
        "recall": figures.recall and round(figures.recall, 4),
        "lower_bound": figures.is_bound,
        "citations": figures.citations,
        "supporting": figures.supporting,
        "unreadable": figures.unreadable,
        "sentences_checked": figures.sentences,
        "sentences_supported": figures.supported,
        "sentences_uncited": figures.uncited,
        "retracted": result.proof.count_citing("retracted"),
        "concern": result.proof.count_citing("concern"),
        "counts": result.counts,
        **_judge_json(result),
        "sentences": sentences,
        "sources": [_source_json(state) for state in result.sources],
        "unlisted": list(result.document.lost),
    }


def _judge_json(result: Verification) -> dict[str, Any]:
    return {"judge": result.judge, "judges": [asdict(judge) for judge in result.judges], "gap": result.gap}


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


def _list_check_sections(result: Verification, verbose: bool) -> list[str]:
    """Sentences that are not found with their evidence, and sources."""
    claims = [c for c in result.proof.checked if verbose or c.verdict not in GOOD]
    parts = []
    if claims:
        before, lines = {change.index: change.before for change in result.changes}, []
        for claim in claims:
            was = f" (was {VERDICT_WORDS[before[claim.index]]})" if claim.index in before else ""
            sign, verdict = SIGNS[claim.verdict], VERDICT_WORDS[claim.verdict]
            if result.is_uncited(claim) and claim.verdict.value in ("unchecked", "not_confirmed", "not_found"):
                verdict = "no citation"
            lines.append(f"- {sign} line {result.line_of(claim)}, {verdict}{was}: {_shorten(claim.text)}")
            lines += [f"  - {clean_line(claim.reason)}"] if claim.reason and not claim.evidence else []
            lines += [f"  - {evidence_line(evidence)}" for evidence in claim.evidence]
        parts.append("\n".join(lines))
    if result.sources:
        parts += ["## Sources", "\n".join(map(_source_markdown, result.sources))]
    return parts


def _judge_lines(result: Verification) -> list[str]:
    if result.judges:
        right = result.judges[0]
        judge = f"Judged by {clean_line(right.name)}, right in {right.accuracy:.0%} of a test of {right.pairs} pairs."
    else:
        judge = f"Judged by {clean_line(result.judge)}." if result.judge else NO_JUDGE
    gap = clean_line(result.gap).rstrip(".")
    return [judge, f"{gap}."] if gap else [judge]


def _shorten(text: str) -> str:
    line = clean_line(text)
    return f"{line[:MAX_SENTENCE_CHARS].rstrip()}…" if len(line) > MAX_SENTENCE_CHARS else line


def _source_markdown(state: SourceState, *, with_state: bool = True) -> str:
    source = state.source
    title = f"{clean_line(source.title)} - " if source.title else ""
    why = f": {clean_line(state.reason)}" if state.reason else ""
    return f"- [{source.number}] {title}{clean_line(source.url)}" + (f" ({state.state}{why})" if with_state else "")


def _audit_lines(result: Verification, figures: CitationFigures) -> list[str]:
    least, lines, citing = "at least " if figures.is_bound else "", [], result.proof.count_citing
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
    return [*lines, *_judge_lines(result)]


def _list_audit_sections(result: Verification, verbose: bool) -> list[str]:
    """Every sentence with its citations, and the links that could not be read."""
    cited = [claim for claim in result.proof.checked if not result.is_uncited(claim)]
    uncited = [claim for claim in result.proof.checked if result.is_uncited(claim)]
    unread = [state for state in result.sources if state.state in _UNREADABLE]
    parts = []
    if cited:
        lines = []
        for claim in cited:
            verdict = VERDICT_WORDS[claim.verdict]
            lines.append(f"- {SIGNS[claim.verdict]} line {result.line_of(claim)}, {verdict}: {_shorten(claim.text)}")
            for e in claim.evidence:
                is_shown = verbose or e.standing or e.verdict not in GOOD
                lines.append(f"  - {evidence_line(e) if is_shown else f'[{e.number}] {VERDICT_WORDS[e.verdict]}'}")
        parts += ["## Sentences with citations", "\n".join(lines)]
    if uncited:
        lines = []
        for claim in uncited:
            elsewhere = [f"[{e.number}]" for e in claim.evidence if e.verdict in GOOD]
            note = f" ({', '.join(elsewhere)} would support it)" if elsewhere else ""
            note = f" ({clean_line(claim.reason)})" if result.is_covered(claim) else note
            note = f" (contradicted: {clean_line(claim.reason)})" if claim.verdict is Verdict.CONTRADICTED else note
            lines.append(f"- {SIGNS[claim.verdict]} line {result.line_of(claim)}: {_shorten(claim.text)}{note}")
        parts += ["## Sentences without a citation", "\n".join(lines)]
    if unread or result.document.lost:
        lost = [f"- [{number}] names nothing: no source with this number is listed" for number in result.document.lost]
        parts += ["## Links that could not be read", "\n".join([*map(_source_markdown, unread), *lost])]
    readable = [state for state in result.sources if state.state not in _UNREADABLE]
    if readable:
        parts += ["## Pages read", "\n".join(_source_markdown(state, with_state=False) for state in readable)]
    return parts


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
