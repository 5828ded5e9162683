"""What each mark means, and how often it is right on sentences that people labelled.

The figures of the rules are data that `python -m evals.proof --save` writes; those of a judge come from its test.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from nexi.notices import Notice
from nexi.types import JudgeFigure, Verdict

FILE_NAME = "mark_figures.json"
MEANINGS = {
    Verdict.SUPPORTED: Notice("mark.supported", "A judge that passed its test says that the passage supports the sentence."),
    Verdict.FOUND: Notice(
        "mark.found", "The words and every hard fact of the sentence are in the cited page. No judge says more."
    ),
    Verdict.NOT_FOUND: Notice("mark.not_found", "A judge finds nothing in the passages it was shown that says this."),
    Verdict.NOT_CONFIRMED: Notice(
        "mark.not_confirmed", "Rules did not find its words in one passage, and no judge has read it. It may well be true."
    ),
    Verdict.CONTRADICTED: Notice("mark.contradicted", "The cited page has another value in the same place."),
    Verdict.UNCHECKED: Notice(
        "mark.unchecked", "The text of the page is not stored, or the sentence cannot be compared with it."
    ),
}


class _MarkFigure(Struct, frozen=True):
    """How often a mark of the rules is right: over all labelled sentences that got it, and in the worst and the best set."""

    verdict: Verdict
    right: float
    sentences: int
    lowest: float
    highest: float

    def describe(self) -> str:
        values = {"n": f"{self.right:.0f}", "m": f"{self.sentences:,}"}
        if self.lowest >= self.highest:
            return Notice("mark.right", "By rules alone it is right for {n} % of {m} sentences labelled by people.", **values)
        return Notice(
            "mark.right_by_set",
            "By rules alone it is right for {n} % of {m} sentences labelled by people ({low} to {high} % by set).",
            **values,
            low=f"{self.lowest:.0f}",
            high=f"{self.highest:.0f}",
        )


@lru_cache(maxsize=1)
def _rule_figures() -> tuple[_MarkFigure, ...]:
    """The figures of the rules; none where the file is missing from the installation."""
    try:
        entries = json.loads(pkgutil.get_data("nexi.app", FILE_NAME) or b"{}")["rules"]
        return tuple(_MarkFigure(Verdict(e.pop("verdict")), **e) for e in entries)
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def describe_mark(verdict: Verdict, judges: Sequence[JudgeFigure] = ()) -> str:
    """What a mark means and how often it is right, in plain text."""
    figures = [figure.describe() for figure in _rule_figures() if figure.verdict is verdict]
    for judge in judges if verdict in (Verdict.SUPPORTED, Verdict.NOT_FOUND) else ():
        values = {"judge": judge.name, "n": f"{judge.accuracy:.0%}", "m": judge.pairs}
        figures.append(Notice("mark.tested", "{judge} was right in {n} of a test of {m} labelled pairs.", **values))
    meaning: str = MEANINGS[verdict]
    for figure in figures:
        meaning = Notice("joined.whole", "{first} {second}", first=meaning, second=figure)
    return meaning


def describe_marks(judges: Sequence[JudgeFigure] = ()) -> dict[str, str]:
    """The same for every mark, by its word."""
    return {verdict.value: describe_mark(verdict, judges) for verdict in Verdict}
