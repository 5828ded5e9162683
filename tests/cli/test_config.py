"""`nexi config`: the settings shown with keys masked, changed one at a time, and asked for at a terminal only."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nexi.cli import settings
from nexi.config import SECRET_SETTINGS, Config, ModelOffer, load_config, run_first_time_setup, save_config
from nexi.errors import ConfigError
from tests.cli.command import Command, Terminal
from tests.stub import OLLAMA_ROUTES, serving

KEY = "sk-0123456789abcdef"


def in_file(nexi: Command) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((nexi.home / "config.json").read_text())
    return data


@pytest.mark.parametrize(
    ("key", "word", "kept"),
    [
        ("model", "qwen2.5:7b", "qwen2.5:7b"),
        ("model", "4", "4"),
        ("api_key", "12345678", "12345678"),
        ("max_context", "16384", 16384),
        ("max_cost", "0.5", 0.5),
        ("max_cost", "null", None),
        ("time_target", "none", None),
        ("max_timeout", "30", 30),
        ("stream", "False", False),
        ("stream", "off", False),
        ("search_backend", "searxng, wikipedia", ["searxng", "wikipedia"]),
        ("search_backend", "searxng", "searxng"),
        ("search_backend", '["searxng"]', ["searxng"]),
        ("search_backend", "", ""),
        ("allow_private", "10.0.0.0/8,wiki.lan", ["10.0.0.0/8", "wiki.lan"]),
        ("allow_private", "wiki.lan", ["wiki.lan"]),
        ("api_keys.brave", KEY, {"brave": KEY}),
        ("api_keys.brave", f'["{KEY}", "second"]', {"brave": [KEY, "second"]}),
        ("roles.judge.model", "small", {"judge": {"model": "small"}}),
        ("roles.judge.max_context", "4096", {"judge": {"max_context": 4096}}),
        ("roles", '{"judge": {"model": "m"}}', {"judge": {"model": "m"}}),
        ("prices.gpt-4.1", '{"input": 2, "output": 8}', {"gpt-4.1": {"input": 2, "output": 8}}),
        ("system_prompt", "Answer\nshort.", "Answer\nshort."),
        ("oidc_secret", "12345", "12345"),
        ("searxng_tag", "2026", "2026"),
    ],
)
def test_a_setting_is_changed_in_the_file(nexi: Command, key: str, word: str, kept: Any) -> None:
    done = nexi("config", "set", key, word)
    assert (done.code, done.out) == (0, "")
    name = {"max_timeout": "time_target"}.get(key, key).partition(".")[0]
    assert in_file(nexi)[name] == kept
    assert (nexi.home / "config.json").stat().st_mode & 0o777 == 0o600


def test_a_part_is_changed_beside_the_others_and_what_is_unknown_stays(nexi: Command) -> None:
    nexi.home.mkdir()
    (nexi.home / "config.json").write_text(json.dumps({"mine": 1, "prices": {"a.b": {"input": 1, "output": 2}}}))
    assert nexi("config", "set", "prices.a.b.output", "3").code == 0
    assert nexi("config", "set", "api_keys.brave", KEY).code == 0
    assert nexi("config", "set", "api_keys.exa", KEY).code == 0
    assert nexi("config", "unset", "api_keys.exa").code == 0
    held = in_file(nexi)
    assert (held["mine"], held["prices"], held["api_keys"]) == (1, {"a.b": {"input": 1, "output": 3}}, {"brave": KEY})


@pytest.mark.parametrize(
    ("key", "word", "says"),
    [
        ("max_contxt", "1", 'unknown setting "max_contxt"; did you mean max_context?'),
        ("max_context", "abc", 'max_context must be a positive integer (got "abc")'),
        ("max_context", "-1", "max_context must be a positive integer (got -1)"),
        ("base_url", "localhost", "base_url must start with http:// or https:// and name a host"),
        ("default_effort", "xl", 'default_effort must be one of s, m, l (got "xl")'),
        ("roles.poet.model", "m", 'roles has "poet", which is none of answer, extract, judge'),
        ("roles.judge.colour", "m", 'roles.judge has "colour"'),
        ("roles", "m", "roles must be an object"),
        ("prices.m.input", "1", "prices.m must have input and output"),
        ("model.name", "m", "model has no parts"),
        ("api_key", "schlüssel", "api_key must be a string of one line of ASCII text"),
        ("", "m", 'unknown setting ""'),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_field_named_and_nothing_is_written(
    nexi: Command, key: str, word: str, says: str
) -> None:
    done = nexi("config", "set", key, word)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "  Fix: " in done.err
    assert not nexi.home.exists()


def test_a_list_grows_by_add_and_set_says_what_it_no_longer_has(nexi: Command) -> None:
    assert nexi("config", "set", "allow_private", "wiki.lan,10.0.0.0/8").code == 0
    added = nexi("config", "add", "allow_private", "build.lan:8080, wiki.lan")
    assert f"Set allow_private to wiki.lan, 10.0.0.0/8, build.lan:8080 in {nexi.home / 'config.json'}." in added.err
    assert in_file(nexi)["allow_private"] == ["wiki.lan", "10.0.0.0/8", "build.lan:8080"]
    replaced = nexi("config", "set", "allow_private", "wiki.lan")
    assert replaced.err.endswith(" No longer in it: 10.0.0.0/8, build.lan:8080.\n")
    assert "No longer" not in nexi("config", "set", "allow_private", "wiki.lan,other.lan").err


def test_nothing_is_added_to_what_is_no_list(nexi: Command) -> None:
    done = nexi("config", "add", "model", "m")
    assert (done.code, "model is not a list" in done.err, "nexi config set model VALUE" in done.err) == (2, True, True)
    assert not nexi.home.exists()


def test_a_setting_that_broke_the_file_can_be_mended(nexi: Command) -> None:
    nexi.home.mkdir()
    (nexi.home / "config.json").write_text('{"max_context": "large", "model": "m"}')
    assert nexi("config").code == 2
    assert nexi("config", "set", "max_context", "8000").code == 0
    assert nexi("config", "get", "max_context").out == "8000\n"
    assert nexi("config", "get", "model").out == "m\n"


def test_a_key_comes_by_a_pipe_and_is_shown_masked(nexi: Command) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(KEY.encode() + b"\n"))
    assert nexi("config", "set", "api_key", stdin=stdin).code == 0
    assert in_file(nexi)["api_key"] == KEY
    shown = [nexi("config", "get", "api_key"), nexi("config"), nexi("config", "--json")]
    assert [KEY in done.out + done.err for done in shown] == [False] * 3
    assert shown[0].out == "sk-…ef\n"


def test_the_secrets_that_are_prompted_for_are_those_that_are_shown_masked() -> None:
    assert {"api_key", "jina_key", "token", "oidc_secret", "webhook_secret", "api_keys"} == SECRET_SETTINGS


def test_a_value_that_is_no_secret_must_stand_on_the_command_line_at_a_terminal(nexi: Command) -> None:
    done = nexi("config", "set", "model", stdin=Terminal())
    assert (done.code, "Missing argument 'VALUE'" in done.err) == (2, True)


def test_unset_puts_the_default_back(nexi: Command) -> None:
    nexi("config", "set", "max_context", "8000")
    assert nexi("config", "unset", "max_context").code == 0
    assert nexi("config", "get", "max_context").out == "128000\n"
    done = nexi("config", "unset", "api_keys.brave")
    assert (done.code, "api_keys.brave" in done.err) == (2, True)


def test_a_change_that_the_environment_hides_is_said_to_be_hidden(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_MODEL", "from-env")
    done = nexi("config", "set", "model", "mine")
    assert (done.code, in_file(nexi)["model"]) == (0, "mine")
    assert "unset NEXI_MODEL or OPENAI_MODEL" in done.err


def test_the_json_has_path_settings_and_where_they_come_from(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    nexi("config", "set", "max_context", "8000")
    monkeypatch.setenv("NEXI_MODEL", "from-env")
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    shown = json.loads(nexi("config", "--json").out)
    assert list(shown) == ["schema", "path", "exists", "settings", "sources", "notes"]
    assert (shown["schema"], shown["path"], shown["exists"]) == ("nexi-config-1", str(nexi.home / "config.json"), True)
    assert [shown["sources"][name] for name in ("max_context", "model", "stream")] == ["file", "environment", "default"]
    assert shown["settings"]["environment_keys"] == {"OPENROUTER_API_KEY": "sk-…ef"}


def test_alone_it_shows_every_setting_under_the_path(nexi: Command) -> None:
    lines = nexi("config").out.splitlines()
    assert lines[0] == f"{nexi.home / 'config.json'}  (does not exist yet)"
    assert [line.split()[0] for line in lines[2:]] == list(Config().to_dict())


def test_its_path_is_the_one_of_the_option(nexi: Command) -> None:
    assert nexi("config", "path").out == nexi("--config").out == f"{nexi.home / 'config.json'}\n"


def test_get_of_what_is_not_there_says_how_to_set_it(nexi: Command) -> None:
    done = nexi("config", "get", "api_keys.brave")
    assert (done.code, done.out) == (2, "")
    assert "nexi config set api_keys.brave" in done.err


# the setup


class Dialogue:
    """Somebody at the terminal, with these answers."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.said: list[str] = []

    def ask(self, prompt: str) -> str:
        self.said.append(prompt)
        return self.answers.pop(0)

    def run(self, path: Path, **more: Any) -> Config:
        return run_first_time_setup(path, {}, ask=self.ask, ask_secret=self.ask, say=self.said.append, **more)


OFFERS = (
    ModelOffer("qwen2.5:7b  (Ollama, 16384 tokens)", "http://127.0.0.1:11434/v1", "qwen2.5:7b", 16384),
    ModelOffer("phi  (LM Studio, window unknown)", "http://127.0.0.1:1234/v1", "phi"),
)


def test_a_model_of_this_machine_is_chosen_by_its_number_with_its_window(tmp_path: Path) -> None:
    dialogue = Dialogue("7", "x", "1", "", "s")
    config = dialogue.run(tmp_path / "config.json", offers=OFFERS)
    assert config == Config(base_url=OFFERS[0].base_url, model="qwen2.5:7b", max_context=16384, default_effort="s")
    assert dialogue.said[1].splitlines()[1:] == [f"  {n}  {offer.label}" for n, offer in enumerate(OFFERS, 1)]


def test_a_model_whose_window_is_not_told_is_asked_about(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def window(base_url: str, model: str) -> int:
        asked.append((base_url, model))
        return 4096

    config = Dialogue("2", "", "").run(tmp_path / "config.json", offers=OFFERS, window=window)
    assert (config.model, config.max_context, asked) == ("phi", 4096, [("http://127.0.0.1:1234/v1", "phi")])


def test_another_address_can_be_given_instead(tmp_path: Path) -> None:
    config = Dialogue("0", "https://api.openai.com/v1", KEY, "gpt", "", "").run(tmp_path / "config.json", offers=OFFERS)
    assert config == Config(base_url="https://api.openai.com/v1", api_key=KEY, model="gpt")


def test_enter_takes_the_first_model_that_was_found_and_later_keeps_the_one_that_is_set_up(tmp_path: Path) -> None:
    first = Dialogue("", "", "", "").run(tmp_path / "config.json", offers=OFFERS)
    assert (first.base_url, first.model) == (OFFERS[0].base_url, "qwen2.5:7b")
    kept = Dialogue("", "", "", "", "", "", "").run(tmp_path / "config.json", offers=OFFERS[1:])
    assert (kept.base_url, kept.model) == (OFFERS[0].base_url, "qwen2.5:7b")


def test_the_typed_address_is_asked_for_its_models(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def list_models(base_url: str, api_key: str) -> list[str]:
        asked.append((base_url, api_key))
        return ["llama", "qwen"]

    url = "http://127.0.0.1:9411/v1"
    dialogue = Dialogue("127.0.0.1:9411/v1", "2", "", "")  # without http://, and no key is asked for
    config = dialogue.run(tmp_path / "config.json", list_models=list_models)
    assert (config.base_url, config.model, asked) == (url, "qwen", [(url, "")])
    assert "Models there:\n  1  llama\n  2  qwen" in dialogue.said
    assert Dialogue(url, "", "", "").run(tmp_path / "other.json", list_models=list_models).model == "llama"
    assert Dialogue(url, "mine", "", "").run(tmp_path / "third.json", list_models=list_models).model == "mine"


def test_what_fails_its_test_is_saved_only_if_the_user_wants_it(tmp_path: Path) -> None:
    tested: list[str] = []

    def find_failures(answers: Mapping[str, Any]) -> list[str]:
        tested.append(answers["model"])
        return ["the model does not answer"] if answers["model"] != "good" else []

    first, second = ("https://a.example/v1", KEY, "bad", "", ""), ("https://a.example/v1", KEY, "good", "", "")
    config = Dialogue(*first, "n", *second).run(tmp_path / "config.json", find_failures=find_failures)
    assert (config.model, tested) == ("good", ["bad", "good"])
    assert Dialogue(*first, "y").run(tmp_path / "other.json", find_failures=find_failures).model == "bad"


def test_the_offers_are_the_models_that_servers_have() -> None:
    with serving(OLLAMA_ROUTES) as port:
        url = f"http://127.0.0.1:{port}/v1"
        assert settings._local_model_offers({"Ollama": port}) == [
            ModelOffer("qwen2.5:7b  (Ollama, 16384 tokens)", url, "qwen2.5:7b", 16384),
            ModelOffer("llama3.2:latest  (Ollama, up to 131072 tokens)", url, "llama3.2:latest", 131072),
        ]
        assert settings._detect_window(url, "qwen2.5:7b") == 16384
        assert settings._detect_window(url, "other") is None
    assert settings._detect_window("https://openrouter.ai/api/v1", "m") is None


def test_the_setup_needs_a_terminal(nexi: Command) -> None:
    done = nexi("config", "setup")
    assert (done.code, done.out) == (2, "")
    assert "nexi config set" in done.err


@pytest.mark.parametrize(("answer", "runs"), [("y\n", True), ("\n", True), ("n\n", False)])
def test_config_at_a_terminal_without_a_file_offers_the_setup_in_one_question(
    nexi: Command, monkeypatch: pytest.MonkeyPatch, answer: str, runs: bool
) -> None:
    def set_up() -> Config:
        save_config(Config(model="chosen"), nexi.home / "config.json")
        return load_config()

    monkeypatch.setattr(settings, "run_setup", set_up)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    done = nexi("config", stdin=Terminal(answer))
    assert done.err.count("Set up nexi now? [Y/n]") == 1
    assert (nexi.home / "config.json").exists() is runs
    assert ("chosen" in done.out) is runs


def test_the_setup_that_ends_early_names_a_command_that_exists(tmp_path: Path) -> None:
    def end(prompt: str) -> str:
        raise EOFError

    with pytest.raises(ConfigError) as caught:
        run_first_time_setup(tmp_path / "config.json", {}, ask=end, say=lambda _: None, offers=OFFERS)
    assert "nexi config setup" in caught.value.fix
