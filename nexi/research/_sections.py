"""Writes the report of a model section by section: each from its own evidence, then an introduction from the sections.

The orchestrator above has the outline from the evaluator and the evidence from the app; below is a model behind its port. A
section that the model does not write, or writes without citing its evidence, is quoted from that evidence.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from msgspec import Struct

from nexi.agent.tool_text import is_no_answer
from nexi.answers.citations import (
    SentenceStream,
    drop_unknown,
    extract_citation_markers,
    normalise_markers,
    strip_sources_section,
)
from nexi.answers.echoes import drop_prompt_text
from nexi.errors import LLMError
from nexi.ports import LLM
from nexi.prompts import render
from nexi.research._digest import AFTER_CITATION, content_stems
from nexi.research._stream import LEAKED_TAGS
from nexi.research.evaluator import EvaluationLimits, cut_to_bytes
from nexi.research.outline import MAX_SECTION_WORDS, MIN_SECTIONS, Section, section_words
from nexi.research.titles import make_title
from nexi.text.sentences import sentence_bounds
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.types import Message, PageView

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


class SectionedReport(Struct, frozen=True):
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

    async def write_report(self) -> SectionedReport:
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
        return SectionedReport("\n\n".join(b for b in blocks if b) if parts else "", quoted, reason, empty_headings)

    async def _write_section(self, place: int) -> SectionedReport:
        section, evidence = self.sections[place], self.evidence[place]
        if not evidence:
            return SectionedReport("")
        findings = list_findings(section, self.reports)
        numbers = {page.number for page in evidence}.union(*map(extract_citation_markers, findings))
        outline = "\n".join(f"- {s.heading}" for s in self.sections)
        words = section_words(self.limits.words, len(self.sections))
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
                return SectionedReport(_quote_evidence(evidence), (section.heading,), str(error))
        text = clean_section(reply, numbers)
        return SectionedReport(text) if text else SectionedReport(_quote_evidence(evidence), (section.heading,))


def list_findings(section: Section, reports: Sequence[str]) -> list[str]:
    """The statements of the researchers that cite sources of a section, those with most of its words first."""
    subject_stems = content_stems(section.subject)
    units = [u for report in reports for line in strip_sources_section(report).split("\n") for u in AFTER_CITATION.split(line)]
    cited = [_LIST_MARK.sub("", u) for u in units if (m := extract_citation_markers(u)) and m <= set(section.sources)]
    statements = [unit for unit in dict.fromkeys(cited) if any(not word.isdecimal() for word in content_stems(unit))]
    return sorted(statements, key=lambda unit: -len(subject_stems & content_stems(unit)))


async def write_introduction(question: str, body: str, llm: LLM, limits: EvaluationLimits) -> str:
    """The introduction; "" where the model gives none that cites the sections, or one that only repeats them."""
    rules = render("introduction", folder=limits.prompts_folder, question=question)
    try:
        reply = await _request_text(rules, cut_to_bytes(body, _free_bytes(limits)), llm, limits)
    except LLMError:
        return ""
    return drop_repeated_sentences(clean_section(reply, extract_citation_markers(body)), body)


async def _request_text(rules: str, request: str, llm: LLM, limits: EvaluationLimits) -> str:
    messages = [Message("system", rules + limits.instructions), Message("user", request)]
    reply = await llm.complete(messages, max_tokens=_reply_tokens(limits), temperature=0.2, deadline=limits.deadline)
    return reply.text


def _free_bytes(limits: EvaluationLimits) -> int:
    return max(BYTES_PER_TOKEN, (limits.window - _reply_tokens(limits) - limits.prompt_tokens) * BYTES_PER_TOKEN)


def _reply_tokens(limits: EvaluationLimits) -> int:
    return min(TOKENS_PER_WORD * max(MAX_SECTION_WORDS, section_words(limits.words, MIN_SECTIONS)), limits.max_tokens)


def clean_section(reply: str, numbers: set[int]) -> str:
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


def drop_repeated_sentences(text: str, body: str) -> str:
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
