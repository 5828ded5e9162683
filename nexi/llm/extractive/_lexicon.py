"""The English that the built-in model knows beyond `nexi.text`: kinds of nouns, countries, relations, aspects.

Below everything here that reads text. Only lists, of general language and no subject and no site; they are in a file.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from nexi.text.stems import stem
from nexi.text.words import word_set


class _Lexicon(Struct, frozen=True):
    filler: str
    code_nouns: str
    sections: str
    clause_words: str
    relations: dict[str, str]
    measures: list[tuple[str, str, str]]
    countries: list[str]
    aspects: list[str]


_LEXICON = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Lexicon)
FILLER, CODE_NOUNS = word_set(_LEXICON.filler), word_set(_LEXICON.code_nouns)
SECTIONS, CLAUSE_WORDS = word_set(_LEXICON.sections), word_set(_LEXICON.clause_words)
RELATIONS = {name: word_set(words) for name, words in _LEXICON.relations.items()}
# The words that ask for a measure, the dimensions of its numbers, and what else is counted so: "1,294 people" is a population.
MEASURES = [
    (frozenset(map(stem, asked.split())), frozenset(units.split()), tuple(words.split()))
    for asked, units, words in _LEXICON.measures
]
COUNTRIES = {name.replace("_", " "): group.split()[0] for group in _LEXICON.countries for name in group.split()}


@cache
def load_aspects() -> dict[str, frozenset[str]]:
    """The stems that stand for the same aspect of what broad questions ask about, such as the causes of something."""
    aspects: dict[str, frozenset[str]] = {}
    for group in _LEXICON.aspects:
        stems = frozenset(map(stem, group.split()))
        for each in stems:
            aspects[each] = aspects.get(each, frozenset()) | stems
    return aspects
