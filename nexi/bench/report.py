"""Scores of answers against the right ones of the question file, and the figures of a benchmark as a table and as an SVG plot.

An answer is correct if it contains a right answer as whole words, or if the two share nearly all of their words. Questions that
were not asked yet do not count; failed ones count as wrong. The plot works on light and dark pages.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import median

from msgspec import Struct

from nexi.bench.questions import BenchQuestion
from nexi.bench.results import BenchRow

MIN_CORRECT_F1 = 0.8
WILSON_Z = 1.96  # two standard deviations: 95 %
ALL = "all"
MAX_KINDS = 12
WIDTH, BAR, GAP, LEFT, RIGHT = 760, 22, 12, 230, 90
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_THOUSANDS = re.compile(r"(?<=\d)[,\u00a0\u202f](?=\d{3}\b)")
_NO_WORD = re.compile(r"[^\w\s]")
_MARKER = re.compile(r"\[\d+\]")
_LIST_OF_SOURCES = re.compile(r"(?im)^\s*(?:sources|references|citations)\s*:")
_YES_NO = ("yes", "no")
_BINS = 12
_HEIGHT = 120
_STYLE = Path(__file__).with_name("plot.css").read_text(encoding="utf-8").strip()


class _AnswerScore(Struct, frozen=True):
    correct: bool
    exact: bool
    f1: float
    words: int


class Share(Struct, frozen=True):
    """A percentage with its 95 % Wilson interval."""

    percent: float
    low: float
    high: float


def score_answer(answer: str, right: Sequence[str]) -> _AnswerScore:
    """Score an answer against the closest right answer."""
    prose = _LIST_OF_SOURCES.split(_MARKER.sub(" ", answer))[0]
    text, golds = _normalise_text(prose), [g for g in map(_normalise_text, right) if g]
    words, best, has_answer = text.split(), 0.0, False
    for gold in golds:
        gold_words = gold.split()
        same = sum((Counter(words) & Counter(gold_words)).values())
        best = max(best, 2 * same / (len(words) + len(gold_words)) if same else 0.0)
        if gold in _YES_NO:
            has_answer = has_answer or words[:1] == [gold]
        elif f" {gold} " in f" {text} " or (not gold.isascii() and " " not in gold and gold in text):
            has_answer = True
    return _AnswerScore(best >= MIN_CORRECT_F1 or has_answer, text in golds, best, len(prose.split()))


def _normalise_text(text: str) -> str:
    """Lower case, no articles, no punctuation, 1,200 as 1200."""
    text = unicodedata.normalize("NFKC", _THOUSANDS.sub("", text)).lower()
    return " ".join(_NO_WORD.sub(" ", _ARTICLE.sub(" ", text)).split())


def wilson_share(count: int, total: int) -> Share:
    if not total:
        return Share(0.0, 0.0, 100.0)
    p, z = count / total, WILSON_Z
    middle = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return Share(100 * p, max(0.0, 100 * (middle - half)), min(100.0, 100 * (middle + half)))


class _Figures(Struct, frozen=True):
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


def group_figures(questions: Sequence[BenchQuestion], rows: Mapping[str, BenchRow]) -> list[_Figures]:
    """Figures of all questions, then of each kind if there are a few kinds."""
    questions_asked = [q for q in questions if q.id in rows]
    kinds = sorted({q.kind for q in questions_asked if q.kind})
    groups = [(ALL, questions_asked)]
    if 1 < len(kinds) <= MAX_KINDS:
        groups += [(kind, [q for q in questions_asked if q.kind == kind]) for kind in kinds]
    return [_compute_figures(name, group, [rows[q.id] for q in group]) for name, group in groups]


def _compute_figures(name: str, questions: Sequence[BenchQuestion], rows: Sequence[BenchRow]) -> _Figures:
    scores = [score_answer(row.answer, q.answers) for q, row in zip(questions, rows, strict=True)]
    seconds = sorted(row.seconds for row in rows)
    costs = [row.cost for row in rows]
    checked = sum(row.checked for row in rows)
    return _Figures(
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


def render_table(groups: Sequence[_Figures]) -> str:
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


def render_plot(title: str, groups: Sequence[_Figures], times: Sequence[tuple[float, bool]]) -> str:
    """Render bars with 95 % intervals for each group, and a histogram of seconds for right and wrong answers."""
    parts = [f'<text class="head" x="16" y="26">{escape(_shorten_line(title, 90))}</text>']
    top, room = 50, WIDTH - LEFT - RIGHT
    for group in groups:
        bars = [("right", "correct", group.correct)]
        bars += [("proof", "sentences found", group.sentences)] if group.checked else []
        for kind, label, value in bars:
            end, low, high = (round(LEFT + room * percent / 100, 1) for percent in (value.percent, value.low, value.high))
            middle, name = top + BAR / 2, escape(f"{_shorten_line(group.name, 12)}: {label}")
            parts.append(
                f'<text x="{LEFT - 10}" y="{middle + 4}" text-anchor="end">{name}</text>'
                f'<rect class="rail" x="{LEFT}" y="{top}" width="{room}" height="{BAR}"/>'
                f'<rect class="{kind}" x="{LEFT}" y="{top}" width="{round(end - LEFT, 1)}" height="{BAR}"/>'
                f'<line class="line" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>'
                f'<text x="{WIDTH - RIGHT + 10}" y="{middle + 4}">{value.percent:.1f} %</text>'
            )
            top += BAR + GAP
    picture, height = _render_histogram(top + 24, times)
    parts += picture
    total = top + 24 + height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}" role="img">\n'
        f"<title>{escape(_shorten_line(title, 200))}</title>\n<style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _render_histogram(top: int, times: Sequence[tuple[float, bool]]) -> tuple[list[str], int]:
    """A histogram of the seconds, in equal steps up to the slowest."""
    if not times:
        return [], 10
    longest = max(seconds for seconds, _ in times) or 1.0
    bins = [[0, 0] for _ in range(_BINS)]
    for seconds, right in times:
        bins[min(_BINS - 1, int(_BINS * seconds / longest))][0 if right else 1] += 1
    most, step = max(map(sum, bins)), (WIDTH - 2 * 16) / _BINS
    parts = [f'<text class="small" x="16" y="{top}">seconds for an answer (green: correct)</text>']
    floor = top + 12 + _HEIGHT
    for index, counts in enumerate(bins):
        y = float(floor)
        for count, kind in zip(counts, ("right", "wrong"), strict=True):
            tall = round(_HEIGHT * count / most, 1)
            y = round(y - tall, 1)
            if count:
                x = round(16 + index * step, 1)
                parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{round(step - 3, 1)}" height="{tall}"/>')
    ends = ((16, "start", 0.0), (WIDTH - 16, "end", longest))
    parts += [f'<text class="small" x="{x}" y="{floor + 16}" text-anchor="{a}">{s:.1f} s</text>' for x, a, s in ends]
    return parts, _HEIGHT + 46


def _shorten_line(text: str, most: int) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most else line[: most - 1] + "…"
