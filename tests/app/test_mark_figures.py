"""Every mark says what it means, and how often it is right where that was measured."""

from __future__ import annotations

import json
from pathlib import Path

from evals.mark_figures import BY_PEOPLE, FILE, pool_shares, save_mark_figures, share_of_rejected
from evals.scores import score
from nexi.app.mark_figures import FILE_NAME, _MarkFigure, _rule_figures, describe_mark, describe_marks
from nexi.types import JudgeFigure, Verdict

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_packaged_figures_are_of_the_rules_marks_and_no_others() -> None:
    assert [figure.verdict for figure in _rule_figures()] == [Verdict.FOUND, Verdict.NOT_FOUND, Verdict.CONTRADICTED]
    assert (FILE, FILE.name) == (ROOT / "nexi" / "app" / FILE_NAME, FILE_NAME)
    assert all(f.lowest <= f.right <= f.highest or f.lowest == f.highest for f in _rule_figures())


def test_the_documents_name_the_packaged_figures() -> None:
    text = (ROOT / "docs" / "citations.md").read_text(encoding="utf-8")
    shown = [figure for figure in _rule_figures() if figure.verdict is Verdict.FOUND]  # rules say no more of the rest
    for figure in shown:
        assert f"{figure.right:.0f} % of {figure.sentences:,} sentences" in text


def test_a_figure_says_how_many_sentences_it_rests_on() -> None:
    figure = _MarkFigure(Verdict.FOUND, 72.4, 1446, 56.2, 80.9)
    assert figure.describe() == (
        "By rules alone it is right for 72 % of 1,446 sentences labelled by people (56 to 81 % by set)."
    )


def test_a_judge_is_named_with_its_test_where_it_may_have_decided() -> None:
    judge = JudgeFigure("a-judge", 0.91, 60)
    named = {word for word, text in describe_marks([judge]).items() if "a-judge was right in 91%" in text}
    assert named == {"supported", "not_found"}
    assert "right" not in describe_mark(Verdict.SUPPORTED)


def test_shares_of_sets_are_pooled_by_their_sentences() -> None:
    assert pool_shares("found", [(50.0, 100), (100.0, 300), (None, 0), (0.0, 3)]) == {
        "verdict": "found", "right": 86.8, "sentences": 403, "lowest": 50.0, "highest": 100.0,
    }  # fmt: skip


def test_figures_are_written_only_when_every_set_was_measured(tmp_path: Path) -> None:
    from evals.checkers import Outcome

    judged = [(True, Outcome(True, False, 1.0)), (True, Outcome(False, False, 0.2)), (False, Outcome(False, False, 0.1))]
    judged += [(False, Outcome(True, False, 0.9)), (False, Outcome(False, True, 0.3))]
    one = score(judged, 0.1)
    assert share_of_rejected(one) == (50.0, 2)
    file = tmp_path / "figures.json"
    assert save_mark_figures({("attrib", "nexi"): one}, file) is False
    assert save_mark_figures({(name, "nexi"): one for name in BY_PEOPLE}, file)
    assert [(e["verdict"], e["right"], e["sentences"]) for e in json.loads(file.read_text())["rules"]] == [
        ("found", 50.0, 10),
        ("not_found", 50.0, 10),
        ("contradicted", 100.0, 5),
    ]
