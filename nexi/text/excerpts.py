"""The passages of a long text that speak to a question: its chunks ranked by words, then joined in the order of the text.

Above are the tools, the fallbacks and the check; below, `chunking` and `terms`. Each passage stands under a mark that says
which parts of the text it is and under which headings; the parts have the numbers of their chunks. Pure and deterministic.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from heapq import nlargest
from itertools import pairwise

from nexi.text.chunking import TextChunk, chunk_markdown, ends_in_colon, heading_path
from nexi.text.stems import stem
from nexi.text.terms import extract_terms, question_terms

PASSAGE_GAP = "\n\n[…]\n\n"  # between the passages of one page that a search of the knowledge store returned
SATURATION, LENGTH_SHARE = 1.2, 0.6  # the parameters of BM25
BESIDE = 0.25  # what a chunk has of the better one beside it: a heading holds the words, and what follows it the answer
PAIR = 0.4  # what two words of the question side by side add, of the rarer one's weight
PAIR_DEPTH = 200  # the chunks that are read for such pairs
MAX_HEADING_CHARS = 160
MARK_BYTES = 60  # of a mark without its headings
MAX_LIST_PARTS = 2  # that are read with the one in which a list begins

_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")


class LongText:
    """A text cut into numbered chunks, with an index of its words that is made once."""

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
                if not ends_in_colon(self.chunks[last].text) and not _ITEM.match(self.chunks[last + 1].text):
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
