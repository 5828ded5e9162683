"""The passages from which a model writes each section of a report. Pure.

The orchestrator above has the outline and what the researchers found; below are the windows that a judge is shown. What was
found on a section is looked up again in its pages, so that the writer sees the words of the page and not only the notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nexi.answers.citations import extract_citation_markers
from nexi.checking.evidence import SentenceQuery, gather_evidence
from nexi.checking.pages import Snapshot, prepare
from nexi.checking.sentences import without_markers
from nexi.research.outline import Section
from nexi.types import PageView

MAX_EVIDENCE_TOKENS = 3_000  # of one section
MAX_FINDINGS = 12  # of one section
OPENING_CHARS = 1_500  # of a page that shares no word with its section


def choose_evidence(
    sections: Sequence[Section], findings: Sequence[Sequence[str]], pages: Sequence[PageView]
) -> list[list[PageView]]:
    """The passages of each section, those on its subject first, as views of their pages.

    A section without a page that can be read has all of them. Of a section whose pages share no word with it, they open it.
    """
    views = {page.number: page for page in pages if page.text and not page.error and page.number > 0}
    snapshots = {number: prepare(view.text, view.url) for number, view in views.items()}
    return [_choose(section, statements, views, snapshots) for section, statements in zip(sections, findings, strict=True)]


def _choose(
    section: Section, findings: Sequence[str], views: Mapping[int, PageView], snapshots: Mapping[int, Snapshot]
) -> list[PageView]:
    own = {n: snapshots[n] for n in section.sources if n in snapshots} or snapshots
    queries = [SentenceQuery(section.subject)]
    for finding in findings[:MAX_FINDINGS]:
        queries.append(SentenceQuery(without_markers(finding), tuple(extract_citation_markers(finding))))
    evidence = gather_evidence(queries, own, max_tokens=MAX_EVIDENCE_TOKENS)
    best = {n: place for place, n in enumerate(evidence.chosen[0])}
    passages = sorted(evidence.passages, key=lambda p: (best.get(p.n, len(best)), p.n))
    texts = [(p.page, f"{p.trail}: {p.text}" if p.trail else p.text) for p in passages]
    if not texts and section.sources:
        texts = [(n, page.text[:OPENING_CHARS]) for n, page in own.items() if n in section.sources]
    return [PageView(views[n].url, n, views[n].title, text) for n, text in texts]
