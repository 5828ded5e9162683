"""The English that the built-in model knows beyond `nexi.text`: kinds of nouns, countries, relations.

Below everything here that reads text. Only lists; general language, no subject and no site.
"""

from __future__ import annotations


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


FILLER = _word_set("name kind type sort term word call mean refer following one many much type example way thing")
CODE_NOUNS = _word_set(
    "argument attribute class command decorator directive exception extension field file flag format function "
    "keyword method mode module operator option parameter program property setting statement switch syntax tag "
    "tool utility variable clause package library type call setting config subcommand"
)
SECTIONS = _word_set(
    "name synopsis description options examples example notes note parameters usage overview introduction summary contents"
)
CLAUSE_WORDS = _word_set(
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
    "father": _word_set("son daughter child father"),
    "mother": _word_set("son daughter child mother"),
    "grandfather": _word_set("son daughter grandson granddaughter grandfather"),
    "grandmother": _word_set("son daughter grandson granddaughter grandmother"),
    "wife": _word_set("wife married husband spouse"),
    "husband": _word_set("wife married husband spouse"),
    "spouse": _word_set("wife married husband spouse"),
    "performer": _word_set("song single album recorded performed by singer"),
    "composer": _word_set("composed music written songwriter by composer"),
    "director": _word_set("directed director"),
    "author": _word_set("written author novel book by"),
    "founder": _word_set("founded founder established"),
    "publisher": _word_set("published publisher"),
    "producer": _word_set("produced producer"),
}
