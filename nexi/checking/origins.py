"""Which sources are one origin: pages of one owner, copies of one text, and versions of one paper.

Above sits `conflicts`, which counts support; below is plain text work. Two hosts have one owner when their registrable
domains are the same. The list of public suffixes has ten thousand lines and changes weekly; here a short rule stands for it,
which errs towards "one origin", so that support is rather counted too low than too high.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations, takewhile
from types import MappingProxyType

from nexi.checking.lexicon import SECOND_LEVEL_DOMAINS, SHARED_HOSTS

SHINGLE_WORDS = 5
COPIED_SHARE = 0.5  # share of the shorter page's shingles that stand in the other
ALTERED_SHARE = 0.7  # of copies in which the name was changed: texts about two towns may have half in common
MIN_SHINGLES = 8
MAX_CHARS = 200_000

_WORD = re.compile(r"\w+")


def registrable_domain(host: str) -> str:
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


def is_copy(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether the shorter of two texts stands for the most part in the longer."""
    shorter = min(len(one), len(other))
    return shorter >= MIN_SHINGLES and len(one & other) >= COPIED_SHARE * shorter


def are_copies(one: str, other: str) -> bool:
    """Whether two texts are one, whatever somebody has changed in a part of it."""
    return is_copy(shingles(one), shingles(other))


def are_altered(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether the shorter of two texts stands nearly whole in the longer, and not as it is."""
    shorter = min(len(one), len(other))
    return shorter >= MIN_SHINGLES and ALTERED_SHARE * shorter <= len(one & other) < shorter


def merge_copies(about: Mapping[int, str], texts: Sequence[str]) -> dict[int, str]:
    """What texts are about by their place, where copies are about one thing, whatever somebody has changed in its name.

    A copy of a text that has a name has it too.
    """
    prints = [shingles(text) for text in texts] if about else []
    names = dict(about)
    for one, other in combinations(range(len(prints)), 2):
        shorter = min(len(prints[one]), len(prints[other]))
        if shorter < MIN_SHINGLES or len(prints[one] & prints[other]) < ALTERED_SHARE * shorter:
            continue
        both = [name for name in (names.get(one, ""), names.get(other, "")) if name]
        if both:
            joined = _join_names(both[0], both[-1])
            names |= {place: joined for place, name in names.items() if name in both} | {one: joined, other: joined}
    return names


def _join_names(one: str, other: str) -> str:
    """What two names begin with, without a bracket that stays open."""
    if one == other:
        return one
    words = [a for a, b in takewhile(lambda pair: pair[0] == pair[1], zip(one.split(), other.split(), strict=False))]
    start = " ".join(words)
    return (start if "(" not in start or ")" in start else start.partition("(")[0]).rstrip(" ,") or one


def group_origins(pages: Mapping[int, tuple[str, str]], works: Mapping[int, int] = MappingProxyType({})) -> dict[int, int]:
    """For each page, given as host and text, the lowest number among the pages of its origin. Pages of one work are one."""
    group = {number: number for number in pages}
    numbers = sorted(pages)
    domains = {n: registrable_domain(pages[n][0]) for n in numbers}
    prints = {n: shingles(pages[n][1]) for n in numbers}
    for at, number in enumerate(numbers):
        for earlier in numbers[:at]:
            same = bool(domains[number]) and domains[number] == domains[earlier]
            same |= works.get(number, number) == works.get(earlier, earlier)
            if group[number] != group[earlier] and (same or is_copy(prints[number], prints[earlier])):
                low, high = sorted((group[number], group[earlier]))
                group = {page: low if first == high else first for page, first in group.items()}
    return group
