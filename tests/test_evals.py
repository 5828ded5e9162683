"""The answer eval judges fairly: floors hold for whole webs, samples get the chance of their size, absence is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evals import answers, check_cost, starved
from rig import miniweb

ZEROS = dict.fromkeys(answers.COLUMNS, 0.0)


def row(supported: float, *, asked: int = 400, whole: bool = True) -> answers.Row:
    return answers.Row("dev", asked, whole, {**ZEROS, "supported": supported}, 0.1, 4.0, 3.0, 0)


def test_a_whole_web_below_its_floor_is_named() -> None:
    assert answers.below_floor(row(69.9), {"dev": 70.0}) == "dev: supported 69.9 is below its floor 70.0"
    assert answers.below_floor(row(70.0), {"dev": 70.0}) == ""


def test_a_sample_may_fall_as_far_as_chance_takes_it() -> None:
    assert answers.below_floor(row(60.0, asked=40, whole=False), {"dev": 70.0}) == ""
    assert "a sample of 40 may reach 53.1" in answers.below_floor(row(50.0, asked=40, whole=False), {"dev": 70.0})


def test_every_web_has_a_floor() -> None:
    assert set(json.loads(answers.FLOORS.read_text(encoding="utf-8"))) == set(answers.WEBS)


def test_without_the_data_one_line_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["answers", "--data", str(tmp_path)])
    assert answers.main() == 0
    expected = f"evals: the mini-webs dev, multi, docs are not in {tmp_path}; give their folder with --data\n"
    assert capsys.readouterr() == (expected, "")


def test_a_web_is_measured_through_the_whole_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = {
        "url": "http://birds.test/owl",
        "title": "Owl",
        "html": "<title>Owl</title><h1>Owl</h1><p>The owl hunts voles by night.</p>",
    }
    question = {"id": "q", "question": "When does the owl hunt voles?", "answers": ["by night"], "gold_urls": [page["url"]]}
    (tmp_path / "pages.jsonl").write_text(json.dumps(page) + "\n", encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text(json.dumps({**question, "kind": "single"}) + "\n", encoding="utf-8")
    measured, replies = answers.measure("dev", tmp_path, 0)
    assert (measured.figures["supported"], measured.failed, measured.whole) == (100.0, 0, True)
    assert replies["q"]["answer"].startswith("The owl hunts voles by night. [1]")


def test_the_cost_of_the_check_is_what_it_adds_to_the_same_answer() -> None:
    plain, judged = check_cost.Cost(4, 1000, 1.0, 1.01), check_cost.Cost(5, 1400, 1.0, 1.02)
    figures = check_cost.summarise([(plain, judged)])
    assert figures == {"calls": 1, "mean ratio": 1.4, "most ratio": 1.4, "time": 1.02, "most time": 1.02}
    assert check_cost.first_sentence("It is so [1]. It was.") == "It is so [1]."


def test_a_lost_answer_does_not_hide_behind_a_gained_one() -> None:
    webs = [
        starved.Answers("dev", 3, frozenset("ab"), frozenset("bc"), frozenset("ab")),
        starved.Answers("docs", 1, frozenset("a"), frozenset("a"), frozenset()),
    ]
    assert [each.row() for each in (*webs, starved.add_up(webs))] == [
        ("dev", 3, 2, "1 (50.0 %)", 1, 1, "2 (100.0 %)"),
        ("docs", 1, 1, "1 (100.0 %)", 0, 0, "-"),
        ("all", 4, 3, "2 (66.7 %)", 1, 1, "2 (66.7 %)"),
    ]


async def test_a_question_is_answered_with_its_first_two_services_dead() -> None:
    html = "<title>Owl</title><h1>Owl</h1><p>The owl hunts voles by night.</p>"
    corpus = miniweb.Corpus([{"url": "http://birds.test/owl", "title": "Owl", "html": html}])
    row = {
        "id": "q",
        "question": "When does the owl hunt voles?",
        "answers": ["by night"],
        "gold_urls": ["http://birds.test/owl"],
    }
    right = frozenset("q")
    assert await starved.measure(corpus, [row]) == (1, 1, 1)
    assert await starved.count_answers("dev", corpus, [row], twice=False) == ("dev", 1, right, right, frozenset())
