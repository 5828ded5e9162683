"""Which sources are one origin: pages of one owner, and copies of one text.

Above sits `conflicts`, which counts support; below is plain text work. Two hosts have one owner when their registrable
domains are the same. The list of public suffixes has ten thousand lines and changes weekly; here a short rule stands for it,
which errs towards "one origin", so that support is rather counted too low than too high.
"""

from __future__ import annotations

import ipaddress
import re
import zlib
from collections.abc import Iterable, Mapping

from nexi.proof.lexicon import SECOND_LEVEL_DOMAINS, SHARED_HOSTS

SHINGLE_WORDS = 5
COPIED_SHARE = 0.5  # share of the shorter page's shingles that stand in the other
MIN_SHINGLES = 8
MAX_CHARS = 200_000

_BLOGS = re.compile(r"blogspot\.(?:com?\.)?[a-z]{2}$")
_WORD = re.compile(r"\w+")


def registrable_domain(host: str) -> str:
    """The part of a host name that somebody registered: example.co.uk, someone.github.io. An address is its own."""
    host = host.strip("[]").rstrip(".").lower()
    if _is_address(host):
        return host
    labels = host.split(".")
    return ".".join(labels[-min(len(labels), _suffix_labels(labels) + 1) :])


def _suffix_labels(labels: list[str]) -> int:
    """How many labels at the end belong to no one in particular."""
    for count in (3, 2):
        tail = ".".join(labels[-count:])
        if tail in SHARED_HOSTS or _BLOGS.fullmatch(tail):
            return count
    in_country = len(labels) > 2 and len(labels[-1]) == 2
    return 2 if in_country and labels[-2] in SECOND_LEVEL_DOMAINS else 1


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def shingles(text: str) -> frozenset[int]:
    """Every run of five words of a text, as numbers."""
    words = _WORD.findall(text[:MAX_CHARS].casefold())
    runs = (" ".join(words[i : i + SHINGLE_WORDS]) for i in range(max(1, len(words) - SHINGLE_WORDS + 1)))
    return frozenset(zlib.crc32(run.encode("utf-8", "surrogatepass")) for run in runs)


def is_copy(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether the shorter of two texts stands for the most part in the longer."""
    shorter = min(len(one), len(other))
    return shorter >= MIN_SHINGLES and len(one & other) >= COPIED_SHARE * shorter


def count_origins(numbers: Iterable[int], origins: Mapping[int, int]) -> int:
    return len({origins.get(number, number) for number in numbers})


def group_origins(pages: Mapping[int, tuple[str, str]]) -> dict[int, int]:
    """For each page, given as host and text, the lowest number among the pages of its origin."""
    group = {number: number for number in pages}
    known = sorted(pages)
    domains = {n: registrable_domain(pages[n][0]) for n in known}
    prints = {n: shingles(pages[n][1]) for n in known}
    for at, number in enumerate(known):
        for earlier in known[:at]:
            same = bool(domains[number]) and domains[number] == domains[earlier]
            if group[number] != group[earlier] and (same or is_copy(prints[number], prints[earlier])):
                _join(group, group[number], group[earlier])
    return group


def _join(group: dict[int, int], one: int, other: int) -> None:
    low, high = sorted((one, other))
    for number, mark in group.items():
        if mark == high:
            group[number] = low
