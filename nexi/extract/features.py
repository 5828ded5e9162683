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
from functools import lru_cache
from typing import Any

from nexi.extract.layout import Block, Box, Layout, tag_set
from nexi.extract.page_head import ARTICLE, PageHead

Shape = tuple[int | str, ...]
Inherited = tuple[frozenset[str], Any]  # the names around a box, and their sum
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

_AROUND = tag_set("nav header footer aside form article main ul ol table section blockquote dl figure details address")
_TAGS = tag_set("p li h1 h2 h3 h4 h5 h6 td th div pre dt dd blockquote figcaption section article body")
_NAMES = tag_set(
    "comment reply post entry article content main body text story thread topic message answer question review descri detail"
    " summary spec feature product price item card list grid result sidebar side widget menu nav head foot crumb related"
    " recommend popular trend latest recent more share social follow subscri newsletter signup login account cart checkout"
    " promo banner advert sponsor cookie consent modal popup overlay tag categor meta byline author bio date time caption"
    " title intro lead hero copy legal disclaim pag filter sort search tool action button btn link logo brand user profile"
    " avatar signature quote vote rating star stat count similar upsell carousel slider gallery tab accordion faq toc sr-only"
    " skip print mobile top bottom left right section wrapper container block module column row page site global"
)

# Names that mean one thing around an article and another around a thread or a list: learned for articles apart.
_IN_ARTICLES = tag_set(
    "comment reply related recommend popular trend latest recent more share social newsletter sidebar side widget list grid"
    " card item tag categor meta byline author bio date time caption promo tool foot similar summary result post entry content"
    " body article story text thread message answer review descri product"
)
_HEADINGS = tag_set("h1 h2 h3 h4 h5 h6")
_COMMENTS = re.compile(r"comment|disqus|respond|replies")
_SECTION = re.compile(
    r"\b(?:(comments?|responses?|repl(?:y|ies)|discussion|thoughts on|leave a)|(related|similar|recommended|you (?:may|might)"
    r"|read next|keep reading|more (?:from|in|on|stories|news|posts|articles|like)|also (?:read|on|see|like)|see also|read more"
    r"|most (?:read|popular|viewed)|popular|trending|latest|recent|top stories|don.t miss|up next|previous|next|explore"
    r"|featured)|(about|author|share|follow|tags|topics|categories|subscribe|newsletter|sign up|contact|archives?|advertis\w+"
    r"|sponsored|search|menu|navigation|get in touch|ready to|join))\b"
)


def _any_of(names: frozenset[str]) -> re.Pattern[str]:
    """One of the names, the longest first; by first letter, since a class is searched at each of its letters."""
    by_letter: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (-len(name), name)):
        by_letter.setdefault(name[0], []).append(name[1:])
    return re.compile("|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in by_letter.items()))


_NAMED = _any_of(_NAMES)
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


@lru_cache(maxsize=MAX_REMEMBERED)
def _names_in(word: str) -> frozenset[str]:
    return frozenset(_NAMED.findall(word))


class Scale:
    """Sums of names, remembered; `worth` makes the sum of names."""

    def __init__(self, worth: Callable[[Iterable[str]], Sum]) -> None:
        self.worth, self.nothing = worth, worth(())
        self.sums: dict[object, Sum] = {}
        self._names: dict[str, frozenset[str]] = {}

    def remember(self, key: object, names: Iterable[str]) -> Sum:
        if len(self.sums) > MAX_REMEMBERED:
            self.sums.clear()
        found = self.sums[key] = self.worth(names)
        return found

    def names(self, key: str) -> frozenset[str]:
        """The telling parts of a class and an id."""
        found = self._names.get(key)
        if found is None:
            if len(self._names) > MAX_REMEMBERED:
                self._names.clear()
            found = self._names[key] = frozenset().union(*map(_names_in, key[:MAX_KEY].split()))
        return found

    def sum_of_names(self, role: str, key: str) -> Sum:
        found = self.sums.get((role, key))
        return self.remember((role, key), [role + name for name in self.names(key)]) if found is None else found

    def level(self, level: int, shape: Shape) -> Sum:
        found = self.sums.get((level, shape))
        if found is None:
            names = [f"c{level}{letter}{value}" for letter, value in zip("dnpsrt", shape, strict=True)]
            found = self.remember((level, shape), names)
        return found

    def form(self, kind: str, genre: str, words: int, linked: int, tag: str) -> Sum:
        found = self.sums.get((kind, genre, words, linked, tag))
        if found is None:
            known = tag if tag in _TAGS else "other"
            names: tuple[str, ...] = (
                "bias", f"w{words}", f"d{linked}", f"wd{words}{linked}", f"pw{kind}{words}", f"pd{kind}{linked}",
                f"t:{known}", f"pt{kind}{known}", f"tw{known}{words // 2}",
            )  # fmt: skip
            if genre == ARTICLE:
                names += (f"g{kind}", f"gw{words}", f"gd{linked}", f"gt{known}")
            found = self.remember((kind, genre, words, linked, tag), names)
        return found

    def place(self, kind: str, place: int, after: int | str) -> Sum:
        found = self.sums.get((kind, place, after))
        if found is None:
            found = self.remember((kind, place, after), (f"pos{place}", f"pp{kind}{place}", f"h1:{after}"))
        return found

    def beside(self, looks: tuple[str, str, str, str]) -> Sum:
        found = self.sums.get(looks)
        if found is None:
            found = self.remember(looks, [side + look for side, look in zip("eabg", looks, strict=True)])
        return found

    def zone(self, page: str, zone: str, words: int, linked: int) -> Sum:
        """Before, inside or after the densest box; `page` is the kind and the genre."""
        key = (page, zone, words, linked)
        found = self.sums.get(key)
        if found is None:
            names: tuple[str, ...] = (f"zk{page[0]}{zone}{words}",)
            if page[1] == ARTICLE:
                names += (f"z{zone}", f"zw{zone}{words}", f"zd{zone}{linked}")
            found = self.remember(key, names)
        return found

    def section(self, section: str, genre: str, zone: str, words: int, linked: int, since: int) -> Sum:
        """Under a heading such as "Related"; `since` is how many blocks are between."""
        key = (section, genre, zone, words, linked, since)
        found = self.sums.get(key)
        if found is None:
            names: tuple[str, ...] = (f"sw{section}{words}", f"sn{section}{since}", f"sd{zone}{section}{linked}")
            found = self.remember(key, (*names, f"s{zone}{section}") if genre == ARTICLE else names)
        return found

    def likeness(self, overlap: int, is_whole: bool, words: int, tag: str, zone: str) -> Sum:
        key = ("title", overlap, is_whole, words, tag, zone)
        found = self.sums.get(key)
        if found is None:
            names = [f"tl{overlap}{words // 2}", f"tl{overlap}{tag}{zone}"]
            found = self.remember(key, [*names, f"tl{tag}", f"tl{zone}"] if is_whole else names)
        return found

    def sum_of_repeats(self, kind: str, times: int, most: int) -> Sum:
        key = ("x", kind, times, most)
        found = self.sums.get(key)
        return self.remember(key, (f"x{times}", f"rep{kind}{most}")) if found is None else found

    def near(self, kind: str, distance: int, share: int) -> Sum:
        key = ("heart", kind, distance, share)
        found = self.sums.get(key)
        return self.remember(key, (f"heart{kind}{distance}", f"hs{kind}{share}")) if found is None else found

    def text(self, names: tuple[str, ...]) -> Sum:
        found = self.sums.get(names)
        return self.remember(names, names) if found is None else found

    def outside(self, holders: frozenset[str]) -> Sum:
        found = self.sums.get(holders)
        return self.remember(holders, ["out:" + holder for holder in holders]) if found is None else found


class PageFeatures:
    """Judges the blocks of one page."""

    def __init__(self, layout: Layout, scale: Scale, head: PageHead = PageHead()) -> None:  # noqa: B008  # immutable
        self.blocks, self.boxes, self.root, self.head = layout.blocks, layout.boxes, layout.root, head
        self.chars, self.scale = max(1, layout.chars), scale
        running = self.root.paragraphs / self.chars
        self.kind = "A" if running > 0.6 else "B" if running > 0.3 else "C"
        self._times = Counter([block.text for block in self.blocks])
        self._holders = frozenset(
            "in:" + box.tag for box in self.boxes if box.tag in ("main", "article") and box.chars > 0.3 * self.chars
        )
        self._heart = self._find_heart()
        self._alike: dict[tuple[int, str, str], Sum] = {}
        self._inherit()
        self._commented = self._find_comments()

    def judge(self) -> list[Sum]:
        """What all traits of each block come to."""
        blocks, scale, kind = self.blocks, self.scale, self.kind
        words = [_WORDS_OF[min(block.words, _WORDS[-1])] for block in blocks]
        linked = [bisect_right(_LINKED, b.linked / len(b.text)) if b.linked else 0 for b in blocks]
        looks = [f"{w}{d // 2}{b.box.tag[0]}" for w, d, b in zip(words, linked, blocks, strict=True)]
        sides = zip(["", "", *looks], ["", *looks], [*looks[1:], ""], [*looks[2:], "", ""], strict=False)
        genre = self.head.genre
        result = [scale.form(kind, genre, w, d, b.box.tag) for w, d, b in zip(words, linked, blocks, strict=True)]
        result = [sum_ + scale.beside(side) for sum_, side in zip(result, sides, strict=False)]
        result = [sum_ + self._box(block.box) + self._text(block) for sum_, block in zip(result, blocks, strict=True)]
        result = [sum_ + place for sum_, place in zip(result, self._places(), strict=True)]
        return [sum_ + about for sum_, about in zip(result, self._sections(words, linked), strict=True)]

    def _sections(self, words: list[int], linked: list[int]) -> list[Sum]:
        """What the heading above a block, the title of the page, and comments around it say of it."""
        scale, genre, title = self.scale, self.head.genre, self.head.title
        start = self.head.description[:60].lower() if len(self.head.description) > MIN_DESCRIPTION else ""
        zones, comments = self._zones(), self._sums_of_comments()
        page = self.kind + genre
        result = [scale.zone(page, zone, w, d) for zone, w, d in zip(zones, words, linked, strict=True)]
        if self._commented:
            inside = [id(block.box) in self._commented for block in self.blocks]
            result = [sum_ + comments[is_comment] for sum_, is_comment in zip(result, inside, strict=True)]
        section, since = "", 0
        for n, block in enumerate(self.blocks):
            tag, text, size = block.box.tag, block.text, block.words
            if size < MAX_SECTION_WORDS and (tag in _HEADINGS or text[-1] == ":"):
                found = _SECTION.search(text.lower())
                section, since = "CRO"[(found.lastindex or 1) - 1] if found else "", 0
            elif tag in _HEADINGS:
                section = ""
            since += 1
            if section:
                near = bisect_right(_SINCE, since)
                result[n] = result[n] + scale.section(section, genre, zones[n], words[n], linked[n], near)
            if size < MAX_TITLE_WORDS and not title.isdisjoint(own := set(text.lower().split())):
                same = len(title & own)
                is_whole = same >= 0.8 * len(title)
                overlap = bisect_right(_OVERLAP, same / len(own))
                result[n] = result[n] + scale.likeness(overlap, is_whole, words[n], tag[:2], zones[n])
            if start and text[:60].lower() == start:
                result[n] = result[n] + scale.text((f"ds{genre}", f"ds{zones[n]}", f"ds{tag[:2]}"))
        return result

    def _zones(self) -> str:
        """For each block a letter: before, inside or after the paragraphs of the densest box."""
        inside = [n for n, block in enumerate(self.blocks) if block.box.paragraphs and self._is_near_heart(block.box)]
        first, last = (inside[0], inside[-1] + 1) if inside else (len(self.blocks), len(self.blocks))
        return "b" * first + "i" * (last - first) + "a" * (len(self.blocks) - last)

    def _is_near_heart(self, box: Box) -> bool:
        around: Box | None = box
        for _ in range(3):
            if around is None:
                return False
            if self._heart.get(id(around)) == 0:
                return True
            around = around.parent
        return False

    def _find_comments(self) -> set[int]:
        """The boxes that call themselves comments, and what is in them; one around the whole page is none."""
        found: set[int] = set()
        for box in self.boxes:
            if id(box.parent) in found or (
                box.blocks
                and box.key
                and box.parent is not None
                and box.chars < 0.95 * self.chars
                and _COMMENTS.search(box.key)
            ):
                found.add(id(box))
        return found

    def _sums_of_comments(self) -> tuple[Sum, Sum]:
        """For a block outside of the comments and for one in them; a page without comments says nothing."""
        if not self._commented:
            return self.scale.nothing, self.scale.nothing
        inside = sum(block.box.paragraphs for block in self.blocks if id(block.box) in self._commented)
        outside = bisect_right(_OUTSIDE, self.root.paragraphs - inside)
        share = bisect_right(_COMMENTED, inside / (self.root.paragraphs or 1))
        heart = int(any(self._heart.get(key) == 0 for key in self._commented))
        return self._sum_of_comment(0, share, outside, heart), self._sum_of_comment(1, share, outside, heart)

    def _sum_of_comment(self, in_comments: int, share: int, outside: int, heart: int) -> Sum:
        genre, start = self.head.genre, f"cm{in_comments}"
        return self.scale.text((
            f"{start}s{share}", f"{start}o{outside}", f"{start}{genre}", f"{start}h{heart}", f"{start}h{heart}{genre}{outside}",
            f"{start}h{heart}s{share}",
        ))  # fmt: skip

    def _places(self) -> list[Sum]:
        scale, kind, chars = self.scale, self.kind, self.chars
        places = [bisect_right(_PLACE, block.start / chars) for block in self.blocks]
        title = next((n for n, block in enumerate(self.blocks) if block.box.tag == "h1"), -1)
        if title < 0:
            return [scale.place(kind, place, "none") for place in places]
        before = [scale.place(kind, place, "before") for place in places[:title]]
        return before + [scale.place(kind, p, bisect_right(_AFTER, n)) for n, p in enumerate(places[title:])]

    def _find_heart(self) -> dict[int, int]:
        """The box with most running text right inside it, and those around it, by distance."""
        running: Counter[int] = Counter()
        for block in self.blocks:
            if block.box.paragraphs and block.box.parent is not None:
                running[id(block.box.parent)] += block.box.paragraphs
                if block.box.parent.parent is not None:
                    running[id(block.box.parent.parent)] += block.box.paragraphs // 2
        top = max(running, key=lambda key: running[key], default=0)
        box = next((box for box in self.boxes if id(box) == top), None)
        path: dict[int, int] = {}
        while box is not None:
            path[id(box)] = len(path)
            box = box.parent
        return path

    def _inherit(self) -> None:
        """Give each box with text the names that some box around it has, each once."""
        known: dict[tuple[int, str, str], Inherited] = {}
        nothing: Inherited = (frozenset(), self.scale.nothing)
        for box in self.boxes:  # parents come before their children
            if not box.blocks:
                continue
            found = nothing if box.parent is None else box.parent.around
            if box.key or box.tag in _AROUND:
                same = (id(found), box.key, box.tag)
                found = known.get(same) or known.setdefault(same, self._with(found, box))
            box.around = found

    def _with(self, inherited: Inherited, box: Box) -> Inherited:
        names, result = inherited
        own = self.scale.names(box.key)
        new = {"anc:" + name for name in own}
        if self.head.genre == ARTICLE:
            new |= {"art:" + name for name in own & _IN_ARTICLES}
        if box.tag in _AROUND:
            new.add("in:" + box.tag)
        new -= names
        return (names | new, result + self.scale.worth(new)) if new else inherited

    def _box(self, box: Box) -> Sum:
        """Boxes of one kind side by side that hold one block each are judged once."""
        if box.blocks > 1 or box.parent is None:
            return self._surroundings(box)
        alike = (id(box.parent), box.tag, box.key)
        found = self._alike.get(alike)
        if found is None:
            found = self._alike[alike] = self._surroundings(box)
        return found

    def _surroundings(self, box: Box) -> Sum:
        """The boxes around: what they are called, what they hold, how often they are repeated."""
        scale = self.scale
        names, result = box.around
        most = box.repeats
        counted = box
        # Whatever holds a box of several blocks holds several blocks.
        while counted.blocks < 2 and counted.parent is not None:
            counted = counted.parent
            most = max(most, counted.repeats)
        if counted.parent is not None:
            most = max(most, counted.parent.repeats)
        times = bisect_right(_TIMES, box.repeats), bisect_right(_TIMES, most)
        result = result + self._levels(counted) + scale.sum_of_repeats(self.kind, *times) + self._nearness(box)
        if box.key:
            result = result + scale.sum_of_names("own:", box.key)
        if box.parent is not None and box.parent.key:
            result = result + scale.sum_of_names("par:", box.parent.key)
        missing = self._holders - names
        return result + scale.outside(missing) if missing else result

    def _levels(self, box: Box) -> Sum:
        """What this box and those around it hold."""
        if box.levels is None:
            result = self.scale.nothing
            around: Box | None = box
            for level in range(1, LEVELS + 1):
                if around is None:
                    break
                result = result + self.scale.level(level, around.shape or self._shape(around))
                around = around.parent
            box.levels = result
        return box.levels

    def _shape(self, box: Box) -> Shape:
        size = max(1, box.chars)
        box.shape = (
            bisect_right(_LINKED, box.linked / size),
            bisect_right(_CHARS, size),
            bisect_right(_RUNNING, box.paragraphs / size),
            bisect_right(_SHARE, size / self.chars),
            bisect_right(_TIMES, box.repeats),
            box.tag if box.tag in _AROUND else "",
        )
        return box.shape

    def _nearness(self, box: Box) -> Sum:
        """How far the block is from where most running text is."""
        around: Box | None = box
        while around is not None and id(around) not in self._heart:
            around = around.parent
        if around is None:
            return self.scale.nothing
        share = bisect_right(_SHARE, around.chars / self.chars)
        return self.scale.near(self.kind, min(self._heart[id(around)], 4), share)

    def _text(self, block: Block) -> Sum:
        text = block.text
        end = text[-1]
        names: tuple[str, ...] = ("end." if end in '.!?…"”' else "end:" if end == ":" else "end",)
        if "," in text:
            names += ("comma",)
        if block.words < SHORT:
            names += _cues(text)
        if text.isupper():
            names += ("caps",)
        if self._times[text] > 1:
            names += ("again",)
        return self.scale.text(names)


def _cues(text: str) -> tuple[str, ...]:
    """What the words of a short text give away, each once."""
    names: tuple[str, ...] = ()
    lower = text.lower()
    if _MAYBE_CUE.search(lower):
        names = tuple(f"cue:{cue}" for cue in dict.fromkeys(_CUE.findall(lower)))
    if _MONEY_SIGN.search(text) and _MONEY.search(text):
        names += ("money",)
    if ("19" in text or "20" in text or "ago" in text) and _DATE.search(text):
        names += ("date",)
    return names
