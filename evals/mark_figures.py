"""How often the rules' marks are right on the sets that people labelled, in the file that the package shows.

`evals.proof --save` calls it. A set counts with as many sentences as got the mark; its own share is named where there are
enough of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evals.scores import Score

FILE = Path(__file__).resolve().parent.parent / "nexi" / "app" / "mark_figures.json"
BY_PEOPLE = ("attrib", "begin", "fever", "wice", "fcgpt")
MIN_MARKS = 20  # of a set

Share = tuple[float | None, int]


def save_mark_figures(rows: Mapping[tuple[str, str], Score], file: Path = FILE) -> bool:
    """Write the figures where every set was measured; says whether it was."""
    scores = [rows[name, "nexi"] for name in BY_PEOPLE if (name, "nexi") in rows]
    if len(scores) < len(BY_PEOPLE):
        return False
    shares: dict[str, list[Share]] = {
        "found": [(s.precision, s.kept) for s in scores],
        "not_found": [share_of_rejected(s) for s in scores],
        "contradicted": [(s.contradicted_precision, s.contradicted) for s in scores],
    }
    entries = [pool_shares(verdict, found) for verdict, found in shares.items()]
    data = {"command": "python -m evals.proof --save", "sets": list(BY_PEOPLE), "rules": entries}
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return True


def share_of_rejected(score: Score) -> Share:
    """Of the claims that are neither found nor contradicted: the share that people do not call supported, and their number."""
    rejected = score.pairs - score.kept - score.contradicted
    kept, accused = (round((share or 0) * score.true / 100) for share in (score.recall, score.accused))
    lost = score.true - kept - accused
    return (100 * (rejected - lost) / rejected if rejected else None), rejected


def pool_shares(verdict: str, found: Sequence[Share]) -> dict[str, Any]:
    known = [(share, count) for share, count in found if share is not None]
    total = sum(count for _, count in known)
    right = sum(share * count for share, count in known) / total if total else 0.0
    named = [share for share, count in known if count >= MIN_MARKS] or [right]
    lowest, highest = round(min(named), 1), round(max(named), 1)
    return {"verdict": verdict, "right": round(right, 1), "sentences": total, "lowest": lowest, "highest": highest}
