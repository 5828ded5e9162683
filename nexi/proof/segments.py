"""An answer cut into claims: its sentences, the numbers each of them cites, and whether it needs to cite any.

Below `verdict`, above `citations` and `language`. Code blocks, rules, headings and an answer's own list of sources claim
nothing and are not here; a table row is a sentence, and so is a list item. Offsets are into the text as given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, zip_longest

from msgspec import Struct

from nexi.answers.citations import is_row, normalise_markers
from nexi.proof.lexicon import ABOUT_ITSELF, ATTRIBUTIONS, AUXILIARIES, FRAME_WORDS
from nexi.proof.parsed import ParsedText, Word, parse_text
from nexi.text.sentences import sentence_bounds
from nexi.text.stems import IRREGULAR
from nexi.text.wordforms import WORD, word_terms

MAX_SENTENCE_CHARS = 4_000
MIN_CONTENT_WORDS = 2  # of a clause that can be looked for by itself
MAX_FRAME_WORDS = 2  # of its own in a sentence about the answer or in a question, which then claims nothing
MAX_TITLE_WORDS = 3  # the same in a heading or a lead-in
MAX_CLAUSES = 6  # of one sentence

_NUMBER = r"[1-9][0-9]{0,2}"
_LINK = r"(?:\([^()\s]{0,500}\))?"
MARKERS = re.compile(
    rf"\[\[{_NUMBER}\]\]{_LINK}|【{_NUMBER}(?![0-9])[^】\n]{{0,80}}】|\[{_NUMBER}†[^\]\n]{{0,80}}\]"
    rf"|\[\^?{_NUMBER}(?:[ \t]*[,;][ \t]*\^?{_NUMBER})*\]{_LINK}"
)
MARKER_GROUP = re.compile(rf"(?:(?:{MARKERS.pattern})[ \t]*)+")
_MARKERS_FIRST = re.compile(rf"(?:[ \t]*(?:{MARKERS.pattern})[ \t]*[.,;]?)+[ \t]*")
_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n]{1,500}?(?<!`)\1(?!`)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_RULE = re.compile(r"\s{0,3}(?:[-*_=]{3,}|\|?[\s:|+-]*-{2,}[\s:|+-]*\|?)\s*$")
_OPENING = re.compile(r"\s*(?:>\s?)*(?:[-*+•]\s+|\d{1,3}[.)]\s+|\|\s*)?")
_ALONE = re.compile(r"\s*(?:>\s?)*(?:[-*+•]\s|\d{1,3}[.)]\s|\|)")
_DEFINITION = re.compile(
    rf"\s{{0,3}}\[\^?{_NUMBER}\]:\s*<?(?:https?://\S+)?\s*$|\s{{0,3}}(?:[-*+•]\s+)?\[{_NUMBER}\]\s.{{0,300}}https?://\S+\s*$"
)
_SOURCES = re.compile(
    r"\s{0,3}(?:\*\*|__)?(?:sources?|references?|citations?|bibliography|works cited)\s*[:*_]*\s*$", re.IGNORECASE
)
_LABEL = re.compile(r"\s*(?:\*\*|__)[^*_\n]{1,120}(?:\*\*|__)\s*:?\s*$")
_EMPHASIS = re.compile(r"\*\*|__|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])")
_ABOUT_ITSELF = re.compile(rf"^(?:{'|'.join(ABOUT_ITSELF)})", re.IGNORECASE)
_ATTRIBUTION = re.compile(rf"^(?:{'|'.join(ATTRIBUTIONS)})", re.IGNORECASE)
_LEADS_IN = re.compile(r"[:：]\s*$")
_QUESTION = re.compile(r"[?？؟][\"'”’»)\]]*\s*$")
_ASKS = re.compile(r"(?:what|who|whom|whose|when|where|which|why|how)\b", re.IGNORECASE)
_MASKED = re.compile(rf"{_INLINE_CODE.pattern}|{MARKERS.pattern}")
_GLUED = re.compile(rf"[.!?。！？][\"'”’)]*(?=(?:{MARKERS.pattern}))")
_JOINT = re.compile(
    r"\s*[;；。]\s*|\s+[-–—]+\s+|\.\s+(?=[A-Z])|，(?=而|但|并|同时)|,\s+(?=[A-Za-z]+ing\b)"
    r"|,?\s+(?:and|but|while|whereas|although|though|which|who|where|when|with|yet|so|including|as well as|and also)\s+"
)
_STRONG_JOINT = re.compile(r"\s*[;；。.，]\s*|\s+[-–—]+\s+|,?\s+(?:but|while|whereas|although|though)\s+|,\s+and\s+")
_DISPUTE = re.compile(r"\W*Sources (?:disagree|differ)(?: on (?P<subject>[^:]+))?: ")
_COUNT = re.compile(r"^\W*\(\d+ independent\)\W*")
_CONJUNCTION = re.compile(r"(?:and|but|while|whereas|although|though|yet|so|whilst)\s+")


class Sentence(Struct, frozen=True):
    """A sentence of an answer: as written, where, without its markers, what it cites, and whether it claims something."""

    text: str
    start: int
    end: int
    plain: str
    numbers: tuple[int, ...]
    is_claim: bool
    reason: str = ""


class Clause(Struct, frozen=True):
    """A part of a sentence; `numbers` are its own sources, or none where the sentence's are meant."""

    text: str
    numbers: tuple[int, ...] = ()


def read_answer(text: str, question: str = "") -> list[Sentence]:
    """The sentences of an answer in order; markers right behind a full stop belong to the sentence before."""
    return [
        read_sentence(text[first:last], first, question)
        for start, end in _find_blocks(text)
        for first, last in _cut_sentences(text, start, end)
    ]


def read_sentence(text: str, start: int = 0, question: str = "") -> Sentence:
    is_claim, reason = needs_citation(text, question)
    return Sentence(text, start, start + len(text), without_markers(text), numbers_of(text), is_claim, reason)


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
    cut = _EMPHASIS.sub("", cut[opening.end() :] if opening else cut).strip(" \t\n|")
    cut = _ATTRIBUTION.sub("", re.sub(r"[ \t]{2,}", " ", cut), count=1)
    return re.sub(r"\s+([.,;:!?。，])(?=\s|$)", r"\1", cut)


def needs_citation(text: str, question: str = "") -> tuple[bool, str]:
    """Whether a sentence claims something about the world, and why not.

    Only what carries no name, number or date is excused: words about the answer itself, and the few words of a question, a
    lead-in or a heading. What these repeat of the reader's question is not theirs.
    """
    bare = without_markers(_HEADING.sub("", text, count=1)).strip()
    parsed = parse_text(bare[:MAX_SENTENCE_CHARS])
    own = {term for term in parsed.terms if term not in FRAME_WORDS}
    has_facts = bool(parsed.firm_values) or any(term in own for name in parsed.names for term in _terms_of(name))
    if not own and not has_facts:
        return False, "speaks of the answer itself" if parsed.terms else "says too little to be a claim"
    reason, most = _excuse(text, bare)
    if not reason:
        return True, ""
    asked = parse_text(question[:MAX_SENTENCE_CHARS])
    new = own.difference(asked.terms)
    new_values = {v.text.strip() for v in parsed.firm_values} - {v.text.strip() for v in asked.firm_values}
    new_names = any(term in new for name in parsed.names for term in _terms_of(name))
    states = bool(new_values) or new_names or len(new) > most or (most == MAX_TITLE_WORDS and has_facts and has_verb(parsed))
    return (True, "") if states else (False, reason)


def _excuse(text: str, bare: str) -> tuple[str, int]:
    """Why a sentence may claim nothing, and how many words of its own it may have then."""
    if _QUESTION.search(bare) or (is_title(text) and _ASKS.match(bare)):
        return "a question", MAX_FRAME_WORDS
    if _ABOUT_ITSELF.match(bare):
        return "speaks of the answer itself", MAX_FRAME_WORDS
    if _LEADS_IN.search(bare):
        return "leads in what follows", MAX_TITLE_WORDS
    return ("a heading", MAX_TITLE_WORDS) if is_title(text) else ("", 0)


def is_title(line: str) -> bool:
    """Whether a line is a heading, or a label in bold type that stands alone."""
    return bool(_HEADING.match(line) or _LABEL.match(line))


def leads_or_titles(text: str) -> bool:
    """Whether a line is a heading or a label, or leads in what follows."""
    return is_title(text) or bool(_LEADS_IN.search(without_markers(text).strip()))


def has_verb(parsed: ParsedText) -> bool:
    """Whether a heading reads like a sentence: an auxiliary, or a past form."""
    return any(w.flat in AUXILIARIES or (w.flat.endswith("ed") and not w.is_name) or w.flat in IRREGULAR for w in parsed.words)


def _terms_of(words: Sequence[Word]) -> Iterator[str]:
    return (word.term for word in words if word.term)


def _count_content(text: str) -> int:
    """The content words of a text, counted no further than is enough."""
    return len(list(islice((term for w in WORD.finditer(text) for term in word_terms(w[0])), MIN_CONTENT_WORDS)))


def _find_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Stretches of prose: paragraphs, items and rows; code, headings and the list of sources are left out."""
    fence, held = "", -1
    lines = list(_LINE.finditer(text))
    for line, after in zip_longest(lines, lines[1:]):
        start = line.start()
        mark = _FENCE.match(line[0])
        heads = after is not None and is_head_of_table(line[0], after[0])
        silent = bool(mark or fence or heads or not line[0].strip() or _is_silent(line[0]))
        alone = is_title(line[0]) or _ALONE.match(line[0])
        if held >= 0 and (silent or alone or is_title(text[held:start])):
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
    return bool(_RULE.match(line) or _DEFINITION.match(line))


def _cut_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Sentences of one block, each with the markers that follow it; a row of a table is one."""
    body = text[start:end]
    if is_row(body):
        yield start, start + len(body.rstrip())
        return
    masked = _MASKED.sub(lambda m: re.sub(r"[.!?]", "_", m[0]), body)  # markers and code have no sentence ends
    held: tuple[int, int] | None = None
    for first, last in _find_bounds(masked):
        lead = _MARKERS_FIRST.match(body, first, last)
        if held and lead:
            held = held[0], first + len(body[first : lead.end()].rstrip())
            first = lead.end()
        if first < last:
            yield from [(start + held[0], start + held[1])] if held else []
            held = first, last
    yield from [(start + held[0], start + held[1])] if held else []


def _find_bounds(masked: str) -> Iterator[tuple[int, int]]:
    """Sentence ends also where a marker stands between the full stop and the next capital, or without any blank."""
    cuts = [0, *(match.end() for match in _GLUED.finditer(masked)), len(masked)]
    for start, end in pairwise(cuts):
        yield from ((start + a, start + b) for a, b in sentence_bounds(masked[start:end], MAX_SENTENCE_CHARS))


def cut_at_markers(text: str) -> list[Clause]:
    """The clauses before each group of markers; what follows the last group belongs to the sentence's sources.

    A sentence of `Conflict.sentence` gives one clause for each value, with the words that the values are about.
    """
    dispute = _DISPUTE.match(text)
    subject = re.sub(r"[“”…]", " ", dispute["subject"] or "") if dispute else ""
    clauses: list[Clause] = []
    start = dispute.end() if dispute else 0
    for group in MARKER_GROUP.finditer(text, start):
        words = _CONJUNCTION.sub("", _COUNT.sub("", without_markers(text[start : group.start()])).strip(" ,;.“”"))
        if _says_something(words) or dispute:
            clauses.append(Clause(f"{subject} {words}".strip(), numbers_of(group[0])))
        elif clauses:
            clauses[-1] = Clause(f"{clauses[-1].text} {words}".strip(), (*clauses[-1].numbers, *numbers_of(group[0])))
        else:
            continue
        start = group.end()
    rest = _CONJUNCTION.sub("", without_markers(text[start:]).strip(" ,;."))
    return [*clauses, Clause(rest)] if clauses and not dispute and _says_something(rest) else clauses


def cut_at_joints(text: str) -> Iterator[list[Clause]]:
    """Ways to cut a sentence, the surest first: at every strong joint, then in two at one joint."""
    joints = list(_JOINT.finditer(text))
    strong = [joint for joint in joints if _STRONG_JOINT.fullmatch(joint[0])]
    ways = [strong[: MAX_CLAUSES - 1]] if len(strong) > 1 else []
    ways += [[joint] for joint in sorted(joints, key=lambda joint: joint not in strong)[:MAX_CLAUSES]]
    for way in ways:
        pieces = _cut_between(text, way)
        if all(map(_says_something, pieces)):
            yield [Clause(piece) for piece in pieces]


def _cut_between(text: str, joints: Sequence[re.Match[str]]) -> list[str]:
    cuts = [(0, 0), *(joint.span() for joint in joints), (len(text), len(text))]
    return [text[a[1] : b[0]].strip(" ,;") for a, b in pairwise(cuts)]


def _says_something(text: str) -> bool:
    return _count_content(text) == MIN_CONTENT_WORDS
