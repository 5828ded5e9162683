"""Where the pages that were read disagree about something the answer says.

Above sits `verify`, which shows it; below are `alignment`, `pages` and `origins`. In every page that a sentence of the answer
does not rest on, sentences that speak of the same thing are laid along it, and the values that meet are compared. Support is
counted by origin, so that a copy adds nothing. Which of the values is right is not judged here, and everything here would
rather say "not the same thing": different numbers in different sentences are the rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from nexi.proof.alignment import differ, has_negation, is_negation, match_values
from nexi.proof.lexicon import AUXILIARIES, OPPOSITES, PRONOUNS
from nexi.proof.origins import count_origins, group_origins
from nexi.proof.pages import Snapshot
from nexi.proof.parsed import ParsedText, parse_text
from nexi.proof.segments import without_markers
from nexi.proof.values import Value, list_dates
from nexi.text.wordforms import WORD, word_terms
from nexi.types import Claim, Conflict, ConflictValue, Verdict
from nexi.urls import is_web_url, parse

MAX_CONFLICTS, MAX_READINGS, MAX_CLAIMS = 3, 4, 60
MAX_NEAR = 12  # sentences of one page that are compared with one sentence of the answer
MAX_SENTENCE_CHARS = 600
MIN_SHARED = 3  # words
MIN_SHARED_WITHOUT_NAME = 5
SAME_SHARE = 0.75  # of the shorter sentence's words, found in the longer one or its page's title
MUCH_SHORTER = 0.7  # of the longer one's words: what it says beyond the shorter one, names included, is left aside
NEARLY_ALL = 0.85  # of both sentences' words, where a negation is the only difference
SUBJECT_WORDS = 8  # within these a sentence names its subject
TITLE_WORDS, SUBJECT_TERMS = 12, 4
WORDS_BEFORE, WORDS_AFTER = 8, 4  # of the answer's words around a value, to name what is disagreed on
QUOTE_CHARS = 240

_BETWEEN_ENDS = re.compile(r"\s*(?:-|/|to|and|or|until|through)\s*")  # 10 to 15, which are not compared one by one
_SITE = re.compile(r"\s+[-–—|·:»]+\s+")


class Sentence(Struct, frozen=True):
    """A sentence with what its page is about."""

    text: ParsedText
    about: frozenset[str]


class Statement(Struct, frozen=True):
    """What one source says: a value, or the whole sentence where it is about a negation."""

    number: int
    text: ParsedText
    value: Value | None = None

    def agrees_with(self, other: Statement) -> bool:
        if self.value is None or other.value is None:
            return has_negation(self.text) == has_negation(other.text)
        return not differ(self.value, other.value)

    @property
    def value_text(self) -> str:
        return self.value.text.strip() if self.value else _shorten(self.text.text)


def find_conflicts(
    question: str,
    claims: Sequence[Claim],
    snapshots: Mapping[int, Snapshot | None],
    titles: Mapping[int, str] = MappingProxyType({}),
) -> tuple[Conflict, ...]:
    """The disagreements among the pages that concern the answer to a question, a few at most."""
    pages = {number: page for number, page in snapshots.items() if page is not None}
    if len(pages) < 2:
        return ()
    asked = frozenset(parse_text(question).terms)
    about = {number: _subject_terms(page, titles.get(number, "")) for number, page in pages.items()}
    groups = [group for claim in claims[:MAX_CLAIMS] for group in _find_disagreements(claim, pages, about, asked)]
    if not groups:
        return ()
    concerned = {statement.number for group in groups for values in group for statement in values}
    hosts = {n: parse(pages[n].url).host if is_web_url(pages[n].url) else "" for n in sorted(concerned)}
    origins = group_origins({number: (host, pages[number].text) for number, host in hosts.items()})
    return tuple(dict.fromkeys(_make_conflict(group, origins) for group in groups))[:MAX_CONFLICTS]


Group = list[list[Statement]]  # the values that sources give for one thing, the answer's first


def _find_disagreements(
    claim: Claim, pages: Mapping[int, Snapshot], about: Mapping[int, frozenset[str]], asked: frozenset[str]
) -> Iterator[Group]:
    said = [e for e in claim.evidence if e.verdict is Verdict.FOUND or (e.verdict is Verdict.NOT_FOUND and e.span)]
    behind = [e.number for e in said if e.number in pages]
    sentence = parse_text(without_markers(claim.text))
    if not behind or len(claim.text) > MAX_SENTENCE_CHARS or sentence.text.endswith("?") or sentence.is_unspaced:
        return
    ours = Sentence(sentence, about[behind[0]] | asked)
    near = {
        number: [Sentence(text, about[number]) for text in _sentences_near(sentence, page)]
        for number, page in pages.items()
        if number not in behind
    }
    firm = [n for n in sentence.numbers if not n.is_weak and not n.is_ordinal]
    for value in [*sentence.dates, *firm, None]:
        group: Group = [[Statement(number, sentence, value) for number in behind]]
        for number, others in near.items():
            if statement := _find_statement(number, value, ours, others):
                _add(group, statement)
        if len(group) > 1:
            yield group


def _add(group: Group, statement: Statement) -> None:
    for values in group:
        if values[0].agrees_with(statement):
            return values.append(statement)
    return group.append([statement])


def _find_statement(number: int, value: Value | None, ours: Sentence, others: Sequence[Sentence]) -> Statement | None:
    """What one page says in a value's place; a page that says it both ways speaks of two things."""
    mine = Statement(number, ours.text, value)
    other: Statement | None = None
    for theirs in others:
        found = _find_value(number, value, ours, theirs) if value else _find_negation(number, ours, theirs)
        if found and found.agrees_with(mine):
            return found
        other = other or found
    return other


def _find_value(number: int, value: Value, ours: Sentence, theirs: Sentence) -> Statement | None:
    """The one value that meets ours in a sentence about the same thing at the same time."""
    if not _is_same_time(value, ours.text, theirs.text) or not _is_same_thing(ours, theirs):
        return None
    met = match_values(ours.text, theirs.text)
    there = [their for our, their in met if our is value]
    is_range = any(_are_ends(our, value, ours.text) or _are_ends(value, our, ours.text) for our, _ in met)
    return Statement(number, theirs.text, there[0]) if len(there) == 1 and not is_range else None


def _are_ends(first: Value, last: Value, text: ParsedText) -> bool:
    return first.end <= last.start and _BETWEEN_ENDS.fullmatch(text.text, first.end, last.start) is not None


def _find_negation(number: int, ours: Sentence, theirs: Sentence) -> Statement | None:
    """A sentence of nearly the same words and the same values, which may negate it."""
    one, two = ({w.term for w in s.text.words if w.term and not is_negation(w)} for s in (ours, theirs))
    if len(one & two) <= MIN_SHARED or len(one & two) < NEARLY_ALL * max(len(one), len(two)):
        return None
    met = match_values(ours.text, theirs.text)
    same = len(ours.text.values) == len(theirs.text.values) and not any(differ(*values) for values in met)
    return Statement(number, theirs.text) if same and _is_same_thing(ours, theirs) else None


def _is_same_time(value: Value, ours: ParsedText, theirs: ParsedText) -> bool:
    """A number holds for its time: two of different years are no disagreement. For a date, the numbers must agree."""
    if not list_dates([value]):
        few, many = sorted((list_dates(ours.values), list_dates(theirs.values)), key=len)
        return bool(few) == bool(many) and all(any(not differ(a, b) for b in many) for a in few)
    firm = [n for n in ours.numbers if not n.is_weak and not n.is_ordinal and not n.year]
    peers = {n.unit: [m for m in theirs.numbers if m.unit == n.unit and not m.year] for n in firm}
    return all(any(not differ(n, m) for m in peers[n.unit]) for n in firm if peers[n.unit])


def _is_same_thing(ours: Sentence, theirs: Sentence) -> bool:
    """Whether the words of two sentences, with what their pages are about, name the same thing; one of them may say more."""
    short, long = sorted((ours, theirs), key=lambda sentence: len(sentence.text.terms))
    if theirs.text.text.endswith("?") or not _ordinals(short.text) <= _ordinals(long.text):
        return False
    one, two = frozenset(short.text.terms), frozenset(long.text.terms)
    here, there = one | short.about, two | long.about
    if len(one & two) < MIN_SHARED or len(one & there) < SAME_SHARE * len(one):
        return False
    names, others = _name_terms(short.text), _name_terms(long.text)
    if not names <= there or not (others <= here or one <= two or len(one) < MUCH_SHORTER * len(two)):
        return False
    if not names & others and (len(one & two) < MIN_SHARED_WITHOUT_NAME or not _is_related(short.about, long.about)):
        return False
    if any((a, b) in OPPOSITES for a in one - two for b in two - one):
        return False
    return all(
        _names_subject(a.text) or _is_related(a.about, frozenset(b.text.terms) | b.about)
        for a, b in ((ours, theirs), (theirs, ours))
    )


def _ordinals(text: ParsedText) -> set[float]:
    """Which of a row of things a sentence speaks of: the 51st is another thing than the 61st."""
    return {number.values[0] for number in text.numbers if number.is_ordinal}


def _name_terms(text: ParsedText) -> frozenset[str]:
    """The terms of names; a first word before a verb or a bracket is the subject, and counts as one."""
    names = {word.term for name in text.names for word in name}
    if len(text.words) > 1 and (text.words[1].flat in AUXILIARIES or text.text[text.words[0].end :].lstrip()[:1] in "(,"):
        names.add(text.words[0].term)
    return frozenset(names - {""})


def _names_subject(text: ParsedText) -> bool:
    """Whether a sentence names what it speaks of: "He won in 1956" leaves that to its page."""
    first = text.words[:SUBJECT_WORDS]
    return bool(first) and first[0].flat not in PRONOUNS and any(word.is_name for word in first)


def _is_related(subject: frozenset[str], other: AbstractSet[str]) -> bool:
    return bool(subject) and 2 * len(subject & other) >= min(len(subject), SUBJECT_TERMS)


def _sentences_near(sentence: ParsedText, page: Snapshot) -> list[ParsedText]:
    """The sentences of a page that share enough words with this one, the nearest first."""
    counts: Counter[int] = Counter()
    for term in sentence.terms:
        counts.update(page.places.get(term, ()))
    places = [at for at, shared in counts.most_common(MAX_NEAR) if shared >= MIN_SHARED]
    return [page.parse_between(at, at) for at in places if page.bounds[at][1] - page.bounds[at][0] <= MAX_SENTENCE_CHARS]


def _subject_terms(page: Snapshot, title: str) -> frozenset[str]:
    """What a page is about, by its title without the name of the site, or by its first line."""
    title = _SITE.split(title)[0] or (page.words_between(0, 0) if page.bounds else "")
    return frozenset(term for word in WORD.findall(title)[:TITLE_WORDS] for term in word_terms(word))


def _make_conflict(group: Group, origins: Mapping[int, int]) -> Conflict:
    ours = group[0][0]
    readings = []
    for statements in group[:MAX_READINGS]:
        numbers, first = tuple(sorted({s.number for s in statements})), statements[0]
        readings.append(ConflictValue(first.value_text, numbers, count_origins(numbers, origins), _shorten(first.text.text)))
    readings.sort(key=lambda r: -r.origins)  # stable: the answer's own comes first among equals
    kind: Literal["number", "date", "polarity"]
    kind = "polarity" if ours.value is None else "date" if list_dates([ours.value]) else "number"
    return Conflict(kind, _name_subject(ours), tuple(readings))


def _name_subject(statement: Statement) -> str:
    """The words of the answer around the value, which is left open."""
    text, value = statement.text.text, statement.value
    if value is None:
        return f"“{_shorten(text)}”"
    before, after = text[: value.start].split(), text[value.end :].split()
    head = ("… " if len(before) > WORDS_BEFORE else "") + " ".join(before[-WORDS_BEFORE:])
    tail = " ".join(after[:WORDS_AFTER]) + (" …" if len(after) > WORDS_AFTER else "")
    return f"“{' '.join(filter(None, (head, '…', tail))).rstrip(' .,;:')}”".replace("… …", "…")


def _shorten(text: str) -> str:
    line = " ".join(text.split()).strip("“”\"' ")
    return (line if len(line) <= QUOTE_CHARS else line[: QUOTE_CHARS - 1].rsplit(" ", 1)[0] + "…").rstrip(" .;,")
