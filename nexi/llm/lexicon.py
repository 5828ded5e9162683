"""The English this package's built-in model knows: small words, irregular forms, endings, abbreviations.

Below everything in `nexi.llm` that reads text. Only lists; general language, no subject and no site.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP = _words(
    "a an and any are as at be been being but by can could did do does done for from had has have having he her hers him his "
    "how i if in into is it its itself may me might must my no nor not of off on onto or our ours out over own she should so "
    "some such than that the their theirs them then there these they this those through to too under until up upon us very "
    "was we were what when where which while who whom whose why will with within would you your yours "
    "'s s t don didn doesn isn wasn also am"
)
IRREGULAR = {
    form: base
    for base, forms in (
        ("write", "wrote written writer"), ("lead", "led"), ("build", "built"), ("begin", "began begun"), ("win", "won"),
        ("lose", "lost loss"), ("find", "found"), ("make", "made"), ("give", "gave given"), ("take", "took taken"),
        ("hold", "held"), ("know", "knew known"), ("become", "became"), ("sell", "sold sale"), ("die", "died dying dead death"),
        ("born", "birth"), ("see", "saw seen"), ("go", "went gone"), ("come", "came"), ("get", "got gotten"), ("say", "said"),
        ("leave", "left"), ("send", "sent"), ("spend", "spent"), ("teach", "taught"), ("think", "thought"), ("buy", "bought"),
        ("bring", "brought"), ("fight", "fought"),
        ("catch", "caught"), ("choose", "chose chosen choice"), ("rise", "rose risen"),
        ("speak", "spoke spoken"), ("break", "broke broken"), ("drive", "drove driven"), ("eat", "ate eaten"),
        ("fall", "fell fallen"),
        ("grow", "grew grown"), ("draw", "drew drawn"), ("fly", "flew flown"), ("throw", "threw thrown"),
        ("keep", "kept"), ("mean", "meant"), ("meet", "met"), ("pay", "paid"), ("run", "ran"), ("sing", "sang sung song"),
        ("sit", "sat"), ("stand", "stood"), ("tell", "told"), ("understand", "understood"), ("wear", "wore worn"),
        ("people", "person"),
        ("use", "used using uses user"), ("child", "children"), ("man", "men"), ("woman", "women"), ("life", "lives"),
        ("marry", "marriage married"), ("grow", "growth"), ("high", "height"), ("long", "length"), ("strong", "strength"),
    )
    for form in forms.split()
}  # fmt: skip
SUFFIXES = (
    ("fulness", 4), ("iveness", 4), ("ments", 4), ("ingly", 4), ("ment", 4), ("ness", 4), ("ance", 4), ("ence", 4),
    ("able", 4), ("ible", 4), ("ally", 4), ("ious", 4), ("ing", 3), ("ied", 3), ("ely", 4), ("ive", 4), ("ity", 4),
    ("ous", 4), ("ful", 4), ("ion", 4), ("ize", 4), ("ise", 4), ("ian", 4), ("ed", 3), ("es", 3), ("ly", 4), ("er", 4),
    ("or", 4), ("al", 4), ("ic", 4), ("e", 3), ("y", 3),
)  # fmt: skip
ABBREVIATIONS = _words(
    "aft bef fl mr mrs ms dr prof sr jr st gen col sgt capt lt maj rev hon gov sen rep pres vs etc eg ie cf ca al no nos vol "
    "vols fig figs ed eds pp approx dept est inc ltd co corp bros jan feb mar apr jun jul aug sep sept oct nov dec op ft mt "
    "e.g i.e a.m p.m u.s u.k u.n d.c ph.d b.c a.d"
)
FILLER = _words("name kind type sort term word call mean refer following one many much type example way thing")
CODE_NOUNS = _words(
    "argument attribute class command decorator directive exception extension field file flag format function "
    "keyword method mode module operator option parameter program property setting statement switch syntax tag "
    "tool utility variable clause package library type call setting config subcommand"
)
SECTIONS = _words(
    "name synopsis description options examples example notes note parameters usage overview introduction summary contents"
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
    "father": _words("son daughter child father"),
    "mother": _words("son daughter child mother"),
    "grandfather": _words("son daughter grandson granddaughter grandfather"),
    "grandmother": _words("son daughter grandson granddaughter grandmother"),
    "wife": _words("wife married husband spouse"),
    "husband": _words("wife married husband spouse"),
    "spouse": _words("wife married husband spouse"),
    "performer": _words("song single album recorded performed by singer"),
    "composer": _words("composed music written songwriter by composer"),
    "director": _words("directed director"),
    "author": _words("written author novel book by"),
    "founder": _words("founded founder established"),
    "publisher": _words("published publisher"),
    "producer": _words("produced producer"),
}
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
