"""A short answer from evidence: which sentences, from which pages, in how many words.

Above `evidence`, below the built-in model. One page is quoted when one page is enough; two when the question names both,
or when a page about its subject leads to the page that answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nexi.llm.evidence import Evidence, Scored
from nexi.llm.questions import Question
from nexi.types import PageView

MAX_WORDS = 55
FIRST_WORDS = 30
ENOUGH = 0.4


@dataclass(frozen=True, slots=True)
class Draft:
    """Quoted sentences with their citation numbers, after an optional short answer."""

    lines: tuple[tuple[str, int], ...] = ()
    short: str = ""


def compose(question: Question, pages: Sequence[PageView]) -> Draft:
    """The answer to a question from pages that were read; without lines when nothing in them bears on it."""
    evidence = Evidence(question, pages)
    usable = [s for s in evidence.ranked if s.sentence.kind != "label" and s.score > 0]
    if not usable:
        return Draft()
    chosen = _linked(evidence, usable) or [usable[0]]
    return Draft(_fill(evidence, chosen, usable))


def missing_name(question: Question, pages: Sequence[PageView]) -> str:
    return ""


def _norm(text: str) -> str:
    return " " + " ".join(re.findall(r"[^\W_]+", text.lower())) + " "


def _linked(evidence: Evidence, usable: Sequence[Scored]) -> list[Scored]:
    """Two sentences of two pages that belong together, or nothing."""
    asked = _norm(evidence.question.text)
    subjects = [_norm(s) for s in evidence.subjects]
    named = [len(s) > 4 and s in asked for s in subjects]
    best: tuple[float, list[Scored]] = (0.0, [])
    tops = {n: next((s for s in usable if s.page == n), None) for n in range(len(subjects))}
    for first in range(len(subjects)):
        if not named[first]:
            continue
        for second in range(len(subjects)):
            top = tops[second]
            if second == first or top is None or subjects[second] == subjects[first] or len(subjects[second]) <= 4:
                continue
            if subjects[second] in subjects[first]:
                continue
            own = [s for s in usable if s.page == first]
            if named[second]:
                link = own[0] if own else None
                bonus = 1.5
            else:
                link = next((s for s in own if subjects[second] in _norm(s.sentence.text)), None)
                bonus = 1.0
            if link is None:
                continue
            score = bonus * (link.score + top.score)
            if score > best[0]:
                best = (score, [link, top])
    return best[1]


def _fill(evidence: Evidence, chosen: Sequence[Scored], usable: Sequence[Scored]) -> tuple[tuple[str, int], ...]:
    """The chosen sentences, cut to size, and more of the same pages while there is room."""
    lines: list[tuple[str, int]] = []
    left = MAX_WORDS
    share = MAX_WORDS // len(chosen)
    taken = set()
    for s in chosen:
        text = _shown(evidence.question, s)
        text = _cut(text, share)
        lines.append((text, evidence.pages[s.page].number))
        left -= len(text.split())
        taken.add((s.page, s.place))
    cited = {s.page for s in chosen}
    for s in usable:
        if s.score < ENOUGH * chosen[0].score or left < 5:
            break
        if (s.page, s.place) in taken or len(cited | {s.page}) > 2:
            continue
        text = _shown(evidence.question, s)
        if len(text.split()) <= left:
            lines.append((text, evidence.pages[s.page].number))
            left -= len(text.split())
            cited.add(s.page)
            taken.add((s.page, s.place))
    return tuple(lines)


def _shown(question: Question, s: Scored) -> str:
    if question.wants == "code" and s.sentence.label:
        return f"{s.sentence.label}: {s.sentence.text}"
    return s.sentence.text


def _cut(text: str, words: int) -> str:
    parts = text.split()
    return text if len(parts) <= words else " ".join(parts[:words]) + " …"
