"""A page as stretches to quote whole: a few sentences, a list or a table with what introduces it, a step with its code.

Below `report`, above the parser of stored Markdown. Pure; knows no question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from nexi.llm.extractive._limits import MAX_CANDIDATES, MAX_WORDS
from nexi.llm.extractive.passages import PassageSentence, is_label, split_sentences
from nexi.text.blocks import Block, list_cells, parse_blocks, read_block
from nexi.text.plain import strip_markdown

# How a page of a manual begins: "cut - remove sections from lines".
NAME_LINE = re.compile(r"^(\S+(?: \S+){0,3}?) (?:-|–|—) \w")
_STOPS = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")  # a sentence without a stop goes on in the list below it
_NUMBER = re.compile(r"^(?:Chapter\s+)?\d+(?:\.\d+)*\.?\s+|[¶#]\s*$")
_FURNITURE = re.compile(r"\s*\[(?:update|edit|citation needed|clarification needed|when\?|who\?|by whom\?)\]|\s*[¶]$", re.I)
# What pages say of themselves: their rights, their licence, their maker and what they ask of a reader.
_OWN_MATTERS = re.compile(
    r"^\W*(?:©|\(c\) ?\d{4}|copyright\b)|\ball rights reserved\b|^please donate\b|"
    r"^this (?:page|work|article|site) is licensed\b|"
    r"^(?:last (?:updated|modified|edited) on|this page (?:was )?last (?:updated|modified|edited)|created (?:using|with)|"
    r"found a bug|subscribe to|sign up (?:for|to)|follow us|share (?:this|on)|click here|we use cookies|"
    r"cookie (?:policy|settings))\b|\bis a non-?profit (?:corporation|organi[sz]ation)\. please\b",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[[^\[\]]*\]\([^()\s]*\)")
_STRUCK_OUT = re.compile(r"~~.*?~~", re.DOTALL)  # what a page takes back
_DATELINE = re.compile(r"^[A-ZÀ-Þ][\w ,.'’À-ÿ-]{0,40}\((?:AP|Reuters|AFP|dpa|UPI)\)\s*[—–-]+\s*")


class StretchLine(Struct, frozen=True):
    """A sentence, an item, a row of a table, its head, or code; `level` says how far an item is indented."""

    kind: Literal["sentence", "item", "row", "head", "code"]
    text: str
    mark: str = ""
    level: int = 0
    cells: tuple[str, ...] = ()


class Stretch(Struct, frozen=True):
    """Lines of a page that belong together; `trail` has the headings above them, `place` is their order on the page."""

    page: int
    place: int
    trail: str
    lines: tuple[StretchLine, ...]
    block: int = 0

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)


def count_words(lines: Sequence[StretchLine | PassageSentence]) -> int:
    return sum(len(line.text.split()) for line in lines)


def read_stretches(markdown: str, page: int = 0) -> list[Stretch]:
    """The stretches of a page, in order."""
    stretches: list[Stretch] = []
    for trail, lines, block in _group_lines(markdown):
        for part in _split_lines(lines):
            stretches.append(Stretch(page, len(stretches), trail, tuple(part), block))
    return stretches


def _group_lines(markdown: str) -> Iterator[tuple[str, list[StretchLine], int]]:
    """The paragraphs of a page, each with the list, the table or the code that it introduces."""
    group: list[StretchLine] = []
    label, start, above = "", 0, ""
    for number, block in enumerate(parse_blocks(markdown)):
        if block.kind == "rule" and group and group[-1].kind == "head":
            continue  # the line under the head of a table
        if block.kind in ("heading", "mark", "rule", "note"):
            yield above, group, start
            group, label = [], ""
            continue
        body = read_block(markdown, block)
        if block.kind in ("prose", "item", "caption") and _OWN_MATTERS.search(" ".join(strip_markdown(body).split())):
            continue
        lines = _read_lines(block, body)
        if block.kind == "prose" and _LINK.fullmatch(body.strip()):
            continue  # of a table of contents
        if block.kind == "prose" and len(lines) == 1 and is_label(lines[0].text) and not NAME_LINE.match(lines[0].text):
            yield above, group, start
            group, label = [], lines[0].text
            continue
        if not lines:
            continue
        if not (group and _goes_on(group, lines[0])):
            yield above, group, start
            group, start = [], number
            above = ": ".join(filter(None, (*(_NUMBER.sub("", title) for title in block.trail[-2:]), label)))
        group += lines
    yield above, group, start


def _goes_on(group: Sequence[StretchLine], line: StretchLine) -> bool:
    last = group[-1]
    match line.kind:
        case "item":
            return last.kind == "item" or (last.kind == "sentence" and not _STOPS.search(last.text))
        case "row" | "head":
            return last.kind in ("row", "head") or (last.kind == "sentence" and not _STOPS.search(last.text))
        case "code":
            return last.kind in ("sentence", "code")
        case _:
            return last.kind == "code" and line.text[:1].islower()  # "where FILE is the name of"


def _read_lines(block: Block, body: str) -> list[StretchLine]:
    match block.kind:
        case "code":
            return [StretchLine("code", body.strip("\n"), block.label)] if body.strip() else []
        case "row" | "head":
            cells = tuple(map(strip_markdown, list_cells(body)))
            text = " – ".join(filter(None, cells))
            return [StretchLine("row" if block.kind == "row" else "head", text, cells=cells)] if text else []
        case "item":
            text = _clean(strip_markdown(_STRUCK_OUT.sub("", body)))
            return [StretchLine("item", text, block.label, block.level)] if text else []
        case _:
            plain = body if block.kind == "formula" else strip_markdown(_STRUCK_OUT.sub("", body))
            parts = map(_clean, split_sentences(_DATELINE.sub("", plain)))
            return [StretchLine("sentence", text) for text in parts if text]


def _clean(text: str) -> str:
    return _FURNITURE.sub("", text).strip()


def _split_lines(lines: Sequence[StretchLine]) -> Iterator[Sequence[StretchLine]]:
    """Long prose in pieces; of a paragraph before a list, a table or code, its last sentence stays with these."""
    other = next((i for i, line in enumerate(lines) if line.kind != "sentence"), len(lines))
    lead = max(0, other - 1) if other < len(lines) else other
    piece: list[StretchLine] = []
    for line in lines[:lead]:
        if piece and count_words([*piece, line]) > MAX_WORDS:
            yield piece
            piece = []
        piece.append(line)
    if piece:
        yield piece
    if lines[lead:]:
        yield lines[lead : lead + MAX_CANDIDATES]


def render_lines(lines: Sequence[StretchLine], number: int) -> str:
    """Lines as Markdown, each sentence, item and row with the number of its source."""
    blocks: list[str] = []
    kind = ""
    for line in lines:
        is_same_block = kind == line.kind or {kind, line.kind} == {"row", "head"}
        if line.kind == "sentence":
            text = f"{line.text} [{number}]"
            glue = " "
        elif line.kind == "item":
            mark = line.mark if line.mark[:1].isdigit() else "-"
            text, glue = f"{'  ' * min(line.level // 2, 2)}{mark} {line.text} [{number}]", "\n"
        elif line.kind == "code":
            text, glue = f"```{line.mark}\n{line.text}\n```", "\n"
        else:
            citation = "" if line.kind == "head" else f" [{number}]"
            text, glue = f"| {' | '.join(line.cells)}{citation} |", "\n"
            if line.kind == "head":
                text += f"\n|{'---|' * len(line.cells)}"
            elif kind not in ("row", "head"):
                text = f"|{' |' * len(line.cells)}\n|{'---|' * len(line.cells)}\n{text}"
        if is_same_block and blocks:
            blocks[-1] += glue + text
        else:
            blocks.append(text)
        kind = line.kind
    return "\n\n".join(blocks)
