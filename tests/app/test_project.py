"""The project that nexi is started in is the code that may be searched, unless the user says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.app.folders import with_project
from nexi.config import Config


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "project" / "src" / "deep"
    folder.mkdir(parents=True)
    (tmp_path / "home" / "project" / ".git").touch()  # as in a second work tree
    return folder


def test_it_is_the_nearest_work_tree(
    project: Path, make_config: Callable[..., Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    assert with_project(make_config()).grep_root == str(project.parents[1])


def test_outside_of_a_work_tree_there_is_none(tmp_path: Path, project: Path, make_config: Callable[..., Config]) -> None:
    assert with_project(make_config(), tmp_path / "home").grep_root == ""


def test_a_home_folder_under_git_is_no_project(tmp_path: Path, project: Path, make_config: Callable[..., Config]) -> None:
    (tmp_path / "home" / ".git").mkdir()
    (tmp_path / ".git").mkdir()
    notes = tmp_path / "home" / "notes"
    notes.mkdir()
    assert with_project(make_config(), notes).grep_root == ""


def test_the_users_word_wins(project: Path, make_config: Callable[..., Config]) -> None:
    assert with_project(make_config(grep_root="/srv/code"), project).grep_root == "/srv/code"
    assert with_project(make_config(grep_project=False), project).grep_root == ""
