"""Every function, class and constant the seeds name exists in the module they name and does what they say."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import nexi
from nexi import cli, compaction, config, history, output, search, token_counter, tools
from nexi.app import Nexi
from nexi.config import Config
from nexi.errors import LLMError
from nexi.testing import FakeWeb, ScriptedLLM, answering, reading, searching
from nexi.types import Reply
from tests.scenarios.world import MOON, PAGES, QUESTION

Make = Callable[..., Config]


@pytest.fixture
def over_fakes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedLLM]:
    """The faces build their own Nexi; this gives it a web in memory and a scripted model."""

    def install(*steps: Any) -> ScriptedLLM:
        llm, web = ScriptedLLM(*steps), FakeWeb(PAGES)
        original = Nexi.__init__

        def build(self: Nexi, config: Config, **_: Any) -> None:
            original(self, config, llms={"answer": llm, "extract": llm}, backends=[web], fetchers=[web])

        monkeypatch.setattr(Nexi, "__init__", build)
        return llm

    return install


# search.py


def test_run_search_has_the_seeds_signature() -> None:
    parameters = inspect.signature(search.run_search).parameters
    assert {n: p.default for n, p in parameters.items() if p.default is not inspect.Parameter.empty} == {
        "effort": "m",
        "max_iter": None,
        "time_target": None,
        "verbose": False,
        "progress_callback": None,
        "initial_messages": None,
    }
    assert list(parameters)[:2] == ["query", "config"]


def test_search_result_has_the_seeds_fields() -> None:
    names = ["answer", "urls", "url_citations", "url_to_title", "iterations", "duration_s", "tokens", "reached_max_iter"]
    assert [f.name for f in fields(search.SearchResult)] == names


async def test_run_search_answers_and_tells_its_progress(make_config: Make, over_fakes: Callable[..., ScriptedLLM]) -> None:
    over_fakes(searching("moon"), reading(MOON), answering("It has no air [1]."))
    told: list[tuple[str, int, int]] = []
    result = await search.run_search(QUESTION, make_config(), progress_callback=lambda *row: told.append(row))
    assert (result.answer, result.urls, result.url_citations) == ("It has no air [1].", [MOON], {MOON: 1})
    assert (result.url_to_title, result.iterations, result.tokens) == ({MOON: "Moon facts"}, 3, 330)
    assert result.reached_max_iter is False
    searched, read = 'Searched "moon": 1 result from http', "Read Moon facts (moon.example)"
    assert told == [("Thinking", 1, 16), (searched, 1, 16), ("Thinking", 2, 16), (read, 2, 16), ("Thinking", 3, 16)]


async def test_run_search_goes_on_from_initial_messages(make_config: Make, over_fakes: Callable[..., ScriptedLLM]) -> None:
    llm = over_fakes(reading(MOON), answering("It has no air [1]."))
    earlier = [{"role": "user", "content": f"I like {MOON}"}, {"role": "assistant", "content": "Good."}]
    await search.run_search("So how far is it?", make_config(), initial_messages=earlier)
    roles = [m.role for m in llm.requests[0]]
    assert roles == ["system", "user", "assistant", "user"]


async def test_run_search_says_when_it_reached_max_iter(make_config: Make, over_fakes: Callable[..., ScriptedLLM]) -> None:
    over_fakes(searching("moon"), reading(MOON), Reply("It has no air [1]."))
    assert (await search.run_search(QUESTION, make_config(), max_iter=2)).reached_max_iter is True


def test_run_search_sync_runs_without_a_loop(make_config: Make, over_fakes: Callable[..., ScriptedLLM]) -> None:
    over_fakes(searching("moon"), reading(MOON), answering("It has no air [1]."))
    assert search.run_search_sync(QUESTION, make_config()).answer == "It has no air [1]."


async def test_run_search_sync_refuses_inside_a_running_loop(make_config: Make) -> None:
    with pytest.raises(RuntimeError, match="await run_search"):
        search.run_search_sync(QUESTION, make_config())


def test_get_tool_schemas_gives_the_three_tools() -> None:
    schemas = search._get_tool_schemas()
    assert [s["function"]["name"] for s in schemas] == ["web_search", "web_get", "final_answer"]
    assert schemas[0]["function"]["parameters"]["properties"]["queries"]["maxItems"] == 5
    assert schemas[1]["function"]["parameters"]["properties"]["urls"]["maxItems"] == 8


async def test_force_answer_asks_once_without_tools(make_config: Make, over_fakes: Callable[..., ScriptedLLM]) -> None:
    llm = over_fakes(Reply("From what I have."))
    text = await search._force_answer([{"role": "user", "content": "q"}], make_config(), "time is up")
    assert (text, llm.offered) == ("From what I have.", [()])


# tools.py


async def test_web_search_returns_the_seeds_json(make_config: Make, over_fakes: Callable[..., ScriptedLLM]) -> None:
    over_fakes()
    answer = await tools.web_search(["venus hot"], make_config())
    assert answer["searches"][0]["results"][0]["url"] == "https://venus.example/facts"


async def test_web_get_returns_the_seeds_json(make_config: Make, over_fakes: Callable[..., ScriptedLLM]) -> None:
    over_fakes()
    answer = await tools.web_get([MOON], make_config(), get_full=True)
    assert answer["pages"][0]["content"] == f"[1] {MOON}\n---\n{PAGES[MOON]}"


async def test_execute_tool_runs_a_tool_by_name(make_config: Make) -> None:
    assert await tools.execute_tool("final_answer", {"answer": "done"}, make_config()) == {"answer": "done"}
    assert "error" in await tools.execute_tool("final_answer", {}, make_config())


async def test_execute_tool_names_the_tools_when_it_knows_none(
    make_config: Make, over_fakes: Callable[..., ScriptedLLM]
) -> None:
    over_fakes()
    assert "web_search" in (await tools.execute_tool("nope", {}, make_config()))["error"]


async def test_extract_with_llm_falls_back_to_the_beginning_of_the_page() -> None:
    page = "x" * 5000
    assert await tools._extract_with_llm(page, "q", "", ScriptedLLM(Reply("short"))) == "short"
    assert await tools._extract_with_llm(page, "q", "", ScriptedLLM(LLMError("down"))) == page[:2000]


# config


@pytest.mark.parametrize(("effort", "most"), [("s", 8), ("m", 16), ("l", 32)])
async def test_an_effort_level_decides_how_many_iterations_a_search_may_take(
    make_config: Make, over_fakes: Callable[..., ScriptedLLM], effort: str, most: int
) -> None:
    over_fakes(searching("moon"), reading(MOON), answering("It has no air [1]."))
    told: list[tuple[str, int, int]] = []
    await search.run_search(QUESTION, make_config(), effort=effort, progress_callback=lambda *row: told.append(row))
    assert {row[2] for row in told} == {most}


def test_a_config_of_an_empty_home_is_the_seeds_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    loaded = config.load_config().to_dict()
    wanted = {
        "base_url": "https://openrouter.ai/api/v1",
        "model": "google/gemini-2.5-flash-lite",
        "default_effort": "m",
        "max_output_tokens": 8192,
        "max_context": 128000,
        "auto_compact_thresh": 0.9,
        "compact_target_words": 5000,
        "preserve_last_n_messages": 3,
        "tokenizer_encoding": "cl100k_base",
        "jina_key": "",
        "time_target": None,
        "jina_timeout": 30,
        "llm_max_retries": 3,
    }
    assert {k: loaded[k] for k in wanted} == wanted
    assert {k: config.DEFAULT_CONFIG[k] for k in wanted} == wanted


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DEFAULT_SYSTEM_PROMPT_TEMPLATE", config.get_system_prompt("m", 16, today="2031-05-06")),
        ("EXTRACTOR_PROMPT_TEMPLATE", config.get_extractor_prompt("who?", "names")),
        ("COMPACTION_PROMPT_TEMPLATE", config.get_compaction_prompt("who?", "findings", 5000)),
    ],
)
def test_a_prompt_template_is_the_text_of_its_prompt_before_the_values(name: str, text: str) -> None:
    values = {
        "today": "2031-05-06",
        "effort": "m",
        "description": config.EFFORT_LEVELS["m"]["description"],
        "max_iter": 16,
        "query": "who?",
        "instructions": "names",
        "original_query": "who?",
        "content": "findings",
        "target_words": 5000,
    }
    assert getattr(config, name).format(**values) == text


def test_a_config_is_saved_loaded_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    config.save_config(Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="mine", max_context=64000))
    loaded = config.load_config()
    assert (loaded.model, loaded.max_context, config.ensure_config()) == ("mine", 64000, loaded)
    assert config.validate_config(loaded.to_dict()) == (True, [])
    valid, problems = config.validate_config({**loaded.to_dict(), "max_context": "wide"})
    assert (valid, [problem.partition(" ")[0] for problem in problems]) == (False, ["max_context"])


def test_the_first_time_setup_saves_what_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    typed, secrets = iter(["http://127.0.0.1:9/v1", "mine", "l"]), iter(["sk-1", ""])
    made = config.run_first_time_setup(ask=lambda _: next(typed), ask_secret=lambda _: next(secrets), say=lambda _: None)
    assert (made.base_url, made.model, made.default_effort) == ("http://127.0.0.1:9/v1", "mine", "l")
    assert (made.api_key, made.jina_key) == ("sk-1", "")
    assert config.load_config().to_dict() == made.to_dict()


# compaction.py


@pytest.mark.parametrize(("current", "following", "expected"), [(90000, 0, False), (90000, 1, True), (80000, 5000, False)])
def test_should_compact_is_strictly_above_the_threshold(current: int, following: int, expected: bool) -> None:
    settings = Config(max_context=100000, auto_compact_thresh=0.9)
    assert compaction.should_compact(current, following, settings) is expected


def test_extract_metadata_and_rebuild_context_keep_what_matters() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "web_search", "arguments": json.dumps({"queries": ["a"]})}}
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "r"},
        {"role": "assistant", "content": "done"},
    ]
    metadata = compaction.extract_metadata(messages)
    rebuilt = compaction.rebuild_context(messages, metadata, "Found it.", 1)
    assert (metadata.original_query, list(metadata.search_queries)) == ("q", ["a"])
    assert [m["role"] for m in rebuilt] == ["system", "user", "assistant", "assistant"]
    assert "Findings:\nFound it." in rebuilt[2]["content"]


async def test_generate_summary_asks_the_model() -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "tool", "tool_call_id": "1", "content": "The page says 42."}]
    llm = ScriptedLLM(Reply("It says 42."))
    summary = await compaction.generate_summary(messages, compaction.extract_metadata(messages), Config(), llm)
    assert summary == "It says 42."
    assert "The page says 42." in llm.requests[0][-1].content


# token_counter.py


def test_the_token_counter_counts_as_tiktoken_does() -> None:
    encoding = token_counter.get_encoding("cl100k_base")
    assert token_counter.count_tokens("hello world", encoding) == 2
    assert token_counter.count_tokens("", encoding) == 0
    assert token_counter.estimate_page_tokens("hello world", encoding) == 2
    assert token_counter.count_messages_tokens([{"role": "user", "content": "hello world"}], encoding) == 6
    with pytest.raises(ValueError):
        token_counter.get_encoding("no_such_encoding")


# history.py


def test_history_functions_work_together(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    entry = history.create_entry("q", "a", ["https://a.example"], "m", 4, 12.0, 100)
    history.add_history_entry(entry, path)
    assert [f.name for f in fields(history.HistoryEntry)] == [
        "id", "ts", "query", "answer", "urls", "effort", "iterations", "duration_s", "tokens",
        "space",  # beyond the seed
    ]  # fmt: skip
    assert history.get_last_n_entries(3, path) == [entry]
    assert history.get_entry_by_id(entry.id, path) == history.get_latest_entry(path) == entry
    assert re.match(r'\[1\] \d+s ago \(m, 4 iter, 12s\): "q"', history.format_entry_preview(entry, 1))
    assert "Query: q" in history.format_entry_full(entry)
    assert history.format_time_ago("invalid") == "unknown"
    history.clear_history(path)
    assert history.get_latest_entry(path) is None


# output.py


def test_print_answer_lists_its_sources_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_answer("Far [1].", plain=True, url_citations={MOON: 1}, url_to_title={MOON: "Moon"})
    assert capsys.readouterr().out == f"Far [1].\n\nSources:\n[1] Moon - {MOON}\n"


def test_messages_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_search_start("q", plain=True)
    output.print_success("fine", plain=True)
    output.print_warning("careful", plain=True)
    output.print_error("broken", plain=True)
    output.print_result_summary(iterations=5, duration_s=10.5, tokens=1000, urls=[MOON], plain=True)
    output.create_progress_callback(verbose=True, plain=True)("Thinking", 1, 5)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "Searching: q",
        "fine",
        "Warning: careful",
        "Error: broken",
        "10.5 s, 5 iterations, 1 page read, 1,000 tokens",
        "[1/5] Thinking",
    ]


def test_plain_mode_and_terminals_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    output.set_plain_mode(True)
    assert output.is_tty() is False
    output.set_plain_mode(False)


# cli.py, main.py


@pytest.mark.parametrize("name", ["main", "_run_search_command", "_interactive_mode"])
def test_the_command_line_has_the_seeds_functions(name: str) -> None:
    assert callable(getattr(cli, name))


def test_the_seeds_functions_show_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    entries = [history.create_entry(f"question {n}", f"answer {n}", [], "m", 4, 12.0, 100) for n in range(3)]
    for entry in entries:
        history.add_history_entry(entry, tmp_path / "history.jsonl")
    shown = []
    for show in (lambda: cli._show_last_n(2), cli._show_prev, lambda: cli._show_by_id(entries[0].id)):
        show()
        text = capsys.readouterr().out
        shown.append([n for n in range(3) if f"question {n}" in text])
    assert shown == [[1, 2], [2], [0]]


def test_main_py_runs_from_a_checkout() -> None:
    script = Path(__file__).parent.parent / "main.py"
    done = subprocess.run([sys.executable, str(script), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == nexi.__version__


# the seeds' own plug-ins


async def test_jina_search_is_a_plugin_that_refuses_private_matters_politely() -> None:
    backend = tools.JinaSearchBackend()
    assert isinstance(backend, tools.SearchBackend)
    assert await backend.search([], "key", 1, False) == {"searches": []}


async def test_jina_reader_is_a_plugin_that_tells_nobody_of_a_private_page() -> None:
    fetcher = tools.JinaContentFetcher()
    assert isinstance(fetcher, tools.ContentFetcher)
    pages = (await fetcher.fetch(["http://127.0.0.1/secret"], "key", 1, False))["pages"]
    assert (pages[0]["content"], pages[0]["error"].partition(":")[0]) == ("", "blocked")


# what programs written for the first version import


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("nexi.citations", "extract_citation_markers format_citations_section process_answer_with_citations"),
        ("nexi.token_counter", "count_messages_tokens count_tokens estimate_page_tokens get_encoding"),
        ("nexi.compaction", "compact extract_metadata generate_summary rebuild_context should_compact"),
        ("nexi.mcp_server_cli", "main"),
        ("nexi.tools", "TOOLS execute_tool web_get web_search"),
    ],
)
def test_a_star_import_brings_the_names_of_the_first_version(module: str, names: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"from {module} import *", namespace)  # noqa: S102 - a star import cannot stand in a function
    assert set(names.split()) <= set(namespace)
