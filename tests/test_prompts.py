"""Prompts render strictly, the user's own files win, and each says what it must say."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexi.errors import ConfigError
from nexi.prompts import NAMES, packaged, placeholders, render

VALUES: dict[str, dict[str, object]] = {
    "system": {"today": "2031-05-06", "effort": "m", "description": "Balanced", "max_iter": 16},
    "custom_system": {
        "instructions": "Answer in rhyme.",
        "today": "2031-05-06",
        "effort": "m",
        "description": "Balanced",
        "max_iter": 16,
    },
    "extractor": {"query": "who?", "instructions": "names"},
    "chunks": {"query": "who?", "instructions": "names"},
    "compaction": {"original_query": "who?", "content": "findings", "target_words": 5000},
    "force_answer": {"reason": "the time is up"},
    "passages": {},
    "correction": {},
    "judge": {},
    "completeness": {},
    "url_ranking": {},
    "query_refinement": {},
    "search_hints": {},
    "follow_ups": {},
    "chunk_context": {},
    "rerank": {"want": 3},
    "read_first": {},
    "planner": {"depth": "The complexity is given: 2.", "today": "2031-05-06"},
    "researcher": {"question": "who?", "gathering": 4, "gathering_tools": "`search`", "today": "2031-05-06"},
    "shared_report": {"researcher": "1.2", "task": "find out who", "report": "It was her [3]."},
    "evaluator": {
        "question": "who?",
        "agenda": "- find out who",
        "round": 1,
        "target": 3,
        "most": 5,
        "budget": "81% of the budget is used: finish soon.",
        "choice": "Write the report.",
    },
    "may_delegate": {"most_tasks": 5},
    "must_write": {},
    "snippet_rank": {"today": "2031-05-06", "want_n": 3},
    "llm_query": {"today": "2031-05-06"},
}


def own(folder: Path, name: str, text: str) -> Path:
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_asks_for_exactly_the_values_its_caller_gives(name: str) -> None:
    assert placeholders(packaged(name)) == set(VALUES[name])


@pytest.mark.parametrize("name", NAMES)
def test_every_value_of_a_prompt_reaches_the_text(name: str) -> None:
    text = render(name, **VALUES[name])
    assert [value for value in VALUES[name].values() if str(value) not in text] == []


def test_every_prompt_file_has_a_name_and_every_name_a_file() -> None:
    import nexi.prompts

    folder = Path(nexi.prompts.__file__).parent
    assert {path.stem for path in folder.glob("*.md")} == set(NAMES)


def test_the_system_prompt_says_the_rules_of_the_house() -> None:
    text = render("system", **VALUES["system"])
    for words in ("web_search", "1 to 5", "web_get", "1 to 8", "use_chunks", "get_full", "final_answer", "[1]", "is data"):
        assert words in text
    assert "Today is 2031-05-06." in text
    assert "at most 16 iterations" in text


def test_the_compaction_prompt_preserves_merges_and_leaves_out_addresses() -> None:
    text = render("compaction", **VALUES["compaction"])
    for words in ("PRESERVE EXACTLY", "MERGE", "at most 5000 words", "numbers, dates", "Leave out URLs"):
        assert words in text


def test_doubled_braces_are_braces(tmp_path: Path) -> None:
    folder = own(tmp_path, "force_answer", '{{"a": {{{reason}}}}}')
    assert render("force_answer", folder=folder, reason="x") == '{"a": {x}}'


def test_the_chunk_prompt_shows_the_json_it_wants() -> None:
    assert '{"pick": [4, 0, 7]}' in render("chunks", **VALUES["chunks"])


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
    with pytest.raises(ConfigError) as caught:
        render("force_answer")
    assert caught.value.message == "the prompt force_answer.md asks for {reason}"


def test_an_unused_value_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        render("read_first", mood="kind")
    assert caught.value.message == "the prompt read_first.md does not use {mood}"


def test_a_mistake_in_an_own_file_names_the_file_and_what_it_may_use(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        render("force_answer", folder=own(tmp_path, "force_answer", "{reason} {fault}"), reason="x")
    assert caught.value.message == f"{tmp_path / 'force_answer.md'} asks for {{fault}}"
    assert caught.value.fix == "the values it may use are {reason}"


@pytest.mark.parametrize("text", ["{reason}\n{", "{reason}\n}", "{reason}\n{Not a name}", "{reason}\n{0}", "{reason}\n{}"])
def test_a_stray_brace_is_an_error_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="line 2"):
        render("force_answer", folder=own(tmp_path, "force_answer", text), reason="x")


def test_an_own_file_that_is_not_text_is_an_error_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "force_answer.md").write_bytes(b"\xff\xfe{reason}")
    with pytest.raises(ConfigError) as caught:
        render("force_answer", folder=tmp_path, reason="x")
    assert caught.value.message == f"{tmp_path / 'force_answer.md'} is not UTF-8 text"
    assert caught.value.fix


def test_a_folder_in_the_place_of_an_own_file_is_an_error_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "force_answer.md").mkdir()
    with pytest.raises(ConfigError) as caught:
        render("force_answer", folder=tmp_path, reason="x")
    assert caught.value.message == f"{tmp_path / 'force_answer.md'} cannot be read"


@pytest.mark.parametrize("name", ["", "../errors", "System", "nothing"])
def test_only_known_prompts_are_rendered(name: str) -> None:
    with pytest.raises(ConfigError, match="no prompt called"):
        render(name)
