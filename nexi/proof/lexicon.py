"""Tables of words, read once from `words.txt`: number words, months, units, rounding words, pronouns, negations, opposites.

Below everything in `nexi.proof`. The tables are data; what a word does is decided by the modules that use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nexi.text.sentences import MONTHS
from nexi.text.stems import stem
from nexi.text.stopwords import STOP

Rows = list[tuple[str, str]]  # what stands between the kind and the colon, and the entries


def _read_rows() -> dict[str, Rows]:
    rows: dict[str, Rows] = {}
    for line in Path(__file__).with_name("words.txt").read_text(encoding="utf-8").splitlines():
        head, colon, entries = line.partition(": ")
        if colon and not line.startswith("#"):
            kind, _, name = head.partition(" ")
            rows.setdefault(kind, []).append((name, entries))
    return rows


_ROWS = _read_rows()


def _read_words(kind: str) -> list[str]:
    return [word for _, entries in _ROWS[kind] for word in entries.split()]


def _read_scales(kind: str) -> dict[str, float]:
    return {word: float(name) for name, entries in _ROWS[kind] for word in entries.split()}


def _read_measures(kind: str) -> dict[str, tuple[str, float]]:
    """Spelling to dimension and factor."""
    measures: dict[str, tuple[str, float]] = {}
    for name, entries in _ROWS[kind]:
        dimension, factor = name.split()
        measures |= dict.fromkeys(entries.split(", "), (dimension, float(factor)))
    return measures


def _read_opposites() -> Iterator[tuple[str, str]]:
    for pair in _read_words("opposites"):
        one, other = map(stem, pair.split("/"))
        yield from ((one, other), (other, one))


def _read_strong_words() -> Iterator[tuple[str, frozenset[str]]]:
    """Each strong word with those by which a source may say the same."""
    for name, entries in _ROWS["strong"]:
        yield from ((word, frozenset((name + " " + entries).split())) for word in name.split())


SMALL_NUMBERS = {word: float(value) for value, word in enumerate(_read_words("small"))} | {
    word: 10.0 * value for value, word in enumerate(_read_words("tens"), start=2)
}
ORDINALS = {word: float(value) for value, word in enumerate(_read_words("ordinals"), start=1)} | {
    word: 10.0 * value for value, word in enumerate(_read_words("tenfold"), start=2)
}
SCALES = _read_scales("scale")
FRACTIONS = {word: 1 / parts for word, parts in _read_scales("fraction").items()}
MONTH_NUMBERS = {name: number for number, name in enumerate(MONTHS, start=1)} | {
    name: int(number) for number, entries in _ROWS["month"] for name in entries.split()
}
UNITS, SYMBOLS = _read_measures("unit"), _read_measures("symbol")
CURRENCIES = {word: name for name, entries in _ROWS["currency"] for word in entries.split()}

ROUNDING = {word: kind for kind in ("about", "above", "below") for word in _read_words(kind)}
PRONOUNS, NEGATIONS = frozenset(_read_words("pronouns")), frozenset(_read_words("negations"))
ASKING_WORDS, AUXILIARIES = frozenset(_read_words("asking")), frozenset(_read_words("auxiliaries"))
PARTICLES, DETERMINERS = frozenset(_read_words("particles")), frozenset(_read_words("determiners"))
HEDGES, CONDITIONS = frozenset(_read_words("hedges")), frozenset(_read_words("conditions"))
WEAK_WORDS = HEDGES | CONDITIONS | frozenset(_read_words("weak"))
STRONG_WORDS = dict(_read_strong_words())
OPPOSITES = frozenset(_read_opposites())
SECOND_LEVEL_DOMAINS, SHARED_HOSTS = frozenset(_read_words("second")), frozenset(_read_words("shared"))
FRAME_WORDS = frozenset(stem(word) for word in (*_read_words("frame"), *STOP, *ASKING_WORDS, *AUXILIARIES))
ABOUT_ITSELF, ATTRIBUTIONS = ([pattern for _, pattern in _ROWS[kind]] for kind in ("itself", "attribution"))
