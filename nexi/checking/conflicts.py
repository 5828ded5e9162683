"""Where the pages that were read disagree about something the answer says.

Above sits the agent, which shows it; below are `alignment`, `pages` and `origins`. In every page that a sentence of the answer
does not rest on, sentences that speak of the same thing are laid along it, and the values that meet are compared. Support is
counted by origin, so that a copy adds nothing. Values of different periods are no disagreement, and of a number that was
different in an older document, the newer holds. Which of the values is right is not judged here otherwise, and everything here
would rather say "not the same thing": different numbers in different sentences are the rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from itertools import chain, permutations
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from nexi.checking.alignment import differ, has_negation, is_negation, match_values
from nexi.checking.lexicon import AUXILIARIES, PARTICLES, PRONOUNS
from nexi.checking.origins import are_altered, are_copies, find_exchanges, group_origins, merge_copies, shingles
from nexi.checking.pages import Pages, ParsedText, Snapshot, parse_text
from nexi.checking.sentences import without_markers
from nexi.checking.values import Date, Value, list_dates
from nexi.text import references
from nexi.text.plain import fold_text
from nexi.text.scope import DocumentScope, asks_for_state, is_newer, is_not_yet
from nexi.text.stems import WORD, word_terms
from nexi.text.words import has_words
from nexi.types import Claim, Conflict, ConflictValue, Verdict
from nexi.urls import is_web_url, parse

DISAGREE = "Sources disagree: "  # before the quotations of an answer that leaves a value open
DIFFER = "Other pages differ, or speak of other things: "  # where nothing tells which
MAX_CONFLICTS, MAX_READINGS, MAX_CLAIMS = 3, 4, 60
MAX_NEAR = 12  # sentences of one page that are compared with one sentence of the answer
MAX_SENTENCE_CHARS = 600
MIN_SHARED = 3  # words
SAME_SHARE = 0.75  # of the shorter sentence's words, found in the longer one or its page's title
NEARLY_ALL = 0.85  # of both sentences' words, where a negation is the only difference
SUBJECT_WORDS = 8  # within these a sentence names its subject
TITLE_WORDS, SUBJECT_TERMS = 12, 4
QUOTE_CHARS = 240
MAX_NAME = 5  # words
MAX_LABEL_CHARS = 100  # of the name of a reading
MAX_EXCHANGED_WORDS, MIN_COMMON_WORDS = 3, 6  # of sentences in which one word differs
ARTICLES = frozenset(("a", "an", "the"))
MIN_SAME_WORDS = 0.6  # of the shorter sentence, where a name is the only difference

_BEFORE_YEAR = re.compile(
    r"(?:\b(?:in|since|by|from|until|till|to|of|around|about|year|before|after|and|during)|[(,–-])\s*$", re.IGNORECASE
)
_CAPITALS = re.compile(r"\s+[A-ZÀ-Þ][\w’'-]*(?:\s+[A-ZÀ-Þ]|[,.;]|\W*$)")
_CLOCK = re.compile(r"(?<![\d:])\d{1,2}(?::\d\d){1,2}(?![\d:])")
_SITE = re.compile(r"\s+[-–—|·:»]+\s+")


class _Statement(Struct, frozen=True):
    """A sentence of a source, with what its page is about; `value` is what is compared, or None for the whole sentence."""

    number: int
    text: ParsedText
    about: frozenset[str]
    value: Value | None = None
    name: str = ""  # what is compared where one sentence has another name in the place of a name

    def agrees_with(self, other: _Statement) -> bool:
        if self.name or other.name:
            return fold_text(self.name).casefold() == fold_text(other.name).casefold()
        if self.value is None or other.value is None:
            return has_negation(self.text) == has_negation(other.text)
        return not differ(self.value, other.value)


def find_conflicts(
    question: str,
    claims: Sequence[Claim],
    snapshots: Pages,
    titles: Mapping[int, str] = MappingProxyType({}),
    scopes: Mapping[int, DocumentScope] = MappingProxyType({}),
    works: Mapping[int, int] = MappingProxyType({}),
) -> tuple[Conflict, ...]:
    """The disagreements among the pages that concern the answer to a question, a few at most."""
    pages = {number: page for number, page in snapshots.items() if page is not None}
    if len(pages) < 2:
        return ()
    question_terms = frozenset(parse_text(question).terms)
    about: dict[int, frozenset[str]] = {}
    for number, page in pages.items():
        # the title without the name of the site, or the first line
        first_line = page.words_between(0, 0) if page.bounds else ""
        title = _SITE.split(references.name_subject(titles.get(number, ""), page.text))[0] or first_line
        about[number] = frozenset(term for word in WORD.findall(title)[:TITLE_WORDS] for term in word_terms(word))
    scopes = {number: scopes.get(number, DocumentScope()) for number in pages}
    numbers = list(pages)
    leads = {n: (titles.get(n, ""), pages[n].text[: references.MAX_LEAD_CHARS]) for n in numbers}
    titled_leads = list(leads.values())
    things_apart = references.find_namesakes(question, titled_leads) or references.find_things_of_kind(question, titled_leads)
    namesakes = merge_copies(things_apart, [pages[n].text for n in numbers])
    things = {n: namesakes.get(place, "") for place, n in enumerate(numbers)}
    prints = {n: shingles(pages[n].text) for n in numbers}
    copies = {n: frozenset(m for m in numbers if m != n and are_altered(prints[n], prints[m])) for n in numbers}
    comparison = _Comparison(question_terms, asks_for_state(question), pages, about, scopes, leads, copies)
    groups = [group for claim in claims[:MAX_CLAIMS] for group in comparison.find_disagreements(claim)]
    groups += _find_altered(claims[:MAX_CLAIMS], comparison, groups)
    groups = [group for group in groups if _may_disagree(group, things, pages)]
    other_things = {numbers[place] for place in references.find_other_things(question, titled_leads)}
    groups = [group for group in groups if len({s.number in other_things for values in group for s in values}) < 2]
    if not groups:
        return ()
    page_numbers = {statement.number for group in groups for values in group for statement in values}
    hosts = {n: parse(pages[n].url).host if is_web_url(pages[n].url) else "" for n in sorted(page_numbers)}
    origins = group_origins({number: (host, pages[number].text) for number, host in hosts.items()}, works)
    conflicts = {_identify(group): _make_conflict(group, origins, scopes) for group in reversed(groups)}
    return tuple(reversed(conflicts.values()))[:MAX_CONFLICTS]


def _may_disagree(group: Group, things: Mapping[int, str], pages: Mapping[int, Snapshot]) -> bool:
    """Whether pages may be about one thing."""
    # Where several have the name that was asked for, a page that names none of them may be about any, unless it is a copy.
    first, *others = dict.fromkeys(statement.number for statement in chain(*group))
    names = {things[number] for number in (first, *others)} - {""}
    if len(names) > 1 or not any(things.values()):
        return len(names) < 2
    text = pages[first].plain.text
    texts = [(n, pages[n].plain.text) for n in others]
    return any(things[n] == things[first] != "" or are_copies(text, other) or find_exchanges(text, other) for n, other in texts)


def _identify(group: Group) -> frozenset[tuple[str, frozenset[int]]]:
    """What is the same where two sentences stand on the two sides of one disagreement, or "30 days" is a number too."""
    sides = ((_show_value(values[0]), frozenset(s.number for s in values)) for values in group)
    return frozenset((" ".join(re.findall(r"\d[\d.,]*", shown)) or shown, numbers) for shown, numbers in sides)


def find_difference(one: str, other: str, about: str, *, is_same_text: bool = False) -> tuple[str, str] | None:
    """The values, or names in one place, in which two sentences about one thing differ; of copies of one text, any words."""
    subject = frozenset(term for word in WORD.findall(about) for term in word_terms(word))
    ours, theirs = (_Statement(number, parse_text(text), subject) for number, text in enumerate((one, other)))
    for value in ours.text.firm_values:
        mine = replace(ours, value=value)
        if (counterpart := _find_counterpart(mine, theirs)) and not counterpart.agrees_with(mine):
            return _show_value(mine), _show_value(counterpart)
    if names := _find_exchanged_names(ours, theirs):
        return names
    return _find_exchanged_words(ours, theirs) if is_same_text else None


Group = list[list[_Statement]]  # the values that sources give for one thing, the answer's first


class _Comparison(Struct, frozen=True):
    """The pages of a question, and what is known of each: what it is about, when it holds, how it begins, and its copies."""

    question_terms: frozenset[str]
    is_state: bool  # the question asks what holds, so that versions of several periods are compared
    pages: Mapping[int, Snapshot]
    about: Mapping[int, frozenset[str]]
    scopes: Mapping[int, DocumentScope]
    leads: Mapping[int, tuple[str, str]]
    copies: Mapping[int, frozenset[int]]

    def find_disagreements(self, claim: Claim) -> Iterator[Group]:
        """What other pages say in the place of a sentence of the answer: other values, then other names."""
        supports = [e for e in claim.evidence if e.verdict is Verdict.FOUND or (e.verdict is Verdict.NOT_FOUND and e.span)]
        behind = [e.number for e in supports if e.number in self.pages]
        sentence = parse_text(without_markers(claim.text).rpartition(DISAGREE)[2].rpartition(DIFFER)[2])
        if not behind or len(claim.text) > MAX_SENTENCE_CHARS or sentence.text.endswith("?") or sentence.is_unspaced:
            return
        ours = _Statement(behind[0], sentence, self.about[behind[0]] | self.question_terms)
        near = self._find_near(sentence, behind)
        yield from _group_values(ours, near, behind)
        # a line for one reading without the reading's name, which its page does not have in that place
        label, colon, rest = sentence.text.partition(": ")
        start = rest.rstrip(" .…")[:QUOTE_CHARS]
        is_label = colon and start and len(label) <= MAX_LABEL_CHARS and rest[:1].isupper()
        if is_label and any(start in text and sentence.text not in text for text in (self.pages[n].text for n in behind)):
            ours = replace(ours, text=parse_text(rest))
        yield from self._group_names(ours, near, behind)

    def _find_near(self, sentence: ParsedText, behind: Sequence[int]) -> list[_Statement]:
        """The sentences of each other page of the time that share enough words with this one, the nearest first."""
        least = min(MIN_SHARED, len(sentence.terms))
        near: list[_Statement] = []
        two = self.scopes[behind[0]]
        for n, page in self.pages.items():
            # values of pages of different periods do not hold for one time
            one = self.scopes[n]
            is_of_time = not one.periods or not two.periods or any(a.meets(b) for a in one.periods for b in two.periods)
            if n in behind or not (is_of_time or (self.is_state and one.is_of_family(two))):
                continue
            counts: Counter[int] = Counter()
            for term in sentence.terms:
                counts.update(page.places.get(term, ()))
            is_copy = n in self.copies[behind[0]]  # there a sentence of two words that say something is the same sentence
            places = [at for at, count in counts.most_common(MAX_NEAR) if count >= least > 1 or is_copy]
            near += (_Statement(n, page.parse_between(at, at), self.about[n]) for at in places)
        return near

    def _group_names(self, ours: _Statement, near: Sequence[_Statement], behind: Sequence[int]) -> Iterator[Group]:
        """The names that pages have in the place of ours; of copies, whatever words."""
        first = behind[0]
        exchanges = [(names, theirs) for theirs in near if (names := _find_exchanged_names(ours, theirs))]
        if not exchanges:
            pairs = [(words, theirs) for theirs in near if (words := _find_exchanged_words(ours, theirs))]
            same = {n for _, theirs in pairs if references.may_be_same(self.leads[first], self.leads[n := theirs.number])}
            same = {n for n in same if are_copies(self.pages[first].text, self.pages[n].text)}
            exchanges = [(words, theirs) for words, theirs in pairs if theirs.number in same]
        for own_name in dict.fromkeys(names[0] for names, _ in exchanges):
            by_name: Group = [[replace(ours, number=number, name=own_name) for number in behind]]
            for names, theirs in exchanges:
                if names[0] == own_name:
                    _add(by_name, replace(theirs, name=names[1]))
            yield by_name


def _group_values(ours: _Statement, near: Sequence[_Statement], behind: Sequence[int]) -> Iterator[Group]:
    """The values that pages have in the place of each of ours; and what denies the whole sentence."""
    sentence = ours.text
    values: list[Value] = [*sentence.dates, *(n for n in sentence.numbers if not n.is_weak and not n.is_ordinal)]
    for value in (*(v for v in values if not _is_in_name(sentence.text, v)), None):
        mine = replace(ours, value=value)
        group: Group = [[replace(mine, number=number) for number in behind]]
        counterparts = [statement for theirs in near if (statement := _find_counterpart(mine, theirs))]
        for number in dict.fromkeys(statement.number for statement in counterparts):
            own = [statement for statement in counterparts if statement.number == number]
            _add(group, next((s for s in own if s.agrees_with(mine)), own[0]))  # who says it both ways speaks of two things
        if len(group) > 1:
            yield group


def _find_altered(claims: Sequence[Claim], compared: _Comparison, groups: Sequence[Group]) -> list[Group]:
    """What the answer says and a page has, where a copy of that page has another value instead. Versions are no copies."""
    answer = " ".join(without_markers(claim.text) for claim in claims)
    pairs = {frozenset((a.number, b.number)) for group in groups for a in chain(*group) for b in chain(*group)}
    by_value: dict[str, Group] = {}
    for one, other in permutations(compared.pages, 2):
        scope, other_scope = compared.scopes[one], compared.scopes[other]
        is_version = is_newer(scope, other_scope) or is_newer(other_scope, scope) or scope.periods != other_scope.periods
        may_be_same = references.may_be_same(compared.leads[one], compared.leads[other])
        if is_version or not may_be_same or scope.standing or other_scope.standing or frozenset((one, other)) in pairs:
            continue
        texts = [compared.pages[n].plain.text for n in (one, other)]
        exchanges = [(_quote_value(texts[0], *e.ours), _quote_value(texts[1], *e.theirs)) for e in find_exchanges(*texts)]
        # where a year and a number differ, it is a later edition
        are_years = {all(re.fullmatch(r"(?:1\d|20)\d\d", statement.name) for statement in pair) for pair in exchanges}
        for ours, theirs in exchanges if len(are_years) < 2 else ():
            is_moved = has_words(texts[0], theirs.name) or has_words(texts[1], ours.name)
            if not is_moved and has_words(answer, ours.name):
                mine, counterpart = (replace(s, number=n, about=compared.about[n]) for s, n in ((ours, one), (theirs, other)))
                group = by_value.setdefault(ours.name.casefold(), [[mine]])
                for statement in (mine, counterpart):
                    if all(s.number != statement.number for s in chain(*group)):
                        _add(group, statement)
    return list(by_value.values())


def _quote_value(text: str, start: int, end: int) -> _Statement:
    before = re.split(r"[.!?]\s|\n", text[max(0, start - QUOTE_CHARS // 2) : start])[-1]
    after = re.split(r"(?<=[.!?])\s|\n", text[end : end + QUOTE_CHARS // 2])[0]
    return _Statement(0, parse_text(f"{before}{text[start:end]}{after}".strip()), frozenset(), name=fold_text(text[start:end]))


def _is_in_name(text: str, value: Value) -> bool:
    """Whether a year is in a name that other years have too: in "the 1978 Orsa Cup", not in "the 1978 Swedish film"."""
    before, after = text[: value.start].rstrip(), text[value.end :]
    is_led = not before or re.search(r"\bthe$", before, re.IGNORECASE) is not None
    return is_led and value.text.strip().isdecimal() and _CAPITALS.match(after) is not None


def _find_exchanged_names(ours: _Statement, theirs: _Statement) -> tuple[str, str] | None:
    """The names that two sentences have in one place, where they say the same thing of the same subject otherwise."""
    one, two = ([w for w in s.text.words if w.flat not in ARTICLES] for s in (ours, theirs))
    matcher = SequenceMatcher(None, [w.flat for w in one], [w.flat for w in two], autojunk=False)
    edits = [edit for edit in matcher.get_opcodes() if edit[0] == "replace"]
    same = [(a, b) for tag, a, b, *_ in matcher.get_opcodes() if tag == "equal"]
    if len(edits) != 1 or not same or same[0][1] > edits[0][1]:
        return None
    _, a, b, c, d = edits[0]
    before = one[same[0][0] : a]  # with the name of what is spoken of
    is_named = any(word.is_name for word in before) and sum(bool(word.term) for word in before) >= MIN_SHARED
    are_names = all(word.is_name or word.flat in PARTICLES for word in (*one[a:b], *two[c:d]))
    is_exchange = are_names and max(b - a, d - c) <= MAX_NAME
    is_same = sum(last - first for first, last in same) >= MIN_SAME_WORDS * min(len(one), len(two))
    if not (is_named and is_exchange and is_same) or {w.term for w in one[a:b]} & {w.term for w in two[c:d]}:
        return None
    return ours.text.text[one[a].start : one[b - 1].end], theirs.text.text[two[c].start : two[d - 1].end]


def _find_exchanged_words(ours: _Statement, theirs: _Statement) -> tuple[str, str] | None:
    """The words that two sentences of copies have in one place, where they are the same word for word otherwise."""
    # Articles count for nothing, several places may differ by values alone, and another name at the start is another subject.
    one, two = ([w for w in s.text.words if w.flat not in ARTICLES] for s in (ours, theirs))
    matcher = SequenceMatcher(None, [w.flat for w in one], [w.flat for w in two], autojunk=False)
    edits = [edit for edit in matcher.get_opcodes() if edit[0] != "equal" and (edit[0] == "replace" or edit[1])]
    common = sum(block.size for block in matcher.get_matching_blocks())
    is_same = common >= MIN_COMMON_WORDS and common >= MIN_SAME_WORDS * min(len(one), len(two))
    if not is_same or any(edit[1] == 0 or edit[3] == 0 for edit in edits):
        return None
    spans = [(one[a:b], two[c:d]) for tag, a, b, c, d in edits if tag == "replace"]
    if len(spans) > 1 and not all(any(w.value for w in span) for pair in spans for span in pair):
        return None
    for mine, other in spans:
        tells = all(any(w.term or w.value for w in span) and not any(map(is_negation, span)) for span in (mine, other))
        is_firm = all(w.is_name or w.value or w.flat in PARTICLES for w in (*mine, *other))
        is_short = max(len(mine), len(other)) <= (MAX_NAME if is_firm else MAX_EXCHANGED_WORDS) and (is_firm or len(edits) == 1)
        is_other = not {w.term or w.flat for w in mine} & {w.term or w.flat for w in other}
        if tells and is_short and is_other:
            return ours.text.text[mine[0].start : mine[-1].end], theirs.text.text[other[0].start : other[-1].end]
    return None


def _add(group: Group, statement: _Statement) -> None:
    for values in group:
        if values[0].agrees_with(statement):
            return values.append(statement)
    return group.append([statement])


def _find_counterpart(ours: _Statement, theirs: _Statement) -> _Statement | None:
    """What a sentence about the same thing says in our value's place; or the sentence, where it has our words and values."""
    pairs = match_values(ours.text, theirs.text)
    if ours.value is None:
        one, two = ({w.term for w in s.text.words if w.term and not is_negation(w)} for s in (ours, theirs))
        is_same = len(ours.text.values) == len(theirs.text.values) and not any(differ(*values) for values in pairs)
        is_same &= len(one & two) > MIN_SHARED and len(one & two) >= NEARLY_ALL * max(len(one), len(two))
        return theirs if is_same and _is_same_thing(ours, theirs) else None
    there = [their_value for our_value, their_value in pairs if our_value is ours.value] or _find_lone_value(ours, theirs)
    if len(there) == 1 and any(v is not ours.value and not differ(v, there[0]) for v in ours.text.firm_values):
        return None  # our sentence has it in another place
    is_same = len(there) == 1 and _is_same_time(ours.value, ours.text, theirs.text) and _is_same_thing(ours, theirs)
    return replace(theirs, value=there[0]) if is_same else None


def _find_lone_value(ours: _Statement, theirs: _Statement) -> list[Value]:
    """The one number with our unit in a sentence of another form that says nearly all of the shorter one's words."""
    sides = [[n for n in s.text.numbers if not n.is_weak and not n.is_ordinal and not n.year] for s in (ours, theirs)]
    if [len(numbers) for numbers in sides] != [1, 1] or sides[0][0] is not ours.value:
        return []
    one, two = ({w.term for w in s.text.words if w.term and not w.value} for s in (ours, theirs))
    is_same = len(one & two) > MIN_SHARED and len(one & two) >= NEARLY_ALL * min(len(one), len(two))
    return [sides[1][0]] if is_same and sides[0][0].unit == sides[1][0].unit != "" else []


def _is_same_time(value: Value, ours: ParsedText, theirs: ParsedText) -> bool:
    """A number holds for its time: two of different years are no disagreement. For a date, the numbers must agree."""
    if not list_dates([value]):
        few, many = sorted((_list_times(ours), _list_times(theirs)), key=len)
        return bool(few) == bool(many) and all(any(not differ(a, b) for b in many) for a in few)
    firm = [n for n in ours.numbers if not n.is_weak and not n.is_ordinal and not n.year]
    peers = {n.unit: [m for m in theirs.numbers if m.unit == n.unit and not m.year] for n in firm}
    return all(any(not differ(n, m) for m in peers[n.unit]) for n in firm if peers[n.unit])


def _list_times(text: ParsedText) -> list[Date]:
    """The dates of a sentence without those of an aside: "3,849 in 2020 (down from 4,008 in 2010)" is of 2020."""
    asides = [match.span() for match in re.finditer(r"\([^()]*\)", text.text)]
    dates = list_dates(text.values)
    return [date for date in dates if not any(start < date.start < end for start, end in asides)] or dates


def _is_same_thing(ours: _Statement, theirs: _Statement) -> bool:
    """Whether the words of two sentences, with what their pages are about, name the same thing; one of them may say more."""
    short, long = sorted((ours, theirs), key=lambda sentence: len(sentence.text.terms))
    few, many = ({number.values[0] for number in s.text.numbers if number.is_ordinal} for s in (short, long))
    if not few <= many:  # the 51st is another thing than the 61st
        return False
    one, two = frozenset(short.text.terms), frozenset(long.text.terms)
    here, there = one | short.about, two | long.about
    is_formula = one == two and len(one) > 1 and _is_related(short.about, long.about)  # "The population was … in 2010"
    if theirs.text.text.endswith("?") or len(one & two) < MIN_SHARED - is_formula or len(one & there) < SAME_SHARE * len(one):
        return False
    names, others = _name_terms(short.text), _name_terms(long.text)
    if not names <= there or not (others <= here or one <= two):
        return False
    if not names & others and not _is_related(short.about, long.about):
        return False
    for a, b in ((ours, theirs), (theirs, ours)):
        # a sentence names what it speaks of, or its page does: "He won in 1956"
        first = a.text.words[:SUBJECT_WORDS]
        names_subject = bool(first) and first[0].flat not in PRONOUNS and any(word.is_name for word in first)
        if not names_subject and not _is_related(a.about, frozenset(b.text.terms) | b.about):
            return False
    return True


def _name_terms(text: ParsedText) -> frozenset[str]:
    """The terms of names; a first word before a verb or a bracket is the subject, and counts as one."""
    names = {word.term for name in text.names for word in name}
    if len(text.words) > 1 and (text.words[1].flat in AUXILIARIES or text.text[text.words[0].end :].lstrip()[:1] in "(,"):
        names.add(text.words[0].term)
    return frozenset(names - {""})


def _is_related(subject: frozenset[str], other: AbstractSet[str]) -> bool:
    return bool(subject) and 2 * len(subject & other) >= min(len(subject), SUBJECT_TERMS)


def _make_conflict(group: Group, origins: Mapping[int, int], scopes: Mapping[int, DocumentScope]) -> Conflict:
    ours = group[0][0]
    kind: Literal["number", "date", "polarity", "name"]
    if ours.name:  # words that were exchanged may be numbers: "46" of a fare
        kind = "number" if all(re.search(r"\d", _show_value(statements[0])) for statements in group) else "name"
    else:
        is_date = ours.value is not None and all(_is_date(statements[0]) for statements in group)
        kind = "polarity" if ours.value is None else "date" if is_date else "number"
    readings = []
    for statements in group[:MAX_READINGS]:
        numbers, first = tuple(sorted({s.number for s in statements})), statements[0]
        standing: str = min((scopes[n].standing for n in numbers), default="")  # "" where one of them still holds
        if not standing and all(is_not_yet(scopes[n], scopes[ours.number]) for n in numbers):
            standing = "upcoming"
        day = max((scopes[n].day for n in numbers), default="")
        count = len({origins.get(n, n) for n in numbers})
        readings.append(ConflictValue(_show_value(first), numbers, count, _shorten(first.text.text), day, standing))
    readings.sort(key=lambda r: (bool(r.standing), -r.origins))  # stable: the answer's own comes first among equals
    own = next(r for r in readings if ours.number in r.numbers)
    # a newer document settles a number, or a name in another version of the same document
    scope, others = scopes[ours.number], [scopes[n] for r in readings if r is not own and not r.standing for n in r.numbers]
    settled = not own.standing and all(
        is_newer(scope, other) and (kind == "number" or (kind == "name" and scope.is_of_family(other))) for other in others
    )
    readings.sort(key=lambda r: settled and r is not own)
    text, value = ours.text.text, ours.value
    start, end = _find_span(text, value) if value else (text.rfind(ours.name), text.rfind(ours.name) + len(ours.name))
    is_open = bool(value or ours.name)
    subject = f"{text[:start].rstrip()} … {text[end:].lstrip()}" if is_open else text  # the value is left open
    return Conflict(kind, f"“{_shorten(subject)}”", tuple(readings), settled)


def _is_date(statement: _Statement) -> bool:
    """Whether a value is a date; a number that may be a year is one after a word that stands before years."""
    value = statement.value
    if value is None or not list_dates([value]):
        return False
    return isinstance(value, Date) or _BEFORE_YEAR.search(statement.text.text[: value.start]) is not None


def _show_value(statement: _Statement) -> str:
    if statement.value is None:
        return statement.name or _shorten(statement.text.text)
    start, end = _find_span(statement.text.text, statement.value)
    return statement.text.text[start:end].strip().rstrip(".,;")


def _find_span(text: str, value: Value) -> tuple[int, int]:
    """Where a value stands; of an hour or a minute, the time of day."""
    spans = (match.span() for match in _CLOCK.finditer(text))
    return next((span for span in spans if span[0] <= value.start < span[1]), (value.start, value.end))


def _shorten(text: str) -> str:
    line = " ".join(text.split()).strip("“”\"' ")
    return (line if len(line) <= QUOTE_CHARS else line[: QUOTE_CHARS - 1].rsplit(" ", 1)[0] + "…").rstrip(" .;,")
