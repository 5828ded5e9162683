"""The rubric for reports counts what is covered, stray and said twice, and finds every passage that it names."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evals import broad, rubric
from nexi.llm.extractive.report import TOO_BROAD

PAGE = "http://birds.test/owl"
PAGES = {
    PAGE: "Owl\nOwls hunt voles at night in open fields.\nOwls nest in hollow oak trees.\nMany owls are kept in zoos of Europe."
}
QUESTION = {
    "parts": [{"name": "food", "page": PAGE, "keys": ["Owls hunt"]}, {"name": "nests", "page": PAGE, "keys": ["Owls nest"]}],
    "related": [{"page": PAGE, "keys": ["Many owls"]}],
}


def test_a_part_is_covered_by_a_cited_sentence_of_its_passage() -> None:
    report = "# Owls\n\nOwls hunt voles at night in open fields. [1]\n\n## Nests\n\nOwls nest in hollow oak trees. [2]"
    assert rubric.judge(QUESTION, report, {1: PAGE, 2: "http://other.test/"}, PAGES) == rubric.Judged(
        2, 1, 2, ("Owls nest in hollow oak trees.",), 0
    )


def test_related_passages_are_not_stray_and_cover_nothing() -> None:
    report = "Many owls are kept in zoos of Europe. [1] The film won three prizes. [1]"
    assert rubric.judge(QUESTION, report, {1: PAGE}, PAGES) == rubric.Judged(2, 0, 2, ("The film won three prizes.",), 0)


def test_a_sentence_said_again_is_a_double() -> None:
    report = "Owls hunt voles at night in open fields. [1]\n\n## Food\n\nAt night owls hunt voles in open fields. [1]"
    assert rubric.judge(QUESTION, report, {1: PAGE}, PAGES).doubles == 1


def test_what_was_not_found_is_no_sentence() -> None:
    report = "Owls nest in hollow oak trees. [1]\n\n## Not found\n\n- What do owls sing about at night?"
    assert rubric.judge(QUESTION, report, {1: PAGE}, PAGES).sentences == 1


def test_limits_hold_for_all_questions_and_leave_a_sample_its_chance() -> None:
    figures = {"covered": 60.0, "stray": 9.0}
    assert rubric.find_problems(figures, sampled=True) == []
    assert rubric.find_problems(figures, sampled=False) == [
        "rubric: 60.0 % of the parts are covered, not 70",
        "rubric: 9.0 % of the sentences are stray, more than 5",
    ]


def test_saved_rows_of_other_models_stay_and_those_of_the_same_model_are_replaced() -> None:
    saved = "# Reports\n\n| model | web |\n|---|---|\n| built-in | dev |\n| scripted, sections | dev |\n"
    assert rubric.merge_rows(saved, ["| built-in | all |"]) == ["| scripted, sections | dev |", "| built-in | all |"]


def test_forty_questions_have_at_least_two_parts_and_short_keys() -> None:
    questions = json.loads(rubric.QUESTIONS.read_text(encoding="utf-8"))
    assert len(questions) == 40
    assert all(len(q["parts"]) >= 2 for q in questions)
    assert all(len(key.split()) <= 8 for q in questions for part in (*q["parts"], *q["related"]) for key in part["keys"])


def test_without_the_data_one_line_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["rubric", "--data", str(tmp_path)])
    assert rubric.main() == 0
    assert capsys.readouterr().out == f"rubric: the mini-webs are not in {tmp_path}; give their folder with --data\n"


BROAD = {
    "parts": [
        {"name": "food", "passages": [[PAGE, "Owls hunt", "Owls nest"]]},
        {"name": "nests", "passages": [[PAGE, "Owls nest", "Many owls"]]},
    ],
    "related": [[PAGE, "Many owls", ""]],
}


def test_a_broad_question_is_judged_by_stretches_of_its_pages() -> None:
    report = "# Owls\n\nOwls hunt voles at night in open fields. [1] Many owls are kept in zoos. [1] The film won prizes. [1]"
    assert broad.judge(BROAD, report, {1: PAGE}, PAGES) == rubric.Judged(2, 1, 3, ("The film won prizes.",), 0)


def test_an_outline_of_the_pages_answers_no_part() -> None:
    report = f"# Owls\n\n{TOO_BROAD}\n\n- Owl: Owls hunt voles at night in open fields. [1]"
    assert broad.judge(BROAD, report, {1: PAGE}, PAGES).covered == 0


def test_a_stretch_that_is_not_on_its_page_is_an_error() -> None:
    with pytest.raises(ValueError, match="Owls sing"):
        broad.find_stretch(PAGES[PAGE], "Owls sing", "")


def test_ten_broad_questions_have_at_least_two_parts() -> None:
    questions = json.loads(broad.QUESTIONS.read_text(encoding="utf-8"))
    assert [len(question["parts"]) >= 2 for question in questions] == [True] * 10
