"""Which passages a claim is judged by, and what scores do to claims."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexi.proof import check_answer, prepare
from nexi.runs.pages import MemoryPages
from nexi.types import Claim, Evidence, JudgeFigure, PairScore, Verdict
from nexi.verify import Snapshots
from nexi.verify.judging import apply_scores, choose_windows, describe_gap, hypothesis_of, judge_claims
from tests.verify.shelf import PAGES, session_of

FIGURE = JudgeFigure("judge", 0.9, 60)
YES, NO = PairScore(0.9, judge=FIGURE), PairScore(0.1, reason="another year", judge=FIGURE)
GAP = PairScore(0.0, known=False, reason="no answer")
TEXT = "Before it all. " * 30 + "The bridge opened in 1937. It is red. It is long." + " After it all." * 30
SCORES = st.lists(st.sampled_from([YES, NO, GAP]), max_size=3)


class FixedModel:
    """Gives every pair the same score and records the pairs."""

    name = "fixed"

    def __init__(self, score: PairScore) -> None:
        self.given = score
        self.pairs: list[tuple[str, str]] = []

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        self.pairs += pairs
        return [self.given] * len(pairs)


def claim_of(verdict: Verdict = Verdict.FOUND, *evidence: Evidence) -> Claim:
    return Claim(0, "- It opened in 1937 [1].", 0, 24, verdict, evidence=evidence or (Evidence(1, verdict=verdict, span="s"),))


def spot(number: int, words: str, fit: float = 1.0) -> Evidence:
    start = TEXT.index(words)
    return Evidence(number, verdict=Verdict.FOUND, fit=fit, start=start, end=start + len(words), span=words)


def test_the_sentence_is_judged_without_its_bullet_and_citations() -> None:
    assert hypothesis_of(claim_of()) == "It opened in 1937."


def test_one_source_is_judged_by_its_passage_alone_and_with_its_neighbours() -> None:
    alone, wide = choose_windows(claim_of(Verdict.FOUND, spot(1, "The bridge opened in 1937.")), {1: prepare(TEXT)})
    assert alone == "The bridge opened in 1937."
    assert wide.startswith("Before it all. Before it all.")
    assert "The bridge opened in 1937. It is red. It is long." in wide
    assert wide.endswith("After it all.")


def test_of_several_sources_the_two_that_say_most_are_read() -> None:
    found = claim_of(Verdict.FOUND, spot(1, "It is red.", 0.4), spot(2, "It is long.", 0.8), spot(3, "The bridge", 0.9))
    assert choose_windows(found, {}) == ("The bridge", "It is long.")


@given(st.sampled_from([v for v in Verdict if v is not Verdict.FOUND]), SCORES)
async def test_only_what_rules_found_is_judged(verdict: Verdict, scores: list[PairScore]) -> None:
    model = FixedModel(scores[0] if scores else YES)
    claims = (claim_of(verdict),)
    judged = await judge_claims(model, claims, Snapshots(session_of(PAGES), MemoryPages()))
    assert (judged.claims, model.pairs) == (claims, [])


@given(SCORES)
def test_a_tick_needs_a_known_score_that_supports(scores: list[PairScore]) -> None:
    judged = apply_scores(claim_of(), scores)
    expected = Verdict.SUPPORTED if YES in scores else Verdict.NOT_FOUND if NO in scores else Verdict.FOUND
    assert (judged.verdict, judged.judge) == (expected, "" if expected is Verdict.FOUND else "judge")
    assert (expected is Verdict.FOUND) == judged.reason.startswith("not judged: ")


@pytest.mark.parametrize(
    ("scores", "gap"),
    [
        ([[YES], [NO]], ""),
        ([[GAP], [YES]], "1 of 2 sentences were not judged: no answer"),
        ([[GAP, GAP], [GAP]], "The sentences were not judged: no answer"),
    ],
)
def test_a_gap_is_stated_with_its_reason(scores: list[list[PairScore]], gap: str) -> None:
    assert describe_gap(scores) == gap


async def test_claims_of_stored_pages_are_judged_by_their_passages() -> None:
    session = session_of(PAGES)
    claims = check_answer("The Eiffel Tower is 330 metres tall [1].", {1: prepare(PAGES["https://tower.example/"])}).claims
    model = FixedModel(YES)
    judged = await judge_claims(model, claims, Snapshots(session, MemoryPages()))
    assert [claim.verdict for claim in judged.claims] == [Verdict.SUPPORTED]
    assert model.pairs[0] == ("The Eiffel Tower is 330 metres tall.", "The Eiffel Tower is 330 metres tall.")
    assert judged.judges == (FIGURE,)
