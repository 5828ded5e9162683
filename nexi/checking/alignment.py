"""A sentence laid along a sentence of a page: what stands in the same slot, and what a near copy changes.

Below `rules`, above `pages`. Small words are left out, and every value is masked by its unit, so that "opened in 1889"
lies along "opened on 4 March 1890" and the two dates meet. Two values that meet, with the same words beside them, and differ
are a contradiction. Where a sentence is nearly a copy, a name, a noun, an opposite or a negation that was put in, and a hedge
or a condition that was left out, mean that the page does not say it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from msgspec import Struct

from nexi.checking import lexicon
from nexi.checking.pages import ParsedText, Word
from nexi.checking.values import Date, Number, Value, dates_differ, find_missing, is_same_number, list_dates

MAX_WORDS = 200
MIN_SHARED = 0.5  # of a sentence's items that must be in the other one before order is looked at
NEAR_COPY = 0.6  # share of a sentence's items that keep the page's order
MAX_EDIT = 3  # items of an edit on the page's side; more is a clause that was left out
MAX_EXCHANGED = 5  # items of the page beside which a name or a noun has another's place
ROUGHLY = 0.1  # two values nearer than this, one of them rounded, do not contradict
_RESTATES = re.compile(r"\s*[(\[/]\s*(?:or |about |some )?")  # six miles (10 km)
LEADING_WORDS = 2  # before the first shared word that may hedge or negate it
_UNDONE = frozenset(("not", "have"))  # "could not" and "could have" are no doubt
_NOT_ONLY = frozenset(("only", "just", "merely"))  # "not only" negates nothing


class _Alignment(Struct, frozen=True):
    """`follows` is the share of the sentence's items that stand in the page's sentence in the same order."""

    follows: float = 0.0
    contradictions: tuple[tuple[Value, Value], ...] = ()  # claimed and stated, in one slot
    changes: tuple[str, ...] = ()  # what a near copy puts in or takes out, and what one of the two negates
    is_negated: bool = False


class _Item:
    """A content word or a value of a sentence, with what it is compared by; a value may be restated in brackets."""

    __slots__ = ("is_led", "key", "values", "word")

    def __init__(self, word: Word, before: str, has_years: bool) -> None:
        self.word = word
        self.is_led = before in lexicon.DETERMINERS and not word.value  # a noun, most likely
        self.values: list[Value] = [word.value] if word.value else []
        if word.value is None:
            self.key = word.term
        elif isinstance(word.value, Date) or (word.value.year and has_years):
            self.key = "#date"
        else:
            self.key = "#nth" if word.value.is_ordinal else f"#{word.value.unit or 'number'}"

    @property
    def is_capital(self) -> bool:
        return not self.values and self.word.text[0].isupper()


def _list_items(text: ParsedText, other: ParsedText) -> list[_Item]:
    """The content words and values of a text, in order; 1001 is no year where the other text has a count and no date."""
    items: list[_Item] = []
    has_years = bool(list_dates(other.values)) or not any(not n.unit and not n.is_weak for n in other.numbers)
    before = ""
    for word in text.words:
        before, led_by = word.flat, before
        last = items[-1] if items else None
        if not (word.value or word.term) or (last and word.value and last.values and last.values[-1] is word.value):
            continue
        item = _Item(word, led_by, has_years)
        if last and item.values and item.key == last.key and _RESTATES.fullmatch(text.text, last.values[-1].end, word.start):
            last.values += item.values
        else:
            items.append(item)
    return items[:MAX_WORDS]


def align(
    claim: ParsedText,
    source: ParsedText,
    borrowed_terms: Container[str] = (),
    elsewhere: Container[str] = (),
    subject: Container[str] = (),
) -> _Alignment:
    """Lay a sentence along one of a page; the terms are of what it is bound to, of the whole page, and of its title."""
    ours, theirs = _list_items(claim, source), _list_items(source, claim)
    our_keys, their_keys = [item.key for item in ours], [item.key for item in theirs]
    if not our_keys or (Counter(our_keys) & Counter(their_keys)).total() < MIN_SHARED * len(our_keys):
        return _Alignment()
    matcher = SequenceMatcher(None, our_keys, their_keys, autojunk=False)
    blocks = [(a, b, size) for a, b, size in matcher.get_matching_blocks() if size]
    follows = sum(size for _, _, size in blocks) / len(our_keys)
    unequal = [slot for block in blocks for slot in _find_slots(block, ours, theirs) if differ(*slot)]
    contradictions = tuple(  # where neither text gives the other's value elsewhere, for something else
        slot for slot in unequal if any(find_missing(slot[:1], source.values)) and any(find_missing(slot[1:], claim.values))
    )
    if follows < NEAR_COPY:
        negations = () if has_negation(source) else tuple(word.text for word in _list_negations(claim.words, source.words))
        return _Alignment(follows, contradictions, negations, bool(negations))
    first, last = theirs[blocks[0][1]].word.start, theirs[sum(blocks[-1][1:]) - 1].word.end
    inside = [at for at, word in enumerate(source.words) if first <= word.start < last]
    covered = source.words[max(0, inside[0] - LEADING_WORDS) : inside[-1] + 1]
    negated = list(_find_negations(claim, covered))
    changes = [*negated, *(our_value.text.strip() for our_value, _ in unequal)]
    added_keys, removed_keys = Counter(our_keys) - Counter(their_keys), Counter(their_keys) - Counter(our_keys)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal" or b - a > 2 * MAX_EDIT:
            continue
        start, end = max(c, d - (b - a) - 2) if a == 0 else c, min(d, c + (b - a) + 2) if b == len(ours) else d
        lost = [item for item in theirs[start:end] if item.key in removed_keys] if end - start <= MAX_EXCHANGED else []
        new = [item for item in ours[a:b] if item.key in added_keys and item.key not in borrowed_terms]
        changes += _find_exchanges(new, lost, elsewhere)
        put = [item for item in ours[a:b] if item.key not in subject]
        changes += _find_changes(put, theirs[c:d], added_keys, removed_keys) if d - c <= MAX_EDIT else ()
    changes += _find_hedges(claim, covered, source.words[inside[-1] + 1 : inside[-1] + 3])
    return _Alignment(follows, contradictions, tuple(dict.fromkeys(changes)), bool(negated))


def _find_slots(block: tuple[int, int, int], ours: Sequence[_Item], theirs: Sequence[_Item]) -> Iterator[tuple[Value, Value]]:
    """The values that meet with the same word beside them; of one that is restated, the spelling that agrees."""
    a, b, size = block
    for step in range(size) if size > 1 else ():
        pairs = [(one, other) for one in ours[a + step].values for other in theirs[b + step].values]
        if pairs:
            yield next((pair for pair in pairs if not differ(*pair)), pairs[0])


def differ(claim: Value, source: Value) -> bool:
    """Whether two values exclude each other, as far as both are given."""
    if isinstance(claim, Number) and isinstance(source, Number):
        if claim.is_weak or source.is_weak or is_same_number(claim, source) or is_same_number(source, claim):
            return False
        one, other = claim.values[0] * claim.factor, source.values[0] * source.factor
        if (claim.rounding == "above" and other > one) or (claim.rounding == "below" and other < one):
            return False
        rough = (claim.rounding or source.rounding) and not (claim.year and source.year)
        return not (rough and abs(one - other) <= ROUGHLY * max(abs(one), abs(other)))
    dates = list_dates((claim, source))
    return len(dates) == 2 and dates_differ(*dates)


def _find_changes(
    put: Sequence[_Item], stood: Sequence[_Item], added_keys: Container[str], removed_keys: Container[str]
) -> Iterator[str]:
    """A name for a name, and an opposite, in a short edit of a near copy; what was moved is no change."""
    if any(item.is_capital and item.key in removed_keys for item in stood):
        yield from (item.word.text for item in put if item.is_capital and item.key in added_keys)
    yield from (one.word.text for one in put for other in stood if (one.key, other.key) in lexicon.OPPOSITES)


def _find_exchanges(new: Sequence[_Item], lost: Sequence[_Item], elsewhere: Container[str]) -> Iterator[str]:
    """A name in another's place, and a noun in another's place that the page uses of something else."""
    for item in new:
        is_noun = item.is_led and item.key in elsewhere and len(new) <= MAX_EDIT
        if (item.word.is_name and any(other.is_capital for other in lost)) or (is_noun and any(other.is_led for other in lost)):
            yield item.word.text


def _find_hedges(claim: ParsedText, covered: Sequence[Word], following: Sequence[Word]) -> Iterator[str]:
    """What the page says with a doubt or under a condition, and the sentence without: "may delay sleep", "only if"."""
    if any(word.flat in lexicon.WEAK_WORDS for word in claim.words):
        return
    for word, after in pairwise((*covered, None)):
        is_doubt = word and word.flat in lexicon.HEDGES and not (word.value or word.text == "May")
        if word and is_doubt and not (after and after.flat in _UNDONE):
            yield f"a statement without “{word.text}”"
    conditions = [word for word in following if word.flat != "only"][:1]
    yield from (f"a statement without “{word.text}”" for word in conditions if word.flat in lexicon.CONDITIONS)


def _find_negations(claim: ParsedText, covered: Sequence[Word]) -> Iterator[str]:
    """A negation that a near copy puts in or takes out."""
    ours, theirs = _list_negations(claim.words, covered), _list_negations(covered, claim.words)
    if len(ours) != len(theirs):
        fewer, more = sorted((ours, theirs), key=len)
        word = next((w for w in more if w.flat not in [other.flat for other in fewer]), more[0])
        yield word.text if more is ours else f"a statement without “{word.text}”"


def find_overstatements(claim: ParsedText, source: ParsedText) -> Iterator[str]:
    """The words that say more than their neighbours (all, only, largest, because), of which the source has none like it."""
    source_words = {word.flat for word in source.words}
    # the second largest
    ours, ranked_words = ({b.flat for a, b in pairwise(t.words) if a.flat in lexicon.ORDINALS} for t in (claim, source))
    for word in claim.words:
        equals = lexicon.STRONG_WORDS.get(word.flat)
        if equals and not word.is_name and (source_words.isdisjoint(equals) or word.flat in ranked_words - ours):
            yield word.text


def _list_negations(words: Sequence[Word], others: Sequence[Word]) -> list[Word]:
    """ "Not only" negates nothing, except where the other text says "only"."""
    idle = _NOT_ONLY.difference(word.flat for word in others)
    pairs = pairwise((*words, None))
    return [word for word, after in pairs if word and is_negation(word) and not (after and after.flat in idle)]


def is_negation(word: Word) -> bool:
    return word.flat in lexicon.NEGATIONS or word.flat.endswith("n't")


def has_negation(text: ParsedText) -> bool:
    return any(map(is_negation, text.words))


def match_values(ours: ParsedText, theirs: ParsedText) -> list[tuple[Value, Value]]:
    """The values of two sentences that meet in one slot."""
    our_items, their_items = _list_items(ours, theirs), _list_items(theirs, ours)
    matcher = SequenceMatcher(None, [item.key for item in our_items], [item.key for item in their_items], autojunk=False)
    return [slot for a, b, size in matcher.get_matching_blocks() for slot in _find_slots((a, b, size), our_items, their_items)]
