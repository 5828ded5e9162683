"""The English that the built-in model knows beyond `nexi.text`: kinds of nouns, countries, relations, aspects.

Below everything here that reads text. Only lists; general language, no subject and no site.
"""

from __future__ import annotations

from functools import cache

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
# Other words for what broad questions ask about, such as the causes of something: a report compares their stems.
_ASPECTS = (
    "cause causes reason reasons why origin origins because due trigger triggered led lead factor factors response result "
    "contributed begin began start started resulted",
    "effect effects affect consequence consequences impact impacts influence results result outcome led caused increase "
    "decrease decline reduced aftermath ended",
    "history historical century founded established settled settlement war ancient",
    "begin began start founded formed established created origin originated formation emerged",
    "develop development invented improved introduced evolution built patented first",
    "spread carried reached arrived introduced struck travelled",
    "die died deaths death dead killed mortality casualties victims population",
    "threat threats threaten danger dangerous hazard risk loss destruction destroyed deforestation drought fatal injuries",
    "wildlife species animals plants biodiversity fauna flora birds mammals fish insects",
    "economy economic industry industries trade market business companies manufacturing financial gdp agriculture sector",
    "education school schools university universities college students academic",
    "music musical concert concerts opera orchestra festival theatre composer band songs",
    "geography located lies river plain mountains hills area region situated kilometres miles",
    "climate temperature temperatures rainfall rain humid summer winter precipitation weather",
    "population inhabitants census people residents households demographics",
    "govern government governed council mayor parliament elected legislature constitution administration premier president",
    "organise organised organisation structure composed consists led chair board representatives departments",
    "religion religious church buddhism islam christian faith temple",
    "science scientific mathematics astronomy medicine physicians engineers technology",
    "fund funded funding tuition endowment budget donation financed finance fees",
    "sport sports athletic team teams football league competes",
    "criticise criticised criticism critics controversy accused errors mistakes debate disputed",
    "elect elected election elections voting votes vote constituency ballot",
    "law laws legal legislation act bill court",
    "settle settled settlement settlers emigrated migrated fled refugees colony",
    "leave left fled persecution exodus emigration escaped exile",
    "conquer conquered conquest invasion invaded defeated victory battle",
    "fall fell collapse decline rebellion revolt overthrown famine",
    "power rise conquest proclaimed ruled emperor throne united",
    "invent invented inventor developed concept pioneered",
    "respond response responded measures policy introduced imposed rationing",
    "relations diplomatic alliance allies policy foreign treaty",
    "differ different difference distinct contrast distinguish distinguished unlike whereas",
    "safe safely secure insecure security unsafe dangerous risk trust untrusted malicious vulnerable vulnerability",
    "types kinds type kind sectors categories forms classes",
    "definition defined means term refers",
    "feed eat prey food predators diet",
    "move swim propel motion locomotion",
    "reproduce reproduction eggs sperm larvae breeding spawn",
    "people inhabited lived settled population indigenous tribes culture societies",
    "produce production produced crops output grown",
    "used use uses application applications applied",
    "role part importance important",
    "known famous notable best-known recognised",
)


@cache
def load_aspects() -> dict[str, frozenset[str]]:
    """The stems that stand for the same aspect, by each of them."""
    aspects: dict[str, frozenset[str]] = {}
    for group in _ASPECTS:
        stems = frozenset(map(stem, group.split()))
        for each in stems:
            aspects[each] = aspects.get(each, frozenset()) | stems
    return aspects
