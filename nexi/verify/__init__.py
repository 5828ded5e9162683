"""Whether an answer says what its pages say: before it is printed, and again whenever somebody asks.

Above it are the loop, which feeds it an answer as it is written, and `app`, which hands it a document; below it are `proof`,
the stored pages and the LLM and PairModel ports. It decides what is released, corrected, rewritten, judged, marked or left out;
what a sentence means is decided below, and nothing here knows a screen or a file.
"""

from __future__ import annotations

from nexi.verify.answer_check import AnswerCheck, Verifier
from nexi.verify.checker import Checker, FailedClaim, JudgeClaims, RewriteSentences
from nexi.verify.edits import MARK, find_failing
from nexi.verify.snapshots import Snapshots

__all__ = [
    "MARK",
    "AnswerCheck",
    "Checker",
    "FailedClaim",
    "JudgeClaims",
    "RewriteSentences",
    "Snapshots",
    "Verifier",
    "find_failing",
]
