"""Markdown cut into chunks that can be found and read alone, and the chunks of a long text that speak to a question.

Above are indexing, the tools, the fallbacks and the check; below, `blocks`, `sentences` and `terms`. No store and no model is
known here. Chunks are spans of the text, in order and without holes, so joining the spans gives the text back. A closed code
fence is never cut; other text is cut between blocks, then lines, then sentences, then words, and inside a word only at last.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest
from itertools import islice, pairwise

from msgspec import Struct

from nexi.text.blocks import Block, parse_blocks
from nexi.text.sentences import sentence_bounds
from nexi.text.stems import stem
from nexi.text.terms import extract_terms, question_terms

SIZE = 1_200
MIN_SHARE = 0.4  # a heading closes a chunk once it is this full; smaller sections share one
MAX_LEAD_CHARS = 300  # of a paragraph that goes with the list it announces
MAX_HEAD_CHARS = 600  # of a table that is repeated where the rest of it is read alone
MAX_FENCE = 100_000  # a longer one is a file, not an example, and is cut between its lines
PASSAGE_GAP = "\n\n[…]\n\n"  # between the passages of one page that a search of the knowledge store returned
SATURATION, LENGTH_SHARE = 1.2, 0.6  # the parameters of BM25
BESIDE = 0.25  # what a chunk has of the better one beside it: a heading holds the words, and what follows it the answer
PAIR = 0.4  # what two words of the question side by side add, of the rarer one's weight
PAIR_DEPTH = 200  # the chunks that are read for such pairs
MAX_HEADING_CHARS = 160
MARK_BYTES = 60  # of a mark without its headings
MAX_LIST_PARTS = 2  # that are read with the one in which a list begins

_ALONE = ("heading", "code")
_ANNOUNCING = ("heading", "caption")  # what goes with the text after it, as does a short paragraph that ends in a colon
_LINE_END = re.compile(r"\n+")
_SPACE = re.compile(r"\s+")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


class TextChunk(Struct, frozen=True):
    """A chunk of one text; `head` has the two lines that begin the table in whose middle the chunk begins."""

    start: int
    end: int
    text: str
    headings: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    has_code: bool = False
    head: str = ""


class _Unit(Struct, frozen=True):
    """What is not cut where it fits: a heading, a code fence, or a paragraph, list or table, each up to the next unit."""

    start: int
    end: int
    kind: str
    label: str = ""
    under: tuple[str, ...] = ()
    head: str = ""


def chunk_markdown(text: str, size: int = SIZE, *, max_fence: int = MAX_FENCE) -> list[TextChunk]:
    """The chunks of a text; none is longer than `size` except a code fence that is longer itself."""
    if size < 1:
        raise ValueError(f"a chunk size of {size} cannot hold anything")
    packer = _Packer(text, size, max_fence)
    firsts: list[Block] = []  # of each unit: blocks without an empty line between them are one
    end = 0
    for block in parse_blocks(text):
        if not firsts or block.kind in _ALONE or firsts[-1].kind in _ALONE or block.start > end + 1:
            firsts.append(block)
        end = block.end
    bounds = pairwise((0, *(first.start for first in firsts[1:]), len(text)))  # units cover the text
    for first, (start, end) in zip(firsts, bounds, strict=False):
        under = (*first.trail, first.label) if first.kind == "heading" and first.label else first.trail
        packer.add(_Unit(start, end, first.kind, first.label if first.kind == "code" else "", under))
    packer.flush()
    return packer.pieces


def heading_path(headings: Sequence[str]) -> str:
    """The headings above a chunk on one line."""
    return " > ".join(headings)


def _ends_in_colon(text: str) -> bool:
    """Whether a text announces what follows it."""
    return text.endswith((":", "："))


def headings_of(text: str) -> list[str]:
    """Every heading of a text, in order."""
    return [b.label for b in parse_blocks(text) if b.kind == "heading" and b.label]


def count_code_blocks(text: str) -> Counter[str]:
    """The closed code fences of a text by the language they name."""
    return Counter(b.label for b in parse_blocks(text) if b.kind == "code" and b.label)


class _Packer:
    """Puts units together as long as they fit, and knows the headings that hold where each chunk begins."""

    def __init__(self, text: str, size: int, max_fence: int) -> None:
        self.pieces: list[TextChunk] = []
        self._text = text
        self._size = size
        self._max_fence = max_fence
        self._held: list[_Unit] = []
        self._under: tuple[str, ...] = ()

    def add(self, unit: _Unit) -> None:
        begins = self._held[0].start if self._held else unit.start
        if unit.kind == "heading" and _chunk_length(self._text, begins, unit.start) >= self._size * MIN_SHARE:
            self.flush()
        if self._length_with(unit) > self._size:
            # A heading, the caption of a table or "They are:" at the end of a chunk goes with what it announces.
            at = len(self._held)
            while at and self._announces(self._held[at - 1]):
                at -= 1
            self._held, announcing = self._held[:at], self._held[at:]
            self.flush()
            self._held = announcing
        if all(map(self._announces, self._held)):
            self._under = unit.under
        if self._length_with(unit) <= self._size:
            self._held.append(unit)
        elif unit.kind == "code" and unit.end - unit.start <= self._max_fence:
            self.flush()
            self._held = [unit]
        else:
            start = self._held[0].start if self._held else unit.start
            head = "\n".join(self._text[unit.start : unit.end].split("\n", 2)[:2]) if unit.kind == "head" else ""
            head = head if len(head) <= MAX_HEAD_CHARS else ""
            for begin, end in _split_span(self._text, start, unit.end, self._size, 0):
                self._held = [_Unit(begin, end, unit.kind, unit.label, head=head if begin > unit.start else "")]
                if end < unit.end:
                    self.flush()

    def flush(self) -> None:
        units, self._held = self._held, []
        text = self._text[units[0].start : units[-1].end].rstrip() if units else ""
        if text := _BLANK_LINES.sub("", text, count=1):
            fences = [unit for unit in units if unit.kind == "code"]
            languages = tuple(dict.fromkeys(unit.label for unit in fences if unit.label))
            start, end, head = units[0].start, units[-1].end, units[0].head
            self.pieces.append(TextChunk(start, end, text, self._under, languages, bool(fences), head))

    def _announces(self, unit: _Unit) -> bool:
        text = self._text[unit.start : unit.end].rstrip() if unit.kind == "prose" else ""
        return unit.kind in _ANNOUNCING or (_ends_in_colon(text) and len(text) <= MAX_LEAD_CHARS)

    def _length_with(self, unit: _Unit) -> int:
        return _chunk_length(self._text, self._held[0].start if self._held else unit.start, unit.end)


def _chunk_length(text: str, start: int, end: int) -> int:
    """How long a chunk of this span would be: what is white at its end does not count."""
    while end > start and text[end - 1].isspace():
        end -= 1
    return end - start


def _split_span(text: str, start: int, end: int, size: int, level: int) -> list[tuple[int, int]]:
    if _chunk_length(text, start, end) <= size:
        return [(start, end)]
    if level == len(_CUTS):
        return [(at, min(at + size, end)) for at in range(start, end, size)]
    out: list[tuple[int, int]] = []
    for unit_start, unit_end in pairwise((start, *_CUTS[level](text, start, end), end)):
        # What is short with the white at its end need not be measured without it: there is a step for every word.
        is_long = unit_end - unit_start > size and _chunk_length(text, unit_start, unit_end) > size
        if out and level == 0:
            # A line that is a heading, or a short one that ends in a colon, is not left alone.
            line = text[slice(*out[-1])].strip()
            is_lead = "\n" not in line and len(line) <= MAX_LEAD_CHARS and (line.startswith("#") or _ends_in_colon(line))
            if is_lead and _chunk_length(text, out[-1][0], unit_end) > size:
                is_long, unit_start = True, out.pop()[0]
        if is_long:
            out += _split_span(text, unit_start, unit_end, size, level + 1)
        elif out and (unit_end - out[-1][0] <= size or _chunk_length(text, out[-1][0], unit_end) <= size):
            out[-1] = (out[-1][0], unit_end)
        elif unit_end > unit_start:
            out.append((unit_start, unit_end))
    return out


# After lines, then where each sentence but the first begins, then after words.
_CUTS: tuple[Callable[[str, int, int], Iterator[int]], ...] = (
    lambda text, start, end: (match.end() for match in _LINE_END.finditer(text, start, end)),
    lambda text, start, end: (start + at for at, _ in islice(sentence_bounds(text[start:end], end - start), 1, None)),
    lambda text, start, end: (match.end() for match in _SPACE.finditer(text, start, end)),
)


class LongText:
    """A text cut into numbered chunks, with an index of its words that is made once."""

    # Each passage of it stands under a mark that says which parts of the text it is and under which headings.

    def __init__(self, text: str) -> None:
        self.text = text
        self.chunks: Sequence[TextChunk] = chunk_markdown(text)
        self._places: defaultdict[str, array[int]] = defaultdict(lambda: array("L"))
        self._lengths: list[int] = []

        for number, chunk in enumerate(self.chunks):
            terms = extract_terms(" ".join((*chunk.headings[-1:], chunk.head, chunk.text)))
            self._lengths.append(len(terms))
            for term in terms:
                self._places[stem(term)].append(number)

    def rank_chunks(self, query: str) -> list[tuple[int, float]]:
        """The chunks with words of a query and their scores, the best first."""
        scores: dict[int, float] = {}
        total, mean = len(self.chunks), sum(self._lengths) / max(1, len(self.chunks)) or 1.0
        question_stems = [stem(term) for term in question_terms(query)]
        rarity: dict[str, float] = {}
        for root in dict.fromkeys(question_stems):
            counts = Counter(self._places.get(root, ()))
            rarity[root] = math.log(1 + (total - len(counts) + 0.5) / (len(counts) + 0.5))
            for number, count in counts.items():
                norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * self._lengths[number] / mean)
                scores[number] = scores.get(number, 0.0) + rarity[root] * count * (1 + SATURATION) / (count + norm)
        pairs = {(one, other): PAIR * min(rarity[one], rarity[other]) for one, other in pairwise(question_stems)}
        for number in nlargest(PAIR_DEPTH, scores, key=lambda n: (scores[n], -n)) if pairs else ():
            roots = [stem(term) for term in extract_terms(self.chunks[number].text)]
            scores[number] += sum(pairs[pair] for pair in pairs.keys() & set(pairwise(roots)))
        near = {
            number: score + BESIDE * max(scores.get(number - 1, 0.0), scores.get(number + 1, 0.0))
            for number, score in scores.items()
        }
        return sorted(near.items(), key=lambda item: (-item[1], item[0]))

    def excerpt(self, query: str, room: int, found: str = "") -> str:
        """What speaks to a query, within `room` bytes; the chunks that are in `found` come first."""
        # Then by rank, each with the rest of a list that begins in it; what is left is the beginning's.
        by_rank = [number for number, _ in self.rank_chunks(query)]
        matches = [number for number, chunk in enumerate(self.chunks) if found and chunk.text in found]
        opening = range(len(self.chunks))
        head = [0] if self.chunks and room > 8 * len(self.chunks[0].text) else []
        numbers: set[int] = set()
        room_left = room
        for number in dict.fromkeys((*matches, *head, *by_rank, *opening)):
            if number in numbers:
                continue
            if (size := self._part_bytes(number)) > room_left:
                if room_left < room // 20:
                    break
                continue
            numbers.add(number)
            room_left -= size
            # The chunks with the rest of the list that this one announces or begins.
            last, most = number, min(number + MAX_LIST_PARTS, len(self.chunks) - 1)
            while not _ITEM.match(self.chunks[number].text) and last < most:
                if not _ends_in_colon(self.chunks[last].text) and not _ITEM.match(self.chunks[last + 1].text):
                    break
                last += 1
            for after in range(number + 1, last + 1):
                if after not in numbers and (size := self._part_bytes(after)) <= room_left // 2:
                    numbers.add(after)
                    room_left -= size
        return self.render_parts(sorted(numbers))

    def _part_bytes(self, number: int) -> int:
        chunk = self.chunks[number]
        part = f"{heading_path(chunk.headings)[:MAX_HEADING_CHARS]}{chunk.head}{self.text[chunk.start : chunk.end]}"
        return len(part.encode("utf-8", "replace")) + MARK_BYTES

    def render_parts(self, numbers: Sequence[int]) -> str:
        """These chunks as text, each run of neighbours under one mark."""
        runs: list[tuple[int, int]] = []
        for number in numbers:
            if runs and runs[-1][1] == number - 1:
                runs[-1] = (runs[-1][0], number)
            else:
                runs.append((number, number))
        passages = []
        for first, last in runs:
            parts = f"part {first + 1}" if first == last else f"parts {first + 1} to {last + 1}"
            path = heading_path(self.chunks[first].headings)[:MAX_HEADING_CHARS].replace("]", ")")
            text = self.text[self.chunks[first].start : self.chunks[last].end].strip("\n")
            if head := self.chunks[first].head:  # of the table that it begins inside of
                text = f"{head}\n{text}"
            passages.append(f"[{parts} of {len(self.chunks)}{f': {path}' if path else ''}]\n\n{text}")
        return "\n\n".join(passages)

    def read_on(self, first: int, room: int) -> str:
        """The chunks from number `first`, counted from 1, as far as `room` bytes go, and where the text goes on."""
        start = last = min(max(first, 1), len(self.chunks)) - 1
        room_left = room - self._part_bytes(start) - 2 * MARK_BYTES
        while last + 1 < len(self.chunks) and (size := self._part_bytes(last + 1)) <= room_left:
            last, room_left = last + 1, room_left - size
        goes_on = f"\n\n[part {last + 2} of {len(self.chunks)} is next]" if last + 1 < len(self.chunks) else ""
        return self.render_parts(range(start, last + 1)) + goes_on


def excerpt_text(text: str, query: str, room: int) -> str:
    """A text whole where it has at most `room` bytes, else what of it speaks to the query."""
    return text if len(text.encode("utf-8", "replace")) <= room else LongText(text).excerpt(query, room)
