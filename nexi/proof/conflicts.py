"""Where the pages that were read disagree about something the answer says.

Above sits the loop, which shows it; below are `disagreement`, `snapshots`, `origins`. A sentence of the answer is an anchor: in
every page, sentences that speak of the same thing are looked for, and their number, date or denial is compared with the
anchor's. Support is counted by origin, so that a copy adds nothing. Which of the values is right is not judged here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from nexi.proof.disagreement import (
    Anchor,
    Value,
    agree,
    anchors,
    denies_instead,
    said_elsewhere,
    shortened,
    speaks_of_the_same,
    terms_of,
)
from nexi.proof.facts import Reading as Sentence
from nexi.proof.facts import read
from nexi.proof.origins import count_origins, group_origins, is_copy, shingles
from nexi.proof.snapshots import Snapshot
from nexi.proof.terms import WORD, terms
from nexi.types import Claim, Conflict, ConflictValue, Verdict
from nexi.urls import is_web_url, parse

__all__ = ["find_conflicts"]


MOST_CONFLICTS = 3
MOST_READINGS = 4
MOST_CLAIMS = 60
MOST_READ = 12  # sentences of one page that are read for one sentence of the answer
FEWEST_SHARED = 0.5  # of the answer's words, before a sentence of a page is read at all
TITLE_WORDS = 12
LONGEST_SENTENCE = 600
WORDS_BEFORE, WORDS_AFTER = 8, 4  # of the answer's words around a value, to name what is disagreed on
QUOTE_CHARS = 240
COPIED_WORDS = 12  # a sentence of this many words in common was written once

_MARKER = re.compile(r"\s*\[\d{1,3}\]")
_SITE = re.compile(r"\s+[-–—|·:»]+\s+")


class Statement(Struct, frozen=True):
    """What one source says in the anchor's place."""

    number: int
    value: str
    text: str
    anchor: Anchor | None = None  # the statement as an anchor of its own, to compare it with others


class Group:
    """The values that sources give for one thing, the answer's first."""

    def __init__(self, anchor: Anchor) -> None:
        self.anchor = anchor
        self.values: list[list[Statement]] = []

    def add(self, statement: Statement) -> None:
        for statements in self.values:
            if _agree(statements[0], statement):
                return statements.append(statement)
        return self.values.append([statement])


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
    asked = frozenset(terms_of(read(question)))
    about = {number: _about(page, titles.get(number, "")) for number, page in pages.items()}
    groups = [group for claim in claims[:MOST_CLAIMS] for group in _disagreements(claim, pages, about, asked)]
    if not groups:
        return ()
    concerned = {statement.number for group in groups for statements in group.values for statement in statements}
    origins = group_origins({number: (_host(pages[number].url), pages[number].text) for number in sorted(concerned)})
    return tuple(dict.fromkeys(_conflict(group, origins) for group in groups))[:MOST_CONFLICTS]


def _disagreements(
    claim: Claim, pages: Mapping[int, Snapshot], about: Mapping[int, frozenset[str]], asked: frozenset[str]
) -> Iterator[Group]:
    behind = [e.number for e in claim.evidence if e.verdict in (Verdict.SUPPORTED, Verdict.PARTLY) and e.number in pages]
    if not behind or len(claim.text) > LONGEST_SENTENCE:
        return
    sentence = read(_MARKER.sub("", claim.text))
    others = {number: PageReader(page) for number, page in pages.items() if number not in behind}
    for anchor in anchors(sentence, about[behind[0]], asked):
        short = shortened(anchor)
        near = {number: page.near(anchor, short) for number, page in others.items()}
        group = Group(anchor)
        for number in behind:
            group.add(Statement(number, anchor.value or _quote(sentence.text), sentence.text, anchor))
        for number, sentences in near.items():
            if statement := _said(anchor, short, number, sentences, about[number]):
                group.add(statement)
        if len(group.values) > 1:
            yield group


def _said(anchor: Anchor, short: Anchor, number: int, sentences: Sequence[Sentence], about: frozenset[str]) -> Statement | None:
    """What one page says in the anchor's place; a page that says it both ways speaks of two things."""
    other: Statement | None = None
    for sentence in sentences:
        found: Value | None = None
        if anchor.fact is None:
            differs = denies_instead(anchor, sentence) if speaks_of_the_same(anchor, sentence, about) else None
        else:
            found, differs = said_elsewhere(anchor, short, sentence, about) or (None, None)
        if differs is None:
            continue
        value = found.text.strip() if found else _quote(sentence.text)
        statement = Statement(number, value, sentence.text, Anchor(anchor.kind, sentence, found))
        if not differs:
            return statement
        other = other or statement
    return other


class PageReader:
    """A page whose sentences are read when they are first looked at."""

    def __init__(self, page: Snapshot) -> None:
        self._page = page

    def near(self, anchor: Anchor, short: Anchor) -> list[Sentence]:
        """The sentences that share enough words with the anchor or with its clause, the nearest first."""
        wanted = [terms_of(anchor.reading)] + ([terms_of(short.reading)] if short is not anchor else [])
        places = dict.fromkeys(place for words in wanted for place in self._places(words))
        return [self._page.reading(place) for place in places]

    def _places(self, wanted: set[str]) -> list[int]:
        counts: Counter[int] = Counter()
        for term in wanted:
            counts.update(self._page.places.get(term, ()))
        enough = max(2.0, FEWEST_SHARED * len(wanted))
        near = (place for place, shared in counts.most_common(MOST_READ) if shared >= enough)
        return [place for place in near if self._length(place) <= LONGEST_SENTENCE]

    def _length(self, place: int) -> int:
        start, end = self._page.bounds[place]
        return end - start


def _about(page: Snapshot, title: str) -> frozenset[str]:
    """What a page is about, by its title without the name of the site, or by its first line."""
    title = _SITE.split(title)[0] or (page.words_between(0, 0) if page.bounds else "")
    return frozenset(term for word in WORD.findall(title)[:TITLE_WORDS] for term in terms(word))


def _agree(one: Statement, other: Statement) -> bool:
    if one.anchor is None or other.anchor is None:
        return False
    if one.anchor.fact is None or other.anchor.fact is None:
        return bool(one.anchor.reading.denials) == bool(other.anchor.reading.denials)
    return agree(one.anchor.fact, other.anchor.fact)


def _conflict(group: Group, origins: Mapping[int, int]) -> Conflict:
    readings = [_reading(statements, origins) for statements in group.values[:MOST_READINGS]]
    readings.sort(key=lambda r: -r.origins)  # stable: the answer's own comes first among equals
    return Conflict(group.anchor.kind, _subject(group.anchor), tuple(readings))


def _reading(statements: Sequence[Statement], origins: Mapping[int, int]) -> ConflictValue:
    numbers = tuple(sorted({s.number for s in statements}))
    return ConflictValue(
        statements[0].value, numbers, count_origins(numbers, _with_copied(statements, origins)), _quote(statements[0].text)
    )


def _with_copied(statements: Sequence[Statement], origins: Mapping[int, int]) -> dict[int, int]:
    """The origins, where those who wrote the very same sentence are one."""
    joined = dict(origins)
    known: list[tuple[frozenset[int], int]] = []
    for statement in statements:
        if len(WORD.findall(statement.text)) < COPIED_WORDS or statement.number not in joined:
            continue
        words = shingles(statement.text)
        origin = next((o for other, o in known if is_copy(words, other)), joined[statement.number])
        joined[statement.number] = origin
        known.append((words, origin))
    return joined


def _subject(anchor: Anchor) -> str:
    """The words of the answer around the value, which is left open."""
    text, fact = anchor.reading.text, anchor.fact
    if fact is None:
        return f"“{_quote(text)}”"
    before, after = text[: fact.start].split(), text[fact.end :].split()
    head = ("… " if len(before) > WORDS_BEFORE else "") + " ".join(before[-WORDS_BEFORE:])
    tail = " ".join(after[:WORDS_AFTER]) + (" …" if len(after) > WORDS_AFTER else "")
    return f"“{' '.join(filter(None, (head, '…', tail))).rstrip(' .,;:')}”".replace("… …", "…")


def _quote(text: str) -> str:
    line = " ".join(text.split()).strip("“”\"' ")
    return (line if len(line) <= QUOTE_CHARS else line[: QUOTE_CHARS - 1].rsplit(" ", 1)[0] + "…").rstrip(" .;,")


def _host(url: str) -> str:
    return parse(url).host if is_web_url(url) else ""


def _path(url: str) -> str:
    return parse(url).path.rsplit("/", 1)[-1] if is_web_url(url) else ""
