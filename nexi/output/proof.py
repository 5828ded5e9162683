"""What an answer rests on, for people and for programs: its sources, the verdict on each sentence, and the passages behind it.

Read in this order: sources, a proof, the evidence of one source, the verification of a text. Above stand the screen and the
doors, below the values of a proof.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from nexi.output.streams import open_console, print_styled, takes_colors, write
from nexi.text.controls import clean_line
from nexi.text.plain import plain, strip_heading_marks
from nexi.types import STANDINGS, Claim, Conflict, Evidence, Proof, Review, Source, Verdict
from nexi.urls import host_of

if TYPE_CHECKING:
    from nexi.checking.recheck import CitationFigures, SourceState, Verification

MAX_SPAN_CHARS = 300
MAX_SENTENCE_CHARS = 500
MAX_PASSAGE_CHARS = 1200
CONTEXT_CHARS = 160  # before and after a passage
INDENT = 4
GOOD = (Verdict.SUPPORTED, Verdict.FOUND)
REJECTED = (Verdict.NOT_FOUND, Verdict.CONTRADICTED)
SIGNS = dict(zip(Verdict, "✓○✗?··", strict=True))
VERDICT_WORDS = {verdict: verdict.value.replace("_", " ") for verdict in Verdict} | {Verdict.UNCHECKED: "not checked"}
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
_MARKUP = re.compile(r"""!?\[([^\[\]]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+"[^"]*")?\)|\*\*|__""")


def site_of(url: str) -> str:
    """The host without `www.`; the URL itself if it has no host."""
    try:
        return host_of(url).removeprefix("www.") or url
    except ValueError:
        return url


def source_json(source: Source, work: int = 0) -> dict[str, Any]:
    """A source; `link` opens it at its evidence, author and date are what the page states, `work` is the first of its work."""
    about = source.imprint
    return {
        "n": source.number,
        "url": source.url,
        "title": source.title,
        "digest": source.digest,
        "link": source.link or source.url,
        "author": about.author,
        "published": about.published,
        "modified": about.updated,
        "site": about.site,
        "accessed": about.accessed,
        **({"paper": asdict(about.paper)} if about.paper else {}),
        **({"same_work_as": work} if work and work != source.number else {}),
    }


def conflict_json(conflict: Conflict) -> dict[str, Any]:
    return {
        "kind": conflict.kind,
        "subject": conflict.subject,
        "settled": conflict.is_settled,
        "readings": [
            {
                "value": r.value,
                "sources": list(r.numbers),
                "independent": r.origins,
                "quote": r.quote,
                "date": r.day,
                "standing": r.standing,
            }
            for r in conflict.readings
        ],
    }


def _proof_json(proof: Proof, marked: Collection[int] = ()) -> dict[str, Any]:
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
        "sentences": [{**_claim_json(claim), "marked": claim.index in marked} for claim in proof.claims],
    }


def review_json(review: Review) -> dict[str, Any]:
    """The proof of a printed answer, with the changes made before printing."""
    return {
        **_proof_json(review.proof, review.marked),
        "dropped": [_claim_json(claim) for claim in review.dropped],
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


def _claim_json(claim: Claim) -> dict[str, Any]:
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


def _plain_passage(evidence: Evidence) -> str:
    """The passage as a reader sees it, on one line: the marks of Markdown and the addresses of links are left out."""
    return clean_line(plain(_MARKUP.sub(r"\1", evidence.span)).text)


def evidence_line(evidence: Evidence) -> str:
    parts = [f"[{evidence.number}] {VERDICT_WORDS[evidence.verdict]}", describe_evidence(evidence)]
    if span := _plain_passage(evidence):
        closest = "" if evidence.verdict in (*GOOD, Verdict.CONTRADICTED) else "closest passage: "
        parts.append(f"{closest}“{span[:MAX_SPAN_CHARS]}{'…' * (len(span) > MAX_SPAN_CHARS)}”")
    return clean_line("; ".join(filter(None, parts)))


def print_evidence(source: Source, review: Review | None, read_text: Callable[[str], str | None]) -> None:
    """Print a source and, for every sentence that cites it, the passage of the stored page with what stands around it."""
    claims = _claims_citing(review, source.number)
    url, title = clean_line(source.url), clean_line(source.title)
    write(f"[{source.number}] {title or site_of(url)}\n    {url}\n")
    for claim in claims:
        sign, style = SIGNS[claim.verdict], "bold" if claim.verdict in GOOD else "bold yellow"
        print_styled(f"\n{sign} {verdict_words(claim)}: {clean_line(claim.text)}", style)
        for evidence in claim.evidence:
            if evidence.number == source.number:
                _print_passage(evidence, (evidence.digest and read_text(evidence.digest)) or "")
    if not claims:
        write("\nNo sentence of the answer cites it.\n" if review else "\nThe answer was not checked.\n")


def evidence_json(run_id: str, source: Source, review: Review | None) -> dict[str, Any]:
    sentences = []
    for claim in _claims_citing(review, source.number):
        sentence = _claim_json(claim)
        sentences.append({**sentence, "evidence": [e for e in sentence["evidence"] if e["n"] == source.number]})
    return {"schema": "nexi-evidence-1", "run": run_id, "source": source_json(source), "sentences": sentences}


def _claims_citing(review: Review | None, number: int) -> Sequence[Claim]:
    return [claim for claim in review.proof.checked if number in claim.numbers] if review else []


def _print_passage(evidence: Evidence, text: str) -> None:
    """Print the passage, highlighted in its context on a terminal with colours, else in quotation marks."""
    about = describe_evidence(evidence)
    if not evidence.span:
        return write(f"    {about}\n") if about else None
    before = after = ""  # what stands around the passage in the stored text, cut at words
    if text and text[evidence.start : evidence.end] == evidence.span:
        before = clean_line(strip_heading_marks(text[max(0, evidence.start - CONTEXT_CHARS) : evidence.start])).strip()
        after = clean_line(strip_heading_marks(text[evidence.end : evidence.end + CONTEXT_CHARS])).strip()
    if evidence.start > CONTEXT_CHARS and " " in before:
        before = "… " + before.split(" ", 1)[1]
    if evidence.end + CONTEXT_CHARS < len(text) and " " in after:
        after = after.rsplit(" ", 1)[0] + " …"
    span = _plain_passage(evidence)[:MAX_PASSAGE_CHARS]
    if takes_colors(sys.stdout):
        from rich.padding import Padding
        from rich.text import Text

        parts = ((before, "dim"), (" " * bool(before), ""), (span, "black on yellow"), (" " * bool(after), ""), (after, "dim"))
        open_console("stdout").print(Padding(Text.assemble(*parts), (0, 0, 0, INDENT), expand=False))
    else:
        write(" " * INDENT + f"{before} “{span}” {after}".strip() + "\n")
    return write(f"    {about}\n") if about and evidence.verdict not in GOOD else None


def verification_json(result: Verification, target: str, *, strict: bool) -> dict[str, Any]:
    if result.citations:
        return _audit_json(result, result.citations, target)
    failures = {claim.index for claim in result.failed(strict=strict)}
    proof = _proof_json(result.proof)
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
        "sources": [_state_json(state) for state in result.sources],
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
        entry = _claim_json(claim)
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
        "sources": [_state_json(state) for state in result.sources],
        "unlisted": list(result.document.lost),
    }


def _judge_json(result: Verification) -> dict[str, Any]:
    return {"judge": result.judge, "judges": [asdict(judge) for judge in result.judges], "gap": result.gap}


def _state_json(state: SourceState) -> dict[str, Any]:
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
