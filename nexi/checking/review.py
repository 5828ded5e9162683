"""What a check makes of the sentences of a text: verdicts put on claims, and sentences put in place of others.

Above are the checks of an answer and of a document, below are the rules and the judge. A mark stands beside the text and never
in it: a claim carries its place, its verdict and a reason that says what was done. Only what a judge rejected is changed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from math import log

from msgspec.structs import replace

from nexi.checking.evidence import EvidencePassage, list_terms
from nexi.checking.judge import Case, Judge, Judgement, Judging
from nexi.checking.pages import Pages, Snapshot
from nexi.checking.sentences import without_markers
from nexi.notices import Notice, join_cause, join_causes
from nexi.text.blocks import list_cells, parse_blocks
from nexi.types import Claim, Evidence, Proof, Verdict

MAX_JUDGED = 400  # sentences of one text
PASSING = (Verdict.FOUND, Verdict.SUPPORTED)
SUPPORTS = Notice("judge.supports", "the judge finds it in this passage")
REJECTED = Notice("judge.rejects", "nothing in the passages shown says this")
_MEANINGS = {
    "supported": (Verdict.SUPPORTED, SUPPORTS),
    "contradicted": (Verdict.CONTRADICTED, Notice("judge.denies", "a passage says otherwise")),
    "not_supported": (Verdict.NOT_FOUND, REJECTED),
}
STATES_NOTHING = Notice("rules.no_claim", "it states nothing")
MAX_GAP_REASONS = 2
MAX_SPAN_SENTENCES = 4  # of a passage that a reader is shown
MIN_SPAN_SHARE = 0.07  # of the words of a sentence that one more sentence of its span must bring

_WORD = re.compile(r"\w")
_OPENING = re.compile(r"\s*(?:>\s?)*(?:[-*+•]\s+|\d{1,3}[.)]\s+)?")
_BLANKS = " \t"
_SILENT_LINE = re.compile(r"[ \t]*(?:[-*+•]\s+|\d{1,3}[.)]\s+)?(?:#{1,6}\s[^\n]*|(?:!?\[[^\]\n]*\]\([^()\s]*\)[\s|,;·]*)+)\s*")


def find_failing(claims: Iterable[Claim]) -> list[Claim]:
    """The claims that are neither found nor supported."""
    return [claim for claim in Proof(tuple(claims)).checked if claim.verdict not in PASSING]


def is_rejected(claim: Claim) -> bool:
    """Whether a judge found no support for a sentence."""
    return bool(claim.judge) and claim.verdict in (Verdict.NOT_FOUND, Verdict.CONTRADICTED)


def soften_claims(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """What rules did not find is not confirmed: they see words, and a true sentence may have others than its page."""
    reasons = {True: Notice("rules.apart", "its words do not stand together in one passage"), False: STATES_NOTHING}
    return tuple(
        replace(c, verdict=Verdict.NOT_CONFIRMED, reason=reasons[c.needs_citation or bool(c.evidence)])
        if c.verdict is Verdict.NOT_FOUND and not c.judge
        else c
        for c in claims
    )


def build_cases(claims: Sequence[Claim], question: str = "", answer: str = "") -> list[Case]:
    """The sentences that state something, as a judge gets them: a cell of a table in the answer with the name of its column."""
    rows = {block.start: block.heads for block in parse_blocks(answer) if block.kind == "row"} if "|" in answer else {}
    cases = []
    before = question
    for claim in claims:
        text, names = without_markers(claim.text), rows.get(claim.start, ())
        if names and len(names) == len(cells := list_cells(claim.text)):
            named_cells = zip(names, map(without_markers, cells), strict=True)
            text = " | ".join(f"{name}: {cell}" if name else cell for name, cell in named_cells if cell)
        if claim in Proof((claim,)).checked:
            hint = claim.reason if claim.verdict is Verdict.CONTRADICTED else ""
            cases.append(Case(text, claim.numbers, before, hint))
        before = text
    return cases


async def judge_claims(
    claims: Sequence[Claim], question: str, pages: Pages, judge: Judge, answer: str = "", *, deadline: float | None = None
) -> tuple[tuple[Claim, ...], Judging]:
    """The claims with the verdicts of a judge, and what it said of each that states something."""
    cases = build_cases(claims, question, answer)
    judging = await judge.judge(cases[:MAX_JUDGED], pages, question, deadline=deadline)
    beyond = Judgement(reason=f"only {MAX_JUDGED} sentences of a text are judged")
    judging = replace(judging, judgements=(*judging.judgements, *[beyond] * (len(cases) - len(judging.judgements))))
    judgements = iter(judging.judgements)  # one for each claim that states something
    name = judging.judge.name if judging.judge else judge.name

    def apply_judging() -> tuple[Claim, ...]:
        return tuple(_apply_judgement(c, next(judgements), pages, name) if Proof((c,)).checked else c for c in claims)

    return await asyncio.to_thread(apply_judging), judging


def _apply_judgement(claim: Claim, judgement: Judgement, pages: Pages, judge: str) -> Claim:
    if judgement.finding == "nothing":
        neutral = Verdict.NOT_CONFIRMED  # whatever the rules made of its words
        return replace(claim, verdict=neutral, needs_citation=False, reason=STATES_NOTHING, evidence=(), judge=judge)
    if not judgement.finding:
        silence = Notice("judge.silent", "not judged: {reason}", reason=judgement.reason)
        return replace(claim, reason=silence) if judgement.reason else claim
    verdict, meaning = _MEANINGS[judgement.finding]
    reason: str = meaning
    if judgement.reason and verdict is not Verdict.SUPPORTED:
        reason = join_cause(reason, judgement.reason)
    by_number: dict[int, Evidence] = {}
    for number in dict.fromkeys(passage.page for passage in judgement.passages):
        page = pages.get(number)
        if page is None:
            continue
        start, end = _narrow_span(claim.text, [p for p in judgement.passages if p.page == number], page)
        fit = 1.0 if verdict is Verdict.SUPPORTED else 0.0
        by_number[number] = Evidence(number, page.url, page.digest, verdict, 1.0, fit, start, end, page.text[start:end], reason)
    # a page that the judge did not name supports nothing, whatever words it shares
    other_page = Notice("judge.other_page", "the judge names another page") if verdict is Verdict.SUPPORTED else REJECTED
    rest = (
        e
        if e.verdict is Verdict.UNCHECKED
        else replace(e, verdict=Verdict.NOT_FOUND, fit=0.0, reason=other_page, missing=(), other="")
        for e in claim.evidence
        if e.number not in by_number
    )
    own = [by_number[e.number] for e in claim.evidence if e.number in by_number]
    evidence = (*own, *(e for n, e in by_number.items() if n not in claim.numbers), *rest)
    return replace(claim, verdict=verdict, reason=reason, evidence=evidence, judge=judge)


def _narrow_span(sentence: str, passages: Sequence[EvidencePassage], page: Snapshot) -> tuple[int, int]:
    """The few sentences of these passages that say most of a sentence, as offsets into the stored text."""
    # Rare words count for more, and one more sentence must bring its share. A heading or a line of links says nothing.
    terms = [term for term in list_terms(sentence) if term in page.places]
    weights = {term: log(1 + len(page.bounds) / len(page.places[term])) for term in terms}
    price = MIN_SPAN_SHARE * sum(weights.values())
    best, place = -1.0, (passages[0].start, passages[0].end)
    for passage in passages:
        places = [at for at in range(len(page.bounds)) if passage.start <= page.stored_between(at, at)[0] < passage.end]
        for n, first in enumerate(places):
            span_terms: set[str] = set()
            for more, last in enumerate(places[n : n + MAX_SPAN_SENTENCES]):
                start, _ = page.stored_between(last, last)
                if not _SILENT_LINE.match(page.text, page.text.rfind("\n", 0, start) + 1):
                    span_terms |= weights.keys() & set(list_terms(page.words_between(last, last)))
                score = sum(weights[term] for term in span_terms) - more * price
                if score > best:
                    best, place = score, page.stored_between(first, last)
    return place


def describe_gap(judgements: Sequence[Judgement]) -> str:
    """Why sentences were not judged, in one sentence; "" where every one was."""
    gaps = [judgement for judgement in judgements if not judgement.finding]
    reasons = list(dict.fromkeys(gap.reason for gap in gaps if gap.reason))
    if not reasons:
        return ""
    causes, total = join_causes(reasons[:MAX_GAP_REASONS]), len(judgements)
    if len(gaps) == total:
        return Notice("judge.gap", "The sentences were not judged: {reason}", reason=causes)
    return Notice("judge.gap_of", "{n} of {m} sentences were not judged: {reason}", n=len(gaps), m=total, reason=causes)


def edit_text(text: str, claims: Sequence[Claim], changes: Mapping[int, str]) -> tuple[str, tuple[Claim, ...]]:
    """The text with other sentences in place of these claims, "" for none; and the claims that stand, where they now stand."""
    # What opens a line stays; a line, row or item without a word left goes.
    out, position = "", 0
    standing: list[Claim] = []
    for claim in claims:
        out += text[position : claim.start]
        position = claim.end
        sentence = changes.get(claim.index)
        if sentence == "":
            line_start = out.rfind("\n") + 1
            line_end = text.find("\n", position)
            line_end = len(text) if line_end < 0 else line_end
            if not _WORD.search(out[line_start:]) and not _WORD.search(text[position:line_end]):
                out, position = out[:line_start], min(len(text), line_end + 1)  # nothing else is in its line
            else:
                rest = text[position:]
                position += len(rest) - len(rest.lstrip(_BLANKS))
            continue
        body = claim.text if sentence is None else find_opening(claim.text) + sentence
        standing.append(replace(claim, text=body, start=len(out), end=len(out) + len(body)))
        out += body
    out += text[position:]
    lead = len(out) - len(out.lstrip())
    moved_claims = (replace(claim, start=claim.start - lead, end=claim.end - lead) for claim in standing)
    return out.strip(), tuple(moved_claims)


def find_opening(sentence: str) -> str:
    """The bullet, number or quotation mark of a line; a row of a table is one whole."""
    match = _OPENING.match(sentence)
    return match[0] if match else ""
