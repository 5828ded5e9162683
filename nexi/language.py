"""How written language is cut and compared: sentence ends, small words, roots.

Below the built-in model and the proofs, above nothing: lists and pure functions of general language, no subject and no site.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_CLOSERS = r"[\"'”’»)\]*_`]*"
_OPENERS = r"[\"'“‘«(\[`*_]*"
_STARTS = r"A-Z0-9À-ÞΑ-ΩА-Я\u0531-\u0556\u0590-\u08ff\u0900-\u0dff"  # capitals, digits, and scripts that have no capitals
_END = re.compile(rf"[.!?…؟۔।]+{_CLOSERS}\s+(?={_OPENERS}[{_STARTS}])|[。！？]+[”’」』）]*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP = _words(
    "a an and any are as at be been being but by can could did do does done for from had has have having he her hers him his "
    "how i if in into is it its itself may me might must my no nor not of off on onto or our ours out over own she should so "
    "some such than that the their theirs them then there these they this those through to too under until up upon us very "
    "was we were what when where which while who whom whose why will with within would you your yours "
    "'s s t don didn doesn isn wasn also am"
)
LEAST_SMALL_WORDS = 3  # that tell a language
SMALL_WORDS = {
    "English": _words("the of and is are was were what how which does did with from that this it to by who when"),
    "German": _words("der die das und ist sind war wie was welche mit von dem den ein eine nicht auf für wer wann"),
    "French": _words("le les des et est sont était quel quelle comment avec du une dans pour sur qui quand au aux"),
    "Spanish": _words("el los las y es son era qué cuál cómo con del una en por para quién cuándo está"),
    "Italian": _words("il gli dei e è sono era quale come con della una nel per che chi quando di sulla"),
    "Portuguese": _words("os as e é são era qual como com da uma no na por para quem quando não do"),
    "Dutch": _words("de het en zijn was welke hoe met van een niet op voor wie wanneer dat naar wat"),
}
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
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip


def sentence_bounds(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of one plain paragraph stand; initials, abbreviations and decimals do not end one."""
    start = 0
    for match in _END.finditer(text):
        if match[0][0] == "." and _goes_on(text[max(start, match.start() - 24) : match.start()]):
            continue
        yield from _chopped(text, start, match.end(), longest)
        start = match.end()
    yield from _chopped(text, start, len(text), longest)


def _chopped(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """The stretch without blanks at its ends, in pieces where it is overlong."""
    while True:
        while start < end and text[start].isspace():
            start += 1
        if end - start <= longest:
            break
        cut = text.rfind(" ", start + 1, start + longest)
        cut = cut if cut > 0 else start + longest
        yield start, cut
        start = cut
    while end > start and text[end - 1].isspace():
        end -= 1
    if end > start:
        yield start, end


def _goes_on(before: str) -> bool:
    """Whether a full stop after this text abbreviates, follows an initial, or numbers a heading."""
    words = before.split()
    last = words[-1].lstrip("(\"'“‘[") if words else ""
    initial = len(last) == 1 and last.isalpha()
    numbered = len(words) <= 2 and last[-1:].isdigit() and len(before) < 24
    return initial or numbered or last.lower() in ABBREVIATIONS


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """A crude root: irregular forms by table, a plural, at most two suffixes, a doubled last consonant."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    word = _singular(word)
    for _ in range(2):
        word = IRREGULAR.get(word) or _without_suffix(word)
    return word


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]


def _without_suffix(word: str) -> str:
    for suffix, least in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= least:
            root = word[: -len(suffix)]
            return root[:-1] if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "aeiouls" else root
    return word


def language_of(text: str) -> str:
    """The language whose small words stand in a text of Latin letters; "" where none stands out."""
    words = re.findall(r"[^\W\d_]+", text[:20_000].casefold())
    counts = sorted(((sum(map(small.__contains__, words)), name) for name, small in SMALL_WORDS.items()), reverse=True)
    (most, name), (next_most, _) = counts[:2]
    return name if most >= LEAST_SMALL_WORDS and most >= 2 * next_most else ""
