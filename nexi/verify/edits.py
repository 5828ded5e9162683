"""Changes to a stretch of an answer: sentences marked, left out or put in place of others, and citations put right.

Pure: claims with their places go in, text and claims with their new places come out. A stretch is a sentence of prose, or one
line of a list or table, as the answer's stream cuts it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.citations import drop_unknown, extract_citation_markers, is_row, set_citations
from nexi.types import Claim, Evidence, Proof, Verdict

if TYPE_CHECKING:
    from nexi.proof import Snapshot

__all__ = [
    "MARK",
    "PASSING",
    "check",
    "drop_idle_citations",
    "edit_stretch",
    "find_failing",
    "find_opening",
    "hide_code",
    "remove_marks",
    "repair",
    "substitute_sentences",
]


MARK = " [unverified]"  # stands behind a sentence whose support was not found
PASSING = (Verdict.FOUND, Verdict.SUPPORTED)
MAX_HINTS = 3
_WORD = re.compile(r"\w")
_OPENING = re.compile(r"\s*(?:>\s?)*(?:[-*+•]\s+|\d{1,3}[.)]\s+)?")
_BLANKS = " \t"
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_CODE_SIGNS = re.compile(r"[{};=<>$\\]|\w\(|^\s*(?:#|//|--|\$|>>>)")
PROSE_LETTERS = 0.75
MAX_COMPARED_CHARS = 2000  # characters of a sentence that is looked for in sources it does not cite


class Repair(Struct, frozen=True):
    """A stretch whose citations were put right where that was possible, and what other sources say to the rest."""

    text: str
    recited: int = 0
    hints: Mapping[int, tuple[Evidence, ...]] = {}


def find_failing(claims: Iterable[Claim]) -> list[Claim]:
    """The claims that may not pass as they stand."""
    return [claim for claim in Proof(tuple(claims)).checked if claim.verdict not in PASSING]


def check(text: str, snapshots: Mapping[int, Snapshot | None], question: str = "") -> tuple[Claim, ...]:
    """The claims of a stretch against the sources it cites."""
    from nexi.proof import check_answer

    cited = {number: snapshots.get(number) for number in sorted(extract_citation_markers(text))}
    return check_answer(text, cited, question).claims


def hide_code(stretch: str, *, keeps_prose_only: bool) -> str:
    """A stretch of code with blanks of the same length in place of its fences, and of its code where only prose is claimed."""
    return "".join(
        _blank(line) if _FENCE.match(line) or (keeps_prose_only and not _is_prose(line)) else line
        for line in stretch.splitlines(keepends=True)
    )


def _blank(line: str) -> str:
    body = line.rstrip("\n")
    return " " * len(body) + line[len(body) :]


def _is_prose(line: str) -> bool:
    dense = "".join(line.split())
    return len(line.split()) > 3 and sum(map(str.isalpha, dense)) >= PROSE_LETTERS * len(dense) and not _CODE_SIGNS.search(line)


def repair(text: str, claims: Sequence[Claim], snapshots: Mapping[int, Snapshot | None]) -> Repair:
    """Give each sentence the citation that supports it, where there is no failed_claim which that is."""
    hints: dict[int, tuple[Evidence, ...]] = {}
    recited = 0
    for claim in reversed(find_failing(claims)):
        others = _search_other_sources(claim, snapshots)
        sentence = text[claim.start : claim.end]
        if (number := _choose_source(claim, others)) is None:
            hints[claim.index] = tuple(others[:MAX_HINTS])
            continue
        recited += 1
        text = text[: claim.start] + set_citations(sentence, [number]) + text[claim.end :]
    return Repair(text, recited, hints)


def drop_idle_citations(text: str, claims: Sequence[Claim]) -> str:
    """A found sentence keeps the citations that say something to it; one that disagrees is kept as well."""
    for claim in reversed(claims):
        idle = {e.number for e in claim.evidence if e.verdict is Verdict.NOT_FOUND and not e.span}
        if claim.verdict is Verdict.FOUND and idle:
            sentence, _ = drop_unknown(text[claim.start : claim.end], set(claim.numbers) - idle)
            text = text[: claim.start] + sentence + text[claim.end :]
    return text


def edit_stretch(
    text: str, claims: Sequence[Claim], *, dropped: Collection[int] = (), marked: Collection[int] = (), begins_line: bool = True
) -> tuple[str, tuple[Claim, ...]]:
    """The stretch without the claims of the dropped indexes and with the mark behind the others, and the claims that stay."""
    if dropped and is_row(text):
        return "", ()
    out, kept, position = "", [], 0
    for claim in claims:
        out += text[position : claim.start]
        position = claim.end
        if claim.index in dropped:
            position += len(text[position:]) - len(text[position:].lstrip(_BLANKS))
            continue
        body = text[claim.start : claim.end]
        shown = _with_mark(body) if claim.index in marked else body
        said = claim.text
        if not shown.startswith(body):
            said = body = shown  # the mark of a row stands inside it
        kept.append(replace(claim, text=said, start=len(out), end=len(out) + len(body)))
        out += shown
    out += text[position:]
    if dropped and not _WORD.search(out):
        return ("" if begins_line else _line_end(out)), ()
    return out, tuple(kept)


def substitute_sentences(text: str, claims: Sequence[Claim], sentences: Mapping[int, str]) -> str:
    """The stretch with other sentences in place of these claims; what opens a line stays."""
    for claim in reversed(claims):
        if claim.index in sentences:
            start = claim.start + len(find_opening(claim.text))
            text = text[:start] + sentences[claim.index] + text[claim.end :]
    return text


def find_opening(sentence: str) -> str:
    """The bullet, number or quotation mark of a line; a row of a table is one whole."""
    found = _OPENING.match(sentence)
    return found[0] if found else ""


def remove_marks(text: str) -> str:
    """A text of the same length with blanks where our mark stood, so that places stay what they are."""
    return text.replace(MARK, " " * len(MARK))


def _search_other_sources(claim: Claim, snapshots: Mapping[int, Snapshot | None]) -> list[Evidence]:
    """What every source that the sentence does not cite says to it, the best first.

    A sentence that cites nothing needs one source, so none is asked after one that says it word for word.
    """
    from nexi.proof import check_claim
    from nexi.proof.literals import is_quoted

    if len(claim.text) > MAX_COMPARED_CHARS:
        return []
    bare = set_citations(claim.text, ())
    others = {number: s for number, s in snapshots.items() if s is not None and number not in claim.numbers}
    quoting = [number for number, snapshot in others.items() if is_quoted(bare, snapshot)]
    found: list[Evidence] = []
    for number in dict.fromkeys((*quoting, *others)):
        found += check_claim(set_citations(bare, [number]), {number: others[number]}).evidence
        if not claim.evidence and found[-1].verdict is Verdict.FOUND and found[-1].fit >= 1:
            break
    return sorted(found, key=lambda e: (e.verdict is not Verdict.FOUND, -e.fit, -e.presence, e.number))


def _choose_source(claim: Claim, others: Sequence[Evidence]) -> int | None:
    """The source that supports a sentence whose own do not. Of several, a sentence that names none takes the best; one that
    names another is not ours to guess about. Copies of a page count once."""
    containing = [e for e in others if e.verdict is Verdict.FOUND]
    if not containing or (claim.evidence and len({e.digest for e in containing}) > 1):
        return None
    return containing[0].number


def _with_mark(body: str) -> str:
    head = body.rstrip().removesuffix("|").rstrip() if body.rstrip().endswith("|") else body.rstrip()
    return head + MARK + body[len(head) :]


def _line_end(text: str) -> str:
    return text[len(text.rstrip("\n")) :]
