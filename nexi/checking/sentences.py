"""An answer cut into claims: its sentences, the numbers each of them cites, and whether it needs to cite any.

Below `rules`, above `pages`. Code blocks, rules, headings and an answer's own list of sources claim nothing and are not here;
a table row is a sentence, and so is a list item. Offsets are into the text as given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise

from msgspec import Struct

from nexi.answers.citations import INLINE_CODE, MARKERS, is_row, outside_code
from nexi.checking.lexicon import ABOUT_ITSELF, ATTRIBUTIONS, AUXILIARIES, FRAME_WORDS
from nexi.checking.pages import LABEL, ParsedText, cut_block, parse_text
from nexi.text.blocks import parse_blocks
from nexi.text.sentences import sentence_bounds
from nexi.text.stems import IRREGULAR, WORD, word_terms
from nexi.text.words import STOP

MAX_SENTENCE_CHARS = 4_000
MIN_CONTENT_WORDS = 2  # of a clause that can be looked for by itself
MAX_CLAUSES = 6  # of one sentence
QUESTION = "a question"  # why a sentence claims nothing

MARKER_GROUP = re.compile(rf"(?:(?:{MARKERS.pattern})[ \t]*)+")
_MARKERS_FIRST = re.compile(rf"(?:[ \t]*(?:{MARKERS.pattern})[ \t]*[.,;]?)+[ \t]*")
JOINING_WORDS = frozenset(("and", "or", "of", "for", "vs", "versus"))  # that join nouns, as in "tools use and design"
_OPENING = re.compile(r"\s*(?:>\s?)*(?:[-*+•]\s+|\d{1,3}[.)]\s+|\|\s*)?")
SOURCES = re.compile(
    r"(?im)^\s{0,3}(?:#{1,6}\s+)?(?:\*\*|__)?(?:sources?|references?|citations?|bibliography|works cited)\s*[:*_]*\s*$"
)
_EMPHASIS = re.compile(r"\*\*|__|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])")
_ABOUT_ITSELF = re.compile(rf"^(?:{ABOUT_ITSELF})", re.IGNORECASE)
_ATTRIBUTION = re.compile(rf"^(?:{ATTRIBUTIONS})", re.IGNORECASE)
_BOLD_LEAD = re.compile(rf"{_OPENING.pattern}(?:\*\*|__)[^*_\n]{{1,200}}(?:\*\*|__)[ \t]*")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_LEADS_IN = re.compile(r"[:：]\s*$")
_QUESTION = re.compile(r"[?？؟][\"'”’»)\]]*\s*$")
_ASKS = re.compile(r"(?:what|who|whom|whose|when|where|which|why|how)\b", re.IGNORECASE)
_MASKED = re.compile(rf"{INLINE_CODE.pattern}|{MARKERS.pattern}")
_GLUED = re.compile(rf"[.!?。！？][\"'”’)]*(?=(?:{MARKERS.pattern}))")
_JOINT = re.compile(
    r"\s*[;；。]\s*|\s+[-–—]+\s+|\.\s+(?=[A-Z])|，(?=而|但|并|同时)|,\s+(?=[A-Za-z]+ing\b)"
    r"|,?\s+(?:and|but|while|whereas|although|though|which|who|where|when|with|yet|so|including|as well as|and also)\s+"
)
_STRONG_JOINT = re.compile(r"\s*[;；。.，]\s*|\s+[-–—]+\s+|,?\s+(?:but|while|whereas|although|though)\s+|,\s+and\s+")
_DISPUTE = re.compile(
    r"\W*(?:Older s|S)ources (?:for (?:other times|a later time) )?(?:disagree|differ)(?: on (?P<subject>[^:]+))?: "
)
_NOTES = re.compile(r"^\W*\((?:\d+ independent|draft|superseded|archived|upcoming|\d{4}-\d\d-\d\d|, )+\)\W*")
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
    sentences: list[Sentence] = []
    for block in parse_blocks(text):
        if block.kind == "code" or (block.kind == "head" and not numbers_of(text[block.start : block.end])):
            continue  # a head that cites a source says something
        for start, end in cut_block(text, block):
            sources = SOURCES.search(text, start, end)
            for first, last in _cut_sentences(text, start, sources.start() if sources else end):
                sentences.append(read_sentence(text[first:last], first, question))
            if sources:
                return sentences
    return sentences


def read_sentence(text: str, start: int = 0, question: str = "") -> Sentence:
    is_claim, reason = needs_citation(text, question)
    return Sentence(text, start, start + len(text), without_markers(text), numbers_of(text), is_claim, reason)


def numbers_of(text: str) -> tuple[int, ...]:
    """The numbers a text cites outside code, in the order of their first mention."""
    marks = (next(filter(None, match.groups())) for match in MARKERS.finditer(INLINE_CODE.sub(" ", text)))
    return tuple(dict.fromkeys(int(number) for mark in marks for number in re.findall(r"\d+", mark)))


def without_markers(text: str) -> str:
    """What a sentence claims: without markers outside code, list marks, emphasis and a mention of the source itself."""
    claim = outside_code(text, lambda part: MARKERS.sub(" ", part))
    opening = _OPENING.match(claim)
    claim = _EMPHASIS.sub("", claim[opening.end() :] if opening else claim).strip(" \t\n|")
    claim = _ATTRIBUTION.sub("", re.sub(r"[ \t]{2,}", " ", claim), count=1)
    return re.sub(r"\s+([.,;:!?。，])(?=\s|$)", r"\1", claim)


def needs_citation(text: str, question: str = "") -> tuple[bool, str]:
    """Whether a sentence states something about the world, as all that cites a page does, and why not."""
    # Titles, lead-ins, questions, words about the answer and the reader's own question state nothing.
    bare = without_markers(_HEADING.sub("", text, count=1)).strip()
    sentence, question_text = parse_text(bare[:MAX_SENTENCE_CHARS]), parse_text(question[:MAX_SENTENCE_CHARS])
    own = set(sentence.terms) - FRAME_WORDS
    if not own and not sentence.firm_values:
        return False, "speaks of the answer itself" if sentence.terms else "says too little to be a claim"
    if numbers_of(text):
        return True, ""
    is_title = _HEADING.match(text) or LABEL.match(text)  # the latter in bold type, and alone in its line
    if _QUESTION.search(bare) or (is_title and _ASKS.match(bare)):
        return False, QUESTION
    if is_title:
        return False, "a heading"
    if _LEADS_IN.search(bare):
        return False, "leads in what follows"
    values, question_values = ({v.text.strip() for v in parsed_text.firm_values} for parsed_text in (sentence, question_text))
    if question and not set(sentence.terms) - set(question_text.terms) and values <= question_values:
        return False, "the question itself"
    new_names = {word.term for name in sentence.names for word in name} - FRAME_WORDS - set(question_text.terms)
    if _ABOUT_ITSELF.match(bare) and values <= question_values and not new_names:
        return False, "speaks of the answer itself"
    return True, ""


def has_verb(heading: ParsedText) -> bool:
    """Whether a heading reads like a sentence: an auxiliary, a past form, or a plural that does something ("trams run on")."""
    if any(w.flat in AUXILIARIES or (w.flat.endswith("ed") and not w.is_name) or w.flat in IRREGULAR for w in heading.words):
        return True
    flats = [word.flat for word in heading.words]
    return any(
        who.endswith("s") and not does.endswith(("s", "ing")) and not {who, does} & STOP and small in STOP - JOINING_WORDS
        for who, does, small in zip(flats, flats[1:], flats[2:], strict=False)
    )


def _cut_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Sentences of one block, each with the markers that follow it; a row of a table is one."""
    body = text[start:end]
    if is_row(body):
        yield start, start + len(body.rstrip())
        return
    mask = _MASKED.sub(lambda m: re.sub(r"[.!?]", "_", m[0]), body)  # markers and code have no sentence ends
    current: tuple[int, int] | None = None
    # sentences end also where a marker stands between the full stop and the next capital, or without any blank
    cuts = pairwise([0, *(match.end() for match in _GLUED.finditer(mask)), len(mask)])
    bounds = ((a + first, a + last) for a, b in cuts for first, last in sentence_bounds(mask[a:b], MAX_SENTENCE_CHARS))
    for first, last in bounds:
        lead = _MARKERS_FIRST.match(body, first, last)
        if current and not lead and _BOLD_LEAD.fullmatch(body, *current):
            current = current[0], last  # the words in bold that open an item are no sentence of their own
            continue
        if current and lead:
            current = current[0], first + len(body[first : lead.end()].rstrip())
            first = lead.end()
        if first < last:
            yield from [(start + current[0], start + current[1])] if current else []
            current = first, last
    yield from [(start + current[0], start + current[1])] if current else []


def cut_at_markers(text: str) -> list[Clause]:
    """The clauses before each group of markers; what follows the last group belongs to the sentence's sources."""
    # A sentence of `Conflict.sentence` gives a clause for each value, with the words that the values are about.
    dispute = _DISPUTE.match(text)
    subject = re.sub(r"[“”…]", " ", dispute["subject"] or "") if dispute else ""
    clauses: list[tuple[list[str], list[int]]] = []
    opening = ""  # a word before the first clause, too little for one
    start = dispute.end() if dispute else 0
    for group in MARKER_GROUP.finditer(text, start):
        words = _CONJUNCTION.sub("", _NOTES.sub("", without_markers(text[start : group.start()])).strip(" ,;.“”"))
        start = group.end()
        if _says_something(words) or dispute or (not clauses and _says_something(f"{opening} {words}")):
            clauses.append(([subject, "" if clauses else opening, words], []))
        elif clauses:
            clauses[-1][0].append(words)
        else:
            opening = opening or (words if _says_something(words, 1) else "")
            continue
        clauses[-1][1].extend(numbers_of(group[0]))
    rest = _CONJUNCTION.sub("", without_markers(text[start:]).strip(" ,;."))
    complete = [Clause(" ".join(filter(None, words)), tuple(numbers)) for words, numbers in clauses]
    return [*complete, Clause(rest)] if complete and not dispute and _says_something(rest) else complete


def cut_at_joints(text: str) -> Iterator[list[Clause]]:
    """Ways to cut a sentence, the surest first: at every strong joint, then in two at one joint."""
    joints = list(_JOINT.finditer(text))
    strong = [joint for joint in joints if _STRONG_JOINT.fullmatch(joint[0])]
    ways = [strong[: MAX_CLAUSES - 1]] if len(strong) > 1 else []
    ways += [[joint] for joint in sorted(joints, key=lambda joint: joint not in strong)[:MAX_CLAUSES]]
    for way in ways:
        cuts = [(0, 0), *(joint.span() for joint in way), (len(text), len(text))]
        pieces = [text[one[1] : other[0]].strip(" ,;") for one, other in pairwise(cuts)]
        if all(map(_says_something, pieces)):
            yield [Clause(piece) for piece in pieces]


def _says_something(text: str, enough: int = MIN_CONTENT_WORDS) -> bool:
    """Whether a clause has content words enough, counted no further than that."""
    terms = (term for word in WORD.finditer(text) for term in word_terms(word[0]))
    return len(list(islice(terms, enough))) == enough
