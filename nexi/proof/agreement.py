"""What of a sentence a stretch of a source says, what it leaves out, and where it says otherwise.

Below `spans`, above `facts`, `pairs` and `polarity`. Hard facts are compared one by one and never averaged with the words
around them. Knows two readings and a context; which stretch to compare is decided above.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from nexi.proof.dates import Date, clashes, says
from nexi.proof.doers import exchanged_sides, is_told_from_the_other_side
from nexi.proof.facts import Reading, Word, names_of
from nexi.proof.lexicon import HEDGES, LIGHT, PREPOSITIONS, PRONOUNS
from nexi.proof.numbers import Number, same
from nexi.proof.pairs import NEAR, Pair, pair_up
from nexi.proof.places import belongs, misplaced
from nexi.proof.polarity import Clash, polarity_clashes
from nexi.proof.rewording import Rewording, agrees, exchanged, substituted
from nexi.proof.strength import overstated
from nexi.proof.terms import flat

Weight = Callable[[str], float]
FACT = 2.0  # what a hard fact weighs beside a word
BRACKETED = 80  # characters from a bracket to the value in it
BORROWED = 0.6  # what a word is worth that stands in the context instead
_ACTS = re.compile(r"\b(?:by|from|than)\b")
_ENDS_OF_LIFE = frozenset(("born", "died"))
_LIFE = re.compile(r"\([^()]*\d{3,4}\s?-\s?[^()]*\d{3,4}\)")
_BREAK = re.compile("[,;]")
_EVEN = frozenset(["and", "or", "with", "met", "married", "between", "versus", "vs", "joined"])


class Agreement(Struct, frozen=True):
    """`presence` is the weighted share of the sentence that stands there; `facts` how many hard facts it has."""

    presence: float
    clashes: tuple[Clash, ...]
    missing: tuple[str, ...]
    unsaid: tuple[str, ...]  # plain words the source does not have
    facts: int
    gap: int  # the longest run of words that the source does not have

    @property
    def fit(self) -> float:
        if self.clashes:
            return 0.0
        return self.presence * (1 - len(self.missing) / (self.facts + 1))


def agree(claim: Reading, source: Reading, context: Sequence[Reading], weight: Weight, rewording: Rewording) -> Agreement:
    """Compare a sentence with a stretch of a source.

    `context` is the stretch's headings and what stands before it, `rewording` the one sentence of it that comes closest.
    """
    pair = pair_up(claim, source)
    clashing: list[Clash] = []
    missing: list[str] = []
    for clash, lack in [*_dates(pair, context), *_numbers(pair, context), *_names(pair, context), *_literals(pair, context)]:
        clashing += [clash] if clash else []
        missing += [lack] if lack else []
    missing += [clash.claimed for clash in substituted(rewording)]
    missing += overstated(pair)
    clashing += polarity_clashes(pair, is_told_from_the_other_side)
    clashing += [*_roles(pair), *_other_doers(pair), *_other_end(pair), *exchanged_sides(pair), *misplaced(pair)]
    clashing += [c for c in exchanged(rewording) if not _is_explained(pair, c)]
    presence, unsaid, gap = _presence(pair, context, weight, len(missing) + len(clashing))
    facts = len(claim.numbers) + len(claim.dates) + len(names_of(claim)) + len(claim.quotes) + len(claim.code)
    return Agreement(presence, tuple(dict.fromkeys(clashing)), tuple(dict.fromkeys(missing)), unsaid, facts, gap)


def _is_explained(pair: Pair, clash: Clash) -> bool:
    """An opposite told from the other side, or a value that stands with its name after all."""
    if clash.kind in ("number", "date"):
        return belongs(pair, clash.claimed)
    if clash.kind != "opposite":
        return False
    ours = next((i for i, w in enumerate(pair.claim.words) if w.text == clash.claimed), -1)
    theirs = next((i for i, w in enumerate(pair.source.words) if w.text == clash.other), -1)
    return ours >= 0 and theirs >= 0 and is_told_from_the_other_side(pair, ours, theirs)


Outcome = tuple[Clash | None, str]


def _presence(pair: Pair, context: Sequence[Reading], weight: Weight, failed: int) -> tuple[float, tuple[str, ...], int]:
    known = {term for reading in context for word in reading.words for term in word.terms}
    total = have = 0.0
    unsaid: list[str] = []
    gap = run = 0
    lived = bool(_LIFE.search(pair.source.text))
    for index, word in enumerate(pair.claim.words):
        if not word.terms or word.fact or word.flat in HEDGES:
            continue
        if pair.to[index] < 0 and (word.flat in LIGHT or (word.flat in _ENDS_OF_LIFE and lived)):
            continue
        worth = weight(word.terms[0])
        total += worth
        run = 0 if pair.to[index] >= 0 or word.terms[0] in known else run + 1
        gap = max(gap, run)
        if pair.to[index] >= 0:
            have += worth
        elif word.terms[0] in known:
            have += BORROWED * worth
        else:
            unsaid.append(word.text)
    facts = len(pair.claim.numbers) + len(pair.claim.dates)
    total += FACT * facts
    have += FACT * max(0, facts - failed)
    return (have / total if total else 0.0), tuple(unsaid), gap


def _dates(pair: Pair, context: Sequence[Reading]) -> Iterator[Outcome]:
    stated = _stated_dates(pair.source)
    around = [date for reading in context for date in _stated_dates(reading)]
    for date in pair.claim.dates:
        if any(says(s, date) for s in stated) or _is_pieced(date, stated, around):
            crossed = "" if belongs(pair, date.text) else _crossed(pair, date, stated)
            yield (Clash(date.text, crossed, "date") if crossed else None), ""
            continue
        other = _nearest(pair, date, [s for s in stated if clashes(s, date)])
        yield (Clash(date.text, other, "date") if other else None), "" if other else date.text


def _stated_dates(reading: Reading) -> list[Date]:
    years = [Date(n.text, n.start, n.end, ((n.year, 0, 0),)) for n in reading.numbers if n.year]
    return [*reading.dates, *years]


def _is_pieced(date: Date, stated: list[Date], around: list[Date]) -> bool:
    """Day and month here, the year near by."""
    if date.span != 1 or not date.year or not any(r[1] for r in date.readings):
        return False
    bare = Date(date.text, 0, 0, tuple((0, m, d) for _, m, d in date.readings))
    undated = [s for s in stated if not s.year and says(s, bare)]
    return bool(undated) and any(s.year == date.year for s in [*stated, *around])


def _numbers(pair: Pair, context: Sequence[Reading]) -> Iterator[Outcome]:
    claim, source = pair.claim, pair.source
    years = _stated_dates(source)
    for number in claim.numbers:
        bare_year = number.year and any(d.year == number.year and d.span == 1 for d in years)
        hits = [s for s in source.numbers if same(number, s)]
        if bare_year or any(_units_agree(number, s, source) for s in hits):
            crossed = "" if belongs(pair, number.text) else _crossed(pair, number, [*source.numbers, *source.dates])
            yield (Clash(number.text, crossed, "number") if crossed else None), ""
            continue
        rivals = [
            s
            for s in source.numbers
            if _are_rivals(number, s, hits) and not any(same(c, s) for c in claim.numbers if c is not number)
        ]
        dated = [d for d in years if number.year and d.year and d.span == 1 and not _is_claimed(d, claim)]
        other = _nearest(pair, number, [*rivals, *dated], strict=number.weak)
        if other:
            yield Clash(number.text, other, "number"), ""
        elif not number.weak:
            yield None, number.text


def _is_claimed(date: Date, claim: Reading) -> bool:
    return any(n.year == date.year for n in claim.numbers) or any(d.year == date.year for d in claim.dates)


def _units_agree(claimed: Number, stated: Number, source: Reading) -> bool:
    """A unit the source does not give with the number must at least stand near it."""
    if not claimed.unit or stated.unit or claimed.unit == "time":
        return True
    return any(n.unit == claimed.unit for n in source.numbers)


def _are_rivals(claimed: Number, stated: Number, hits: list[Number]) -> bool:
    if stated in hits:
        return claimed.unit != stated.unit
    if claimed.year and (stated.unit or stated.scaled) and not claimed.unit:
        return False
    return claimed.ordinal == stated.ordinal and (not stated.weak or claimed.weak)


def _nearest(pair: Pair, fact: Number | Date, rivals: Sequence[Number | Date], strict: bool = False) -> str:
    """The source's own value: the rival in the fact's slot, else the only one there is to take."""
    if not rivals:
        return ""
    first, last = pair.claim.at(fact.start), pair.claim.at(fact.end)
    for index in pair.slot(first, last):
        word = pair.source.words[index]
        for rival in rivals:
            if rival.start <= word.start < rival.end:
                return rival.text
    return "" if strict else rivals[0].text


def _crossed(pair: Pair, fact: Number | Date, stated: Sequence[Number | Date]) -> str:
    """The value that the source gives to the word right behind the fact, when it is never this fact's."""
    claim = pair.claim
    after = claim.at(fact.end)
    before = claim.at(fact.start) - 1
    for index, step in ((after, -1), (before, 1)):
        values = list(_values_beside(pair, index, step, stated))
        values = [v for v in values if not _is_restated(pair.source, fact, v, stated)]
        if any(_is_beyond(claim, fact, index, step, v) for v in values):
            continue
        if values and not any(_may_be_same(fact, v) for v in values):
            return values[0].text
    return ""


def _is_beyond(claim: Reading, fact: Number | Date, index: int, step: int, value: Number | Date) -> bool:
    """`27 votes to 19`: the value that the source has beside the word stands on the word's other side here."""
    facts: list[Number | Date] = [*claim.numbers, *claim.dates]
    at = claim.words[index].start if 0 <= index < len(claim.words) else 0
    near = claim.words[max(0, index - NEAR)].start, claim.words[min(len(claim.words) - 1, index + NEAR)].end
    return any(
        f is not fact and (f.start < at) == (step > 0) and near[0] <= f.start <= near[1] and _are_equal(f, value) for f in facts
    )


def _are_equal(one: Number | Date, other: Number | Date) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        return same(one, other)
    return isinstance(one, Date) and isinstance(other, Date) and says(other, one)


def _is_restated(source: Reading, fact: Number | Date, value: Number | Date, stated: Sequence[Number | Date]) -> bool:
    """`six miles (10 km)` and `1672 (some say 1671)`: what stands in brackets is said beside the value, not in its place."""
    opens = source.text.rfind("(", max(0, value.start - BRACKETED), value.start)
    if opens < 0 or ")" in source.text[opens : value.start]:
        return False
    before = [s for s in stated if s.end <= opens]
    return bool(before) and not source.text[before[-1].end : opens].strip() and agrees(fact, before[-1])


def _values_beside(pair: Pair, index: int, step: int, stated: Sequence[Number | Date]) -> Iterator[Number | Date]:
    """What the source has next to the words it shares with this one."""
    claim, source = pair.claim, pair.source
    small = 0
    while 0 <= index < len(claim.words) and not claim.words[index].terms and not claim.words[index].fact and small < 2:
        index, small = index - step, small + 1
    if (
        not 0 <= index < len(claim.words)
        or claim.words[index].fact
        or pair.to[index] < 0
        or (claim.words[index].name and step < 0)
    ):
        return
    term = claim.words[index].terms
    for place, word in enumerate(source.words):
        if word.terms == term:
            beside = _fact_beside(source, place, step, stated, small)
            if beside is not None:
                yield beside


def _fact_beside(source: Reading, place: int, step: int, stated: Sequence[Number | Date], small: int) -> Number | Date | None:
    for offset in range(1, small + 2):
        at = place + step * offset
        if not 0 <= at < len(source.words):
            return None
        word = source.words[at]
        if word.flat in ("and", "or", "but") or _BREAK.search(_gap(source, place, at)):
            return None
        if word.fact:
            return next((s for s in stated if s.start <= word.start < s.end), None)
        if word.terms:
            return None
    return None


def _gap(source: Reading, one: int, other: int) -> str:
    first, last = sorted((one, other))
    return source.text[source.words[first].end : source.words[last].start]


def _may_be_same(fact: Number | Date, value: Number | Date) -> bool:
    other_kind = isinstance(fact, Number) and isinstance(value, Number) and fact.unit != value.unit
    return other_kind or agrees(fact, value)


def _names(pair: Pair, context: Sequence[Reading]) -> Iterator[Outcome]:
    runs = names_of(pair.source)
    known = {word.flat for reading in context for word in reading.words}
    initials: frozenset[str] | None = None
    for first, last in names_of(pair.claim):
        words = pair.claim.words[first:last]
        absent = [i for i in range(first, last) if pair.to[i] < 0 and words[i - first].terms and len(words[i - first].text) > 1]
        if any(pair.claim.words[i].text.isupper() for i in absent):
            initials = _initials(pair.source).union(*map(_initials, context)) if initials is None else initials
            absent = [i for i in absent if not (pair.claim.words[i].text.isupper() and pair.claim.words[i].flat in initials)]
        if not absent:
            continue
        text = pair.claim.text[words[0].start : words[-1].end]
        other = _other_name(pair, first, last, runs)
        borrowed = all(pair.claim.words[i].flat in known for i in absent)
        if other and not (borrowed and _is_part_of_same(pair, first, last)):
            yield Clash(text, other, "name"), ""
        elif not borrowed:
            yield None, text


def _is_part_of_same(pair: Pair, first: int, last: int) -> bool:
    """Some of the name is here: the source merely calls it shorter."""
    return any(pair.to[i] >= 0 for i in range(first, last))


def _initials(reading: Reading) -> frozenset[str]:
    """What the names and phrases of a text may be abbreviated to."""
    letters_of = "".join(w.flat[0] for w in reading.words if w.terms or w.fact)
    found = {letters_of[i : i + n] for n in (3, 4, 5) for i in range(len(letters_of) - n + 1)}
    for first, last in names_of(reading):
        letters = [w.flat[0] for w in reading.words[first:last] if w.name]
        if len(letters) > 1:
            found.add("".join(letters))
    return frozenset(found)


def _other_name(pair: Pair, first: int, last: int, runs: list[tuple[int, int]]) -> str:
    """The name that the source has in this one's place, unless it has a pronoun there."""
    used = pair.used
    for index in pair.slot(first, last):
        word = pair.source.words[index]
        if word.flat in PRONOUNS and not word.name:
            return ""
        for a, b in runs:
            if a <= index < b and not any(i in used for i in range(a, b)) and _are_alike_placed(pair, first, a):
                return pair.source.text[pair.source.words[a].start : pair.source.words[b - 1].end]
    return ""


def _are_alike_placed(pair: Pair, first: int, other: int) -> bool:
    """`with Ann` is not where `in Oslo` stands."""
    ours = pair.claim.words[first - 1].flat if first else ""
    theirs = pair.source.words[other - 1].flat if other else ""
    return ours == theirs or not {ours, theirs} <= PREPOSITIONS


def _literals(pair: Pair, context: Sequence[Reading]) -> Iterator[Outcome]:
    """Code must stand there as it is written; quotes are looked for by whoever has the whole page."""
    text = "\n".join([pair.source.text, *(reading.text for reading in context)]) if pair.claim.code else ""
    for code in pair.claim.code:
        bare = code.rstrip("().,=")
        if bare not in text and flat(bare) not in flat(text):
            yield None, code


def _roles(pair: Pair) -> Iterator[Clash]:
    """`A beat B` for `B beat A`: the same words, two names exchanged, and no passive that would explain it."""
    runs = [(a, b) for a, b in names_of(pair.claim) if all(pair.to[i] >= 0 for i in range(a, b))]
    for (a, b), (c, d) in pairwise(runs):
        between = range(b, c)
        if pair.to[a] < pair.to[d - 1] or not between or len(between) > NEAR + 2:
            continue
        low, high = min(pair.to[c:d]), max(pair.to[a:b])
        acts = [i for i in between if pair.to[i] >= 0 and low < pair.to[i] < high]
        even = any(pair.claim.words[i].flat in _EVEN for i in between)
        claim_text = pair.claim.text[pair.claim.words[b - 1].end : pair.claim.words[c].start]
        source_text = pair.source.text[pair.source.words[low].end : pair.source.words[high].start]
        if acts and not even and high - low < NEAR + 6 and bool(_ACTS.search(claim_text)) == bool(_ACTS.search(source_text)):
            yield Clash(
                pair.claim.text[pair.claim.words[a].start : pair.claim.words[d - 1].end],
                pair.source.text[pair.source.words[low].start : pair.source.words[high].end],
                "role",
            )


def _other_doers(pair: Pair) -> Iterator[Clash]:
    """`directed by B` where the source has `directed by A and scored by B`."""
    for first, last in names_of(pair.claim):
        if first < 2 or pair.claim.words[first - 1].flat != "by" or any(pair.to[i] < 0 for i in range(first, last)):
            continue
        act = pair.claim.words[first - 2]
        doers = [_doers(pair.source, i) for i, word in enumerate(pair.source.words) if word.terms and word.terms == act.terms]
        named = [run for run in doers if run]
        wanted = {term for word in pair.claim.words[first:last] for term in word.terms}
        if named and not any(wanted & {t for w in run for t in w.terms} for run in named):
            words = pair.claim.words
            other = pair.source.text[named[0][0].start : named[0][-1].end]
            yield Clash(pair.claim.text[words[first].start : words[last - 1].end], other, "name")


def _doers(source: Reading, act: int) -> list[Word]:
    """The names that follow `act by`, up to the next plain word."""
    if act + 1 >= len(source.words) or source.words[act + 1].flat != "by":
        return []
    found: list[Word] = []
    for word in source.words[act + 2 :]:
        if word.terms and not word.name:
            break
        if word.name:
            found.append(word)
    return found


def _other_end(pair: Pair) -> Iterator[Clash]:
    """`born` with the second date of `(1800 - 1857)`, or `died` with the first."""
    said = {w.flat for w in pair.claim.words} & {"born", "died"}
    claimed: list[Number | Date] = [*pair.claim.dates, *(n for n in pair.claim.numbers if n.year)]
    facts = sorted(_stated_dates(pair.source), key=lambda date: date.start)
    for birth, death in pairwise(facts) if len(said) == 1 and len(claimed) == 1 else ():
        bracket = pair.source.text.rfind("(", max(0, birth.start - 40), birth.start)
        if bracket < 0 or pair.source.text[birth.end : death.start].strip() != "-":
            continue
        right, wrong = (birth, death) if "born" in said else (death, birth)
        if agrees(claimed[0], wrong) and not agrees(claimed[0], right):
            yield Clash(claimed[0].text, right.text, "date")
