"""The passages behind a citation, for people and for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from nexi.output._sources import site_of, source_json
from nexi.output.proof import GOOD, SIGNS, claim_json, describe_evidence, plain_passage, verdict_words
from nexi.output.streams import open_console, print_styled, takes_colors, write
from nexi.text.controls import clean_line
from nexi.text.plain import strip_heading_marks
from nexi.types import Claim, Evidence, Review, Source

CONTEXT_CHARS = 160  # before and after a passage
MAX_PASSAGE_CHARS = 1200
INDENT = 4


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
        sentence = claim_json(claim)
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
    span = plain_passage(evidence)[:MAX_PASSAGE_CHARS]
    if takes_colors(sys.stdout):
        from rich.padding import Padding
        from rich.text import Text

        parts = ((before, "dim"), (" " * bool(before), ""), (span, "black on yellow"), (" " * bool(after), ""), (after, "dim"))
        open_console("stdout").print(Padding(Text.assemble(*parts), (0, 0, 0, INDENT), expand=False))
    else:
        write(" " * INDENT + f"{before} “{span}” {after}".strip() + "\n")
    return write(f"    {about}\n") if about and evidence.verdict not in GOOD else None
