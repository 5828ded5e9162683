"""The root of an English word, for comparing words. Pure."""

from __future__ import annotations

from functools import lru_cache

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
