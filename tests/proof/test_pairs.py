"""The pairs written by hand: as many true ones as lies of each kind, and no passage in both halves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from evals.checkers import check_word_share
from evals.proof import run_pairs
from evals.redteam.pairs import HALVES, KINDS, HandPair, read_pairs
from evals.scores import auc

PAIRS = [pair for half in HALVES for pair in read_pairs(half)]


def test_every_kind_has_twenty_five_true_claims_and_as_many_lies() -> None:
    assert Counter((pair.kind, pair.label) for pair in PAIRS) == {
        (kind, label): 25 for kind in KINDS for label in (True, False)
    }


def test_a_passage_is_in_one_half_and_has_two_true_claims_and_two_lies() -> None:
    halves: dict[str, set[str]] = {}
    for pair in PAIRS:
        halves.setdefault(pair.passage, set()).add(pair.half)
    assert {len(found) for found in halves.values()} == {1}
    assert set(Counter((pair.passage, pair.label) for pair in PAIRS).values()) == {2}


def test_numbers_and_claims_are_not_repeated() -> None:
    assert sorted(pair.id for pair in PAIRS) == list(range(1, 301))
    assert len({(pair.passage, pair.claim) for pair in PAIRS}) == 300


def test_shared_words_do_not_tell_true_claims_from_lies() -> None:
    shares = [(pair.label, check_word_share(pair.claim, pair.passage).score) for pair in PAIRS]
    found = auc([share for label, share in shares if label], [share for label, share in shares if not label])
    assert found is not None
    assert 40 < found < 60


@pytest.mark.parametrize(("sealed", "halves"), [(False, {"open"}), (True, {"open", "sealed"})])
def test_the_sealed_half_is_read_only_when_asked_for(sealed: bool, halves: set[str], tmp_path: Path) -> None:
    pair = HandPair(1, "open", "order", True, "a page", "The dam was built in 1950.", "The dam was built in 1950.")
    for half in halves:
        (tmp_path / f"pairs-{half}.jsonl").write_text(json.dumps(vars(pair)), encoding="utf-8")
    rows = run_pairs(sealed, tmp_path)
    assert {name for name, _ in rows if "," not in name} == {f"pairs {half}" for half in halves}
    assert rows["pairs open, order", "nexi"].recall == 100.0
