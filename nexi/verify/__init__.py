"""Whether an answer says what its pages say: before it is printed, and again whenever somebody asks.

Above it are the loop, which feeds it an answer as it is written, and `app`, which hands it a document; below it are `proof`,
the stored pages and the LLM port. It decides what is released, put right, mended, marked or left out; what a sentence means is
`proof`'s business, and nothing here knows a screen or a file.
"""

from __future__ import annotations

from nexi.verify.checker import Checker, Doubt, JudgeClaims, Mend
from nexi.verify.edits import MARK, failing
from nexi.verify.snapshots import Snapshots
from nexi.verify.writing import Verifier, Writing

__all__ = ["MARK", "Checker", "Doubt", "JudgeClaims", "Mend", "Snapshots", "Verifier", "Writing", "failing"]
