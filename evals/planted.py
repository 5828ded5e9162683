"""The recipe for claims whose truth is known: true sentences of pages, truthful rewordings, and planted errors.

    for case in cases(pages, random.Random(1)): ...

Every case is a sentence with its markers and the pages behind them. The rules here are this file's own: its synonyms, number
and date spellings are not taken from the checker, and whole sentences, clauses and names come from the pages. A rule that does
not apply to a sentence makes no case; a planted error that happens to be said by the page anyway is thrown away.
"""

# ruff: noqa: E501  rules and tables stay whole
from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"“(])")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*(?:\([^()]*\))?[^()\s]*\)")
_MARKUP = re.compile(r"\*\*|`|(?<!\w)_|_(?!\w)|\\(?=[_*\[\]])|\[\d+\]|¶")
_NUMBER = re.compile(r"(?<![\w.,$£€-])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w,.-]*\d|st|nd|rd|th|s\b|-)(?=[\s,.;)%])")
_YEAR = re.compile(r"(?<![\w.,-])(1[0-9]{3}|20[0-2][0-9])(?![\w,-]|\.\d)")
_DATE = re.compile(rf"\b(?:(\d{{1,2}}) ({'|'.join(MONTHS)})|({'|'.join(MONTHS)}) (\d{{1,2}})),? (\d{{4}})\b")
_NAME = re.compile(r"(?<=[a-z,;] )(?:[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,}){0,2})(?=[ ,.;)])")
_FURNITURE = re.compile(r"cookie|privacy|sign in|newsletter|subscribe|all rights|comment|©|advert|quote$|partners store", re.I)
_AUX = re.compile(r"\b(is|are|was|were|has|had|can|could|will|would|should|must|may|did|does)\b(?! not| no\b|n't)")
_DENIAL = re.compile(
    r"\b(is|are|was|were|has|had|can|could|will|would|should|must|may|did|does) not\b(?! only| just| necessarily| always)"
)
_ACTED = re.compile(
    r"^((?:The |A |An )?[A-Z][\w' -]{2,60}?) (was|were) (written|directed|produced|founded|designed|built|created|developed|published|discovered|recorded|composed|owned|led|established|won|introduced|adopted|released|supported|replaced|used) by ([^,.;]{3,70}?)([,.;]| in | and | on | for | at | from )"
)
_PARENTHESIS = re.compile(r"\s?\([^()]{2,120}\)")
_RELATIVE = re.compile(r", (?:which|who|where|including|such as|whose)\b[^,.;]{3,140}(?=[,.])")
_TRAILING = re.compile(
    r"(?:, (?:which|who|while|although|with|including|and|but|as|after|before|though|making|leading)\b[^.;]{8,200})(?=\.$)"
)
_LEADING = re.compile(
    r"^((?:In|On|During|After|By|Since|At|From|Under|For|Within|Before|Following|As of|Until) [^,.;]{3,60}), ((?:the|a|an|it|he|she|they|this|these|his|her|its|their)\b|[A-Z][\w'-]+)(.*)\.$",
    re.S,
)
_TAIL = re.compile(
    r"^(The|It|He|She|They|This|These|[A-Z][\w'-]+)( .{20,}?) ((?:in|on|during|since|until|after|before) (?:the )?(?:\d{4}|[A-Z][a-z]+ \d{4}|\d{1,2} [A-Z][a-z]+ \d{4}|[A-Z][a-z]+ \d{1,2}, \d{4}|early \d{4}s?|late \d{4}s?|\d{4}s))\.$",
    re.S,
)
_BY_MONTH = re.compile("|".join(MONTHS))
_SWAPS = {
    "began": "got under way", "started": "began", "located": "found", "situated": "located", "many": "a great number of", "several": "a number of",
    "often": "many times", "usually": "as a rule", "also": "too", "because": "as", "however": "that said", "large": "sizeable", "small": "little",
    "important": "significant", "famous": "well known", "built": "constructed", "founded": "set up", "established": "founded", "created": "made",
    "used": "employed", "shows": "makes clear", "showed": "demonstrated", "said": "stated", "called": "named", "died": "passed away",
    "received": "was given", "obtained": "got", "helped": "assisted", "allows": "lets", "allowed": "permitted", "requires": "needs", "required": "needed",
    "provides": "offers", "provided": "supplied", "includes": "contains", "included": "comprised", "became": "turned into", "wrote": "penned",
    "published": "brought out", "released": "issued", "film": "movie", "song": "track", "country": "nation", "area": "region", "main": "chief",
    "primary": "main", "largest": "biggest", "approximately": "about", "about": "roughly", "nearly": "almost", "whole": "entire", "rapidly": "quickly",
    "increase": "rise", "increased": "grew", "decreased": "fell", "attempt": "try", "attempted": "tried", "purchase": "buy", "purchased": "bought",
    "begin": "start", "begins": "starts", "ended": "finished", "end": "finish", "lived": "resided", "moved": "relocated", "returned": "came back",
    "fought": "battled", "defeated": "beat", "killed": "slain", "children": "kids", "people": "persons", "company": "firm", "various": "different",
    "different": "distinct", "similar": "comparable", "common": "widespread", "current": "present", "previous": "earlier", "new": "recent",
    "method": "technique", "way": "manner", "result": "outcome", "purpose": "aim", "reason": "cause", "error": "mistake", "specified": "given",
    "returns": "gives back", "contains": "holds", "creates": "makes", "modified": "changed", "changes": "alters", "removed": "taken out",
    "automatically": "by itself", "directly": "straight", "therefore": "so", "thus": "so", "while": "whereas", "although": "though", "within": "inside",
    "throughout": "all through", "entire": "whole", "numerous": "many", "considered": "regarded as", "known": "recognised", "based": "founded",
    "performed": "carried out", "appeared": "showed up", "led": "headed", "chosen": "picked", "selected": "chosen", "teacher": "instructor",
}  # fmt: skip
_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_UNITS = {
    "km": "miles", "kilometers": "miles", "kilometres": "miles", "miles": "kilometres", "mi": "km", "feet": "metres", "ft": "m", "meters": "feet", "metres": "feet",
    "m": "ft", "kg": "lb", "pounds": "kilograms", "tons": "kilograms", "tonnes": "kilograms", "years": "months", "months": "weeks", "days": "hours", "weeks": "days",
    "hours": "minutes", "minutes": "hours", "seconds": "minutes", "percent": "percentage points", "bytes": "bits", "bits": "bytes", "acres": "hectares",
    "hectares": "acres", "dollars": "euros", "inches": "feet", "centuries": "decades", "decades": "years", "milliseconds": "seconds", "MB": "GB", "GB": "MB",
}  # fmt: skip
_UNIT = re.compile(rf"(?<=\d[ -])({'|'.join(_UNITS)})\b")
_SCALE = re.compile(r"(?<=\d )(thousand|million|billion|trillion)\b")
_OPPOSITES = {
    "increased": "decreased", "decreased": "increased", "before": "after", "after": "before", "largest": "smallest", "highest": "lowest", "north": "south",
    "south": "north", "east": "west", "west": "east", "more than": "less than", "won": "lost", "first": "last", "oldest": "youngest", "always": "never",
    "northern": "southern", "southern": "northern", "eastern": "western", "western": "eastern", "most": "fewest", "higher": "lower", "lower": "higher",
    "larger": "smaller", "enabled": "disabled", "accepted": "rejected", "success": "failure", "true": "false", "maximum": "minimum", "minimum": "maximum",
}  # fmt: skip
_FAKE_QUOTES = (
    "nobody who was there will ever forget it", "we simply had no other choice at the time", "the figures speak for themselves",
    "this was the turning point for all of us", "it changed how we think about the matter", "there is nothing quite like it anywhere",
)  # fmt: skip


@dataclass(frozen=True)
class Page:
    """A page as it is stored."""

    url: str
    title: str
    text: str
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One sentence with markers; `pages` are the sources by number, and `true` says whether they say it."""

    kind: str
    true: bool
    text: str
    pages: dict[int, str] = field(hash=False)
    made_from: str = ""


def read_page(url: str, title: str, text: str) -> Page:
    return Page(url, title, text, tuple(_usable(text)))


def _usable(text: str) -> Iterator[str]:
    """Whole sentences of paragraphs, as a person would copy them from the page."""
    fenced = False
    for line in text.split("\n"):
        if line.startswith(("```", "~~~")):
            fenced = not fenced
        if fenced or not line.strip() or line.lstrip().startswith(("#", "|", "-", "*", ">", "    ", "[")):
            continue
        plain = re.sub(r"\s+", " ", _MARKUP.sub("", _LINK.sub(r"\1", line))).strip()
        for sentence in _SENTENCE.split(plain):
            words = sentence.split()
            whole = (
                sentence[:1].isupper()
                and sentence.endswith(".")
                and not re.search(r"\b[A-Z]\.$|\b(?:e\.g|i\.e|etc|St|Dr|Mr|vs)\.$", sentence)
            )
            if (
                7 <= len(words) <= 42
                and whole
                and not _FURNITURE.search(sentence)
                and sentence.count('"') % 2 == 0
                and sentence.count("(") == sentence.count(")")
            ):
                yield sentence


Rule = Callable[["Kitchen", str, Page], "str | None"]


class Kitchen:
    """What the rules share: the chance, and names and titles of the whole corpus."""

    def __init__(self, pages: Sequence[Page], chance: random.Random) -> None:
        self.pages = [p for p in pages if p.sentences]
        self.chance = chance
        self.names: dict[int, list[str]] = defaultdict(list)
        for page in self.pages:
            for sentence in page.sentences[:12]:
                for name in _NAME.findall(sentence):
                    self.names[len(name.split())].append(name)

    def other_page(self, page: Page) -> Page:
        other = page
        while other.url == page.url:
            other = self.chance.choice(self.pages)
        return other

    # truthful

    def verbatim(self, sentence: str, page: Page) -> str | None:
        return sentence

    def synonyms(self, sentence: str, page: Page) -> str | None:
        words = sentence.split(" ")
        places = [i for i, w in enumerate(words) if i and w.strip(",.;").lower() in _SWAPS and w[0].islower()]
        for place in self.chance.sample(places, min(len(places), 3)):
            bare = words[place].rstrip(",.;")
            words[place] = _SWAPS[bare] + words[place][len(bare) :]
        return " ".join(words) if places else None

    def reordered(self, sentence: str, page: Page) -> str | None:
        if found := _LEADING.match(sentence):
            when, subject, rest = found.groups()
            return f"{subject[0].upper()}{subject[1:]}{rest} {when[0].lower()}{when[1:]}."
        if found := _TAIL.match(sentence):
            subject, rest, when = found.groups()
            low = subject.lower() if subject in ("The", "It", "He", "She", "They", "This", "These") else subject
            return f"{when[0].upper()}{when[1:]}, {low}{rest}."
        return None

    def turned(self, sentence: str, page: Page) -> str | None:
        found = _ACTED.match(sentence)
        if not found or re.search(r"\b(?:who|which|that)\b", found[4]):
            return None
        active = {"written": "wrote", "built": "built", "led": "led", "won": "won"}.get(found[3], found[3])
        actor = found[4].strip()
        return f"{actor[0].upper()}{actor[1:]} {active} {found[1].replace('The ', 'the ', 1)}."

    def shortened(self, sentence: str, page: Page) -> str | None:
        for rule in self.chance.sample([_PARENTHESIS, _RELATIVE, _TRAILING], 3):
            short = rule.sub("", sentence, count=1)
            if short != sentence and len(short.split()) >= 6:
                return re.sub(r",+\s*\.$", ".", short).replace(",,", ",")
        return None

    def respelled_number(self, sentence: str, page: Page) -> str | None:
        found = _NUMBER.search(sentence)
        if not found or _YEAR.fullmatch(found[1]) or _BY_MONTH.search(sentence[max(0, found.start() - 10) : found.end() + 10]):
            return None
        digits = found[1].replace(",", "")
        if (
            "." not in digits
            and int(digits) <= 12
            and not re.match(r"\s?(?:%|[a-zA-Z]{1,2}\b|million|billion)", sentence[found.end() :])
        ):
            new = _ONES[int(digits)]
        elif "," in found[1]:
            new = digits if self.chance.random() < 0.5 or not digits.endswith("000") else f"{int(digits) // 1000} thousand"
        elif re.match(r" million\b", sentence[found.end() :]):
            return sentence[: found.start()] + f"{int(float(digits) * 1_000_000):,}" + sentence[found.end() + 8 :]
        elif re.match(r" ?percent\b", sentence[found.end() :]):
            return re.sub(r" ?percent\b", "%", sentence, count=1)
        elif sentence[found.end() : found.end() + 1] == "%":
            return sentence[: found.end()] + " percent" + sentence[found.end() + 1 :]
        else:
            return None
        return sentence[: found.start()] + new + sentence[found.end() :]

    def respelled_date(self, sentence: str, page: Page) -> str | None:
        found = _DATE.search(sentence)
        if not found:
            return None
        day, month, year = int(found[1] or found[4]), found[2] or found[3], found[5]
        forms = [
            f"{day} {month} {year}",
            f"{month} {day}, {year}",
            f"{year}-{MONTHS.index(month) + 1:02d}-{day:02d}",
            f"{month[:3]} {day}, {year}",
            f"the {day}th of {month} {year}" if 4 <= day <= 20 else f"{day} {month[:3]}. {year}",
        ]
        new = self.chance.choice([f for f in forms if f != found[0]])
        return sentence[: found.start()] + new + sentence[found.end() :]

    def named(self, sentence: str, page: Page) -> str | None:
        subject = re.sub(r"\s*\([^)]*\)$", "", page.title.split(" - ")[0].split(" — ")[0])
        known = page.sentences.index(sentence) if sentence in page.sentences else 99
        if not re.match(r"(?:He|She|It) (?:is|was|has|had|also|became|won|received|contains|returns)\b", sentence) or known > 3:
            return None
        return re.sub(r"^(?:He|She|It)\b", subject, sentence) if subject in page.text else None

    def introduced(self, sentence: str, page: Page) -> str | None:
        lead = self.chance.choice(
            ["According to the page, ", "The source states that ", "It is reported that ", "As the article puts it, "]
        )
        first = sentence.split(" ")[0]
        low = (
            first.lower()
            if first in ("The", "A", "An", "It", "He", "She", "They", "This", "These", "In", "On", "For", "Its", "Their")
            else first
        )
        return lead + low + sentence[len(first) :]

    def reworded(self, sentence: str, page: Page) -> str | None:
        """Several rules one after the other."""
        rules: list[Rule] = [
            Kitchen.shortened,
            Kitchen.reordered,
            Kitchen.respelled_number,
            Kitchen.respelled_date,
            Kitchen.synonyms,
        ]
        done = 0
        for rule in self.chance.sample(rules, len(rules)):
            new = rule(self, sentence, page)
            if new:
                sentence, done = new, done + 1
        return sentence if done >= 2 else None

    # planted

    def number(self, sentence: str, page: Page) -> str | None:
        found = [m for m in _NUMBER.finditer(sentence) if not _YEAR.fullmatch(m[1])]
        if not found:
            return None
        old = self.chance.choice(found)
        value = float(old[1].replace(",", ""))
        new = self.chance.choice(
            [value + 1, value * 2, value * 3, value + 10, max(1, value - 1), round(value * 1.2) + 1, value + 7]
        )
        text = f"{new:,.0f}" if "," in old[1] else f"{new:.1f}" if "." in old[1] else f"{new:.0f}"
        return None if text == old[1] else sentence[: old.start()] + text + sentence[old.end() :]

    def date(self, sentence: str, page: Page) -> str | None:
        whole = list(_DATE.finditer(sentence))
        if whole and self.chance.random() < 0.6:
            old = self.chance.choice(whole)
            if self.chance.random() < 0.5:
                month = old[2] or old[3]
                new = old[0].replace(month, self.chance.choice([m for m in MONTHS if m != month]))
            else:
                new = old[0].replace(old[5], str(int(old[5]) + self.chance.choice([-20, -3, -1, 1, 2, 9, 10])))
            return sentence[: old.start()] + new + sentence[old.end() :]
        years = list(_YEAR.finditer(sentence))
        if not years:
            return None
        year = self.chance.choice(years)
        near = [y for y in _YEAR.findall(page.text) if y not in sentence]
        choice = (
            self.chance.choice(near)
            if near and self.chance.random() < 0.4
            else str(int(year[1]) + self.chance.choice([-50, -11, -4, -1, 1, 2, 6, 10, 100]))
        )
        return sentence[: year.start()] + choice + sentence[year.end() :]

    def name(self, sentence: str, page: Page) -> str | None:
        found = [m for m in _NAME.finditer(sentence) if m[0].split()[0] not in MONTHS]
        if not found:
            return None
        old = self.chance.choice(found)
        size = len(old[0].split())
        own = [n for s in page.sentences for n in _NAME.findall(s) if len(n.split()) == size and n not in sentence]
        pool = own if own and self.chance.random() < 0.4 else self.names[size]
        new = self.chance.choice(pool)
        clear = not set(new.split()) & set(re.findall(r"\w+", sentence))
        return sentence[: old.start()] + new + sentence[old.end() :] if clear and new[:4] != old[0][:4] else None

    def denied(self, sentence: str, page: Page) -> str | None:
        found = _AUX.search(sentence)
        if not found:
            return None
        word = "never" if found[1] in ("was", "were", "has", "had") and self.chance.random() < 0.3 else "not"
        return f"{sentence[: found.end()]} {word}{sentence[found.end() :]}"

    def undenied(self, sentence: str, page: Page) -> str | None:
        found = _DENIAL.search(sentence)
        return sentence[: found.end() - 4] + sentence[found.end() :] if found else None

    def opposite(self, sentence: str, page: Page) -> str | None:
        for word in self.chance.sample(sorted(_OPPOSITES), len(_OPPOSITES)):
            if re.search(rf"(?<=[a-z,] ){word}\b", sentence):
                return re.sub(rf"(?<=[a-z,] ){word}\b", _OPPOSITES[word], sentence, count=1)
        return None

    def unit(self, sentence: str, page: Page) -> str | None:
        found = _UNIT.search(sentence)
        return sentence[: found.start()] + _UNITS[found[1]] + sentence[found.end() :] if found else None

    def scale(self, sentence: str, page: Page) -> str | None:
        found = _SCALE.search(sentence)
        if not found:
            return None
        new = self.chance.choice([s for s in ("thousand", "million", "billion", "trillion") if s != found[1]])
        return sentence[: found.start()] + new + sentence[found.end() :]

    def subject(self, sentence: str, page: Page) -> str | None:
        found = re.match(
            r"((?:[A-Z][a-zé'-]+ ){0,3}[A-Z][a-zé'-]+) (?=(?:is|was|were|are|has|had|became|won|founded|wrote|directed|played|served|returns)\b)",
            sentence,
        )
        if not found or found[1] in (
            "It",
            "He",
            "She",
            "They",
            "This",
            "There",
            "These",
            "That",
            "What",
            "Those",
            "We",
            "You",
            "One",
        ):
            return None
        new = self.chance.choice(self.names[min(3, len(found[1].split()))] or self.names[2])
        return new + sentence[found.end() - 1 :] if not set(new.split()) & set(sentence.split()) else None

    def quote(self, sentence: str, page: Page) -> str | None:
        who = _NAME.findall(sentence)
        lead = f"{who[0]} said" if who else "As one observer put it"
        text = self.chance.choice(_FAKE_QUOTES)
        if self.chance.random() < 0.5:
            return f'{sentence[:-1]}, and {lead[0].lower() + lead[1:] if not who else lead} "{text}".'
        return f'{lead}: "{text[0].upper()}{text[1:]}."'


TRUTHFUL: dict[str, Rule] = {
    "verbatim": Kitchen.verbatim, "synonyms": Kitchen.synonyms, "reordered": Kitchen.reordered, "active for passive": Kitchen.turned,
    "shortened": Kitchen.shortened, "number respelled": Kitchen.respelled_number, "date respelled": Kitchen.respelled_date,
    "pronoun named": Kitchen.named, "introduced": Kitchen.introduced, "several rules": Kitchen.reworded,
}  # fmt: skip
PLANTED: dict[str, Rule] = {
    "swapped number": Kitchen.number, "swapped date": Kitchen.date, "swapped name": Kitchen.name, "denial put in": Kitchen.denied,
    "denial taken out": Kitchen.undenied, "opposite": Kitchen.opposite, "unit changed": Kitchen.unit, "scale changed": Kitchen.scale,
    "subject swapped": Kitchen.subject, "invented quote": Kitchen.quote,
}  # fmt: skip


def _flat(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def cases(pages: Sequence[Page], chance: random.Random, each: int) -> Iterator[Case]:
    """At most `each` cases of every class."""
    kitchen = Kitchen(pages, chance)
    sentences = [(page, s) for page in kitchen.pages for s in (chance.sample(page.sentences, min(8, len(page.sentences))))]
    chance.shuffle(sentences)
    for kind, rule in TRUTHFUL.items():
        yield from _made(kitchen, sentences, kind, rule, True, each)
    for kind, rule in PLANTED.items():
        yield from _made(kitchen, sentences, kind, rule, False, each)
    for kind in ("swapped number", "swapped date", "swapped name"):
        yield from _made(kitchen, sentences, f"{kind}, reworded", _twice(PLANTED[kind]), False, each // 2)
    yield from _joined(kitchen, sentences, each)
    yield from _misplaced(kitchen, sentences, each)


def _twice(rule: Rule) -> Rule:
    def reworded_then(kitchen: Kitchen, sentence: str, page: Page) -> str | None:
        new = rule(kitchen, sentence, page)
        return (kitchen.synonyms(new, page) or kitchen.reordered(new, page)) if new else None

    return reworded_then


def _made(kitchen: Kitchen, sentences: list[tuple[Page, str]], kind: str, rule: Rule, true: bool, each: int) -> Iterator[Case]:
    made = 0
    for page, sentence in kitchen.chance.sample(sentences, len(sentences)):
        text = rule(kitchen, sentence, page) if made < each else None
        if text is None or (not true and _flat(text) in _flat(page.text)):
            continue
        made += 1
        yield Case(kind, true, _marked(text, "[1]", kitchen.chance), {1: page.url}, sentence)


def _marked(text: str, marker: str, chance: random.Random) -> str:
    return chance.choice([f"{text[:-1]} {marker}.", f"{text} {marker}", f"{text[:-1]}{marker}."])


def _joined(kitchen: Kitchen, sentences: list[tuple[Page, str]], each: int) -> Iterator[Case]:
    """Two sentences in one: of one page, of two pages, and of two pages with an error in one of them."""
    chance = kitchen.chance
    short = [(p, s) for p, s in sentences if len(s.split()) <= 24]
    for _ in range(each):
        page, first = chance.choice(short)
        mates = [s for s in page.sentences if s != first and len(s.split()) <= 24]
        if mates:
            second = chance.choice(mates)
            yield Case(
                "two sentences of one page", True, _marked(_join(first, second, chance), "[1]", chance), {1: page.url}, first
            )
    for _ in range(each):
        (page, first), (other, second) = chance.sample(short, 2)
        if page.url == other.url:
            continue
        sources = {1: page.url, 2: other.url}
        yield Case("two sources", True, _cited_twice(first, second, chance), sources, first)
        wrong = next((t for r in (Kitchen.number, Kitchen.date, Kitchen.name) if (t := r(kitchen, second, other))), None)
        if wrong and _flat(wrong) not in _flat(other.text):
            yield Case("two sources, one part wrong", False, _cited_twice(first, wrong, chance), sources, second)


def _join(first: str, second: str, chance: random.Random) -> str:
    head = second.split(" ")[0]
    low = (
        second[0].lower() + second[1:]
        if head in ("The", "It", "He", "She", "They", "In", "This", "A", "An", "On", "Its")
        else second
    )
    return first[:-1] + chance.choice([", and ", "; ", ", while "]) + low


def _cited_twice(first: str, second: str, chance: random.Random) -> str:
    joined = _join(first, second, chance)
    if chance.random() < 0.5:
        return f"{joined[:-1]} [1][2]."
    middle = len(first) - 1
    return f"{joined[:middle]} [1]{joined[middle:-1]} [2]."


def _misplaced(kitchen: Kitchen, sentences: list[tuple[Page, str]], each: int) -> Iterator[Case]:
    chance = kitchen.chance
    for page, sentence in chance.sample(sentences, min(each, len(sentences))):
        other = kitchen.other_page(page)
        if _flat(sentence) not in _flat(other.text):
            yield Case("wrong page", False, _marked(sentence, "[2]", chance), {2: other.url}, sentence)
    for page, sentence in chance.sample(sentences, min(each // 2, len(sentences))):
        near = _nearest(kitchen, page, sentence)
        if near and _flat(sentence) not in _flat(near.text):
            yield Case("wrong page, same subject", False, _marked(sentence, "[2]", chance), {2: near.url}, sentence)
    for page, sentence in chance.sample(sentences, min(each, len(sentences))):
        yield Case("invented source", False, _marked(sentence, f"[{chance.randint(7, 40)}]", chance), {1: page.url}, sentence)


def _nearest(kitchen: Kitchen, page: Page, sentence: str) -> Page | None:
    """Another page that names something the sentence names."""
    names = [n for n in _NAME.findall(sentence) if n.split()[0] not in MONTHS]
    for candidate in kitchen.chance.sample(kitchen.pages, len(kitchen.pages)):
        if candidate.url != page.url and any(name in candidate.text for name in names):
            return candidate
    return None
