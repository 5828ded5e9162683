"""What each mark means, and how often it is right on sentences that people labelled.

The figures of the rules are data that `python -m evals.proof --save` writes; those of a judge come from its test. Doors show
both; nothing here is measured.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from nexi.types import JudgeFigure, Verdict

__all__ = ["FILE_NAME", "MEANINGS", "MarkFigure", "describe_mark", "describe_marks", "rule_figures"]


FILE_NAME = "mark_figures.json"
MEANINGS = {
    Verdict.SUPPORTED: "A judge that passed its test says that the passage supports the sentence.",
    Verdict.FOUND: "The words and every hard fact of the sentence are in the cited page. No judge says more.",
    Verdict.NOT_FOUND: "A judge finds nothing in the passages it was shown that says this.",
    Verdict.NOT_CONFIRMED: "Rules did not find its words in one passage, and no judge has read it. It may well be true.",
    Verdict.CONTRADICTED: "The cited page has another value in the same place.",
    Verdict.UNCHECKED: "The text of the page is not stored, or the sentence cannot be compared with it.",
}


class MarkFigure(Struct, frozen=True):
    """How often a mark of the rules is right: over all labelled sentences that got it, and in the worst and the best set."""

    verdict: Verdict
    right: float
    sentences: int
    lowest: float
    highest: float

    def describe(self) -> str:
        spread = f" ({self.lowest:.0f} to {self.highest:.0f} % by set)" if self.lowest < self.highest else ""
        return f"By rules alone it is right for {self.right:.0f} % of {self.sentences:,} sentences labelled by people{spread}."


@lru_cache(maxsize=1)
def rule_figures() -> tuple[MarkFigure, ...]:
    """The figures of the rules; none where the file is missing from the installation."""
    try:
        entries = json.loads(pkgutil.get_data("nexi.app", FILE_NAME) or b"{}")["rules"]
        return tuple(MarkFigure(Verdict(e.pop("verdict")), **e) for e in entries)
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def describe_mark(verdict: Verdict, judges: Sequence[JudgeFigure] = ()) -> str:
    """What a mark means and how often it is right, in plain text."""
    figures = [figure.describe() for figure in rule_figures() if figure.verdict is verdict]
    if verdict in (Verdict.SUPPORTED, Verdict.NOT_FOUND):
        figures += [f"{j.name} was right in {j.accuracy:.0%} of a test of {j.pairs} labelled pairs." for j in judges]
    return " ".join((MEANINGS[verdict], *figures))


def describe_marks(judges: Sequence[JudgeFigure] = ()) -> dict[str, str]:
    """The same for every mark, by its word."""
    return {verdict.value: describe_mark(verdict, judges) for verdict in Verdict}
