"""A finished run as a file: under a name nobody has, with what it cost and how it was checked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from nexi.app.report import report_text, save_report
from nexi.config import Config
from nexi.errors import StoreError
from tests.raising import has_code
from tests.research.test_resume import research
from tests.research.world import PromptModel

Make = Callable[..., Config]
NAME = "nexi-research-far-moon-tides"


def test_the_report_goes_into_the_folder_made_for_it_with_front_matter_and_its_path(make_config: Make, tmp_path: Path) -> None:
    result = research(make_config(), PromptModel())
    (tmp_path / "Research").mkdir()
    path, notes = save_report(result, tmp_path, "2026-01-02", pick=lambda: (1, 7))
    assert path.stat().st_mode & 0o777 == 0o600
    assert (path, notes) == (tmp_path / "Research" / f"{NAME}-b7.md", ())
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition("---\n\n")
    assert head.splitlines() == [
        "---",
        'question: "How far is the Moon, and what does it do to the tides?"',
        *re.findall(r'model: "[^"]+"', head),
        'date: "2026-01-02"',
        f'run: "{result.id}"',
        'mode: "research"',
        f"cost_usd: {round(result.finished.usage.cost or 0, 6)}",
        f"tokens: {result.finished.usage.total}",
        f"seconds: {result.finished.seconds}",
        f"pages_read: {result.finished.pages}",
        f"model_calls: {result.finished.model_calls}",
        'written_by: "model"',
        'stopped_by: "final_answer"',
        *re.findall(r"sentences_checked: \d+", head),
        *re.findall(r"sentences_found: [1-9]\d*", head),
        "sentences_supported: 0",
    ]
    assert rest.startswith("# The Moon and the tides\n\n- ")
    assert rest.endswith(f"*Saved as `{path}`*\n")
    assert "## Sources\n\n[1] " in rest


def test_a_saved_report_says_why_its_sentences_were_not_judged(make_config: Make, tmp_path: Path) -> None:
    result = research(make_config(), PromptModel())
    assert result.answer.review is not None
    review = replace(result.answer.review, gap="The sentences were not judged: the time was used up")
    late = replace(result, answer=replace(result.answer, review=review))
    text = save_report(late, tmp_path, "2026-01-02", pick=lambda: (0, 1))[0].read_text(encoding="utf-8")
    assert 'check_gap: "The sentences were not judged: the time was used up"\n---' in text


def test_a_name_that_is_taken_is_left_alone_and_another_suffix_is_tried(make_config: Make, tmp_path: Path) -> None:
    result = research(make_config(), PromptModel())
    pairs = iter([(0, 1), (0, 1), (0, 2)])
    (tmp_path / f"{NAME}-a1.md").write_text("mine")
    path, _ = save_report(result, tmp_path, "2026-01-02", pick=lambda: next(pairs))
    assert path.name == f"{NAME}-a2.md"
    assert (tmp_path / f"{NAME}-a1.md").read_text() == "mine"


def test_when_every_name_is_taken_the_user_is_told_to_choose_one(make_config: Make, tmp_path: Path) -> None:
    result = research(make_config(), PromptModel())
    (tmp_path / f"{NAME}-a1.md").write_text("mine")
    with pytest.raises(StoreError, check=has_code("store", tmp_path)):
        save_report(result, tmp_path, "2026-01-02", pick=lambda: (0, 1))


def test_a_link_that_somebody_laid_there_is_not_followed(make_config: Make, tmp_path: Path) -> None:
    result = research(make_config(), PromptModel())
    target = tmp_path / "elsewhere.txt"
    (tmp_path / f"{NAME}-a1.md").symlink_to(target)
    pairs = iter([(0, 1), (0, 2)])
    assert save_report(result, tmp_path, "2026-01-02", pick=lambda: next(pairs))[0].name == f"{NAME}-a2.md"
    assert not target.exists()


def test_a_folder_that_is_gone_is_a_clean_error(make_config: Make, tmp_path: Path) -> None:
    result = research(make_config(), PromptModel())
    with pytest.raises(StoreError, check=has_code("store", tmp_path / "gone")):
        save_report(result, tmp_path / "gone", "2026-01-02")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_a_clean_error(make_config: Make, tmp_path: Path) -> None:
    result = research(make_config(), PromptModel())
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, check=has_code("store", tmp_path)):
        save_report(result, tmp_path, "2026-01-02")


def test_for_a_door_that_sends_it_the_report_is_a_text_without_a_place(make_config: Make) -> None:
    text, linted = report_text(research(make_config(), PromptModel()), "2026-01-02")
    assert linted.text in text
    assert "Saved as" not in text
