"""The figures of a checker over labelled pairs, and their table. Counts in, figures out: it knows no data and no checker."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from evals.checkers import Outcome

Judged = tuple[bool, Outcome]
Z = 1.96
HEAD = (
    "| set | checker | pairs | balanced accuracy | 95 % interval | AUC | precision of kept | recall of true | lies kept |"
    " precision of contradicted | true accused | CPU ms |\n|---|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"
)


@dataclass(frozen=True)
class Score:
    """A checker on one set, in per cent; a share of nothing is None. `accused` are true claims called contradicted."""

    pairs: int
    balanced: float | None
    margin: float | None
    auc: float | None
    precision: float | None
    recall: float | None
    lies_kept: float | None
    contradicted_precision: float | None
    contradicted: int
    accused: float | None
    ms: float
    true: int = 0
    kept: int = 0


def score(judged: Sequence[Judged], cpu_s: float) -> Score:
    """All figures of one set."""
    true, lies = [o for is_true, o in judged if is_true], [o for is_true, o in judged if not is_true]
    kept_true, kept_lies = sum(o.kept for o in true), sum(o.kept for o in lies)
    accused, caught = sum(o.contradicted for o in true), sum(o.contradicted for o in lies)
    recall, passed = _share(kept_true, len(true)), _share(kept_lies, len(lies))
    return Score(
        pairs=len(judged),
        balanced=None if recall is None or passed is None else (recall + 100 - passed) / 2,
        margin=_margin(kept_true, len(true), kept_lies, len(lies)),
        auc=auc([o.score for o in true], [o.score for o in lies]),
        precision=_share(kept_true, kept_true + kept_lies),
        recall=recall,
        lies_kept=passed,
        contradicted_precision=_share(caught, accused + caught),
        contradicted=accused + caught,
        accused=_share(accused, len(true)),
        ms=1000 * cpu_s / max(1, len(judged)),
        true=len(true),
        kept=kept_true + kept_lies,
    )


def auc(true: Iterable[float], lies: Iterable[float]) -> float | None:
    """How often a true claim scores above a lie, in per cent; a tie is half a win."""
    above, ranked = list(true), sorted(lies)
    if not above or not ranked:
        return None
    wins = sum(bisect_left(ranked, value) + bisect_right(ranked, value) for value in above) / 2
    return 100 * wins / (len(above) * len(ranked))


def _share(hits: int, n: int) -> float | None:
    return 100 * hits / n if n else None


def _margin(kept_true: int, n_true: int, kept_lies: int, n_lies: int) -> float | None:
    """Half the interval of the balanced accuracy: two independent shares, their mean."""
    if not n_true or not n_lies:
        return None
    variance = sum(p * (1 - p) / n for p, n in ((kept_true / n_true, n_true), (kept_lies / n_lies, n_lies)))
    return 100 * Z * math.sqrt(variance) / 2


def render_scores(rows: Mapping[tuple[str, str], Score]) -> Iterator[str]:
    """The table, one line for each set and checker."""
    yield HEAD
    for (name, checker), s in rows.items():
        edges = "-" if s.balanced is None or s.margin is None else f"{s.balanced - s.margin:.1f} to {s.balanced + s.margin:.1f}"
        contradicted = f"{_text(s.contradicted_precision)} (of {s.contradicted})" if s.contradicted else "-"
        figures = (
            _text(s.balanced),
            edges,
            _text(s.auc),
            _text(s.precision),
            _text(s.recall),
            _text(s.lies_kept),
            contradicted,
        )
        accused = _text(s.accused) if s.contradicted else "-"
        yield f"| {name} | {checker} | {s.pairs} | {' | '.join(figures)} | {accused} | {s.ms:.1f} |"


def _text(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.1f}"


def below_floors(
    rows: Mapping[tuple[str, str], Score], least: Mapping[str, Mapping[str, float]], most: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """What falls below a floor or rises above a ceiling: set, figure and both values."""
    failures = []
    for bounds, sign, word in ((least, 1, "<"), (most, -1, ">")):
        for name, figures in bounds.items():
            known = asdict(rows[name, "nexi"]) if (name, "nexi") in rows else {}
            for figure, bound in figures.items():
                value = known.get(figure)
                if value is not None and sign * (value - bound) < 0:
                    failures.append(f"{name}, {figure}: {value:.1f} {word} {bound}")
    return failures
