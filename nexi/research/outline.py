"""The outline of a report: its sections, each with what it covers, the sources it rests on, and passages of them. Pure.

The evaluator above reads it from the reply of a model, and the orchestrator has passages chosen; `sections` writes the report
from both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from nexi.answers.citations import extract_citation_markers
from nexi.checking.evidence import SentenceQuery, clean_text, gather_evidence
from nexi.checking.pages import prepare
from nexi.checking.sentences import without_markers
from nexi.text.blocks import Block, parse_blocks
from nexi.types import PageView

MIN_SECTIONS = 2
MAX_SECTIONS = 6
MAX_SECTION_WORDS = 400  # where no length was asked for
MIN_SECTION_WORDS = 100
LENGTHS: Mapping[str, int] = {"brief": 300, "standard": 1_000, "long": 3_000}  # words of a report
MAX_HEADING_CHARS = 120  # also of the title
MAX_COVERS_CHARS = 400
MAX_EVIDENCE_TOKENS = 3_000  # of one section
MAX_FINDINGS = 12  # of one section
MAX_WIDENED_CHARS = 600  # that a passage gains
OPENING_CHARS = 1_500  # of a page that shares no word with its section


class Section(Struct, frozen=True):
    """One section: its heading, what it must tell, and the numbers of the pages it rests on."""

    heading: str
    covers: str = ""
    sources: tuple[int, ...] = ()

    @property
    def subject(self) -> str:
        """The words by which evidence for this section is found."""
        return f"{self.heading} {self.covers}".strip()


def most_sections(words: int) -> int:
    """How many sections a report of so many words may have; 0 words leave it to the evidence."""
    return max(MIN_SECTIONS, min(MAX_SECTIONS, words // MIN_SECTION_WORDS)) if words else MAX_SECTIONS


def section_words(words: int, sections: int) -> int:
    """How many words one of so many sections may have."""
    return max(MIN_SECTION_WORDS, words // max(1, sections)) if words else MAX_SECTION_WORDS


def parse_title(value: Mapping[str, Any]) -> str:
    """The title that a model gives its report; "" for one that is missing, asks, or runs on."""
    title = value.get("title")
    line = " ".join(title.split()).lstrip("# ").rstrip(".:") if isinstance(title, str) else ""
    is_title = any(map(str.isalnum, line)) and len(line) <= MAX_HEADING_CHARS and not line.endswith(("?", "？", "؟"))
    return line if is_title and not extract_citation_markers(line) else ""


def parse_outline(value: Mapping[str, Any]) -> tuple[Section, ...]:
    """Parse the sections of an outline; what is no section is left out, and of two with the same heading the second."""
    listed = value.get("sections")
    sections = [_parse_section(item) for item in listed] if isinstance(listed, list) else []
    by_heading = {section.heading.casefold(): section for section in reversed(sections) if section}
    return tuple(by_heading[key] for key in dict.fromkeys(s.heading.casefold() for s in sections if s))[:MAX_SECTIONS]


def parse_gaps(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Parse the parts of the question that no report answers, as the model names them."""
    listed = value.get("not_found")
    lines = (without_markers(_read_line(item, MAX_HEADING_CHARS)) for item in (listed if isinstance(listed, list) else ()))
    return tuple(dict.fromkeys(line.rstrip(" .:") for line in lines if any(map(str.isalnum, line))))[:MAX_SECTIONS]


def _parse_section(item: object) -> Section | None:
    if isinstance(item, str):
        item = {"heading": item}
    if not isinstance(item, Mapping):
        return None
    heading = _read_line(item.get("heading"), MAX_HEADING_CHARS).lstrip("# ").rstrip(":")
    numbers = item.get("sources")
    sources = (n for n in (numbers if isinstance(numbers, list) else ()) if isinstance(n, int) and not isinstance(n, bool))
    covers = _read_line(item.get("covers"), MAX_COVERS_CHARS)
    return Section(heading, covers, tuple(dict.fromkeys(sources))) if any(map(str.isalnum, heading)) else None


def _read_line(value: object, most: int) -> str:
    return " ".join(value.split())[:most] if isinstance(value, str) else ""


def choose_evidence(
    sections: Sequence[Section], findings: Sequence[Sequence[str]], pages: Sequence[PageView]
) -> list[list[PageView]]:
    """The passages of each section, those on its subject first, as views of their pages.

    What was found on a section is looked up again in its pages, so that the writer sees their words and not only the notes. A
    section without a page that can be read has all of them. Pages that share no word with their section open it.
    """
    views = {page.number: page for page in pages if page.text and not page.error and page.number > 0}
    snapshots = {number: prepare(view.text, view.url) for number, view in views.items()}
    blocks = {number: list(parse_blocks(page.text)) for number, page in snapshots.items()}
    chosen = []
    for section, statements in zip(sections, findings, strict=True):
        own = {n: snapshots[n] for n in section.sources if n in snapshots} or snapshots
        queries = [SentenceQuery(section.subject)]
        for finding in statements[:MAX_FINDINGS]:
            queries.append(SentenceQuery(without_markers(finding), tuple(extract_citation_markers(finding))))
        evidence = gather_evidence(queries, own, max_tokens=MAX_EVIDENCE_TOKENS)
        best = {n: place for place, n in enumerate(evidence.chosen[0])}
        passages = sorted(evidence.passages, key=lambda p: (best.get(p.n, len(best)), p.n))
        texts = []
        for p in passages:
            first = max((q.end for q in passages if q.page == p.page and q.end <= p.start), default=0)
            text = clean_text(_widen_to_blocks(snapshots[p.page].text, blocks[p.page], first, p.start, p.end))
            texts.append((p.page, f"{p.trail}: {text}" if p.trail else text))
        if not texts and section.sources:
            texts = [(n, page.text[:OPENING_CHARS]) for n, page in own.items() if n in section.sources]
        chosen.append([PageView(views[n].url, n, views[n].title, text) for n, text in texts])
    return chosen


def _widen_to_blocks(text: str, blocks: Sequence[Block], first: int, start: int, end: int) -> str:
    """A stretch of a page from where its paragraph begins, not before `first`, and without a heading or cut code at its end."""
    inside = [block for block in blocks if block.start < end and start < block.end]
    if inside and first <= inside[0].start and start - inside[0].start <= MAX_WIDENED_CHARS:
        start = min(start, inside[0].start)
    for block in reversed(inside[1:]):
        if block.kind != "heading" and (block.kind != "code" or block.end <= end):
            break
        end = block.start
    return text[start:end].rstrip()
