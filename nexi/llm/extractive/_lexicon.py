"""The English that the built-in model knows beyond `nexi.text`: kinds of nouns, countries, relations, aspects.

Below everything here that reads text. Only lists; general language, no subject and no site. Those of aspects are in a file.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from nexi.text.stems import stem
from nexi.text.stopwords import word_set

FILLER = word_set("name kind type sort term word call mean refer following one many much type example way thing")
CODE_NOUNS = word_set(
    "argument attribute class command decorator directive exception extension field file flag format function "
    "keyword method mode module operator option parameter program property setting statement switch syntax tag "
    "tool utility variable clause package library type call setting config subcommand"
)
SECTIONS = word_set(
    "name synopsis description options examples example notes note parameters usage overview introduction summary contents"
)
CLAUSE_WORDS = word_set(
    "and but or which who where when while although because since as with including such that after before until whereas"
)
COUNTRIES = {
    name.replace("_", " "): group.split()[0]
    for group in (
        "afghanistan afghan", "albania albanian", "algeria algerian", "argentina argentine argentinian", "armenia armenian",
        "australia australian", "austria austrian", "azerbaijan azerbaijani", "bangladesh bangladeshi", "belarus belarusian",
        "belgium belgian", "bolivia bolivian", "bosnia bosnian", "brazil brazilian", "britain british england english uk "
        "scotland scottish wales welsh united_kingdom", "bulgaria bulgarian", "cambodia cambodian", "cameroon cameroonian",
        "canada canadian", "chile chilean", "china chinese", "colombia colombian", "croatia croatian", "cuba cuban",
        "cyprus cypriot", "czechia czech czechoslovakia", "denmark danish", "ecuador ecuadorian", "egypt egyptian",
        "estonia estonian", "ethiopia ethiopian", "finland finnish", "france french", "georgia georgian", "germany german",
        "ghana ghanaian", "greece greek", "hungary hungarian", "iceland icelandic", "india indian", "indonesia indonesian",
        "iran iranian persian", "iraq iraqi", "ireland irish", "israel israeli", "italy italian", "jamaica jamaican",
        "japan japanese", "jordan jordanian", "kazakhstan kazakh", "kenya kenyan", "kuwait kuwaiti", "latvia latvian",
        "lebanon lebanese", "libya libyan", "lithuania lithuanian", "malaysia malaysian", "malta maltese", "mexico mexican",
        "mongolia mongolian", "morocco moroccan", "nepal nepalese nepali", "netherlands dutch", "new_zealand",
        "nigeria nigerian", "norway norwegian", "pakistan pakistani", "panama panamanian", "paraguay paraguayan",
        "peru peruvian", "philippines filipino philippine", "poland polish", "portugal portuguese", "romania romanian",
        "russia russian soviet", "senegal senegalese", "serbia serbian yugoslavia yugoslav", "singapore singaporean",
        "slovakia slovak", "slovenia slovenian", "somalia somali", "korea korean", "spain spanish", "sri_lanka",
        "sudan sudanese", "sweden swedish", "switzerland swiss", "syria syrian", "taiwan taiwanese", "thailand thai",
        "tunisia tunisian", "turkey turkish", "uganda ugandan", "ukraine ukrainian", "uruguay uruguayan",
        "america american usa united_states", "venezuela venezuelan", "vietnam vietnamese", "zimbabwe zimbabwean",
    )
    for name in group.split()
}  # fmt: skip
RELATIONS = {
    "father": word_set("son daughter child father"),
    "mother": word_set("son daughter child mother"),
    "grandfather": word_set("son daughter grandson granddaughter grandfather"),
    "grandmother": word_set("son daughter grandson granddaughter grandmother"),
    "wife": word_set("wife married husband spouse"),
    "husband": word_set("wife married husband spouse"),
    "spouse": word_set("wife married husband spouse"),
    "performer": word_set("song single album recorded performed by singer"),
    "composer": word_set("composed music written songwriter by composer"),
    "director": word_set("directed director"),
    "author": word_set("written author novel book by"),
    "founder": word_set("founded founder established"),
    "publisher": word_set("published publisher"),
    "producer": word_set("produced producer"),
}


@cache
def load_aspects() -> dict[str, frozenset[str]]:
    """The stems that stand for the same aspect of what broad questions ask about, such as the causes of something."""
    aspects: dict[str, frozenset[str]] = {}
    for group in msgspec.json.decode(Path(__file__).with_name("aspects.json").read_bytes(), type=list[str]):
        stems = frozenset(map(stem, group.split()))
        for each in stems:
            aspects[each] = aspects.get(each, frozenset()) | stems
    return aspects
