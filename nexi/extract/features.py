"""What speaks for and against a block of a page: its features, each a short name such as `w5` or `in:nav`.

Above sits `classifier`; below `layout`. A `Scale` makes names a sum: of learned weights, or for learning the list of the names
themselves. It remembers the sums of traits that many pages share, so that a name is only spelt out the first time. Which
weight a trait has, and what is done with the sum, is not known here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache, partial, reduce
from itertools import islice
from operator import or_
from typing import Any

from nexi.extract.layout import Box, Layout
from nexi.extract.page_head import ARTICLE, PageHead
from nexi.text.words import read_word_sets, word_set

Sum = Any  # of the weights of names; while learning, the list of the names themselves

LEVELS = 4  # boxes around a block that are looked at
MAX_REMEMBERED = 50_000
MAX_KEY = 300  # characters of a class and an id
SHORT = 21  # words; what has fewer is searched for the cues of furniture
MAX_SECTION_WORDS = 9  # a longer heading is a sentence about something
MAX_TITLE_WORDS = 40  # of a block that is compared with the title
MIN_DESCRIPTION = 30  # characters; a shorter one may stand anywhere

_WORDS = (2, 3, 5, 8, 13, 21, 41, 81)
_LINKED = (0.01, 0.2, 0.5, 0.8, 0.999)
_CHARS = (30, 100, 300, 1_000, 3_000, 10_000)
_SHARE = (0.02, 0.1, 0.3, 0.6, 0.9)
_RUNNING = (0.01, 0.3, 0.6, 0.9)
_PLACE = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
_TIMES = (2, 3, 5, 9, 20)
_AFTER = (1, 3, 10, 30, 100)
_OVERLAP = (0.3, 0.6, 0.9)
_COMMENTED = (0.1, 0.4, 0.7, 0.9)
_OUTSIDE = (300, 1_000, 3_000)
_SINCE = (2, 6, 20)
_WORDS_OF = tuple(bisect_right(_WORDS, words) for words in range(_WORDS[-1] + 1))
_LOOKS = tuple(tuple(f"{words}{linked // 2}" for linked in range(len(_LINKED) + 1)) for words in range(len(_WORDS) + 1))
_SENTENCE_ENDS = '.!?…"”'

_AROUND = word_set("nav header footer aside form article main ul ol table section blockquote dl figure details address")
_TAGS = word_set("p li h1 h2 h3 h4 h5 h6 td th div pre dt dd blockquote figcaption section article body")
_NAME_SETS = read_word_sets(__file__)  # parts of classes and ids
_NAMES = _NAME_SETS["names"]

# Names that mean one thing around an article and another around a thread or a list: learned for articles apart.
_IN_ARTICLES = _NAME_SETS["in_articles"]
_HOLDERS = word_set("main article")
_HEADINGS = word_set("h1 h2 h3 h4 h5 h6")
_COMMENTS = re.compile(r"comment|disqus|respond|replies")
_SECTION = re.compile(
    r"\b(?:(comments?|responses?|repl(?:y|ies)|discussion|thoughts on|leave a)|(related|similar|recommended|you (?:may|might)"
    r"|read next|keep reading|more (?:from|in|on|stories|news|posts|articles|like)|also (?:read|on|see|like)|see also|read more"
    r"|most (?:read|popular|viewed)|popular|trending|latest|recent|top stories|don.t miss|up next|previous|next|explore"
    r"|featured)|(about|author|share|follow|tags|topics|categories|subscribe|newsletter|sign up|contact|archives?|advertis\w+"
    r"|sponsored|search|menu|navigation|get in touch|ready to|join))\b"
)


# One of the names, the longest first; by first letter, since a class is searched at each of its letters.
_BY_LETTER: dict[str, list[str]] = {}
for _name in sorted(_NAMES, key=lambda name: (-len(name), name)):
    _BY_LETTER.setdefault(_name[0], []).append(_name[1:])
_NAMED = re.compile("|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in _BY_LETTER.items()))
_CUE = re.compile(
    r"©|(?<!\w)(?=[acflnprstv])(?:cookies?|sign (?:in|up)|log ?in|subscribe|rights reserved|read more|privacy|newsletter|share"
    r"|add to (?:cart|bag)|comments?|reply|related|see (?:all|more)|view|follow|terms|shipping|click|learn more|contact)(?!\w)"
)
# Faster, and finds no less: searched for first.
_MAYBE_CUE = re.compile(
    r"©|add to|c(?:ookie|omment|lick|ontact)|follow|l(?:og ?in|earn more)|newsletter|privacy|r(?:ights reserved|ead more|eply"
    r"|elated)|s(?:ign (?:in|up)|ubscribe|hare|ee (?:all|more)|hipping)|terms|view"
)
_MONEY_SIGN = re.compile(r"[$€£¥UE]")
_MONEY = re.compile(r"[$€£¥]\s?\d|\d\s?(?:USD|EUR|€)")
_DATE = re.compile(r"\b(?:19|20)\d\d\b|\bago\b")


# A set of names is a number with a bit for each: the names that boxes around have, those of articles apart, and elements.
_SORTED = sorted(_NAMES)
_ARTICLE_SHIFT = len(_SORTED)
_BIT = {name: 1 << n for n, name in enumerate(_SORTED)}
_ARTICLE_BITS = sum(_BIT[name] for name in _IN_ARTICLES)
_SORTED_TAGS = ("", *sorted(_AROUND))
_TAG_BIT = {tag: 1 << (2 * _ARTICLE_SHIFT + n) for n, tag in enumerate(_SORTED_TAGS) if tag}
_NAME_OF_BIT = (
    *("anc:" + name for name in _SORTED),
    *("art:" + name for name in _SORTED),
    *("in:" + tag for tag in _SORTED_TAGS),
)
_TAG_NUMBER = {tag: n for n, tag in enumerate(_SORTED_TAGS)}


@lru_cache(maxsize=MAX_REMEMBERED)
def _bits_of_word(word: str) -> int:
    return reduce(or_, [_BIT[name] for name in _NAMED.findall(word)], 0)


@lru_cache(maxsize=MAX_REMEMBERED)
def _bits_of_key(key: str) -> int:
    return reduce(or_, map(_bits_of_word, key[:MAX_KEY].split()), 0)


def _names_of_bits(bits: int) -> list[str]:
    names = []
    while bits:
        names.append(_NAME_OF_BIT[bits.bit_length() - 1])
        bits ^= 1 << (bits.bit_length() - 1)
    return names


class _Sums(dict[Any, Sum]):
    """Sums by what they are of. A new one is made of its names, and remembered."""

    def __init__(self, worth: Callable[[Iterable[str]], Sum], name_all: Callable[[Any], Iterable[str]]) -> None:
        self._worth, self._name_all = worth, name_all

    def __missing__(self, key: Any) -> Sum:
        if len(self) > MAX_REMEMBERED:
            self.clear()
        value = self[key] = self._worth(self._name_all(key))
        return value


class Scale:
    """Sums of names, remembered; `worth` makes the sum of names."""

    def __init__(self, worth: Callable[[Iterable[str]], Sum]) -> None:
        self.nothing = worth(())
        self.form = _Sums(worth, _name_form)
        self.sides = [_Sums(worth, partial(_name_side, side)) for side in "eabg"]
        self.place = _Sums(worth, lambda key: (f"pos{key[1]}", f"pp{key[0]}{key[1]}", f"h1:{key[2]}"))
        self.levels = [_Sums(worth, partial(_name_level, level)) for level in range(1, LEVELS + 1)]
        self.around = _Sums(worth, _names_of_bits)
        self.outside = _Sums(worth, lambda bits: ["out:" + name for name in _names_of_bits(bits)])
        self.own = _Sums(worth, lambda bits: [name.replace("anc:", "own:") for name in _names_of_bits(bits)])
        self.parent = _Sums(worth, lambda bits: [name.replace("anc:", "par:") for name in _names_of_bits(bits)])
        self.repeats = _Sums(worth, lambda key: (f"x{key[1]}", f"rep{key[0]}{key[2]}"))
        self.near = _Sums(worth, lambda key: (f"heart{key[0]}{key[1]}", f"hs{key[0]}{key[2]}"))
        self.section = _Sums(worth, _name_section)
        self.likeness = _Sums(worth, _name_likeness)
        self.end = _Sums(worth, _name_end)
        self.text = _Sums(worth, lambda names: names)


def _name_form(key: tuple[str, str, str, int, int, str]) -> tuple[str, ...]:
    """The form of a block, and whether it is before, inside or after the densest box."""
    kind, genre, zone, words, density, tag = key
    element = tag if tag in _TAGS else "other"
    names: tuple[str, ...] = (
        "bias", f"w{words}", f"d{density}", f"wd{words}{density}", f"pw{kind}{words}", f"pd{kind}{density}",
        f"t:{element}", f"pt{kind}{element}", f"tw{element}{words // 2}", f"zk{kind}{zone}{words}",
    )  # fmt: skip
    if genre == ARTICLE:
        names += (f"g{kind}", f"gw{words}", f"gd{density}", f"gt{element}")
        names += (f"z{zone}", f"zw{zone}{words}", f"zd{zone}{density}")
    return names


def _name_side(side: str, look: str) -> tuple[str]:
    return (side + look,)


def _name_level(level: int, shape: int) -> list[str]:
    values = [shape >> shift & 7 for shift in (12, 9, 6, 3, 0)]
    return [f"c{level}{letter}{value}" for letter, value in zip("dnpsrt", [*values, _SORTED_TAGS[shape >> 15]], strict=True)]


def _name_section(key: tuple[str, str, str, int, int, int]) -> tuple[str, ...]:
    """Under a heading such as "Related"; `since` is how many blocks are between."""
    section, genre, zone, words, density, since = key
    names: tuple[str, ...] = (f"sw{section}{words}", f"sn{section}{since}", f"sd{zone}{section}{density}")
    return (*names, f"s{zone}{section}") if genre == ARTICLE else names


def _name_likeness(key: tuple[int, bool, int, str, str]) -> list[str]:
    overlap, is_whole, words, tag, zone = key
    names = [f"tl{overlap}{words // 2}", f"tl{overlap}{tag}{zone}"]
    return [*names, f"tl{tag}", f"tl{zone}"] if is_whole else names


def _name_end(key: tuple[str, bool, bool, bool]) -> list[str]:
    end, has_comma, is_upper, is_again = key
    first = "end." if end in _SENTENCE_ENDS else "end:" if end == ":" else "end"
    return [first, *(["comma"] if has_comma else ()), *(["caps"] if is_upper else ()), *(["again"] if is_again else ())]


class PageFeatures:
    """Judges the blocks of one page."""

    def __init__(self, layout: Layout, scale: Scale, head: PageHead = PageHead()) -> None:  # noqa: B008  # immutable
        self.blocks, self.root, self.head = layout.blocks, layout.root, head
        self.boxes = [box for box in layout.boxes if box.blocks]
        self.chars, self.scale = max(1, layout.chars), scale
        running = self.root.paragraphs / self.chars
        self.kind = "A" if running > 0.6 else "B" if running > 0.3 else "C"
        self._holders = reduce(
            or_, [_TAG_BIT[box.tag] for box in self.boxes if box.tag in _HOLDERS and box.chars > 0.3 * self.chars], 0
        )
        # The box with most running text right inside it, and those around it, by distance.
        running_chars: Counter[int] = Counter()
        for block in self.blocks:
            if block.box.paragraphs and block.box.parent is not None:
                running_chars[id(block.box.parent)] += block.box.paragraphs
                if block.box.parent.parent is not None:
                    running_chars[id(block.box.parent.parent)] += block.box.paragraphs // 2
        top = max(running_chars, key=lambda key: running_chars[key], default=0)
        heart = next((box for box in self.boxes if id(box) == top), None)
        self._heart = {id(around): distance for distance, around in enumerate(heart.climb())} if heart else {}
        self._alike: dict[tuple[int, str, str], Sum] = {}
        # Each box has the names that some box around it has, each once, and how near it is to the densest box.
        around, near = (0, scale.nothing), scale.nothing  # the names around a box as bits, with their sum
        for box in self.boxes:  # parents come before their children
            if box.parent is not None:
                around, near = box.parent.around, box.parent.near
            if box.key or box.tag in _AROUND:
                own = _bits_of_key(box.key)
                if head.genre == ARTICLE:
                    own |= (own & _ARTICLE_BITS) << _ARTICLE_SHIFT
                if new := (own | _TAG_BIT.get(box.tag, 0)) & ~around[0]:
                    around = (around[0] | new, around[1] + scale.around[new])
            if id(box) in self._heart:
                near = scale.near[self.kind, min(self._heart[id(box)], 4), bisect_right(_SHARE, box.chars / self.chars)]
            box.around, box.near = around, near
        # The boxes that call themselves comments, and what is in them; one around the whole page is none.
        self._commented: set[int] = set()
        for box in self.boxes:
            if id(box.parent) in self._commented or (
                box.key and box.parent is not None and box.chars < 0.95 * self.chars and _COMMENTS.search(box.key)
            ):
                self._commented.add(id(box))

    def judge(self) -> list[Sum]:
        """What all traits of each block come to."""
        blocks, kind, genre, form = self.blocks, self.kind, self.head.genre, self.scale.form
        words = [_WORDS_OF[min(block.words, _WORDS[-1])] for block in blocks]
        densities = [bisect_right(_LINKED, b.linked / len(b.text)) if b.linked else 0 for b in blocks]
        # For each block a letter: before, inside or after the paragraphs of the densest box.
        inside = [
            n
            for n, block in enumerate(blocks)
            if block.box.paragraphs and any(self._heart.get(id(box)) == 0 for box in islice(block.box.climb(), 3))
        ]
        first, last = (inside[0], inside[-1] + 1) if inside else (len(blocks), len(blocks))
        zones = "b" * first + "i" * (last - first) + "a" * (len(blocks) - last)
        result = [
            form[kind, genre, zone, w, d, block.box.tag] + self._box(block.box)
            for block, zone, w, d in zip(blocks, zones, words, densities, strict=True)
        ]
        # What the two blocks before and the two after look like.
        looks = [_LOOKS[w][d] + block.box.tag[0] for w, d, block in zip(words, densities, blocks, strict=True)]
        e, a, b, g = self.scale.sides
        around = zip(looks, ["", "", *looks], ["", *looks], [*looks[1:], ""], [*looks[2:], "", ""], strict=False)
        sides = [e[w] + a[x] + b[y] + g[z] for _, w, x, y, z in around]
        others = sides, self._places(), self._texts(zones, words, densities)
        sums = [a + b + c + d for a, b, c, d in zip(result, *others, strict=True)]
        if not self._commented:
            return sums
        # What is in the comments, and what is outside of them.
        in_comments = sum(block.box.paragraphs for block in blocks if id(block.box) in self._commented)
        outside = bisect_right(_OUTSIDE, self.root.paragraphs - in_comments)
        share = bisect_right(_COMMENTED, in_comments / (self.root.paragraphs or 1))
        heart = int(any(self._heart.get(key) == 0 for key in self._commented))
        names = [f"s{share}", f"o{outside}", genre, f"h{heart}", f"h{heart}{genre}{outside}", f"h{heart}s{share}"]
        comments = [self.scale.text[tuple(f"{side}{name}" for name in names)] for side in ("cm0", "cm1")]
        return [total + comments[id(block.box) in self._commented] for total, block in zip(sums, blocks, strict=True)]

    def _texts(self, zones: str, words: list[int], densities: list[int]) -> list[Sum]:
        """What the words of a block, the heading above it and the title of the page say of it."""
        scale, genre, title = self.scale, self.head.genre, self.head.title
        start = self.head.description[:60].lower() if len(self.head.description) > MIN_DESCRIPTION else ""
        times = Counter([block.text for block in self.blocks])
        result, section, since = [], "", 0
        for n, block in enumerate(self.blocks):
            tag, text, size = block.box.tag, block.text, block.words
            value = scale.end[text[-1], "," in text, text.isupper(), times[text] > 1]
            lower = text.lower() if size < MAX_TITLE_WORDS else ""
            if size < SHORT and (cues := _cues(text, lower)):
                value = value + scale.text[cues]
            if size < MAX_SECTION_WORDS and (tag in _HEADINGS or text[-1] == ":"):
                match = _SECTION.search(lower)
                section, since = "CRO"[(match.lastindex or 1) - 1] if match else "", 0
            elif tag in _HEADINGS:
                section = ""
            since += 1
            if section:
                value = value + scale.section[section, genre, zones[n], words[n], densities[n], bisect_right(_SINCE, since)]
            if lower and not title.isdisjoint(own := lower.split()):
                distinct = set(own)
                same = len(title & distinct)
                overlap, is_whole = bisect_right(_OVERLAP, same / len(distinct)), same >= 0.8 * len(title)
                value = value + scale.likeness[overlap, is_whole, words[n], tag[:2], zones[n]]
            if start and text[:60].lower() == start:
                value = value + scale.text[f"ds{genre}", f"ds{zones[n]}", f"ds{tag[:2]}"]
            result.append(value)
        return result

    def _places(self) -> list[Sum]:
        sums, kind, chars = self.scale.place, self.kind, self.chars
        places = [bisect_right(_PLACE, block.start / chars) for block in self.blocks]
        title = next((n for n, block in enumerate(self.blocks) if block.box.tag == "h1"), None)
        if title is None:
            return [sums[kind, place, "none"] for place in places]
        before = [sums[kind, place, "before"] for place in places[:title]]
        return before + [sums[kind, place, bisect_right(_AFTER, n)] for n, place in enumerate(places[title:])]

    def _box(self, box: Box) -> Sum:
        """Boxes of one kind side by side that hold one block each are judged once."""
        if box.blocks > 1 or box.repeats < 2 or box.parent is None:
            return self._surroundings(box)
        alike = (id(box.parent), box.tag, box.key)
        if alike not in self._alike:
            self._alike[alike] = self._surroundings(box)
        return self._alike[alike]

    def _surroundings(self, box: Box) -> Sum:
        """The boxes around: what they are called, what they hold, how often they are repeated."""
        scale = self.scale
        names, result = box.around
        holder, most = box, box.repeats
        # Whatever holds a box of several blocks holds several blocks.
        while holder.blocks < 2 and holder.parent is not None:
            holder = holder.parent
            most = max(most, holder.repeats)
        if holder.parent is not None:
            most = max(most, holder.parent.repeats)
        repeats = scale.repeats[self.kind, bisect_right(_TIMES, box.repeats), bisect_right(_TIMES, most)]
        if holder.levels is None:  # what this box and those around it hold
            holder.levels = scale.nothing
            for sums, around in zip(scale.levels, holder.climb(), strict=False):
                holder.levels = holder.levels + sums[self._shape(around) if around.shape < 0 else around.shape]
        result = result + holder.levels + repeats + box.near
        if box.key:
            result = result + scale.own[_bits_of_key(box.key)]
        if box.parent is not None and box.parent.key:
            result = result + scale.parent[_bits_of_key(box.parent.key)]
        other_bits = self._holders & ~names
        return result + scale.outside[other_bits] if other_bits else result

    def _shape(self, box: Box) -> int:
        """How linked, how long, how much in sentences, which share of the page, how often, and what element."""
        size = max(1, box.chars)
        shape = _TAG_NUMBER.get(box.tag, 0) << 3 | bisect_right(_LINKED, box.linked / size)
        shape = shape << 3 | bisect_right(_CHARS, size)
        shape = shape << 3 | bisect_right(_RUNNING, box.paragraphs / size)
        shape = shape << 3 | bisect_right(_SHARE, size / self.chars)
        box.shape = shape << 3 | bisect_right(_TIMES, box.repeats)
        return box.shape


def _cues(text: str, lower: str) -> tuple[str, ...]:
    names = tuple(f"cue:{cue}" for cue in dict.fromkeys(_CUE.findall(lower))) if _MAYBE_CUE.search(lower) else ()
    if _MONEY_SIGN.search(text) and _MONEY.search(text):
        names += ("money",)
    if ("19" in text or "20" in text or "ago" in text) and _DATE.search(text):
        names += ("date",)
    return names
