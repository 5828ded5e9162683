"""Sentences changed by script so that their passage no longer supports them, and changes that leave them true.

Each swap gets a sentence, the sentences around it and a source of chance, and returns the changed sentence, or "" where there
is nothing to change. They are the kinds that people's lies are made of: values, names, roles, negation, opposites, doubts and
conditions left out, some made all, two sentences made one, and words put into another mouth. Their
word lists are `words.json`. Standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

CONTRADICTION, ENTAILMENT, NEUTRAL = "contradiction", "entailment", "neutral"
Swap = Callable[[str, Sequence[str], Random], str]

WORDS = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
MONTHS = WORDS["months"]
_MONTH = re.compile(rf"\b({'|'.join(MONTHS)})\b")
_YEAR = re.compile(r"(?<![\d.,])(1[0-9]{3}|20[0-4][0-9])(?![\d%]|[.,]\d|\s*(?:km|kg|m|people|miles)\b)")
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)|(?<![\w.,-])\d+(?:\.\d+)?(?!\w|[,-]\d)")
_NUMBER_WORD = re.compile(rf"\b({'|'.join(WORDS['numbers'])})\b")
_NAME = re.compile(r"\b[A-Z][\w'’-]+(?:\s+(?:of|de|van|von|the)?\s*[A-Z][\w'’-]+)*")
_NOT_NAMES = frozenset(WORDS["not_names"])
_AUXILIARY = re.compile(r"\b(is|are|was|were|has|have|had|can|could|will|would|did|does|do|must|should)\b(?! not\b|n't)")
_NEGATION = re.compile(r"\b(is|are|was|were|has|have|had|can|could|will|would|did|does|do|must|should) not\b", re.IGNORECASE)
_OPPOSITE = {a: b for pair in WORDS["opposites"] for a, b in (pair.split("/"), pair.split("/")[::-1])}
_OPPOSITE_WORD = re.compile(rf"\b({'|'.join(_OPPOSITE)})\b", re.IGNORECASE)
_HEDGES = [(re.compile(pattern, re.IGNORECASE), plain) for pattern, plain in WORDS["hedges"]]
_STRONGER = [(re.compile(rf"\b{weak}\b"), strong) for weak, strong in WORDS["stronger"]]
_CONDITION = re.compile(
    r",?\s*\b(only if|if|unless|provided that|as long as|except (?:for|in|when|that)|until|in case|depending on)"
    r"\b[^,.;]{6,90}(?=[,.;]|$)"
)
_LEADING_CONDITION = re.compile(r"^(If|Unless|Provided that|Only if|When)\b[^,]{6,90},\s*(\w)")
_SPEAKER = re.compile(rf"({_NAME.pattern})(?=\s+(?:{'|'.join(WORDS['speech'])})\b)|(?<=[Aa]ccording to )({_NAME.pattern})")
_SUBJECT = re.compile(
    rf"(?:The\s+)?(?:{_NAME.pattern})"
    r"(?=\s+(?:is|was|were|are|has|had|became|won|built|wrote|made|led|can|will|[a-z]{3,}(?:ed|es|s))\b)"
)


def names_in(sentence: str) -> list[str]:
    """Names, without the word that begins the sentence unless it is one for sure."""
    found = []
    for match in _NAME.finditer(sentence):
        words = match[0].split()
        while words and words[0] in _NOT_NAMES:
            words = words[1:]
        name = " ".join(words)
        if len(name) > 2 and name not in MONTHS and not (match.start() == 0 and len(words) == 1):
            found.append(name)
    return list(dict.fromkeys(found))


def swap_number(sentence: str, around: Sequence[str], chance: Random) -> str:
    found = [m for m in _NUMBER.finditer(sentence) if not _YEAR.fullmatch(m[0])]
    if not found:
        return _swap_number_word(sentence, chance)
    old = chance.choice(found)
    others = {m[0] for text in around for m in _NUMBER.finditer(text)} - {old[0]}
    return _replace(sentence, old, chance.choice(sorted(others)) if others and chance.random() < 0.4 else _near(old[0], chance))


def _swap_number_word(sentence: str, chance: Random) -> str:
    found = list(_NUMBER_WORD.finditer(sentence))
    if not found:
        return ""
    old = chance.choice(found)
    return _replace(sentence, old, chance.choice([word for word in WORDS["numbers"] if word != old[0]]))


def _near(number: str, chance: Random) -> str:
    """Another number of the same form."""
    value = float(number.replace(",", ""))
    new = (
        value * chance.choice((0.1, 0.5, 0.8, 0.9, 1.1, 1.2, 1.5, 2, 10))
        if value > 20
        else value + chance.choice((-2, -1, 1, 2, 3, 5))
    )
    places = len(number.partition(".")[2])
    text = f"{abs(new):,.{places}f}" if places else f"{max(round(abs(new)), 1):,}"
    text = text if "," in number else text.replace(",", "")
    return text if text != number else f"{value + 1:g}"


def swap_year(sentence: str, around: Sequence[str], chance: Random) -> str:
    found = list(_YEAR.finditer(sentence))
    if not found:
        return ""
    old = chance.choice(found)
    others = {m[0] for text in around for m in _YEAR.finditer(text)} - {old[0]}
    new = (
        chance.choice(sorted(others))
        if others and chance.random() < 0.5
        else str(int(old[0]) + chance.choice((-30, -10, -3, -1, 1, 2, 5, 20)))
    )
    return _replace(sentence, old, new)


def swap_month(sentence: str, around: Sequence[str], chance: Random) -> str:
    found = list(_MONTH.finditer(sentence))
    return _replace(sentence, old := chance.choice(found), chance.choice([m for m in MONTHS if m != old[0]])) if found else ""


def swap_name(sentence: str, around: Sequence[str], chance: Random) -> str:
    own = names_in(sentence)
    others = sorted({name for text in around for name in names_in(text)} - set(own))
    others = [name for name in others if not any(name in mine or mine in name for mine in own)]
    return _put(sentence, chance.choice(own), chance.choice(others)) if own and others else ""


def exchange_names(sentence: str, around: Sequence[str], chance: Random) -> str:
    own = [name for name in names_in(sentence) if sentence.count(name) == 1]
    return _exchange(sentence, *chance.sample(own, 2)) if len(own) > 1 and not re.search(r"\b(and|with)\b", sentence) else ""


def exchange_numbers(sentence: str, around: Sequence[str], chance: Random) -> str:
    own = list(dict.fromkeys(m[0] for m in _NUMBER.finditer(sentence) if sentence.count(m[0]) == 1))
    return _exchange(sentence, *chance.sample(own, 2)) if len(own) > 1 else ""


def negate(sentence: str, around: Sequence[str], chance: Random) -> str:
    if match := _NEGATION.search(sentence):
        return _replace(sentence, match, match[1])
    found = list(_AUXILIARY.finditer(sentence))
    return _replace(sentence, old := chance.choice(found[:2]), f"{old[0]} not") if found else ""


def take_opposite(sentence: str, around: Sequence[str], chance: Random) -> str:
    found = list(_OPPOSITE_WORD.finditer(sentence))
    if not found:
        return ""
    old = chance.choice(found)
    new = _OPPOSITE[old[0].casefold()]
    return _replace(sentence, old, new.capitalize() if old[0][0].isupper() else new)


def drop_hedge(sentence: str, around: Sequence[str], chance: Random) -> str:
    fitting = [(pattern, plain) for pattern, plain in _HEDGES if pattern.search(sentence)]
    return _tidy(fitting[0][0].sub(fitting[0][1], sentence, count=1)) if fitting else ""


def drop_condition(sentence: str, around: Sequence[str], chance: Random) -> str:
    if _LEADING_CONDITION.search(sentence):
        return _tidy(_LEADING_CONDITION.sub(lambda m: m[2].upper(), sentence))
    return _tidy(_CONDITION.sub("", sentence, count=1)) if _CONDITION.search(sentence) else ""


def overstate(sentence: str, around: Sequence[str], chance: Random) -> str:
    fitting = [(pattern, strong) for pattern, strong in _STRONGER if pattern.search(sentence)]
    if not fitting:
        return ""
    pattern, strong = chance.choice(fitting)
    return pattern.sub(strong, sentence, count=1)


def merge_sentences(sentence: str, around: Sequence[str], chance: Random) -> str:
    """What one sentence says of its subject, said of the subject of another."""
    mine = _subject(sentence)
    others = [text for text in around if _subject(text) and _subject(text) != mine]
    if not mine or not others:
        return ""
    other = _subject(chance.choice(others))
    return other + sentence[len(mine) :] if other not in sentence else ""


def _subject(sentence: str) -> str:
    match = _SUBJECT.match(sentence)
    return match[0] if match and match[0] not in _NOT_NAMES else ""


def move_attribution(sentence: str, around: Sequence[str], chance: Random) -> str:
    match = _SPEAKER.search(sentence)
    others = sorted({name for text in around for name in names_in(text)} - set(names_in(sentence)))
    return _replace(sentence, match, chance.choice(others)) if match and others and match[0] not in _NOT_NAMES else ""


# Which kind is tried first: those that few sentences allow, so that they are not crowded out by negation.
LIES: dict[str, tuple[Swap, str, float]] = {
    "attribution": (move_attribution, NEUTRAL, 9.0),
    "merged": (merge_sentences, NEUTRAL, 9.0),
    "hedge": (drop_hedge, NEUTRAL, 9.0),
    "condition": (drop_condition, NEUTRAL, 9.0),
    "month": (swap_month, CONTRADICTION, 5.0),
    "order": (exchange_numbers, CONTRADICTION, 5.0),
    "scope": (overstate, NEUTRAL, 5.0),
    "roles": (exchange_names, NEUTRAL, 4.0),
    "year": (swap_year, CONTRADICTION, 3.0),
    "number": (swap_number, CONTRADICTION, 3.0),
    "opposite": (take_opposite, CONTRADICTION, 2.0),
    "name": (swap_name, NEUTRAL, 1.5),
    "negation": (negate, CONTRADICTION, 0.6),
}

# changes of the passage instead: what it then says is less than the sentence

_CERTAIN = re.compile(r"\b(is|was|are|were|will|has|had)\b")


def hedge_passage(sentence: str, chance: Random) -> str:
    found = list(_CERTAIN.finditer(sentence))
    return _replace(sentence, old := found[0], chance.choice(WORDS["weaker"][old[0]])) if found else ""


def bind_passage(sentence: str, chance: Random) -> str:
    return f"{sentence[:-1]}, {chance.choice(WORDS['conditions'])}." if sentence.endswith(".") else ""


def weaken_sentence(sentence: str, chance: Random) -> str:
    """What a passage would have to say for the sentence to be more than it: a doubt or a condition put in; "" for none."""
    return chance.choice((hedge_passage, bind_passage))(sentence, chance)


# changes that leave a sentence true

_PARENTHESES = re.compile(r"\s*\([^()]{2,80}\)")
_CONNECTIVE = re.compile(
    r"^(However|Moreover|Furthermore|In addition|Also|Thus|Therefore|Consequently|Nevertheless|Additionally),\s*(\w)"
)
_LEADING_PLACE = re.compile(r"^(In|On|By|Since|During|After|Before) ([^,]{3,40}), (the |a |an )?([^,.]+)\.$")
_DATE = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(MONTHS)}) (\d{{4}})\b")
_DATE_US = re.compile(rf"\b({'|'.join(MONTHS)}) (\d{{1,2}}), (\d{{4}})\b")


def keep(sentence: str, around: Sequence[str], chance: Random) -> str:
    return sentence


def drop_parentheses(sentence: str, around: Sequence[str], chance: Random) -> str:
    return _tidy(_PARENTHESES.sub("", sentence)) if _PARENTHESES.search(sentence) else ""


def respell_values(sentence: str, around: Sequence[str], chance: Random) -> str:
    changed = _DATE_US.sub(r"\2 \1 \3", sentence) if _DATE_US.search(sentence) else _DATE.sub(r"\2 \1, \3", sentence)
    changed = re.sub(r"(\d) ?%", r"\1 percent", changed) if "%" in changed else re.sub(r"(\d) per ?cent\b", r"\1%", changed)
    changed = re.sub(r"(\d),(\d{3})\b", r"\1\2", changed)
    return changed if changed != sentence else ""


def change_connective(sentence: str, around: Sequence[str], chance: Random) -> str:
    if _CONNECTIVE.search(sentence):
        return _CONNECTIVE.sub(lambda m: m[2].upper(), sentence)
    lowered = sentence if sentence.split(" ", 1)[0] not in _NOT_NAMES else sentence[0].lower() + sentence[1:]
    return chance.choice(("In fact, ", "Moreover, ", "Notably, ")) + lowered


def move_adverbial(sentence: str, around: Sequence[str], chance: Random) -> str:
    match = _LEADING_PLACE.match(sentence)
    if not match:
        return ""
    start = (match[3] or "") + match[4]
    return f"{start[0].upper()}{start[1:]} {match[1].lower()} {match[2]}."


TRUTHS: dict[str, Swap] = {
    "as it stands": keep,
    "without brackets": drop_parentheses,
    "respelled": respell_values,
    "connective": change_connective,
    "moved": move_adverbial,
}


def change_sentence(
    sentence: str, around: Sequence[str], chance: Random, *, lies: int, truths: int
) -> list[tuple[str, str, str]]:
    """Up to so many changed sentences of different kinds: (kind, label, sentence)."""
    changed: list[tuple[str, str, str]] = []
    for kind in sorted(LIES, key=lambda kind: -chance.random() * LIES[kind][2]):
        swap, label, _ = LIES[kind]
        new = swap(sentence, around, chance) if len(changed) < lies else ""
        if new and new != sentence:
            changed.append((kind, label, new))
    kinds = [(kind, swap(sentence, around, chance)) for kind, swap in TRUTHS.items()]
    true = [(kind, ENTAILMENT, new) for kind, new in kinds if new]
    return changed + chance.sample(true, min(truths, len(true)))


def _replace(sentence: str, match: re.Match[str], new: str) -> str:
    return sentence[: match.start()] + new + sentence[match.end() :]


def _put(sentence: str, old: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(old)}\b", lambda _: new, sentence, count=1)


def _exchange(sentence: str, first: str, second: str) -> str:
    return sentence.replace(first, "\0").replace(second, first).replace("\0", second)


def _tidy(sentence: str) -> str:
    sentence = re.sub(r"\s+([,.;])", r"\1", re.sub(r"\s{2,}", " ", sentence)).strip(" ,")
    return sentence[:1].upper() + sentence[1:]
