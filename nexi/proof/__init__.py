"""Whether a source says what a sentence says, as far as rules can know.

Below `verify`, above nothing but words and plain text work: no network, no model, no clock, no store. A page's stored text is
prepared once, sentences of an answer are compared with it, and every verdict carries its span and its reason. What the words
mean together is for a pair model to judge.
"""

from __future__ import annotations

from nexi.proof.pages import Snapshot, prepare
from nexi.proof.verdict import check_answer, check_claim

__all__ = ["Snapshot", "check_answer", "check_claim", "prepare"]
