"""The report without a model: what the researchers found, put in order, each sentence with its page.

The evaluator above asks for it where no model writes. Pure, from the state alone. Nothing is said that no report says; what was
said before is not said again, and what does not bear on its task is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nexi.answers.citations import extract_citation_markers, strip_sources_section
from nexi.research.planner import names_in
from nexi.research.state import ResearchState
from nexi.text.stems import stem
from nexi.text.stopwords import STOP
from nexi.values import frozen

COVERED = 0.5
BEARS_WORDS = 2
SHORT_WORDS = 4  # fewer are a short answer, which the sentence after it may well repeat

_HEADING = re.compile(r"^#{1,6}\s+", re.MULTILINE)
_AFTER_CITATION = re.compile(r"(?:(?<=\d\])|(?<=\d\]\.))\s+")
_NUMBERS = re.compile(r"\s*\[\d+\]")


@frozen
class Section:
    """What was found for one task; delegated tasks that ask for the same stand with it."""

    task: str
    reports: tuple[str, ...]


def digest(state: ResearchState, *, quoted: bool = False) -> str:
    """The reports in one document: what answers the question first, then a section for each task.

    `quoted` reports are quotations alone, so that each sentence can be judged by itself.
    """
    found = _sections(state)
    told = _told(state, found, quoted=quoted)
    if not any(told.values()) and quoted:
        told = _told(state, found, quoted=False)
    title, lead = " ".join(state.question.split()), _mark(state.question)
    parts = [f"# {title}", told.get(lead, "")]
    parts += [f"## {section.task}\n\n{told[mark]}" for mark, section in found.items() if mark != lead and told[mark]]
    if missing := _missing(state, "\n".join(told.values())):
        parts.append("## Not found\n\n" + "\n".join(f"- {task}" for task in missing))
    return "\n\n".join(part for part in parts if part)


def _sections(state: ResearchState) -> dict[frozenset[str], Section]:
    """By what their tasks ask for; the question itself first."""
    found: dict[frozenset[str], Section] = {}
    for researcher in sorted(state.reported, key=lambda r: _mark(r.task) != _mark(state.question)):
        mark = _mark(researcher.task)
        before = found.get(mark, Section(researcher.task, ()))
        body = strip_sources_section(researcher.report).strip()
        if extract_citation_markers(body):
            found[mark] = Section(before.task, (*before.reports, _HEADING.sub("### ", body)))
    return found


def _told(state: ResearchState, found: dict[frozenset[str], Section], *, quoted: bool) -> dict[frozenset[str], str]:
    told: dict[frozenset[str], str] = {}
    before: list[frozenset[str]] = []
    for mark, section in found.items():
        units = [u for report in section.reports for u in (_AFTER_CITATION.split(report) if quoted else report.split("\n\n"))]
        if quoted and mark != _mark(state.question):
            units = _bearing(units, section.task)
        units = _fresh(units, before)
        before += [stems(_NUMBERS.sub("", unit)) for unit in units]
        told[mark] = (" " if quoted else "\n\n").join(units)
    return told


def _bearing(units: Sequence[str], task: str) -> list[str]:
    """What cites a page of which at least one sentence is about the task."""
    names = [_plain(name) for name in names_in(task)]
    if not names and not task.endswith("?") and len(task.split()) <= SHORT_WORDS:
        names = [_plain(task)]  # a subject and no question
    terms = stems(task)

    def is_about(unit: str) -> bool:
        if names:
            return any(name in _plain(unit) for name in names)
        return len(terms & stems(unit)) >= min(BEARS_WORDS, len(terms))

    pages = {number for unit in units if is_about(unit) for number in extract_citation_markers(unit)}
    return [unit for unit in units if pages & extract_citation_markers(unit)]


def _fresh(units: Sequence[str], before: Sequence[frozenset[str]]) -> list[str]:
    """What says something that no other sentence says; of two that say the same, the first."""
    words = [stems(_NUMBERS.sub("", unit)) for unit in units]
    kept = []
    for index, unit in enumerate(units):
        mine = words[index]
        later = any(mine < other for other in words[index + 1 :])
        if mine and not (len(mine) >= SHORT_WORDS and later) and not any(mine <= other for other in (*before, *words[:index])):
            kept.append(unit)
    return kept


def _missing(state: ResearchState, told: str) -> list[str]:
    """Tasks of the plan, and those that failed, of which the report says nothing."""
    words = stems(told)
    tasks = dict.fromkeys([*state.agenda, *(r.task for r in state.researchers if r.doing == "failed")])
    return [task for task in tasks if _mark(task) != _mark(state.question) and not is_covered(stems(task), words)]


def is_covered(terms: frozenset[str], words: frozenset[str]) -> bool:
    return not terms or len(terms & words) / len(terms) >= COVERED


def stems(text: str) -> frozenset[str]:
    """What a text is about, as roots of its words."""
    return frozenset(stem(w) for w in re.findall(r"\w+", text.lower()) if w not in STOP)


def _plain(text: str) -> str:
    """Words alone, so that a name is found whatever stands around it."""
    return " ".join(re.findall(r"\w+", re.sub(r"['’]s\b", "", text.casefold())))


def _mark(task: str) -> frozenset[str]:
    """Tasks with the same words ask for the same; one without words is only like itself."""
    return stems(task) or frozenset((task,))
