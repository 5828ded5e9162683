"""300 claims about 75 short passages, written by hand: half true, half lies of six kinds that rules of words let pass.

Each passage has two true claims and two lies. The kinds: `order` (before and after), `merged` (what one did is said of the
other), `hedge` (a doubt or a condition is left out), `roles` (who did it to whom), `scope` (all, some, only) and `attribution`
(who said or found it). True claims bear the kind of the lie beside them and share as many words with the passage as it does.

The facts are those of pages of the mini-webs; the sentences are ours. Passages belong to one half as a whole. The open half is
there to be looked at; the sealed half is run with `--sealed`, and no rule or threshold is chosen by what it says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
HALVES = ("open", "sealed")
KINDS = ("order", "merged", "hedge", "roles", "scope", "attribution")


@dataclass(frozen=True)
class HandPair:
    """A claim about a passage, its kind, and whether the passage says it."""

    id: int
    half: str
    kind: str
    label: bool
    page: str
    passage: str
    claim: str


def read_pairs(half: str, folder: Path = HERE) -> list[HandPair]:
    """The pairs of one half, in the order of their numbers."""
    lines = (folder / f"pairs-{half}.jsonl").read_text(encoding="utf-8").splitlines()
    return [HandPair(**json.loads(line)) for line in lines]
