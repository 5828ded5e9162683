"""The report without a model: a digest of the researchers' reports, in order, each sentence with its citation.

The evaluator above uses it where no model can write. Pure, from the state alone. It adds nothing to the reports, repeats
nothing, and leaves out what is not about its task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nexi.answers.citations import extract_citation_markers, strip_sources_section
from nexi.research.state import ResearchState
from nexi.research.titles import make_title
from nexi.text.stems import stem
from nexi.text.words import content_words, find_names, find_words

MIN_COVERED_SHARE = 0.5
MIN_SHARED_WORDS = 2
SHORT_ANSWER_WORDS = 4  # a text with fewer words is a short answer, which the sentence after it may repeat

_HEADING = re.compile(r"^#{1,6}\s+", re.MULTILINE)
AFTER_CITATION = re.compile(r"(?:(?<=\d\])|(?<=\d\]\.))\s+")
_NUMBERS = re.compile(r"\s*\[\d+\]")


def build_digest(state: ResearchState, *, quoted: bool = False) -> str:
    """Join the reports in one document: first what answers the question, then a section for each task."""
    # `quoted` reports consist of quotations, so that each sentence can be judged by itself
    main = _task_key(state.question)
    # the first task and the reports on all that ask for the same; the question itself comes first
    sections: dict[frozenset[str], tuple[str, list[str]]] = {}
    for researcher in sorted(state.reported_researchers, key=lambda r: _task_key(r.task) != main):
        body = strip_sources_section(researcher.report).strip()
        if extract_citation_markers(body):
            _, reports = sections.setdefault(_task_key(researcher.task), (researcher.task, []))
            reports.append(_HEADING.sub("### ", body))
    texts = _render_sections(state, sections, quoted=quoted)
    if not any(texts.values()) and quoted:
        texts = _render_sections(state, sections, quoted=False)
    parts = [f"# {make_title(state.question)}", texts.get(main, "")]
    parts += [f"## {task}\n\n{texts[key]}" for key, (task, _) in sections.items() if key != main and texts[key]]
    words = content_stems("\n".join(texts.values()))
    planned_tasks = dict.fromkeys([*state.agenda, *(r.task for r in state.researchers if r.status == "failed")])
    open_tasks = [t for t in planned_tasks if _task_key(t) != main and not is_covered(content_stems(t), words)]
    if open_tasks:
        parts.append("## Not found\n\n" + "\n".join(f"- {task}" for task in open_tasks))
    return "\n\n".join(part for part in parts if part)


def _render_sections(
    state: ResearchState, sections: dict[frozenset[str], tuple[str, list[str]]], *, quoted: bool
) -> dict[frozenset[str], str]:
    texts: dict[frozenset[str], str] = {}
    before: list[frozenset[str]] = []
    for key, (task, reports) in sections.items():
        units = [u for report in reports for u in (AFTER_CITATION.split(report) if quoted else report.split("\n\n"))]
        if quoted and key != _task_key(state.question):
            units = _keep_relevant(units, task)
        units = _drop_redundant(units, before)
        before += [content_stems(_NUMBERS.sub("", unit)) for unit in units]
        texts[key] = (" " if quoted else "\n\n").join(units)
    return texts


def _keep_relevant(units: Sequence[str], task: str) -> list[str]:
    """Keep the units that cite a page which at least one unit about the task cites."""
    names = [_normalise_words(name) for name in find_names(task)]
    if not names and not task.endswith("?") and len(task.split()) <= SHORT_ANSWER_WORDS:
        names = [_normalise_words(task)]  # the task is a subject, not a question
    terms = content_stems(task)

    def is_about(unit: str) -> bool:
        if names:
            return any(name in _normalise_words(unit) for name in names)
        return len(terms & content_stems(unit)) >= min(MIN_SHARED_WORDS, len(terms))

    pages = {number for unit in units if is_about(unit) for number in extract_citation_markers(unit)}
    return [unit for unit in units if pages & extract_citation_markers(unit)]


def _drop_redundant(units: Sequence[str], before: Sequence[frozenset[str]]) -> list[str]:
    """Drop units whose words another unit contains; of two with the same words, keep the first."""
    words = [content_stems(_NUMBERS.sub("", unit)) for unit in units]
    distinct = []
    for index, (unit, mine) in enumerate(zip(units, words, strict=True)):
        is_in_later = len(mine) >= SHORT_ANSWER_WORDS and any(mine < other for other in words[index + 1 :])
        if mine and not is_in_later and not any(mine <= other for other in (*before, *words[:index])):
            distinct.append(unit)
    return distinct


def is_covered(terms: frozenset[str], words: frozenset[str]) -> bool:
    return not terms or len(terms & words) / len(terms) >= MIN_COVERED_SHARE


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words in a text, without stop words."""
    return frozenset(map(stem, content_words(text)))


def _normalise_words(text: str) -> str:
    """Reduce a text to lower-case words, so that a name is found whatever stands around it."""
    return " ".join(find_words(re.sub(r"['’]s\b", "", text.casefold())))


def _task_key(task: str) -> frozenset[str]:
    """Identify a task by its stems: tasks with the same words ask for the same."""
    return content_stems(task) or frozenset((task,))
