"""How likely each block of a page is content: a sum of learned weights, and the cut that serves the whole page best.

Above sits `markup`; below `blocks`. A block is described by names such as `words:5` or `in:nav`; each name has one weight, so
what speaks for or against a block can be read off. The weights are learned by `evals/extraction_weights.py`.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib import resources
from math import exp
from typing import Any

from nexi.extract.blocks import Block, Box, Layout, tag_set

Sum = Any  # of the weights of names; while learning, the list of the names themselves

LEAST, MOST = 0.15, 0.5  # where the cut may lie
MOSTLY = 0.7
SOME_CODE = 3  # blocks of code that make a page documentation
FEW_LINES = 300  # characters
LEVELS = 4  # boxes around a block that are looked at

_WORDS = (2, 3, 5, 8, 13, 21, 41, 81)
_LINKED = (0.01, 0.2, 0.5, 0.8, 0.999)
_CHARS = (30, 100, 300, 1_000, 3_000, 10_000)
_SHARE = (0.02, 0.1, 0.3, 0.6, 0.9)
_RUNNING = (0.01, 0.3, 0.6, 0.9)
_PLACE = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
_TIMES = (2, 3, 5, 9, 20)
_SIDES = ((-2, "e"), (-1, "a"), (1, "b"), (2, "g"))
_AFTER = (1, 3, 10, 30, 100)

_AROUND = tag_set("nav header footer aside form article main ul ol table section blockquote dl figure details address")
_TAGS = tag_set("p li h1 h2 h3 h4 h5 h6 td th div pre dt dd blockquote figcaption section article body")
_TEXTS = tag_set("h1 h2 h3 h4 article pre")
_NAMES = tag_set(
    "comment reply post entry article content main body text story thread topic message answer question review descri detail"
    " summary spec feature product price item card list grid result sidebar side widget menu nav head foot crumb related"
    " recommend popular trend latest recent more share social follow subscri newsletter signup login account cart checkout"
    " promo banner advert sponsor cookie consent modal popup overlay tag categor meta byline author bio date time caption"
    " title intro lead hero copy legal disclaim pag filter sort search tool action button btn link logo brand user profile"
    " avatar signature quote vote rating star stat count similar upsell carousel slider gallery tab accordion faq toc sr-only"
    " skip print mobile top bottom left right section wrapper container block module column row page site global"
)
_NAMED = re.compile("|".join(sorted(_NAMES, key=lambda name: (-len(name), name))))
_CUE = re.compile(
    r"©|\b(?:cookies?|sign (?:in|up)|log ?in|subscribe|rights reserved|read more|privacy|newsletter|share|add to (?:cart|bag)"
    r"|comments?|reply|related|see (?:all|more)|view|follow|terms|shipping|click|learn more|contact)\b"
)
_MONEY = re.compile(r"[$€£¥]\s?\d|\d\s?(?:USD|EUR|€)")
_DATE = re.compile(r"\b(?:19|20)\d\d\b|\bago\b")


@cache
def weights() -> Mapping[str, float]:
    """What was learned, read once."""
    text = resources.files("nexi.extract").joinpath("weights.json").read_text(encoding="utf-8")
    learned: dict[str, float] = json.loads(text)
    return learned


@lru_cache(maxsize=10_000)
def _names_in(word: str) -> frozenset[str]:
    return frozenset(_NAMED.findall(word))


def content(layout: Layout) -> list[bool]:
    """For each block of the page, whether it is content; on a page of a few lines everything is."""
    if layout.chars < FEW_LINES:
        return [True] * len(layout.blocks)
    chances = [1 / (1 + exp(-max(-30.0, min(30.0, score)))) for score in _as_units(layout, _scores(layout))]
    cut = _cut(layout.blocks, chances)
    return _filled(layout, _mended(layout.blocks, [chance >= cut for chance in chances]))


def _scores(layout: Layout) -> list[float]:
    learned = weights()

    def worth(names: Iterable[str]) -> float:
        return sum([learned.get(name, 0.0) for name in names])

    page = Page(layout, worth)
    return [page.judge(index) for index in range(len(layout.blocks))]


def _as_units(layout: Layout, scores: list[float]) -> list[float]:
    """The cells of a table and the items of a plain list stand or fall together."""
    unit_of: dict[int, Box] = {}
    for box in layout.boxes:
        above = unit_of.get(id(box.parent))
        if above is not None or box.tag in ("table", "ul", "ol", "dl"):
            unit_of[id(box)] = above or box
    broken = {id(unit_of[id(box)]) for box in layout.boxes if id(box) in unit_of and _breaks(box, unit_of[id(box)])}
    sums: dict[int, tuple[float, int]] = {}
    units = [unit_of.get(id(block.box)) for block in layout.blocks]
    for unit, block, score in zip(units, layout.blocks, scores, strict=True):
        if unit is not None:
            total, words = sums.get(id(unit), (0.0, 0))
            sums[id(unit)] = total + score * (block.words + 1), words + block.words + 1
    means = {key: total / words for key, (total, words) in sums.items() if key not in broken}
    return [means.get(id(unit), score) for unit, score in zip(units, scores, strict=True)]


def _breaks(box: Box, unit: Box) -> bool:
    """Headings, code, or a table in a table: this holds a whole text and is no unit."""
    return box.tag in _TEXTS or (box.tag == "table" and box is not unit) or (box.tag == "p" and unit.tag == "dl")


def _mended(blocks: list[Block], kept: list[bool]) -> list[bool]:
    """Code stays with the text beside it, and so does what stands between two kept blocks of the same box."""
    around = [False, *kept, False]
    mended = []
    for index, block in enumerate(blocks):
        before, keep, after = around[index : index + 3]
        if not keep and block.box.tag == "pre":
            keep = before or after
        elif not keep and before and after:
            keep = blocks[index - 1].box.parent is block.box.parent is blocks[index + 1].box.parent
        mended.append(keep)
    return mended


def _filled(layout: Layout, kept: list[bool]) -> list[bool]:
    """A box with code in it that is mostly content is all content: documentation keeps its notes, signatures and tables."""
    if sum(block.box.tag == "pre" for block in layout.blocks) < SOME_CODE:
        return kept
    words: Counter[int] = Counter()
    taken: Counter[int] = Counter()
    code: Counter[int] = Counter()
    for block, keep in zip(layout.blocks, kept, strict=True):
        if block.box.tag == "pre":
            code[id(block.box)] += 1
            continue
        words[id(block.box)] += block.words
        taken[id(block.box)] += block.words * keep
    for box in reversed(layout.boxes):
        for sums in (words, taken, code):
            sums[id(box.parent)] += sums[id(box)]
    full: set[int] = set()
    for box in layout.boxes:
        key = id(box)
        if id(box.parent) in full or (code[key] >= SOME_CODE and taken[key] >= MOSTLY * words[key]):
            full.add(key)
    return [keep or id(block.box) in full for block, keep in zip(layout.blocks, kept, strict=True)]


def _cut(blocks: list[Block], chances: list[float]) -> float:
    """The chance from which on blocks are kept, so that precision and recall of the page are expected to balance."""
    expected = sum(chance * block.words for chance, block in zip(chances, blocks, strict=True))
    best, cut, right, taken = 0.0, MOST, 0.0, 0
    for chance, words in sorted(((c, b.words) for c, b in zip(chances, blocks, strict=True)), reverse=True):
        right += chance * words
        taken += words
        if taken and (balance := 2 * right / (taken + expected)) > best:
            best, cut = balance, chance
    return max(LEAST, min(MOST, cut))


class Page:
    """Judges blocks by their names; `worth` makes names a sum of weights, or for learning a list of them."""

    def __init__(self, layout: Layout, worth: Callable[[Iterable[str]], Sum]) -> None:
        self.blocks, self.root, self.chars, self.worth = layout.blocks, layout.root, max(1, layout.chars), worth
        running = self.root.paragraphs / self.chars
        self.kind = "A" if running > 0.6 else "B" if running > 0.3 else "C"
        self._named: dict[str, frozenset[str]] = {}
        self._memo: dict[object, Sum] = {}
        self._around: dict[int, tuple[frozenset[str], Sum]] = {}
        self._words = [bisect_right(_WORDS, block.words) for block in self.blocks]
        self._linked = [bisect_right(_LINKED, block.linked / max(1, len(block.text))) for block in self.blocks]
        self._looks = [f"{w}{d // 2}{b.box.tag[0]}" for w, d, b in zip(self._words, self._linked, self.blocks, strict=True)]
        self._times = Counter(block.text for block in self.blocks)
        self._title = next((n for n, block in enumerate(self.blocks) if block.box.tag == "h1"), -1)
        self._holders = frozenset(
            "in:" + box.tag for box in layout.boxes if box.tag in ("main", "article") and box.chars > 0.3 * self.chars
        )
        self._heart = self._find_heart(layout)

    def judge(self, index: int) -> Sum:
        """What all names of a block come to."""
        block = self.blocks[index]
        return self._box(block.box) + self._form(index) + self._place(index) + self._beside(index) + self._text(block)

    def _find_heart(self, layout: Layout) -> dict[int, int]:
        """The box with most running text right inside it, and those around it, by distance."""
        running: Counter[int] = Counter()
        for block in self.blocks:
            if block.box.paragraphs and block.box.parent is not None:
                running[id(block.box.parent)] += block.box.paragraphs
                if block.box.parent.parent is not None:
                    running[id(block.box.parent.parent)] += block.box.paragraphs // 2
        top = max(running, key=lambda key: running[key], default=0)
        box = next((box for box in layout.boxes if id(box) == top), None)
        path: dict[int, int] = {}
        while box is not None:
            path[id(box)] = len(path)
            box = box.parent
        return path

    def _box(self, box: Box) -> Sum:
        """Boxes of one kind side by side that hold one block each are judged once."""
        if box.blocks > 1 or box.parent is None:
            return self._surroundings(box)
        alike = (id(box.parent), box.tag, box.key)
        found = self._memo.get(alike)
        if found is None:
            found = self._memo[alike] = self._surroundings(box)
        return found

    def _surroundings(self, box: Box) -> Sum:
        """The boxes around: what they are called, what they hold, how often they are repeated."""
        names, result = self._inherited(box)
        result = result + self._called("own:", box.key)
        if box.parent is not None:
            result = result + self._called("par:", box.parent.key)
        level = most = 0
        around: Box | None = box
        while around is not None and level < LEVELS:
            if around.blocks > 1 or around.parent is None:
                level += 1
                result = result + self._level(around, level)
            if level < 3:
                most = max(most, around.repeats)
            around = around.parent
        rest = ["out:" + holder for holder in self._holders - names]
        rest += [f"x{bisect_right(_TIMES, box.repeats)}", f"rep{self.kind}{bisect_right(_TIMES, most)}"]
        return result + self.worth(rest) + self._nearness(box)

    def _inherited(self, box: Box) -> tuple[frozenset[str], Sum]:
        missing = []
        around: Box | None = box
        while around is not None and id(around) not in self._around:
            missing.append(around)
            around = around.parent
        for around in reversed(missing):
            names, result = self._around[id(around.parent)] if around.parent else (frozenset[str](), self.worth(()))
            new = {"anc:" + name for name in self._names(around.key)}
            if around.tag in _AROUND:
                new.add("in:" + around.tag)
            new -= names
            self._around[id(around)] = (names | new, result + self.worth(new)) if new else (names, result)
        return self._around[id(box)]

    def _names(self, key: str) -> frozenset[str]:
        found = self._named.get(key)
        if found is None:
            found = self._named[key] = frozenset().union(*map(_names_in, key[:300].split()))
        return found

    def _called(self, role: str, key: str) -> Sum:
        found = self._memo.get((role, key))
        if found is None:
            found = self._memo[role, key] = self.worth([role + name for name in self._names(key)])
        return found

    def _level(self, box: Box, level: int) -> Sum:
        found = self._memo.get((id(box), level))
        if found is None:
            size = max(1, box.chars)
            found = self._memo[id(box), level] = self.worth((
                f"c{level}d{bisect_right(_LINKED, box.linked / size)}",
                f"c{level}n{bisect_right(_CHARS, size)}",
                f"c{level}p{bisect_right(_RUNNING, box.paragraphs / size)}",
                f"c{level}s{bisect_right(_SHARE, size / self.chars)}",
                f"c{level}r{bisect_right(_TIMES, box.repeats)}",
                f"c{level}t{box.tag if box.tag in _AROUND else ''}",
            ))  # fmt: skip
        return found

    def _nearness(self, box: Box) -> Sum:
        """How far the block is from where most running text is."""
        around: Box | None = box
        while around is not None and id(around) not in self._heart:
            around = around.parent
        if around is None:
            return self.worth(())
        found = self._memo.get(id(around))
        if found is None:
            distance, share = self._heart[id(around)], bisect_right(_SHARE, around.chars / self.chars)
            found = self._memo[id(around)] = self.worth((f"heart{self.kind}{min(distance, 4)}", f"hs{self.kind}{share}"))
        return found

    def _form(self, index: int) -> Sum:
        kind, words, linked, tag = self.kind, self._words[index], self._linked[index], self.blocks[index].box.tag
        found = self._memo.get((words, linked, tag))
        if found is None:
            known = tag if tag in _TAGS else "other"
            found = self._memo[words, linked, tag] = self.worth((
                "bias", f"w{words}", f"d{linked}", f"wd{words}{linked}", f"pw{kind}{words}", f"pd{kind}{linked}",
                f"t:{known}", f"pt{kind}{known}", f"tw{known}{words // 2}",
            ))  # fmt: skip
        return found

    def _place(self, index: int) -> Sum:
        place = bisect_right(_PLACE, self.blocks[index].start / self.chars)
        after = "none" if self._title < 0 else "before" if index < self._title else bisect_right(_AFTER, index - self._title)
        found = self._memo.get((place, after))
        if found is None:
            found = self._memo[place, after] = self.worth((f"pos{place}", f"pp{self.kind}{place}", f"h1:{after}"))
        return found

    def _beside(self, index: int) -> Sum:
        looks, last = self._looks, len(self._looks)
        return self.worth([side + (looks[index + step] if 0 <= index + step < last else "") for step, side in _SIDES])

    def _text(self, block: Block) -> Sum:
        text, words = block.text, block.words
        end = text[-1:]
        names = {"end." if end in '.!?…"”' else "end:" if end == ":" else "end"}
        if "," in text:
            names.add("comma")
        if words < 21:
            names.update("cue:" + cue for cue in _CUE.findall(text.lower()))
            if _MONEY.search(text):
                names.add("money")
            if _DATE.search(text):
                names.add("date")
        if text.isupper():
            names.add("caps")
        if self._times[text] > 1:
            names.add("again")
        return self.worth(names)
