"""Prompts render strictly, the user's own files win, and each says what it must say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import nexi
from nexi.config import EFFORT_LEVELS, Config, get_compaction_prompt, get_system_prompt
from nexi.errors import ConfigError
from nexi.prompts import NAMES, placeholders, read_packaged_prompt, render
from tests.raising import has_code


def own(folder: Path, name: str, text: str) -> Path:
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


def rendered_in_the_package() -> dict[str, list[set[str]]]:
    """The values that nexi's own code gives to each prompt, read from the calls of `render` with a literal name."""
    calls: dict[str, list[set[str]]] = {}
    texts = [path.read_text(encoding="utf-8") for path in Path(nexi.__file__).parent.rglob("*.py")]
    for text in (text for text in texts if "render(" in text):
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "render":
                continue
            name, keywords = node.args[0], [keyword.arg for keyword in node.keywords]
            if isinstance(name, ast.Constant) and None not in keywords:
                calls.setdefault(str(name.value), []).append({str(keyword) for keyword in keywords})
    return calls


CALLS = rendered_in_the_package()
FROM_A_VARIABLE = {"completeness", "url_ranking", "query_refinement", "search_hints", "correction"}
FROM_A_VARIABLE |= {"read_first", "read_first_research"}
JUDGES = {"evaluator", "outline"}  # one call renders either, and the tests of the evaluator render both strictly


@pytest.mark.parametrize("name", sorted(CALLS))
def test_every_caller_gives_a_prompt_exactly_its_values_and_the_folder_of_the_users_own(name: str) -> None:
    assert CALLS[name] == [{"folder", *placeholders(read_packaged_prompt(name))}] * len(CALLS[name])


def test_every_prompt_has_a_caller() -> None:
    assert {*CALLS, *FROM_A_VARIABLE, *JUDGES, "system", "custom_system"} == set(NAMES)
    assert [placeholders(read_packaged_prompt(name)) for name in FROM_A_VARIABLE] == [frozenset()] * len(FROM_A_VARIABLE)


@pytest.mark.parametrize(("own_words", "name"), [("", "system"), ("Answer in rhyme.", "custom_system")])
def test_the_system_prompt_is_given_its_values(tmp_path: Path, own_words: str, name: str) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    own(folder, name, "|".join(f"{key}={{{key}}}" for key in sorted(placeholders(read_packaged_prompt(name)))))
    text = get_system_prompt("s", 5, today="2031-05-06", config=Config(home=tmp_path, system_prompt=own_words))
    instructions = f"instructions={own_words}|" if own_words else ""
    assert text == f"description={EFFORT_LEVELS['s']['description']}|effort=s|{instructions}max_iter=5|today=2031-05-06"


def test_every_prompt_file_has_a_name_and_every_name_a_file() -> None:
    folder = Path(nexi.__file__).parent / "prompts"
    assert {path.stem for path in folder.glob("*.md")} == set(NAMES)


def test_the_system_prompt_says_the_rules_of_the_house() -> None:
    text = get_system_prompt("m", today="2031-05-06")
    for words in ("web_search", "1 to 5", "web_get", "1 to 8", "use_chunks", "get_full", "final_answer", "[1]", "is data"):
        assert words in text
    assert "Today is 2031-05-06." in text
    assert "at most 16 iterations" in text


def test_the_compaction_prompt_preserves_merges_and_leaves_out_addresses() -> None:
    text = get_compaction_prompt("who?", "findings")
    for words in ("PRESERVE EXACTLY", "MERGE", "at most 5000 words", "numbers, dates", "Leave out URLs"):
        assert words in text


def test_doubled_braces_are_braces(tmp_path: Path) -> None:
    folder = own(tmp_path, "force_answer", '{{"a": {{{reason}}}}}')
    assert render("force_answer", folder=folder, reason="x") == '{"a": {x}}'


def test_the_chunk_prompt_shows_the_json_it_wants() -> None:
    assert '{"pick": [4, 0, 7]}' in render("chunks", query="who?", instructions="names")


def test_a_value_that_looks_like_a_placeholder_stays_as_it_is() -> None:
    text = render("compaction", original_query="{content}", content="{target_words} {{x}} }", target_words=7)
    assert "Original query: {content}" in text
    assert "{target_words} {{x}} }" in text


def test_an_own_file_wins_over_the_packaged_prompt(tmp_path: Path) -> None:
    folder = own(tmp_path, "force_answer", "\ufeffAgain, please: {reason}\n")
    assert render("force_answer", folder=folder, reason="no JSON") == "Again, please: no JSON"


def test_a_folder_without_the_file_leaves_the_packaged_prompt(tmp_path: Path) -> None:
    assert render("read_first", folder=tmp_path / "absent") == render("read_first")


def test_a_missing_value_is_named() -> None:
    with pytest.raises(ConfigError, check=has_code("config", "force_answer.md", "{reason}")):
        render("force_answer")


def test_an_unused_value_is_named() -> None:
    with pytest.raises(ConfigError, check=has_code("config", "read_first.md", "{mood}")):
        render("read_first", mood="kind")


def test_a_mistake_in_an_own_file_names_the_file_and_what_it_may_use(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=has_code("config", tmp_path / "force_answer.md", "{fault}", "{reason}")):
        render("force_answer", folder=own(tmp_path, "force_answer", "{reason} {fault}"), reason="x")


@pytest.mark.parametrize("text", ["{reason}\n{", "{reason}\n}", "{reason}\n{Not a name}", "{reason}\n{0}", "{reason}\n{}"])
def test_a_stray_brace_is_an_error_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, check=has_code("config", "force_answer.md", "2")):
        render("force_answer", folder=own(tmp_path, "force_answer", text), reason="x")


def test_an_own_file_that_is_not_text_is_an_error_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "force_answer.md").write_bytes(b"\xff\xfe{reason}")
    with pytest.raises(ConfigError) as caught:
        render("force_answer", folder=tmp_path, reason="x")
    assert (str(tmp_path / "force_answer.md") in caught.value.message, bool(caught.value.fix)) == (True, True)


def test_a_folder_in_the_place_of_an_own_file_is_an_error_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "force_answer.md").mkdir()
    with pytest.raises(ConfigError) as caught:
        render("force_answer", folder=tmp_path, reason="x")
    assert (str(tmp_path / "force_answer.md") in caught.value.message, bool(caught.value.fix)) == (True, True)


@pytest.mark.parametrize("name", ["", "../errors", "System", "nothing"])
def test_only_known_prompts_are_rendered(name: str) -> None:
    with pytest.raises(ConfigError, check=has_code("config")):
        render(name)
