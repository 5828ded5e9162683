"""Which sources are one origin: pages of one owner, copies of one text, and versions of one paper.

Above sits `conflicts`, which counts support; below is plain text work. Two hosts have one owner when their registrable
domains are the same. The list of public suffixes has ten thousand lines and changes weekly; here a short rule stands for it,
which errs towards "one origin", so that support is rather counted too low than too high.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import combinations, takewhile
from types import MappingProxyType
from typing import NamedTuple

from nexi.checking.lexicon import SECOND_LEVEL_DOMAINS, SHARED_HOSTS
from nexi.text.stems import word_terms

SHINGLE_WORDS = 5
COPIED_SHARE = 0.5  # share of the shorter page's shingles that stand in the other
ALTERED_SHARE = 0.7  # of copies in which the name was changed: texts about two towns may have half in common
MIN_SHINGLES = 8
MAX_CHARS = 200_000
# Of two texts that are laid along each other, where they have less in common than altered copies.
MIN_COMMON_SHARE, MIN_COMMON_WORDS, MIN_COMMON_VALUES = 0.12, 25, 5
MIN_SAME_SHARE = 0.6  # of the segment that is in both
MAX_CHANGED_VALUES = 0.15  # for each value that is the same; in texts about two towns most values differ
MAX_ALIGNED_WORDS = 2_000
MAX_VALUE_WORDS = 5

_WORD = re.compile(r"\w+")
_VALUE_WORD = re.compile(r"\w+(?:[.,:’'-]\w+)*")


class _ExchangedWords(NamedTuple):
    """The words that two copies of a text have in one place, each with its start and end."""

    ours: tuple[int, int]
    theirs: tuple[int, int]


def _registrable_domain(host: str) -> str:
    """The part of a host name that somebody registered: example.co.uk, someone.github.io. An address is its own."""
    host = host.strip("[]").rstrip(".").lower()
    labels = host.split(".")
    if ":" in host or labels[-1].isdigit():
        return host
    in_country = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in SECOND_LEVEL_DOMAINS
    shared = next((count for count in (3, 2) if ".".join(labels[-count:]) in SHARED_HOSTS), 0)
    return ".".join(labels[-1 - (shared or 1 + in_country) :])


@lru_cache(maxsize=16)  # the pages of a question, which are compared when it is answered and when the answer is checked
def shingles(text: str) -> frozenset[int]:
    """Every run of five words of a text, as numbers."""
    words = _WORD.findall(text[:MAX_CHARS].casefold())
    runs = (" ".join(words[i : i + SHINGLE_WORDS]) for i in range(max(1, len(words) - SHINGLE_WORDS + 1)))
    return frozenset(zlib.crc32(run.encode("utf-8", "surrogatepass")) for run in runs)


def _is_copy(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether the shorter of two texts stands for the most part in the longer."""
    shorter = min(len(one), len(other))
    return shorter >= MIN_SHINGLES and len(one & other) >= COPIED_SHARE * shorter


def are_copies(one: str, other: str) -> bool:
    """Whether two texts are one, whatever somebody has changed in a part of it."""
    return _is_copy(shingles(one), shingles(other))


def are_altered(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether the shorter of two texts stands nearly whole in the longer, and not as it is."""
    shorter = min(len(one), len(other))
    return shorter >= MIN_SHINGLES and ALTERED_SHARE * shorter <= len(one & other) < shorter


@lru_cache(maxsize=64)
def find_exchanges(one: str, other: str) -> tuple[_ExchangedWords, ...]:
    """Where a text has other values than a copy of it, or of a part of it; nothing for texts that are no copies."""
    # In a copy of a part only numbers count: a name may be translated there.
    prints = shingles(one), shingles(other)
    common = len(prints[0] & prints[1]) / min(map(len, prints))
    is_whole = common >= ALTERED_SHARE
    ours, theirs = ([*_VALUE_WORD.finditer(text)] for text in (one, other))
    if common < MIN_COMMON_SHARE or max(len(ours), len(theirs)) > MAX_ALIGNED_WORDS:
        return ()
    sides = [[match[0].casefold() for match in side] for side in (ours, theirs)]
    edits = SequenceMatcher(None, sides[0], sides[1], autojunk=False).get_opcodes()
    if not is_whole:  # from the first run of words that is in both to the last one
        runs = [n for n, (tag, a, b, *_) in enumerate(edits) if tag == "equal" and b - a >= SHINGLE_WORDS]
        edits = edits[runs[0] : runs[-1] + 1] if runs else []
    same = [match[0] for tag, a, b, *_ in edits if tag == "equal" for match in ours[a:b]]
    length = max(edits[-1][2] - edits[0][1], edits[-1][4] - edits[0][3]) if edits and not is_whole else 0
    changes = [(ours[a:b], theirs[c:d]) for a, b, c, d in _join_changes(edits)]
    changes = [pair for pair in changes if all(0 < len(side) <= MAX_VALUE_WORDS for side in pair)]
    values = [pair for pair in changes if all(any(_is_value(match[0]) for match in side) for side in pair)]
    numbers = [pair for pair in values if all(any(match[0][0].isdigit() for match in side) for side in pair)]
    agreeing = sum(map(_is_value, same))
    is_copy = len(same) >= max(MIN_COMMON_WORDS, MIN_SAME_SHARE * length) and agreeing >= MIN_COMMON_VALUES
    if not is_copy or len(values) > MAX_CHANGED_VALUES * agreeing:
        return ()
    return tuple(
        _ExchangedWords((mine[0].start(), mine[-1].end()), (there[0].start(), there[-1].end()))
        for mine, there in (changes if is_whole else numbers)
        if _are_different(mine, there)
    )


def _join_changes(edits: Sequence[tuple[str, int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """The places where two texts differ; two with one word between them are one, as in a date."""
    spans: list[tuple[int, int, int, int]] = []
    for a, b, c, d in (span for tag, *span in edits if tag != "equal"):
        if spans and a - spans[-1][1] <= 1 and c - spans[-1][3] <= 1:
            spans[-1] = (spans[-1][0], b, spans[-1][2], d)
        else:
            spans.append((a, b, c, d))
    return spans


def _is_value(word: str) -> bool:
    return word[0].isdigit() or word[0].isupper()


def _are_different(one: Sequence[re.Match[str]], other: Sequence[re.Match[str]]) -> bool:
    """Whether words say something, and other words nothing of the same."""
    terms = [{term for match in side for part in _WORD.findall(match[0]) for term in word_terms(part)} for side in (one, other)]
    return all(terms) and not terms[0] <= terms[1] and not terms[1] <= terms[0]


def merge_copies(about: Mapping[int, str], texts: Sequence[str]) -> dict[int, str]:
    """What texts are about by their place, where copies are about one thing, whatever somebody has changed in its name."""
    # A copy of a text that has a name has it too.
    prints = [shingles(text) for text in texts] if about else []
    names = dict(about)
    for one, other in combinations(range(len(prints)), 2):
        shorter = min(len(prints[one]), len(prints[other]))
        if shorter < MIN_SHINGLES or len(prints[one] & prints[other]) < ALTERED_SHARE * shorter:
            continue
        both = [name for name in (names.get(one, ""), names.get(other, "")) if name]
        if both:
            # what the names begin with, without a bracket that stays open
            pairs = zip(both[0].split(), both[-1].split(), strict=False)
            start = " ".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            start = start if "(" not in start or ")" in start else start.partition("(")[0]
            joined = both[0] if both[0] == both[-1] else start.rstrip(" ,") or both[0]
            names |= {place: joined for place, name in names.items() if name in both} | {one: joined, other: joined}
    return names


def group_origins(pages: Mapping[int, tuple[str, str]], works: Mapping[int, int] = MappingProxyType({})) -> dict[int, int]:
    """For each page, given as host and text, the lowest number among the pages of its origin. Pages of one work are one."""
    group = {number: number for number in pages}
    numbers = sorted(pages)
    domains = {n: _registrable_domain(pages[n][0]) for n in numbers}
    prints = {n: shingles(pages[n][1]) for n in numbers}
    for at, number in enumerate(numbers):
        for earlier in numbers[:at]:
            same = bool(domains[number]) and domains[number] == domains[earlier]
            same |= works.get(number, number) == works.get(earlier, earlier)
            if group[number] != group[earlier] and (same or _is_copy(prints[number], prints[earlier])):
                low, high = sorted((group[number], group[earlier]))
                group = {page: low if first == high else first for page, first in group.items()}
    return group
