"""Other words for what broad questions ask about: the causes of something, its effects, its climate, its government.

General English; no subject and no site. By stem, because the report compares stems.
"""

from __future__ import annotations

from functools import cache

from nexi.text.stems import stem

_GROUPS = (
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
    for group in _GROUPS:
        stems = frozenset(map(stem, group.split()))
        for each in stems:
            aspects[each] = aspects.get(each, frozenset()) | stems
    return aspects
