"""Words that carry hard facts: numbers, months, units, denial, opposites, and words that mean the same.

Below everything in `nexi.proof`. Only lists of general language, no subject and no site.
"""

# ruff: noqa: E501  rows of a table stay whole
from __future__ import annotations

from nexi.text.sentences import MONTHS
from nexi.text.stems import stem


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SMALL_NUMBERS = {
    word: float(value)
    for value, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
    )
} | {
    word: 10.0 * value
    for value, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2)
}  # fmt: skip
SCALES = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "lakh": 1e5, "crore": 1e7,
    "dozen": 12.0, "hundreds": 1e2, "thousands": 1e3, "millions": 1e6, "billions": 1e9, "trillions": 1e12,
    "mn": 1e6, "bn": 1e9, "tn": 1e12, "万": 1e4, "萬": 1e4, "亿": 1e8, "億": 1e8, "тыс": 1e3, "млн": 1e6, "млрд": 1e9,
    "millionen": 1e6, "milliarden": 1e9, "millones": 1e6, "milliards": 1e9, "مليون": 1e6, "مليار": 1e9, "ألف": 1e3,
}  # fmt: skip
ORDINALS = {
    word: float(value)
    for value, word in enumerate(
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"],
        start=1,
    )
} | {"thirtieth": 30.0, "fortieth": 40.0, "fiftieth": 50.0, "sixtieth": 60.0, "hundredth": 100.0, "thousandth": 1000.0}  # fmt: skip
FRACTIONS = {
    "half": 1 / 2, "third": 1 / 3, "thirds": 1 / 3, "quarter": 1 / 4, "quarters": 1 / 4, "fifth": 1 / 5, "fifths": 1 / 5,
    "tenth": 1 / 10, "tenths": 1 / 10, "sixth": 1 / 6, "eighth": 1 / 8, "sixths": 1 / 6, "eighths": 1 / 8,
}  # fmt: skip

_OTHER_MONTHS = (
    "januar janvier enero января январь jan", "februar février fevrier febrero февраля февраль feb",
    "märz mars marzo марта март mar", "april avril abril апреля апрель apr", "mai mayo мая май", "juni juin junio июня июнь jun",
    "juli juillet julio июля июль jul", "august août aout agosto августа август aug", "septembre septiembre сентября сентябрь sep sept",
    "oktober octobre octubre октября октябрь oct", "novembre noviembre ноября ноябрь nov", "dezember décembre diciembre декабря декабрь dec",
)  # fmt: skip
MONTH_NUMBERS = {name: number for number, name in enumerate(MONTHS, start=1)} | {
    name: number for number, names in enumerate(_OTHER_MONTHS, start=1) for name in names.split()
}

# Unit spellings: dimension, factor to that dimension's base, spellings. Symbols in the second table are told apart by case.
_UNIT_WORDS = (
    ("length", 1.0, "metre metres meter meters"), ("length", 1e3, "kilometre kilometres kilometer kilometers kms"),
    ("length", 1e-2, "centimetre centimetres centimeter centimeters"), ("length", 1e-3, "millimetre millimetres millimeter millimeters"),
    ("length", 1e-9, "nanometre nanometres nanometer nanometers"), ("length", 1e-6, "micrometre micrometres micrometer micrometers microns"),
    ("length", 1609.344, "mile miles mi"), ("length", 0.3048, "foot feet ft"), ("length", 0.0254, "inch inches"),
    ("length", 0.9144, "yard yards yd"), ("length", 9.4607e15, "light-year light-years"),
    ("mass", 1e-3, "gram grams gramme grammes"), ("mass", 1.0, "kilogram kilograms kilogramme kilogrammes kgs"),
    ("mass", 1e3, "tonne tonnes"), ("mass", 907.185, "ton tons"), ("mass", 0.45359, "lb lbs"), ("mass", 0.02835, "ounce ounces oz"),
    ("mass", 1e-6, "milligram milligrams"),
    ("time", 1.0, "second seconds sec secs"), ("time", 60.0, "minute minutes min mins"), ("time", 3600.0, "hour hours hr hrs"),
    ("time", 86400.0, "day days"), ("time", 604800.0, "week weeks"), ("time", 2629800.0, "month months"),
    ("time", 31557600.0, "year years yr yrs"), ("time", 315576000.0, "decade decades"), ("time", 3155760000.0, "century centuries"),
    ("time", 1e-3, "millisecond milliseconds"), ("time", 1e-6, "microsecond microseconds"), ("time", 1e-9, "nanosecond nanoseconds"),
    ("area", 1e4, "hectare hectares"), ("area", 4046.86, "acre acres"),
    ("volume", 1.0, "litre litres liter liters"), ("volume", 1e-3, "millilitre millilitres milliliter milliliters"),
    ("volume", 3.78541, "gallon gallons"), ("volume", 158.987, "barrel barrels"),
    ("data", 1.0, "byte bytes"), ("data", 1e3, "kilobyte kilobytes kb"), ("data", 1e6, "megabyte megabytes"),
    ("data", 1e9, "gigabyte gigabytes"), ("data", 1e12, "terabyte terabytes"), ("bits", 1.0, "bit bits"),
    ("data", 1024.0, "kib kibibyte kibibytes"), ("data", 1024.0**2, "mib mebibyte mebibytes"), ("data", 1024.0**3, "gib gibibyte gibibytes"),
    ("speed", 1.0, "km/h kph kmh"), ("speed", 1.609344, "mph"), ("speed", 1.852, "knot knots"), ("speed", 3.6, "m/s"),
    ("power", 1.0, "watt watts"), ("power", 1e3, "kilowatt kilowatts"), ("power", 1e6, "megawatt megawatts"),
    ("power", 1e9, "gigawatt gigawatts"), ("power", 745.7, "horsepower hp"), ("frequency", 1.0, "hertz"),
    ("frequency", 1e3, "kilohertz"), ("frequency", 1e6, "megahertz"), ("frequency", 1e9, "gigahertz"), ("voltage", 1.0, "volt volts"),
    ("share", 1.0, "% percent pct"), ("points", 1.0, "pp"),
    ("celsius", 1.0, "°c celsius centigrade"), ("fahrenheit", 1.0, "°f fahrenheit"), ("kelvin", 1.0, "kelvin kelvins"), ("angle", 1.0, "° degree degrees"),
    ("usd", 1.0, "dollar dollars usd"), ("usd", 0.01, "cent cents"), ("eur", 1.0, "euro euros eur"), ("gbp", 1.0, "gbp sterling pound pounds"),
    ("jpy", 1.0, "yen jpy"), ("cny", 1.0, "yuan renminbi cny rmb"), ("inr", 1.0, "rupee rupees inr"), ("chf", 1.0, "franc francs chf"),
    ("rub", 1.0, "rouble roubles ruble rubles rub"),
)  # fmt: skip
UNITS = {word: (kind, factor) for kind, factor, words in _UNIT_WORDS for word in words.split()} | {
    "per cent": ("share", 1.0), "percentage points": ("points", 1.0), "percentage point": ("points", 1.0),
    "nautical miles": ("length", 1852.0), "nautical mile": ("length", 1852.0),
    "square kilometres": ("area", 1e6), "square kilometers": ("area", 1e6), "square kilometre": ("area", 1e6), "square kilometer": ("area", 1e6),
    "sq km": ("area", 1e6), "km2": ("area", 1e6), "square miles": ("area", 2589988.0), "square mile": ("area", 2589988.0), "sq mi": ("area", 2589988.0),
    "square metres": ("area", 1.0), "square meters": ("area", 1.0), "m2": ("area", 1.0), "square feet": ("area", 0.092903), "sq ft": ("area", 0.092903),
    "cubic metres": ("volume", 1e3), "cubic meters": ("volume", 1e3), "cubic feet": ("volume", 28.3168), "m3": ("volume", 1e3),
    "degrees celsius": ("celsius", 1.0), "degrees fahrenheit": ("fahrenheit", 1.0), "miles per hour": ("speed", 1.609344),
    "kilometres per hour": ("speed", 1.0), "kilometers per hour": ("speed", 1.0), "metric tons": ("mass", 1e3), "metric tonnes": ("mass", 1e3),
    "us dollars": ("usd", 1.0), "公里": ("length", 1e3), "米": ("length", 1.0), "км": ("length", 1e3), "кг": ("mass", 1.0),
}  # fmt: skip
SYMBOLS = {
    "m": ("length", 1.0), "km": ("length", 1e3), "cm": ("length", 1e-2), "mm": ("length", 1e-3), "nm": ("length", 1e-9),
    "g": ("mass", 1e-3), "kg": ("mass", 1.0), "mg": ("mass", 1e-6), "t": ("mass", 1e3), "s": ("time", 1.0), "h": ("time", 3600.0),
    "ms": ("time", 1e-3), "ns": ("time", 1e-9), "μs": ("time", 1e-6), "ha": ("area", 1e4), "L": ("volume", 1.0), "ml": ("volume", 1e-3), "mL": ("volume", 1e-3),
    "B": ("data", 1.0), "KB": ("data", 1e3), "kB": ("data", 1e3), "MB": ("data", 1e6), "GB": ("data", 1e9), "TB": ("data", 1e12),
    "W": ("power", 1.0), "kW": ("power", 1e3), "MW": ("power", 1e6), "GW": ("power", 1e9), "V": ("voltage", 1.0),
    "Hz": ("frequency", 1.0), "kHz": ("frequency", 1e3), "MHz": ("frequency", 1e6), "GHz": ("frequency", 1e9),
}  # fmt: skip
CURRENCIES = {
    "$": "usd",
    "us$": "usd",
    "€": "eur",
    "£": "gbp",
    "¥": "jpy",
    "₹": "inr",
    "₽": "rub",
    "usd": "usd",
    "eur": "eur",
    "gbp": "gbp",
}

DENIALS = _words(
    "not never no non none nor neither cannot nobody nothing nowhere hardly scarcely barely ain't не нет никогда нельзя nicht "
    "kein keine keinen keiner nie niemals pas aucun aucune jamais nunca لا لم لن ليس"
)
WIDE_DENIALS = frozenset("不没沒未無无非")
DENIED_BY_PHRASE = {
    "failed": "to",
    "fails": "to",
    "fail": "to",
    "failing": "to",
    "unable": "to",
    "refused": "to",
    "refuses": "to",
    "lack": "of",
    "lacks": "",
}
NOT_DENIED = _words("only just merely simply solely least fewer less later earlier doubt matter")
AUXILIARIES = _words(
    "is are was were be been being am has have had having do does did done will would shall should can could may might must "
    "to also still yet already ever get gets got"
)
FOREIGN_SMALL = _words(
    "la le les des du une et est sa ses aux dans que qui fut ete etait par der das ein eine einen einer eines und ist wurde wurden im "
    "von zu dem auf fur als sind wird nach bei el los las del una por con para fue в на и с к по из у за от до был была было были"
)
PRONOUNS = _words("he she it they we this these that those his her its their him them who which whose i you my our there here")
PREPOSITIONS = _words(
    "in on at by with from to for of after before during since until under over into as against near between about"
)
HEDGES = _words("about around approximately roughly nearly almost some over more under less than circa estimated up just")

LIGHT = _words(  # say nothing that the rest of a sentence does not say
    "each every long high deep wide tall old aged age new place occurred measure measures measured cost costs total overall whole own "
    "called named known there respectively approximately located situated namely specifically particular currently today "
    "mesure compte"
)

_OPPOSITES = (
    "increase decrease", "increase decline", "rise fall", "rise drop", "grow shrink", "gain lose", "win lose", "victory defeat",
    "success failure", "succeed fail", "before after", "above below", "over under", "more less", "more fewer", "most least", "most fewest",
    "north south", "east west", "northern southern", "eastern western", "first last", "start end", "begin end", "open close",
    "maximum minimum", "left right", "up down", "early late", "earlier later", "earliest latest", "old new", "older younger", "oldest youngest", "high low",
    "higher lower", "highest lowest", "large small", "larger smaller", "largest smallest", "big small", "bigger smaller",
    "biggest smallest", "long short", "longer shorter", "longest shortest", "rich poor", "hot cold", "warm cold", "inside outside",
    "import export", "buy sell", "enable disable", "allow forbid", "allow prohibit", "permit prohibit", "include exclude",
    "accept reject", "approve reject", "positive negative", "support oppose", "public private", "mandatory optional",
    "required optional", "agree disagree", "upper lower", "major minor", "majority minority", "male female", "man woman", "king queen",
    "father mother", "son daughter", "brother sister", "husband wife", "ally enemy", "friend enemy", "true false", "strong weak",
    "stronger weaker", "fast slow", "faster slower", "fastest slowest", "best worst", "better worse", "easy difficult",
    "easy hard", "simple complex", "common rare", "frequently rarely", "often rarely", "often seldom", "usually rarely",
    "always never", "always sometimes", "always rarely", "all none", "all some", "every some", "many few", "safe dangerous", "safe unsafe",
    "legal illegal", "possible impossible", "able unable", "internal external", "ancient modern", "urban rural", "domestic foreign",
    "import export", "arrive leave", "arrive depart", "enter leave", "join leave", "create destroy", "build destroy", "born died",
    "birth death", "live die", "love hate", "push pull", "add remove", "insert delete", "read write", "send receive", "connect disconnect",
    "lock unlock", "expand contract", "ascend descend", "ascending descending", "forward backward", "forwards backwards", "visible hidden",
    "success failure", "profit loss", "strength weakness", "advantage disadvantage", "war peace", "day night", "summer winter",
    "guilty innocent", "full empty", "wide narrow", "thick thin", "deep shallow", "heavy light", "bright dark", "wet dry",
    "presence absence", "present absent", "active inactive", "direct indirect", "formal informal", "dependent independent",
    "same different", "similar different", "equal unequal", "superior inferior", "temporary permanent", "voluntary compulsory",
    "acquit convict", "ban allow", "deny admit", "deny confirm", "lowercase uppercase", "synchronous asynchronous", "local global",
    "mutable immutable", "valid invalid", "raise lower", "encourage discourage", "approve veto", "attack defend", "victory loss", "concurrently sequentially", "parallel sequential", "parallel serial", "developed developing",
    "over less", "over fewer", "more under", "daily weekly", "daily monthly", "weekly monthly", "monthly yearly", "include separately", "youngest eldest", "youngest oldest",
    "eldest youngest", "north south", "север юг", "северу югу", "восток запад", "nordlich sudlich", "ostlich westlich", "nord sud", "est ouest",
    "temporarily permanently", "temporary permanent", "partially fully", "partly fully",
)  # fmt: skip
OPPOSITES: dict[str, frozenset[str]] = {}
for _pair in _OPPOSITES:
    for _a, _b in ((_pair.split()[0], _pair.split()[1]), (_pair.split()[1], _pair.split()[0])):
        OPPOSITES[_a] = OPPOSITES.get(_a, frozenset()) | {_b}
        OPPOSITES[stem(_a)] = OPPOSITES.get(stem(_a), frozenset()) | {_b, stem(_b)}
DENYING_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non")
