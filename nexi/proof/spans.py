"""The stretch of a page that carries a sentence, and the verdict on it.

Below `verdicts`, above `agreement` and `snapshots`. Sentences of the page are found by the terms they share with the claim,
neighbours are tried together, and the few best stretches are read closely. The best reading counts; a stretch is never longer
than three sentences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from heapq import nsmallest

from msgspec import Struct

from nexi.proof.agreement import Agreement, Weight, agree
from nexi.proof.facts import Reading, read
from nexi.proof.lexicon import PRONOUNS
from nexi.proof.plain import folded
from nexi.proof.rewording import Rewording, compare
from nexi.proof.snapshots import Snapshot, digits
from nexi.proof.terms import WORD, flat
from nexi.types import Verdict

__all__ = ["READ", "READ_OF_MANY", "Finding", "Similarity", "find", "is_quoted"]


Similarity = Callable[[str, Sequence[str]], Sequence[float]]

ENOUGH = 0.62  # presence from which a sentence with all its facts is said
ENOUGH_WIDE = 0.75  # the same where names cannot be told by a capital
TOUCHED = 0.4  # presence from which a source speaks of the same thing at all
ALIKE = 0.8  # likeness by vectors that lets a rewording pass with fewer words
LEAST_ALIKE = 0.4
MOST_WORDS, MOST_FACTS = 400, 60  # of one sentence
GAP = 4  # words in a row that the source does not have: a part of its own, not another wording
SEARCHED = 6  # sentences looked at around
READ = 5  # stretches read closely
READ_OF_MANY = 2  # the same in each of many pages
CLOSE, CLOSER = 0.6, 0.1  # a sentence followed so far, and so much further, is the one that counts
NAMING = frozenset(("a", "an", "of", "his", "her", "its", "their", "by", "small", "large"))  # what a thing is led by
NOTHING = "no passage of the source says this"
SURE = 0.9  # presence at which no other stretch is looked at
LONGER = 0.05  # what each further sentence of a stretch costs
RANK = (Verdict.SUPPORTED, Verdict.PARTLY, Verdict.CONTRADICTED, Verdict.NOT_FOUND, Verdict.UNCHECKED)


class Finding(Struct, frozen=True):
    """What a page says to a claim: the verdict, the sentences from `first` to `last`, and why."""

    verdict: Verdict
    reason: str
    presence: float = 0.0
    fit: float = 0.0
    first: int = -1
    last: int = -1
    missing: tuple[str, ...] = ()
    other: str = ""
    follows: float = 0.0  # share of the sentence's words that stand there in the same order


def find(claim: Reading, page: Snapshot, similarity: Similarity | None = None, most: int = READ) -> Finding:
    """The best a page has for a claim."""
    if len(claim.words) > MOST_WORDS or len(claim.numbers) + len(claim.dates) > MOST_FACTS:
        return Finding(Verdict.UNCHECKED, "too long to be compared as one sentence")
    search = _Search(claim, page, similarity)
    found: list[Finding] = []
    for first, last in search.stretches()[:most]:
        found.append(search.closely(first, last))
        if found[-1].verdict is Verdict.SUPPORTED and found[-1].presence > SURE:
            break
    best = min(found, key=_order, default=Finding(Verdict.NOT_FOUND, NOTHING))
    denied = max((f for f in found if f.verdict is Verdict.CONTRADICTED), key=lambda f: f.follows, default=best)
    if best.verdict is Verdict.SUPPORTED and denied.follows >= CLOSE and denied.follows > best.follows + CLOSER:
        best = denied
    if best.verdict is Verdict.NOT_FOUND and not page.whole:
        return Finding(Verdict.UNCHECKED, f"not in the first {page.read_chars:,} characters; the rest of the page was not read")
    return best


def _order(finding: Finding) -> tuple[bool, float, int]:
    """Supported first; otherwise where most of the sentence stands."""
    return finding.verdict is not Verdict.SUPPORTED, -(finding.presence + 0.1 * finding.fit), finding.last - finding.first


class _Search:
    """One claim against one page: each sentence of the page is read at most once."""

    def __init__(self, claim: Reading, page: Snapshot, similarity: Similarity | None) -> None:
        self._claim, self._page, self._similarity = claim, page, similarity
        self._weight = _weight(page)
        self._rewordings: dict[int, Rewording] = {}

    def stretches(self) -> list[tuple[int, int]]:
        return _stretches(self._claim, self._page, self._weight)

    def closely(self, first: int, last: int) -> Finding:
        """Read one stretch and judge it."""
        claim, page = self._claim, self._page
        text = page.words_between(first, last)
        closest = max((self._rewording(i) for i in range(first, last + 1)), key=lambda r: r.follows)
        source = closest.source if first == last else page.reading_between(first, last)
        agreement = agree(claim, source, _context(page, first, source), self._weight, closest)
        missing = (*agreement.missing, *(f'"{quote}"' for quote in claim.quotes if not is_quoted(quote, page)))
        missing = (*missing, *_foreign(claim, agreement.unsaid, page))
        similar = self._similarity and agreement.presence >= LEAST_ALIKE
        likeness = self._similarity(claim.text, [text])[0] if self._similarity and similar else 0.0
        verdict, reason = _judge(claim, source, agreement, missing, likeness)
        other = agreement.clashes[0].other if verdict is Verdict.CONTRADICTED else ""
        fit = agreement.fit if verdict in (Verdict.SUPPORTED, Verdict.PARTLY) else 0.0
        return Finding(verdict, reason, agreement.presence, fit, first, last, missing, other, closest.follows)

    def _rewording(self, index: int) -> Rewording:
        if index not in self._rewordings:
            self._rewordings[index] = compare(self._claim, self._page.reading(index))
        return self._rewordings[index]


def _weight(page: Snapshot) -> Weight:
    count = len(page.bounds)

    def weight(term: str) -> float:
        return min(3.0, max(0.8, math.log(1 + count / max(1, len(page.places.get(term, ()))))))

    return weight


def _stretches(claim: Reading, page: Snapshot, weight: Weight) -> list[tuple[int, int]]:
    """The few stretches that hold most of the claim's terms."""
    wanted = list(dict.fromkeys(t for w in claim.words for t in (() if w.fact else w.terms) or digits(w.flat)))[:64]
    weights = [weight(term) for term in wanted]
    held: dict[int, int] = {}
    score: dict[int, float] = {}
    for bit, term in enumerate(wanted):
        for place in page.places.get(term, ()):
            held[place] = held.get(place, 0) | 1 << bit
            score[place] = score.get(place, 0.0) + weights[bit]
    total = sum(weights)
    if not total:
        return []

    def covered(mask: int) -> float:
        return sum(w for bit, w in enumerate(weights) if mask >> bit & 1) / total

    scored = nsmallest(SEARCHED, score, key=lambda place: (-score[place], place))
    windows: dict[tuple[int, int], float] = {}
    for place in scored:
        for first, last in _around(place, page):
            mask = 0
            for i in range(first, last + 1):
                mask |= held.get(i, 0)
            windows[first, last] = covered(mask) - LONGER * (last - first)
    best = sorted(windows, key=lambda w: (-windows[w], w))[:READ]
    return [w for w in best if windows[w] >= TOUCHED - 0.1]


def _around(place: int, page: Snapshot) -> Iterator[tuple[int, int]]:
    """The sentence, alone and with its neighbours; a row of a table says nothing about the next."""
    yield place, place
    for before, after in ((1, 0), (0, 1), (1, 1)):
        first, last = place - before, place + after
        if first >= 0 and last < len(page.bounds) and not any(page.is_row(i) for i in range(first, last + 1)):
            yield first, last


def _judge(
    claim: Reading, source: Reading, agreement: Agreement, missing: tuple[str, ...], likeness: float
) -> tuple[Verdict, str]:
    presence = agreement.presence
    if presence < TOUCHED:
        return Verdict.NOT_FOUND, NOTHING
    if agreement.clashes:
        clash = agreement.clashes[0]
        return Verdict.CONTRADICTED, _clash_reason(clash.kind, clash.claimed, clash.other)
    if missing:
        return Verdict.PARTLY, f"the source does not say: {', '.join(missing[:4])}"
    enough = ENOUGH_WIDE if claim.wide else ENOUGH
    whole = agreement.gap < (GAP if presence > ENOUGH_WIDE else GAP - 1) or claim.wide
    if (presence >= enough and whole) or (likeness >= ALIKE and presence >= LEAST_ALIKE):
        return Verdict.SUPPORTED, "said word for word" if is_within(claim, source) else "said in other words"
    return Verdict.PARTLY, f"the source does not say: {', '.join(agreement.unsaid[:4])}"


def _foreign(claim: Reading, unsaid: Sequence[str], page: Snapshot) -> Iterator[str]:
    """Things that the sentence names and the page never does, in no word that means the same."""
    for index, word in enumerate(claim.words):
        if word.text not in unsaid or word.name or claim.wide or not word.text.isascii() or len(word.flat) < 4:
            continue
        led = index > 0 and claim.words[index - 1].flat in NAMING
        if led and word.terms[0] not in page.places and not any(term.startswith(word.flat[:5]) for term in page.places):
            yield word.text


def _clash_reason(kind: str, claimed: str, other: str) -> str:
    if kind == "denial":
        return f"one denies what the other says: {claimed!r} here, {other!r} in the source"
    if kind == "role":
        return f"who does what is exchanged: the source says {other!r}"
    return f"the source says {other!r} where the sentence says {claimed!r}"


def _context(page: Snapshot, first: int, source: Reading) -> list[Reading]:
    """What a stretch leans on: its heading, the page's first sentences, and, where it has a pronoun, what stands before it."""
    wanted = {page.above[first], 0, 1, page.head_of(first)} - {-1}
    if any(w.flat in PRONOUNS or w.flat == "the" for w in source.words):
        wanted |= {first - 1, first - 2}
    wanted = {i for i in wanted if 0 <= i < min(first, len(page.bounds))}
    return [page.reading(i) for i in sorted(wanted)]


def is_within(claim: Reading, source: Reading) -> bool:
    """Whether the sentence stands in the source word for word, whatever its marks."""
    return f" {' '.join(w.flat for w in claim.words)} " in f" {' '.join(w.flat for w in source.words)} "


def is_quoted(quote: str, page: Snapshot) -> bool:
    """Whether a quote stands in the page, word for word."""
    words = [flat(w) for w in WORD.findall(quote)]
    wanted = f" {' '.join(words)} "
    reading = read(quote)
    spots = [page.places.get(t, []) for w in reading.words for t in w.terms or digits(w.flat)]
    if not spots or not words:
        return not words or wanted in _flat_text(page, 0, len(page.bounds) - 1)
    for place in min(spots, key=len)[:50]:
        if wanted in _flat_text(page, max(0, place - 2), min(len(page.bounds) - 1, place + 2)):
            return True
    return False


def _flat_text(page: Snapshot, first: int, last: int) -> str:
    if last < first:
        return ""
    return f" {' '.join(flat(w) for w in WORD.findall(folded(page.words_between(first, last))))} "
