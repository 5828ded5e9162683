"""Whether a source says what a sentence says.

Below `verify`, above nothing but words and plain text work: no network, no model, no clock, no store. A page's stored text is
prepared once, sentences of an answer are compared with it, and every verdict carries its span and its reason. Likeness by
vectors comes in as a function; a judge may only lower what was found here.
"""

from __future__ import annotations

from nexi.proof.snapshots import Snapshot, prepare
from nexi.proof.spans import Similarity
from nexi.proof.verdicts import Judge, check_answer, check_claim, lowered

__all__ = ["Judge", "Similarity", "Snapshot", "check_answer", "check_claim", "lowered", "prepare"]
