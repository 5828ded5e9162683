"""The figures of a benchmark, as a table and as JSON.

Questions that were not asked yet do not count; failed ones count as wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct

from nexi.bench.questions import BenchQuestion
from nexi.bench.results import BenchRow
from nexi.bench.scores import Share, score_answer, wilson_share

ALL = "all"
MAX_KINDS = 12


class Figures(Struct, frozen=True):
    """The figures of a group of questions; words, citations and the rest are means per question."""

    name: str
    asked: int
    failed: int
    correct: Share
    exact: float
    f1: float
    sentences: Share
    checked: int
    words: float
    citations: float
    pages: float
    model_calls: float
    tokens: float
    seconds: float
    slowest: float
    cost: float | None
    conflicts: int


def group_figures(questions: Sequence[BenchQuestion], rows: Mapping[str, BenchRow]) -> list[Figures]:
    """Figures of all questions, then of each kind if there are a few kinds."""
    questions_asked = [q for q in questions if q.id in rows]
    kinds = sorted({q.kind for q in questions_asked if q.kind})
    groups = [(ALL, questions_asked)]
    if 1 < len(kinds) <= MAX_KINDS:
        groups += [(kind, [q for q in questions_asked if q.kind == kind]) for kind in kinds]
    return [_compute_figures(name, group, [rows[q.id] for q in group]) for name, group in groups]


def _compute_figures(name: str, questions: Sequence[BenchQuestion], rows: Sequence[BenchRow]) -> Figures:
    scores = [score_answer(row.answer, q.answers) for q, row in zip(questions, rows, strict=True)]
    seconds = sorted(row.seconds for row in rows)
    costs = [row.cost for row in rows]
    checked = sum(row.checked for row in rows)
    return Figures(
        name=name,
        asked=len(rows),
        failed=sum(bool(row.error) for row in rows),
        correct=wilson_share(sum(s.correct for s in scores), len(rows)),
        exact=_mean([100.0 * s.exact for s in scores]),
        f1=_mean([100.0 * s.f1 for s in scores]),
        sentences=wilson_share(sum(row.supported for row in rows), checked),
        checked=checked,
        words=_mean([float(s.words) for s in scores]),
        citations=_mean([float(len(set(row.citations))) for row in rows]),
        pages=_mean([float(row.pages) for row in rows]),
        model_calls=_mean([float(row.model_calls) for row in rows]),
        tokens=_mean([float(row.tokens) for row in rows]),
        seconds=median(seconds) if seconds else 0.0,
        slowest=seconds[-1] if seconds else 0.0,
        cost=None if any(c is None for c in costs) else sum(c or 0.0 for c in costs),
        conflicts=sum(bool(row.conflicts) for row in rows),
    )


def render_table(groups: Sequence[Figures]) -> str:
    heads = (
        "questions", "asked", "correct % (95 %)", "F1", "sentences found %", "words", "citations", "pages", "tokens",
        "seconds", "cost $", "failed",
    )  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for f in groups:
        cells = [
            f.name.replace("|", "/"),
            str(f.asked),
            f"{f.correct.percent:.1f} ({f.correct.low:.0f} to {f.correct.high:.0f})",
            f"{f.f1:.1f}",
            f"{f.sentences.percent:.1f} of {f.checked}" if f.checked else "not checked",
            f"{f.words:.0f}",
            f"{f.citations:.1f}",
            f"{f.pages:.1f}",
            f"{f.tokens:.0f}",
            f"{f.seconds:.1f}",
            "unknown" if f.cost is None else f"{f.cost:.4f}",
            str(f.failed),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
