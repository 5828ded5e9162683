"""Where the pages that were read disagree about something the answer says.

Above sits the agent, which shows it; below are `alignment`, `pages` and `origins`. In every page that a sentence of the answer
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
from msgspec.structs import replace

from nexi.checking.alignment import differ, has_negation, is_negation, match_values
from nexi.checking.lexicon import AUXILIARIES, PRONOUNS
from nexi.checking.origins import group_origins
from nexi.checking.pages import Pages, Snapshot
from nexi.checking.parsed import ParsedText, parse_text
from nexi.checking.sentences import without_markers
from nexi.checking.values import Value, list_dates
from nexi.text.wordforms import WORD, word_terms
from nexi.types import Claim, Conflict, ConflictValue, Verdict
from nexi.urls import is_web_url, parse

MAX_CONFLICTS, MAX_READINGS, MAX_CLAIMS = 3, 4, 60
MAX_NEAR = 12  # sentences of one page that are compared with one sentence of the answer
MAX_SENTENCE_CHARS = 600
MIN_SHARED = 3  # words
SAME_SHARE = 0.75  # of the shorter sentence's words, found in the longer one or its page's title
NEARLY_ALL = 0.85  # of both sentences' words, where a negation is the only difference
SUBJECT_WORDS = 8  # within these a sentence names its subject
TITLE_WORDS, SUBJECT_TERMS = 12, 4
QUOTE_CHARS = 240

_SITE = re.compile(r"\s+[-–—|·:»]+\s+")


class Statement(Struct, frozen=True):
    """A sentence of a source, with what its page is about; `value` is what is compared, or None for the whole sentence."""

    number: int
    text: ParsedText
    about: frozenset[str]
    value: Value | None = None

    def agrees_with(self, other: Statement) -> bool:
        if self.value is None or other.value is None:
            return has_negation(self.text) == has_negation(other.text)
        return not differ(self.value, other.value)


def find_conflicts(
    question: str,
    claims: Sequence[Claim],
    snapshots: Pages,
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
    ours = Statement(behind[0], sentence, about[behind[0]] | asked)
    near = [Statement(n, text, about[n]) for n in pages if n not in behind for text in _sentences_near(sentence, pages[n])]
    for value in [*sentence.dates, *(n for n in sentence.numbers if not n.is_weak and not n.is_ordinal), None]:
        mine = replace(ours, value=value)
        group: Group = [[replace(mine, number=number) for number in behind]]
        met = [statement for theirs in near if (statement := _find_counterpart(mine, theirs))]
        for number in dict.fromkeys(statement.number for statement in met):
            own = [statement for statement in met if statement.number == number]
            _add(group, next((s for s in own if s.agrees_with(mine)), own[0]))  # who says it both ways speaks of two things
        if len(group) > 1:
            yield group


def _add(group: Group, statement: Statement) -> None:
    for values in group:
        if values[0].agrees_with(statement):
            return values.append(statement)
    return group.append([statement])


def _find_counterpart(ours: Statement, theirs: Statement) -> Statement | None:
    """What a sentence about the same thing says in our value's place; or the sentence, where it has our words and values."""
    met = match_values(ours.text, theirs.text)
    if ours.value is None:
        one, two = ({w.term for w in s.text.words if w.term and not is_negation(w)} for s in (ours, theirs))
        is_same = len(ours.text.values) == len(theirs.text.values) and not any(differ(*values) for values in met)
        is_same &= len(one & two) > MIN_SHARED and len(one & two) >= NEARLY_ALL * max(len(one), len(two))
        return theirs if is_same and _is_same_thing(ours, theirs) else None
    there = [stated for claimed, stated in met if claimed is ours.value]
    is_same = len(there) == 1 and _is_same_time(ours.value, ours.text, theirs.text) and _is_same_thing(ours, theirs)
    return replace(theirs, value=there[0]) if is_same else None


def _is_same_time(value: Value, ours: ParsedText, theirs: ParsedText) -> bool:
    """A number holds for its time: two of different years are no disagreement. For a date, the numbers must agree."""
    if not list_dates([value]):
        few, many = sorted((list_dates(ours.values), list_dates(theirs.values)), key=len)
        return bool(few) == bool(many) and all(any(not differ(a, b) for b in many) for a in few)
    firm = [n for n in ours.numbers if not n.is_weak and not n.is_ordinal and not n.year]
    peers = {n.unit: [m for m in theirs.numbers if m.unit == n.unit and not m.year] for n in firm}
    return all(any(not differ(n, m) for m in peers[n.unit]) for n in firm if peers[n.unit])


def _is_same_thing(ours: Statement, theirs: Statement) -> bool:
    """Whether the words of two sentences, with what their pages are about, name the same thing; one of them may say more."""
    short, long = sorted((ours, theirs), key=lambda sentence: len(sentence.text.terms))
    few, many = ({number.values[0] for number in s.text.numbers if number.is_ordinal} for s in (short, long))
    if not few <= many:  # the 51st is another thing than the 61st
        return False
    one, two = frozenset(short.text.terms), frozenset(long.text.terms)
    here, there = one | short.about, two | long.about
    if theirs.text.text.endswith("?") or len(one & two) < MIN_SHARED or len(one & there) < SAME_SHARE * len(one):
        return False
    names, others = _name_terms(short.text), _name_terms(long.text)
    if not names <= there or not (others <= here or one <= two):
        return False
    return (bool(names & others) or _is_related(short.about, long.about)) and all(
        _names_subject(a.text) or _is_related(a.about, frozenset(b.text.terms) | b.about)
        for a, b in ((ours, theirs), (theirs, ours))
    )


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
    return [page.parse_between(at, at) for at, shared in counts.most_common(MAX_NEAR) if shared >= MIN_SHARED]


def _subject_terms(page: Snapshot, title: str) -> frozenset[str]:
    """What a page is about, by its title without the name of the site, or by its first line."""
    title = _SITE.split(title)[0] or (page.words_between(0, 0) if page.bounds else "")
    return frozenset(term for word in WORD.findall(title)[:TITLE_WORDS] for term in word_terms(word))


def _make_conflict(group: Group, origins: Mapping[int, int]) -> Conflict:
    ours = group[0][0]
    readings = []
    for statements in group[:MAX_READINGS]:
        numbers, first = tuple(sorted({s.number for s in statements})), statements[0]
        quote = _shorten(first.text.text)
        shown = first.value.text.strip() if first.value else quote
        readings.append(ConflictValue(shown, numbers, len({origins.get(n, n) for n in numbers}), quote))
    readings.sort(key=lambda r: -r.origins)  # stable: the answer's own comes first among equals
    kind: Literal["number", "date", "polarity"]
    kind = "polarity" if ours.value is None else "date" if list_dates([ours.value]) else "number"
    text, value = ours.text.text, ours.value
    subject = f"{text[: value.start].rstrip()} … {text[value.end :].lstrip()}" if value else text  # the value is left open
    return Conflict(kind, f"“{_shorten(subject)}”", tuple(readings))


def _shorten(text: str) -> str:
    line = " ".join(text.split()).strip("“”\"' ")
    return (line if len(line) <= QUOTE_CHARS else line[: QUOTE_CHARS - 1].rsplit(" ", 1)[0] + "…").rstrip(" .;,")
