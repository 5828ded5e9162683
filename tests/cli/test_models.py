"""`nexi models`: what the endpoint and the servers of this machine offer, with the windows they really give."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from nexi.cli import models
from nexi.cli.models import _list_models, _ListedModel, _print_models
from nexi.config import Config
from tests.cli.command import Command
from tests.stub import LLAMA_CPP_ROUTES, OLLAMA_ROUTES, serving

BUILT_IN = _ListedModel("built in", "", "extractive")


async def test_an_endpoint_of_this_machine_is_shown_with_windows_and_once(make_config: Callable[..., Config]) -> None:
    with serving(OLLAMA_ROUTES) as a, serving(LLAMA_CPP_ROUTES) as b:
        here, there = f"http://127.0.0.1:{a}/v1", f"http://127.0.0.1:{b}/v1"
        found = await _list_models(make_config(base_url=here, model="qwen2.5:7b"), {"Ollama": a, "llama.cpp": b})
    models = [
        BUILT_IN,
        _ListedModel("Ollama", here, "llama3.2:latest", None, 131072),
        _ListedModel("Ollama", here, "qwen2.5:7b", 16384, 32768, in_use=True),
        _ListedModel("llama.cpp", there, "qwen.gguf", 8192, 32768),
    ]
    assert found == (models, None)


async def test_without_an_endpoint_the_built_in_model_is_in_use(make_config: Callable[..., Config]) -> None:
    models = [_ListedModel("built in", "", "extractive", in_use=True)]
    assert await _list_models(make_config(model="extractive"), {}) == (models, None)


async def test_an_endpoint_that_is_down_does_not_hide_the_others(make_config: Callable[..., Config]) -> None:
    with serving(LLAMA_CPP_ROUTES) as port:
        found, problem = await _list_models(make_config(), {"llama.cpp": port})
    assert [row.model for row in found] == ["extractive", "qwen.gguf"]
    assert problem is not None
    assert problem.code == "connect"


async def test_another_endpoint_has_no_window_that_it_did_not_tell(make_config: Callable[..., Config]) -> None:
    with serving({"GET /v1/models": {"data": [{"id": "gpt"}]}}) as port:
        url = f"http://127.0.0.1:{port}/v1"
        found, _ = await _list_models(make_config(base_url=url, model="gpt"), {})
    assert found == [BUILT_IN, _ListedModel("endpoint", url, "gpt", None, None, in_use=True)]


def test_the_table_marks_the_model_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (
        BUILT_IN,
        _ListedModel("Ollama", "http://h/v1", "qwen", 16384, 32768, in_use=True),
        _ListedModel("Ollama", "http://h/v1", "b", None, 9),
    )
    _print_models(rows, as_json=False)
    assert capsys.readouterr().out == (
        "  extractive  built in\n* qwen        Ollama    16384 tokens\n  b           Ollama    up to 9 tokens\n"
    )


def test_the_command_prints_one_object(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(config: Config) -> Any:
        return await _list_models(config, {})

    monkeypatch.setattr(models, "_list_models", none)
    done = nexi("models", "--json")
    assert (done.code, json.loads(done.out)) == (
        0,
        {
            "schema": "nexi-models-1",
            "models": [{"server": "built in", "base_url": "", "model": "extractive", "context": None, "in_use": True}],
            "problem": None,
        },
    )
    assert "nexi config setup" in nexi("models").err


def test_a_problem_is_told_and_ends_with_1(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    async def none(config: Config) -> Any:
        return await _list_models(config, {})

    monkeypatch.setattr(models, "_list_models", none)
    text, data = nexi("models"), nexi("models", "--json")
    assert (text.code, data.code) == (1, 1)
    assert "127.0.0.1:9/v1 cannot be reached" in text.err
    assert json.loads(data.out)["problem"]["code"] == "connect"


def test_a_probe_tests_the_judge_shows_the_cost_and_keeps_the_grade(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from nexi.app import pair_models
    from nexi.app.pair_models import kept_judge_grade
    from nexi.app.resolve import _kept_approach
    from nexi.config import load_config
    from nexi.doctor import Check, DoctorReport
    from nexi.types import Message, Reply, Usage
    from tests.pair_models.toys import TOY_QUIZ, judge_years

    def complete(body: dict[str, Any]) -> tuple[int, Any]:
        messages = [Message(m["role"], m["content"]) for m in body["messages"]]
        reply = Reply("I would search for it.", usage=Usage(10, 5)) if body.get("tools") else judge_years(messages)
        usage = {"prompt_tokens": reply.usage.input_tokens, "completion_tokens": reply.usage.output_tokens}
        choice = {"index": 0, "message": {"role": "assistant", "content": reply.text}, "finish_reason": "stop"}
        return 200, {"id": "1", "object": "chat.completion", "model": "toy", "choices": [choice], "usage": usage}

    async def examine() -> DoctorReport:
        return DoctorReport((Check("disk", True, "room enough"),))

    monkeypatch.setattr("nexi.doctor.examine_setup", examine)
    monkeypatch.setattr(pair_models, "packaged_quiz", lambda: TOY_QUIZ)
    with serving({"POST /v1/chat/completions": complete}) as port:
        for name, value in {"base_url": f"http://127.0.0.1:{port}/v1", "model": "toy", "stream": "false"}.items():
            assert nexi("config", "set", name, value).code == 0
        assert "room enough" in nexi("doctor", "--judge").out
        kept_first = kept_judge_grade(load_config())
        said = nexi("models", "--probe")
        kept = kept_judge_grade(load_config())
    assert kept_first is not None
    assert said.code == 0
    first, second = said.out.splitlines()
    assert first == "toy: does not use tools well: nexi searches and reads, and the model writes the answer from passages"
    assert second.startswith("toy: right in 100% of a test of 20 pairs: it may raise and lower")
    assert _kept_approach(load_config()) == "passages"
    assert "1,000 tokens" in said.out
    assert kept is not None
    assert kept.balanced_accuracy == 1.0


def test_without_a_model_there_is_no_judge_to_probe(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_MODEL", "extractive")
    said = nexi("models", "--probe")
    assert (said.code, "nexi config setup" in said.err) == (1, True)
