"""Chooses the evidence of each section of a report and has a model write it from that; then an introduction from the sections.

The orchestrator above has the outline from the evaluator; below is a model behind its port. A section that the model does not
write, or writes without citing its evidence, is quoted from that evidence.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from msgspec import Struct

from nexi.agent.fallbacks import is_no_answer
from nexi.answers.citations import (
    SentenceStream,
    drop_unknown,
    extract_citation_markers,
    normalise_markers,
    strip_sources_section,
)
from nexi.answers.echoes import drop_prompt_text
from nexi.checking.evidence import SentenceQuery, clean_text, gather_evidence
from nexi.checking.pages import prepare
from nexi.checking.sentences import without_markers
from nexi.errors import LLMError
from nexi.ports import LLM
from nexi.prompts import render
from nexi.research.evaluator import (
    AFTER_CITATION,
    LEAKED_TAGS,
    MIN_SECTION_WORDS,
    MIN_SECTIONS,
    EvaluationLimits,
    Section,
    content_stems,
    cut_to_bytes,
)
from nexi.research.titles import make_title
from nexi.text.blocks import Block, parse_blocks
from nexi.text.sentences import sentence_bounds
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.types import Message, PageView

MAX_SECTION_WORDS = 400  # where no length was asked for
LENGTHS: Mapping[str, int] = {"brief": 300, "standard": 1_000, "long": 3_000}  # words of a report
MAX_EVIDENCE_TOKENS = 3_000  # of one section
MAX_FINDINGS = 12  # of one section
MAX_WIDENED_CHARS = 600  # that a passage gains
OPENING_CHARS = 1_500  # of a page that shares no word with its section
TOKENS_PER_WORD = 4  # of a reply: other languages, citations, thinking aloud
MAX_EVIDENCE_BYTES = 14_000
MAX_FINDINGS_BYTES = 2_000
QUOTED_PASSAGES = 2  # of a section that the model did not write
MAX_QUOTED_SENTENCES = 4  # of each of them
SAME_SENTENCE_SHARE = 0.8  # of common words, from which a sentence of the introduction repeats one of a section

_HEADING_LINE = re.compile(r"^(?:#{1,6}\s+.*|\*\*[^*]+\*\*:?)$")
_FENCED = re.compile(r"\A\s*```\w*\s*(.*?)\s*```\s*\Z", re.DOTALL)
_LIST_OR_TABLE = re.compile(r"[-*+|] ?|\d+[.)] ")
_LIST_MARK = re.compile(r"^\s*(?:[-*]|#{1,6}|\d+\.)\s+")


class _SectionedReport(Struct, frozen=True):
    """A report or a section of it, the headings of sections that were quoted, why, and those without any evidence."""

    text: str
    quoted: tuple[str, ...] = ()
    reason: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class SectionWriter:
    """One report. `evidence` has the passages of each section, best first, as views of their pages."""

    question: str
    sections: Sequence[Section]
    evidence: Sequence[Sequence[PageView]]
    llm: LLM
    limits: EvaluationLimits
    concurrency: asyncio.Semaphore
    reports: Sequence[str] = ()
    show_progress: Callable[[str], None] = lambda _: None
    title: str = ""  # from the model; made of the question where it gave none
    gaps: Sequence[str] = ()  # parts of the question that no report answers

    async def write_report(self) -> _SectionedReport:
        """Write every section that has evidence, and the introduction."""
        async with asyncio.TaskGroup() as tasks:
            writing = [tasks.create_task(self._write_section(place)) for place in range(len(self.sections))]
        pairs = [(section, task.result()) for section, task in zip(self.sections, writing, strict=True)]
        parts = [f"## {s.heading}\n\n{w.text}" if len(pairs) > 1 else w.text for s, w in pairs if w.text]
        empty_headings = tuple(s.heading for s, w in pairs if not w.text)
        quoted = tuple(heading for _, w in pairs for heading in w.quoted)
        reason = next((w.reason for _, w in pairs if w.reason), "")
        introduction = ""
        if len(parts) > 1 and len(quoted) < len(parts):
            self.show_progress("writing the introduction")
            introduction = await write_introduction(self.question, "\n\n".join(parts), self.llm, self.limits)
        gaps = "\n".join(f"- {name}" for name in dict.fromkeys((*empty_headings, *self.gaps)))
        blocks = [f"# {self.title or make_title(self.question)}", introduction, *parts, gaps and f"## Not found\n\n{gaps}"]
        return _SectionedReport("\n\n".join(b for b in blocks if b) if parts else "", quoted, reason, empty_headings)

    async def _write_section(self, place: int) -> _SectionedReport:
        section, evidence = self.sections[place], self.evidence[place]
        if not evidence:
            return _SectionedReport("")
        findings = list_findings(section, self.reports)
        numbers = {page.number for page in evidence}.union(*map(extract_citation_markers, findings))
        outline = "\n".join(f"- {s.heading}" for s in self.sections)
        words = _section_words(self.limits.words, len(self.sections))
        rules = render("section", folder=self.limits.prompts_folder, question=self.question, outline=outline, most_words=words)
        room = min(MAX_EVIDENCE_BYTES, _free_bytes(self.limits))
        sizes = accumulate(len(f"- {finding}\n".encode()) for finding in findings)
        most_bytes = min(MAX_FINDINGS_BYTES, room // 4)
        notes = "\n".join(f"- {finding}" for finding, size in zip(findings, sizes, strict=True) if size <= most_bytes)
        passages = _render_evidence(evidence, room - len(notes.encode()))
        reported = f"\n\nNotes of the researchers:\n{notes}" if notes else ""
        request = f"{passages}{reported}\n\nNow write the section “{section.heading}”. {section.covers}".rstrip()
        async with self.concurrency:
            self.show_progress(f"writing section {place + 1} of {len(self.sections)}: {section.heading}")
            try:
                reply = await _request_text(rules, request, self.llm, self.limits)
            except LLMError as error:
                return _SectionedReport(_quote_evidence(evidence), (section.heading,), str(error))
        text = _clean_section(reply, numbers)
        return _SectionedReport(text) if text else _SectionedReport(_quote_evidence(evidence), (section.heading,))


def list_findings(section: Section, reports: Sequence[str]) -> list[str]:
    """The statements of the researchers that cite sources of a section, those with most of its words first."""
    subject_stems = content_stems(section.subject)
    units = [u for report in reports for line in strip_sources_section(report).split("\n") for u in AFTER_CITATION.split(line)]
    cited = [_LIST_MARK.sub("", u) for u in units if (m := extract_citation_markers(u)) and m <= set(section.sources)]
    statements = [unit for unit in dict.fromkeys(cited) if any(not word.isdecimal() for word in content_stems(unit))]
    return sorted(statements, key=lambda unit: -len(subject_stems & content_stems(unit)))


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


async def write_introduction(question: str, body: str, llm: LLM, limits: EvaluationLimits) -> str:
    """The introduction; "" where the model gives none that cites the sections, or one that only repeats them."""
    rules = render("introduction", folder=limits.prompts_folder, question=question)
    try:
        reply = await _request_text(rules, cut_to_bytes(body, _free_bytes(limits)), llm, limits)
    except LLMError:
        return ""
    return _drop_repeated_sentences(_clean_section(reply, extract_citation_markers(body)), body)


async def _request_text(rules: str, request: str, llm: LLM, limits: EvaluationLimits) -> str:
    messages = [Message("system", rules + limits.instructions), Message("user", request)]
    reply = await llm.complete(messages, max_tokens=_reply_tokens(limits), temperature=0.2, deadline=limits.deadline)
    return reply.text


def _section_words(words: int, sections: int) -> int:
    """How many words one of so many sections may have."""
    return max(MIN_SECTION_WORDS, words // max(1, sections)) if words else MAX_SECTION_WORDS


def _free_bytes(limits: EvaluationLimits) -> int:
    return max(BYTES_PER_TOKEN, (limits.window - _reply_tokens(limits) - limits.prompt_tokens) * BYTES_PER_TOKEN)


def _reply_tokens(limits: EvaluationLimits) -> int:
    return min(TOKENS_PER_WORD * max(MAX_SECTION_WORDS, _section_words(limits.words, MIN_SECTIONS)), limits.max_tokens)


def _clean_section(reply: str, numbers: set[int]) -> str:
    """The text of a reply: no tags, headings or list of sources, and only paragraphs that cite one of these numbers."""
    body = _FENCED.sub(r"\1", LEAKED_TAGS.sub("", reply).strip())
    if is_no_answer(body):
        return ""
    body, _ = drop_unknown(strip_sources_section(normalise_markers(drop_prompt_text(body))), numbers)
    blocks, is_code = [""], False
    for line in body.split("\n"):
        is_code ^= line.lstrip().startswith("```")
        if not is_code and not line.strip():
            blocks.append("")
        elif is_code or not _HEADING_LINE.match(line.strip()):
            blocks[-1] += f"{line}\n"
    blocks = [block.rstrip() for block in blocks if block.strip()]
    paragraphs: list[str] = []
    # a line that ends in a colon stays with the list or table that it introduces; the first may be a remark about the task
    for place, block in enumerate(blocks):
        following = blocks[place + 1] if place and block.endswith(":") and place + 1 < len(blocks) else ""
        is_lead_in = _LIST_OR_TABLE.match(following) and extract_citation_markers(following)
        is_example = place and block.lstrip().startswith("```") and paragraphs[-1:] == [blocks[place - 1]]  # code cites nothing
        if is_lead_in or is_example or extract_citation_markers(block):
            paragraphs.append(block)
    return "\n\n".join(paragraphs)


def _drop_repeated_sentences(text: str, body: str) -> str:
    """The text without sentences that stand almost word for word in the body; "" where no citation is left."""
    body_stems = [content_stems(sentence) for sentence in _split_sentences(body)]
    new_sentences = []
    for sentence in _split_sentences(text):
        stems = content_stems(sentence)
        if not stems or all(len(stems & other) < SAME_SENTENCE_SHARE * len(stems | other) for other in body_stems):
            new_sentences.append(sentence)
    joined = "".join(new_sentences).strip()
    return joined if extract_citation_markers(joined) else ""


def _split_sentences(text: str) -> list[str]:
    stream = SentenceStream()
    return [stretch for stretch in (*stream.feed(text), stream.finish()) if stretch]


def _quote_evidence(evidence: Sequence[PageView]) -> str:
    """The best passages of a section, each sentence with its number."""
    passages = []
    for page in evidence[:QUOTED_PASSAGES]:
        bounds = list(sentence_bounds(page.text, len(page.text) or 1))[:MAX_QUOTED_SENTENCES]
        passages.append(" ".join(f"{page.text[start:end]} [{page.number}]" for start, end in bounds))
    return "\n\n".join(passages)


def _render_evidence(evidence: Sequence[PageView], room: int) -> str:
    """The passages that fit, best first, under the number and title of their page, in the order of the pages."""
    sizes = accumulate(len(page.text.encode()) + len(page.title.encode()) + 20 for page in evidence)
    passages = [page for page, size in zip(evidence, sizes, strict=True) if size <= room] or evidence[:1]
    sources = []
    for number in sorted({page.number for page in passages}):
        own = [page for page in passages if page.number == number]
        sources.append("\n".join((f"Source [{number}], {own[0].title}:", *(page.text for page in own))))
    return "\n\n".join(sources)
