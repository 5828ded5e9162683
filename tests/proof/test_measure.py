"""The figures of the proof eval, its word share, its split of the labelled sets and its floors."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.checkers import Outcome, check_with_nexi, check_word_share
from evals.labelled import HELD_OUT, is_held_out
from evals.proof import join_kept_runs, keep_run
from evals.scores import auc, below_floors, render_scores, score

KEPT, DROPPED, ACCUSED = Outcome(True, False, 0.9), Outcome(False, False, 0.4), Outcome(False, True, 0.0)
JUDGED = [(True, KEPT), (True, KEPT), (True, DROPPED), (True, ACCUSED), (False, KEPT), (False, ACCUSED), (False, ACCUSED)]


def test_figures_are_shares_of_the_true_and_of_the_false() -> None:
    s = score(JUDGED, 0.07)
    assert (s.pairs, s.contradicted, round(s.ms, 6)) == (7, 3, 10.0)
    assert [round(f or -1, 1) for f in (s.balanced, s.precision, s.recall, s.lies_kept)] == [58.3, 66.7, 50.0, 33.3]
    assert [round(f or -1, 1) for f in (s.contradicted_precision, s.accused, s.auc, s.margin)] == [66.7, 25.0, 66.7, 36.2]


def test_a_share_of_nothing_is_not_a_figure() -> None:
    s = score([(True, KEPT)], 0.0)
    assert (s.balanced, s.auc, s.lies_kept, s.margin, s.recall) == (None, None, None, None, 100.0)


def test_a_tie_is_half_a_win() -> None:
    assert auc([0.5, 0.9], [0.5, 0.1]) == 87.5


def test_the_word_share_wants_two_words_in_three_and_every_number() -> None:
    evidence = "The bridge was opened in 1990 by the mayor."
    assert check_word_share("The mayor opened the bridge in 1990.", evidence) == Outcome(True, False, 1.0)
    assert check_word_share("The mayor opened the bridge in 1991.", evidence) == Outcome(False, False, -0.25)
    assert check_word_share("The queen closed the bridge.", evidence).kept is False


def test_nexi_keeps_a_sentence_of_the_text_and_accuses_a_wrong_year() -> None:
    evidence = "The bridge over the Tay was opened in 1990 by the mayor of Perth."
    assert check_with_nexi("The bridge over the Tay was opened in 1990.", evidence).kept
    assert not check_with_nexi("The bridge over the Tay was opened in 1987.", evidence).kept


def test_rows_with_the_same_text_stay_on_one_side_of_the_split() -> None:
    rows = [{"set": "fever", "claim": f"claim {n}", "evidence": "one text"} for n in range(50)]
    assert len({is_held_out(row) for row in rows}) == 1


@pytest.mark.parametrize(("name", "parts"), [(name, parts) for name, (_, parts) in HELD_OUT.items()])
def test_about_one_part_of_a_set_is_held_out(name: str, parts: int) -> None:
    rows = [{"set": name, "claim": f"claim {n}", "evidence": f"text {n}"} for n in range(2000)]
    assert abs(sum(map(is_held_out, rows)) / 2000 - 1 / parts) < 0.03


def test_a_set_without_a_held_out_part_is_never_measured() -> None:
    assert not is_held_out({"set": "wice_part", "claim": "a", "evidence": "b"})


def test_floors_and_ceilings_name_the_figure_that_fails() -> None:
    rows = {("attrib", "nexi"): score(JUDGED, 0.0), ("attrib", "word share"): score([], 0.0)}
    failures = below_floors(
        rows, {"attrib": {"balanced": 60, "recall": 50}, "begin": {"balanced": 99}}, {"attrib": {"accused": 1.5}}
    )
    assert failures == ["attrib, balanced: 58.3 < 60", "attrib, accused: 25.0 > 1.5"]


def test_a_kept_run_stands_before_later_ones_of_the_same_size(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    before, now = score(JUDGED, 0.0), score([*JUDGED[:-1], (False, KEPT)], 0.0)
    keep_run({("attrib", "nexi"): before, ("attrib", "word share"): now}, "before", file)
    assert join_kept_runs({("attrib", "nexi"): now}, file) == {("attrib", "before"): before, ("attrib", "nexi"): now}
    smaller = score(JUDGED[:3], 0.0)
    assert join_kept_runs({("attrib", "nexi"): smaller}, file) == {("attrib", "nexi"): smaller}


def test_the_table_shows_a_dash_where_a_checker_accuses_no_claim() -> None:
    lines = list(render_scores({("begin", "word share"): score([(True, KEPT), (False, DROPPED)], 0.0)}))
    assert lines[1] == "| begin | word share | 2 | 100.0 | 100.0 to 100.0 | 100.0 | 100.0 | 100.0 | 0.0 | - | - | 0.0 |"
