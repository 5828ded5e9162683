"""Instructions of one's own for one search, and templates kept beside the config."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexi.cli.flags import AskFlags
from nexi.cli.templates import _read_template, apply_template, list_templates, system_prompt_of
from nexi.errors import ConfigError
from tests.cli.command import QUESTION, Command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path / "nexi"))
    folder = tmp_path / "nexi" / "templates"
    folder.mkdir(parents=True)
    (folder / "short.md").write_text("# Short answers\nAnswer in one sentence.\n")
    (folder / "compare.md").write_text("Compare both sides: {question} Use a table.")
    return folder


def test_a_template_is_instructions_and_the_option_adds_to_it(folder: Path) -> None:
    flags = AskFlags(template="short", system=" In French. ")
    assert system_prompt_of(flags) == "# Short answers\nAnswer in one sentence.\n\nIn French."
    assert apply_template("Why?", flags) == "Why?"
    assert system_prompt_of(AskFlags()) == ""


def test_a_template_with_a_place_for_the_question_is_put_around_it(folder: Path) -> None:
    flags = AskFlags(template="compare")
    assert apply_template("tea or coffee?", flags) == "Compare both sides: tea or coffee? Use a table."
    assert apply_template("  ", flags) == "  "
    assert system_prompt_of(flags) == ""


def test_the_list_names_each_with_its_first_line(folder: Path, nexi: Command) -> None:
    assert nexi("templates").out == "compare  Compare both sides: {question} Use a table.\nshort    Short answers\n"
    listed = json.loads(nexi("templates", "--json").out)
    assert listed["schema"] == "nexi-templates-1"
    assert [(t["name"], t["wraps_question"]) for t in listed["templates"]] == [("compare", True), ("short", False)]


def test_an_empty_list_says_where_to_write_one(nexi: Command) -> None:
    done = nexi("templates")
    assert (done.code, done.out) == (0, "")
    assert str(nexi.home / "templates" / "NAME.md") in done.err


@pytest.mark.parametrize(("name", "suggested"), [("shrt", "short"), ("xyz", "compare, short")])
def test_a_missing_one_suggests_another(folder: Path, nexi: Command, name: str, suggested: str) -> None:
    done = nexi("--template", name, QUESTION)
    assert (done.code, done.out) == (2, "")
    assert (f"'{name}'" in done.err, suggested in done.err) == (True, True)


@pytest.mark.parametrize("name", ["../config", "a/b", "", ".", "..", "\x00"])
def test_a_name_never_leaves_the_folder(folder: Path, name: str) -> None:
    (folder.parent / "config.md").write_text("outside")
    with pytest.raises(ConfigError):
        _read_template(name)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * 300_000], ids=["binary", "huge"])
def test_one_that_cannot_be_used_says_why(folder: Path, content: bytes) -> None:
    (folder / "bad.md").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        _read_template("bad")
    assert str(folder / "bad.md") in caught.value.message
    assert caught.value.fix


def test_a_folder_that_is_not_there_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path / "nowhere"))
    assert list_templates() == []


def test_a_search_uses_both(folder: Path, online: Command) -> None:
    assert online("-m", "extractive", "--plain", "-s", "Be brief.", QUESTION).code == 0
    wrapped = online("-m", "extractive", "--json", "--template", "compare", QUESTION)
    assert json.loads(wrapped.out)["question"] == f"Compare both sides: {QUESTION} Use a table."
