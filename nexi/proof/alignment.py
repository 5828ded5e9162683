"""A sentence laid along a sentence of a page: what stands in the same slot, and what a near copy changes.

Below `verdict`, above `parsed`. Small words are left out, and every value is masked by its unit, so that "opened in 1889"
lies along "opened on 4 March 1890" and the two dates meet. Two values that meet, with the same words beside them, and differ
are a contradiction. Where a sentence is nearly a copy, a name, a noun, an opposite or a negation that was put in, and a hedge
or a condition that was left out, mean that the page does not say it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise, takewhile

from msgspec import Struct

from nexi.proof.lexicon import (
    AUXILIARIES,
    CONDITIONS,
    DETERMINERS,
    HEDGES,
    NEGATIONS,
    OPPOSITES,
    ORDINALS,
    PARTICLES,
    STRONG_WORDS,
    WEAK_WORDS,
)
from nexi.proof.parsed import ParsedText, Word
from nexi.proof.values import Date, Number, Value, dates_differ, find_missing, is_same_number, list_dates

MAX_WORDS = 200
MIN_SHARED = 0.5  # of a sentence's items that must be in the other one before order is looked at
NEAR_COPY = 0.6  # share of a sentence's items that keep the page's order
MAX_EDIT = 3  # items of an edit on the page's side; more is a clause that was left out
MAX_EXCHANGED = 5  # items of the page beside which a name or a noun has another's place
ROUGHLY = 0.1  # two values nearer than this, one of them rounded, do not contradict
_RESTATES = re.compile(r"\s*[(\[/]\s*(?:or |about |some )?")  # six miles (10 km)
VERB_WORDS = 4  # behind a name, within which its verb stands
HEDGE_WORDS = 2  # before the first shared word that may hedge it
_UNDONE = frozenset(("not", "have"))  # "could not" and "could have" are no doubt
_BREAKS_SUBJECT = re.compile(r"[,;:(]|'s")
_BINDS_NAME = (DETERMINERS | PARTICLES) - {"the"}  # a name behind one of these is no subject
_NOT_ONLY = frozenset(("only", "just", "merely"))  # "not only" negates nothing


class Alignment(Struct, frozen=True):
    """`follows` is the share of the sentence's items that stand in the page's sentence in the same order."""

    follows: float = 0.0
    contradictions: tuple[tuple[Value, Value], ...] = ()  # claimed and stated, in one slot
    changes: tuple[str, ...] = ()  # what a near copy puts in or takes out, and what one of the two negates
    is_negated: bool = False


class Item:
    """A content word or a value of a sentence, with what it is compared by; a value may be restated in brackets."""

    __slots__ = ("is_led", "key", "values", "word")

    def __init__(self, word: Word, before: str) -> None:
        self.word = word
        self.is_led = before in DETERMINERS  # a noun, most likely
        self.values: list[Value] = [word.value] if word.value else []
        self.key = _mask_value(word.value) if word.value else word.term


def _mask_value(value: Value) -> str:
    if isinstance(value, Date) or value.year:
        return "#date"
    return "#nth" if value.is_ordinal else f"#{value.unit or 'number'}"


def list_items(text: ParsedText) -> list[Item]:
    """The content words and values of a text, in order."""
    items: list[Item] = []
    before = ""
    for word in text.words:
        before, led_by = word.flat, before
        last = items[-1] if items else None
        if not (word.value or word.term) or (last and word.value and last.values and last.values[-1] is word.value):
            continue
        item = Item(word, led_by)
        if last and item.values and item.key == last.key and _RESTATES.fullmatch(text.text, last.values[-1].end, word.start):
            last.values += item.values
        else:
            items.append(item)
    return items[:MAX_WORDS]


def _list_both(one: ParsedText, other: ParsedText) -> tuple[list[Item], list[Item], list[str], list[str]]:
    """The items of two texts and their keys; 1001 is a count and no year where the other text has counts and no date."""
    ours, theirs = list_items(one), list_items(other)
    for items, others in ((ours, theirs), (theirs, ours)):
        masks = {item.key for item in others if item.values}
        for item in items:
            if item.key == "#date" and isinstance(item.values[0], Number) and "#date" not in masks and "#number" in masks:
                item.key = "#number"
    return ours, theirs, [item.key for item in ours], [item.key for item in theirs]


def align(claim: ParsedText, source: ParsedText, lent: Container[str] = (), elsewhere: Container[str] = ()) -> Alignment:
    """Lay a sentence along one of a page; `lent` are the terms of what it is bound to, `elsewhere` those of the whole page."""
    ours, theirs, left, right = _list_both(claim, source)
    if not left or (Counter(left) & Counter(right)).total() < MIN_SHARED * len(left):
        return Alignment()
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    blocks = [(a, b, size) for a, b, size in matcher.get_matching_blocks() if size]
    follows = sum(size for _, _, size in blocks) / len(left)
    unequal = [slot for block in blocks for slot in _find_slots(block, ours, theirs) if differ(*slot)]
    contradictions = tuple(slot for slot in unequal if _are_rivals(*slot, claim, source))
    changes = negated = list(_find_negations(ours, theirs))
    if follows >= NEAR_COPY:
        changes = [*negated, *(claimed.text.strip() for claimed, _ in unequal)]
        edits = [(a, b, c, d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
        added, gone = Counter(left) - Counter(right), Counter(right) - Counter(left)
        new = {key for key in added if key not in lent}
        for a, b, c, d in edits:
            changes += _find_changes(ours[a:b], theirs[c:d], added, gone)
            near = theirs[max(c, d - (b - a) - 2) if a == 0 else c : min(d, c + (b - a) + 2) if b == len(ours) else d]
            changes += _find_exchanges(ours[a:b], near, new, gone, elsewhere)
            changes += _find_edited_negations(ours[a:b], theirs[c:d]) if not negated else []
        changes += _find_hedges(claim, source, theirs[blocks[0][1]].word.start, theirs[sum(blocks[-1][1:]) - 1].word.end)
    return Alignment(follows, contradictions, tuple(dict.fromkeys(changes)), bool(negated))


def _find_slots(block: tuple[int, int, int], ours: Sequence[Item], theirs: Sequence[Item]) -> Iterator[tuple[Value, Value]]:
    """The values that meet with the same word beside them; of one that is restated, the spelling that agrees."""
    a, b, size = block
    for step in range(size) if size > 1 else ():
        pairs = [(one, other) for one in ours[a + step].values for other in theirs[b + step].values]
        if pairs:
            yield next((pair for pair in pairs if not differ(*pair)), pairs[0])


def _are_rivals(claimed: Value, stated: Value, claim: ParsedText, source: ParsedText) -> bool:
    """Whether neither text gives the other's value elsewhere, for something else."""
    return bool(list(find_missing([claimed], source.values)) and list(find_missing([stated], claim.values)))


def differ(claimed: Value, stated: Value) -> bool:
    """Whether two values exclude each other, as far as both are given."""
    if isinstance(claimed, Number) and isinstance(stated, Number):
        if claimed.is_weak or stated.is_weak or is_same_number(claimed, stated) or is_same_number(stated, claimed):
            return False
        one, other = claimed.values[0] * claimed.factor, stated.values[0] * stated.factor
        if (claimed.rounding == "above" and other > one) or (claimed.rounding == "below" and other < one):
            return False
        rough = (claimed.rounding or stated.rounding) and not (claimed.year and stated.year)
        return not (rough and abs(one - other) <= ROUGHLY * max(abs(one), abs(other)))
    dates = list_dates((claimed, stated))
    return len(dates) == 2 and dates_differ(*dates)


def _find_changes(put: Sequence[Item], stood: Sequence[Item], added: Container[str], gone: Container[str]) -> Iterator[str]:
    """What an edit of a near copy changes: `put` stands in the sentence, `stood` in the page; what was moved is no change."""
    if len(stood) > MAX_EDIT or len(put) > 2 * MAX_EDIT:
        return
    if any(_is_capital(item) and item.key in gone for item in stood):
        yield from (item.word.text for item in put if _is_capital(item) and item.key in added)
    yield from (one.word.text for one in put for other in stood if (one.key, other.key) in OPPOSITES)


def _find_exchanges(
    put: Sequence[Item], stood: Sequence[Item], new: Container[str], gone: Container[str], elsewhere: Container[str]
) -> Iterator[str]:
    """A name in another's place, and a noun in another's place that the page uses of something else."""
    lost = [item for item in stood if not item.values and item.key in gone] if len(stood) <= MAX_EXCHANGED else []
    for item in put if lost and len(put) <= 2 * MAX_EDIT else ():
        if item.values or item.key not in new:
            continue
        is_noun = item.is_led and item.key in elsewhere and len(put) <= MAX_EDIT and any(other.is_led for other in lost)
        if is_noun or (item.word.is_name and any(map(_is_capital, lost))):
            yield item.word.text


def _find_hedges(claim: ParsedText, source: ParsedText, start: int, end: int) -> Iterator[str]:
    """What the page says with a doubt or under a condition, and the sentence without: "may delay sleep", "only if"."""
    if any(word.flat in WEAK_WORDS for word in claim.words):
        return
    inside = [at for at, word in enumerate(source.words) if start <= word.start < end]
    words = source.words[max(0, inside[0] - HEDGE_WORDS) : inside[-1] + 1]
    for word, after in pairwise((*words, None)):
        if word and word.flat in HEDGES and not (word.value or word.text == "May") and not (after and after.flat in _UNDONE):
            yield f"“{word.text}” is left out"
    following = [word for word in source.words[inside[-1] + 1 : inside[-1] + 3] if word.flat != "only"][:1]
    yield from (f"“{word.text}” is left out" for word in following if word.flat in CONDITIONS)


def find_overstatements(claim: ParsedText, source: ParsedText) -> Iterator[str]:
    """The words that say more than their neighbours (all, only, largest, because), of which the source has none like it."""
    known = {word.flat for word in source.words}
    ranked = {two.flat for one, two in pairwise(source.words) if one.flat in ORDINALS}  # the second largest
    ours = {two.flat for one, two in pairwise(claim.words) if one.flat in ORDINALS}
    for word in claim.words:
        equals = STRONG_WORDS.get(word.flat)
        if equals and not word.is_name and (known.isdisjoint(equals) or word.flat in ranked - ours):
            yield word.text


def find_other_doers(claim: ParsedText, sentences: Sequence[ParsedText]) -> Iterator[str]:
    """The names that do what another one does in the page, where they stand behind the verb: "Ann beat Jane"."""
    for name in claim.names:
        first = claim.words.index(name[-1]) + 1
        between = list(takewhile(lambda word: not word.term, claim.words[first : first + VERB_WORDS]))
        at = first + len(between)
        if at >= len(claim.words) or not claim.words[at].term or claim.words[at].is_name or claim.words[at].value:
            continue
        gap = claim.text[name[-1].end : claim.words[at].start]
        before = claim.words[max(0, first - len(name) - 1) : first - len(name)]
        if _BREAKS_SUBJECT.search(gap) or any(word.flat in _BINDS_NAME for word in (*before, *between)):
            continue
        doer = {word.term for word in name}
        uses = [(text, i) for text in sentences for i, word in enumerate(text.words) if word.flat == claim.words[at].flat]
        voice = _is_passive(claim, at)
        if uses and all(_is_done_by_another(text, i, doer) and _is_passive(text, i) == voice for text, i in uses):
            yield claim.text[name[0].start : name[-1].end]


def _is_done_by_another(text: ParsedText, verb: int, doer: set[str]) -> bool:
    before, after = text.words[:verb], text.words[verb:]
    is_behind = doer.isdisjoint(word.term for word in before) and not doer.isdisjoint(word.term for word in after)
    return is_behind and any(word.is_name for word in before)


def _is_passive(text: ParsedText, verb: int) -> bool:
    has_form = any(word.flat in AUXILIARIES for word in text.words[max(0, verb - 2) : verb])
    return has_form or any(word.flat == "by" for word in text.words[verb + 1 : verb + 4])


def _find_negations(ours: Sequence[Item], theirs: Sequence[Item]) -> Iterator[str]:
    """What one sentence negates and the other one says and does not negate: "not finished", or "finished"."""
    for side, other in ((ours, theirs), (theirs, ours)):
        places = [at for at in range(len(other)) if _negates(other, at)]
        undone = {item.key for at in places for item in other[max(0, at - 1) : at + 4]}
        said = {item.key: item.word.text for item in other if item.key not in undone}
        for at in range(len(side) - 1):
            if _negates(side, at) and side[at + 1].key in said:
                yield f"{side[at].word.text} {side[at + 1].word.text}" if side is ours else said[side[at + 1].key]


def _find_edited_negations(put: Sequence[Item], stood: Sequence[Item]) -> Iterator[str]:
    """A negation that an edit of a near copy puts in or takes out."""
    ours, theirs = ([item.word.text for at, item in enumerate(side) if _negates(side, at)] for side in (put, stood))
    if len(ours) != len(theirs) and len(stood) <= MAX_EDIT and len(put) <= 2 * MAX_EDIT:
        yield ours[0] if ours else f"“{theirs[0]}” is left out"


def _negates(items: Sequence[Item], at: int) -> bool:
    """ "Not only" negates nothing."""
    return is_negation(items[at].word) and not (at + 1 < len(items) and items[at + 1].word.flat in _NOT_ONLY)


def _is_capital(item: Item) -> bool:
    return not item.values and item.word.text[0].isupper()


def is_negation(word: Word) -> bool:
    return word.flat in NEGATIONS or word.flat.endswith("n't")


def has_negation(text: ParsedText) -> bool:
    return any(map(is_negation, text.words))


def match_values(ours: ParsedText, theirs: ParsedText) -> list[tuple[Value, Value]]:
    """The values of two sentences that meet in one slot."""
    left, right, keys, others = _list_both(ours, theirs)
    matcher = SequenceMatcher(None, keys, others, autojunk=False)
    return [
        slot for block in matcher.get_matching_blocks() for slot in _find_slots((block.a, block.b, block.size), left, right)
    ]
