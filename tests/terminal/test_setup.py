"""`nexi config setup`, driven as a person would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rig import scripted_llm
from rig.terminal import ENTER, terminal

pytestmark = pytest.mark.long


def test_a_typed_address_is_asked_for_models_and_tested_before_it_is_saved(env: dict[str, str], tmp_path: Path) -> None:
    with scripted_llm.serve() as root, terminal(["config", "setup"], env, columns=120, module="rig.closed_ports") as screen:
        screen.expect("Looking for Ollama, LM Studio, llama.cpp, vLLM, Jan, KoboldCpp, LocalAI and text-generation-webui")
        screen.expect("Found: none.")
        screen.expect("URL of the model API")
        screen.type(f"{root.removeprefix('http://')}/v1" + ENTER)  # a key is not asked for: the server needs none
        assert "API key" not in screen.expect("Models there:")
        screen.expect("Model, by number or name")
        screen.type("1" + ENTER)
        screen.expect("SearXNG")
        screen.type(ENTER)
        screen.expect("Testing model and search ...")
        screen.expect("ok      model: ")
        screen.expect("ok      search searxng: ")
        screen.expect("Saved in")
        assert screen.ending() == 0
    saved = json.loads((tmp_path / "nexi" / "config.json").read_text())
    assert (saved["base_url"], saved["model"]) == (f"{root}/v1", "scripted")


def test_what_does_not_answer_is_not_saved_unasked(env: dict[str, str], tmp_path: Path) -> None:
    with terminal(["config", "setup"], env, columns=120, module="rig.closed_ports") as screen:
        screen.expect("URL of the model API")
        screen.type("http://127.0.0.1:9/v1" + ENTER)
        screen.expect("Warning: no list of models: ")
        screen.expect("API key")
        screen.type(ENTER)
        screen.expect("Model")
        screen.type("mine" + ENTER)
        screen.expect("SearXNG")
        screen.type(ENTER)
        screen.expect("failed  model: ")
        screen.expect("Save anyway? [y/N]")
        assert not (tmp_path / "nexi" / "config.json").exists()
        screen.type("y" + ENTER)
        screen.expect("Saved in")
        assert screen.ending() == 0
