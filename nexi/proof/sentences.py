"""The sentences of an answer, the numbers each of them cites, and whether it needs to cite any.

Below `verdicts`, above `citations` and `language`. Code blocks, rules, headings and an answer's own list of sources claim
nothing and are not here; a table row is a sentence, and so is a list item. Offsets are into the text as given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, zip_longest

from msgspec import Struct

from nexi.answers.citations import is_row, normalise_markers
from nexi.proof.facts import read
from nexi.proof.terms import WORD, terms
from nexi.text.sentences import sentence_bounds

LONGEST = 4_000
FEWEST = 2  # content words below which nothing is claimed

_NUMBER = r"[1-9][0-9]{0,2}"
_LINK = r"(?:\([^()\s]{0,500}\))?"
MARKERS = re.compile(
    rf"\[\[{_NUMBER}\]\]{_LINK}|【{_NUMBER}(?![0-9])[^】\n]{{0,80}}】|\[{_NUMBER}†[^\]\n]{{0,80}}\]"
    rf"|\[\^?{_NUMBER}(?:[ \t]*[,;][ \t]*\^?{_NUMBER})*\]{_LINK}"
)
_MARKERS_FIRST = re.compile(rf"(?:[ \t]*(?:{MARKERS.pattern})[ \t]*[.,;]?)+[ \t]*")
_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n]{1,500}?(?<!`)\1(?!`)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_RULE = re.compile(r"\s{0,3}(?:[-*_=]{3,}|\|?[\s:|+-]*-{2,}[\s:|+-]*\|?)\s*$")
_OPENING = re.compile(r"\s*(?:>\s?)*(?:[-*+•]\s+|\d{1,3}[.)]\s+|\|\s*)?")
_ALONE = re.compile(r"\s*(?:>\s?)*(?:[-*+•]\s|\d{1,3}[.)]\s|\|)")
_DEFINITION = re.compile(rf"\s{{0,3}}\[\^?{_NUMBER}\]:|\s{{0,3}}(?:[-*+•]\s+)?\[{_NUMBER}\]\s.{{0,300}}https?://\S+\s*$")
_SOURCES = re.compile(
    r"\s{0,3}(?:\*\*|__)?(?:sources?|references?|citations?|bibliography|works cited)\s*[:*_]*\s*$", re.IGNORECASE
)
_LABEL = re.compile(r"\s*(?:\*\*|__)[^*_\n]{1,120}(?:\*\*|__)\s*:?\s*$")
_THINGS = r"(?:sources?|pages?|search results?|results?|evidence|information|answer|list|summary|table|passages?|documents?)"
_SAY_NOTHING = (
    r"(?:do(?:es)? not|did not|don't|doesn't|didn't|says? nothing|was found|were found|is available|was available"
    r"|could be found"
    r"|mentions?|below|above|covers|gives? no|contains? no|disagree)"
)
_ABOUT_ITSELF = re.compile(
    r"^(?:(?:here|below|above)\s(?:is|are|follows)|(?:in|to) (?:summary|conclusion|short|sum|brief|recap)[,:]?\s*$"
    r"|let me\b|let's\b"
    r"|i\s(?:could|can|did|do|was|am|have|will|would|cannot|couldn't|can't|didn't)\b"
    r"|i\s(?:found|hope|think|believe|searched|recommend|suggest)\b"
    r"|i['’](?:m|ve|ll|d)\b|we (?:could not|couldn't|did not|cannot|found no|will)\b"
    r"|(?:the|these|this|none of the|no|available|provided|cited|my|all)\s"
    rf"(?:\w+\s){{0,3}}?{_THINGS}\s(?:\w+\s){{0,2}}?{_SAY_NOTHING}"
    r"|(?:please|feel free|hope this|for more|see also|note that this answer|as an ai)\b"
    rf"|there (?:is|was|were|are) no (?:\w+ ){{0,2}}(?:{_THINGS}|mention|data)\b"
    r"|unfortunately,? (?:i|the (?:sources|pages|results))\b|sources? differ)",
    re.IGNORECASE,
)
_SELF_WORDS = "source|article|page|report|document|text|website|entry|author|documentation"
_SELF = rf"(?:the|this|that|these|one|another) (?:\w+ )?(?:{_SELF_WORDS})s?"
_ATTRIBUTION = re.compile(
    rf"^(?:according to {_SELF},\s+"
    rf"|{_SELF} (?:also )?(?:states?|says?|notes?|reports?|explains?|mentions?|adds?|describes?) that\s+"
    r"|it is (?:also )?(?:reported|stated|said|noted|known|written) that\s+"
    rf"|as {_SELF} (?:puts it|notes|states|says|reports|explains),\s+"
    r"|(?:in (?:summary|short|brief|conclusion|addition)|overall|notably|additionally|furthermore|moreover|however|also)"
    r",\s+|finally,\s+)",
    re.IGNORECASE,
)
_LEADS_IN = re.compile(r"[:：]\s*$")
_QUESTION = re.compile(r"[?？؟][\"'”’»)\]]*\s*$")


class Sentence(Struct, frozen=True):
    """A sentence of an answer: as written, where, without its markers, what it cites, and whether it claims something."""

    text: str
    start: int
    end: int
    plain: str
    numbers: tuple[int, ...]
    claims: bool
    reason: str = ""


def read_answer(text: str) -> list[Sentence]:
    """The sentences of an answer in order; markers right behind a full stop belong to the sentence before."""
    found: list[Sentence] = []
    for start, end in _blocks(text):
        found += [_sentence(text, first, last) for first, last in _cut(text, start, end)]
    return found


def numbers_of(text: str) -> tuple[int, ...]:
    """The numbers a text cites outside code, in the order of their first mention."""
    bare = _INLINE_CODE.sub(" ", text)
    marks = (m[0] for m in MARKERS.finditer(bare))
    return tuple(dict.fromkeys(int(n) for mark in marks for n in re.findall(r"\d+", normalise_markers(mark).split("(")[0])))


def without_markers(text: str) -> str:
    """What a sentence claims: without markers outside code, list marks, emphasis and a mention of the source itself."""
    spans = [m.span() for m in _INLINE_CODE.finditer(text)]
    cut = MARKERS.sub(lambda m: m[0] if any(a <= m.start() < b for a, b in spans) else " ", text)
    opening = _OPENING.match(cut)
    cut = cut[opening.end() :] if opening else cut
    cut = re.sub(r"\*\*|__|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])", "", cut).strip(" \t\n|")
    cut = _ATTRIBUTION.sub("", re.sub(r"[ \t]{2,}", " ", cut), count=1)
    return re.sub(r"\s+([.,;:!?。，])(?=\s|$)", r"\1", cut)


def needs_citation(text: str) -> tuple[bool, str]:
    """Whether a sentence claims something about the world, and why not."""
    bare = without_markers(text).strip()
    if _QUESTION.search(bare):
        return False, "a question"
    if _ABOUT_ITSELF.match(bare):
        return False, "speaks of the answer itself"
    if not _LEADS_IN.search(bare) and _says_enough(bare):
        return True, ""
    reading = read(bare[:LONGEST])
    content = sum(bool(w.terms) for w in reading.words)
    if _LEADS_IN.search(bare) and not reading.numbers and not reading.dates:
        return False, "leads in what follows"
    if content < FEWEST and not reading.numbers and not reading.dates:
        return False, "says too little to be a claim"
    return True, ""


def _says_enough(text: str) -> bool:
    said = (word for word in WORD.finditer(text) if not word[0][0].isdecimal() and terms(word[0]))
    return len(list(islice(said, FEWEST))) == FEWEST


def _sentence(text: str, start: int, end: int) -> Sentence:
    written = text[start:end]
    claims, reason = needs_citation(written)
    return Sentence(written, start, end, without_markers(written), numbers_of(written), claims, reason)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Stretches of prose: paragraphs, items and rows; code, headings and the list of sources are left out."""
    fence, held = "", -1
    lines = list(_LINE.finditer(text))
    for line, after in zip_longest(lines, lines[1:]):
        start = line.start()
        mark = _FENCE.match(line[0])
        heads = after is not None and is_head_of_table(line[0], after[0])
        silent = bool(mark or fence or heads or not line[0].strip() or _is_silent(line[0]))
        if held >= 0 and (silent or _ALONE.match(line[0])):
            yield held, start
            held = -1
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        if not fence and _SOURCES.match(_HEADING.sub("", line[0], count=1)):
            return
        if not silent:
            held = start if held < 0 else held
    if held >= 0:
        yield held, len(text)


def is_head_of_table(line: str, after: str) -> bool:
    """Whether a line names the columns of a table, as a heading names a section: the line after it is a rule of cells.

    One that cites a source says something.
    """
    return is_row(line) and is_row(after) and bool(_RULE.match(after)) and not numbers_of(line)


def _is_silent(line: str) -> bool:
    return bool(_HEADING.match(line) or _RULE.match(line) or _LABEL.match(line) or _DEFINITION.match(line))


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Sentences of one block, each with the markers that follow it; a row of a table is one."""
    body = text[start:end]
    if is_row(body):
        yield start, start + len(body.rstrip())
        return
    bounds = list(_with_markers(body, _MASKED.sub(_mask, body)))
    for first, last in bounds:
        yield start + first, start + last


_MASKED = re.compile(rf"{_INLINE_CODE.pattern}|{MARKERS.pattern}")


def _mask(match: re.Match[str]) -> str:
    """Markers and code have no sentence ends: they are cut around, not through."""
    return re.sub(r"[.!?]", "_", match[0])


def _with_markers(body: str, masked: str) -> Iterator[tuple[int, int]]:
    held: tuple[int, int] | None = None
    for first, last in _bounds(masked):
        lead = _MARKERS_FIRST.match(body, first, last)
        if held and lead:
            held = held[0], first + len(body[first : lead.end()].rstrip())
            first = lead.end()
        if first >= last:
            continue
        if held:
            yield held
        held = first, last
    if held:
        yield held


def _bounds(masked: str) -> Iterator[tuple[int, int]]:
    """Sentence ends also where a marker stands between the full stop and the next capital, or without any blank."""
    start = 0
    for match in _GLUED.finditer(masked):
        yield from ((start + a, start + b) for a, b in sentence_bounds(masked[start : match.end()], LONGEST))
        start = match.end()
    yield from ((start + a, start + b) for a, b in sentence_bounds(masked[start:], LONGEST))


_GLUED = re.compile(rf"[.!?。！？][\"'”’)]*(?=(?:{MARKERS.pattern}))")
