"""The configuration: defaults, checks, precedence, keys, chains, places, files and the first run."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from nexi import config as module
from nexi.config import (
    DEFAULT_CONFIG,
    EFFORT_LEVELS,
    SEARXNG_QUESTION,
    Config,
    Endpoint,
    describe_unknown_keys,
    editor_command,
    ensure_config,
    get_compaction_prompt,
    get_extractor_prompt,
    get_system_prompt,
    load_config,
    nexi_home,
    run_first_time_setup,
    save_config,
    validate_config,
)
from nexi.config._environment import nexi_cache
from nexi.config._values import mask_key
from nexi.config.fields import ALWAYS_SAVED
from nexi.errors import ConfigError, StoreError

OPENROUTER = "https://openrouter.ai/api/v1"
OPENAI = "https://api.openai.com/v1"
LOCAL = "http://127.0.0.1:11434/v1"
GEMINI = "google/gemini-2.5-flash-lite"
WHOLE = {"base_url": OPENROUTER, "api_key": "", "model": "m", "default_effort": "m", "max_output_tokens": 8192}


def loaded(tmp_path: Path, data: object = None, **env: str) -> Config:
    """The Config from a file of this content under this environment."""
    path = tmp_path / "config.json"
    if data is not None:
        path.write_text(json.dumps(data), encoding="utf-8")
        path.chmod(0o600)
    return load_config(path, env)


def failure(act: Callable[[], object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        act()
    assert caught.value.fix
    return caught.value


class TestDefaults:
    def test_are_those_of_the_specification(self) -> None:
        seeds = {
            "base_url": OPENROUTER,
            "api_key": "",
            "model": GEMINI,
            "jina_key": "",
            "default_effort": "m",
            "time_target": None,
            "max_output_tokens": 8192,
            "max_context": 128000,
            "auto_compact_thresh": 0.9,
            "compact_target_words": 5000,
            "preserve_last_n_messages": 3,
            "tokenizer_encoding": "cl100k_base",
            "jina_timeout": 30,
            "llm_max_retries": 3,
        }
        assert {name: DEFAULT_CONFIG[name] for name in seeds} == seeds

    def test_are_a_valid_configuration_with_a_check_for_every_setting(self) -> None:
        assert validate_config(DEFAULT_CONFIG) == (True, [])
        assert set(module.CHECKS) == set(DEFAULT_CONFIG) | {"max_timeout"}

    def test_of_effort_are_8_16_and_32_iterations(self) -> None:
        assert EFFORT_LEVELS == {
            "s": {"max_iter": 8, "description": "Quick search"},
            "m": {"max_iter": 16, "description": "Balanced"},
            "l": {"max_iter": 32, "description": "Thorough research"},
        }


class TestValue:
    def test_takes_the_old_name_of_time_target(self) -> None:
        config = Config(
            base_url=LOCAL, api_key="k", model="m", jina_key="", default_effort="m", max_timeout=240, max_output_tokens=8192
        )
        assert (config.time_target, config.max_timeout) == (240, 240)
        assert Config.from_dict({"max_timeout": 9}).time_target == 9
        assert Config.from_dict({"max_timeout": 9, "time_target": 5}).time_target == 5

    def test_refuses_a_setting_that_does_not_exist(self) -> None:
        with pytest.raises(TypeError):
            Config(modle="m")

    @pytest.mark.parametrize(
        ("values", "cause"),
        [
            ({"max_pages": "x"}, 'max_pages must be a positive integer (got "x")'),
            ({"max_timeout": "60"}, 'time_target must be a positive integer or null (got "60")'),
            ({"api_keys": ["k"]}, "api_keys must be an object of provider names and keys"),
            (
                {"stream": 1, "max_cost": 0},
                "stream must be true or false (got 1); max_cost must be a positive number or null (got 0)",
            ),
        ],
    )
    def test_refuses_a_value_that_its_setting_cannot_have(self, values: dict[str, Any], cause: str) -> None:
        for act in (lambda: Config(**values), lambda: Config().override(**values)):
            assert (failure(act).code, failure(act).cause) == ("config", cause)

    def test_is_frozen(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            Config().model = "other"  # type: ignore[misc]

    def test_survives_its_own_dictionary(self) -> None:
        config = Config(
            search_backend=["searxng", "duckduckgo"],
            api_keys={"tavily": ["a", "b"], "brave": "c"},
            roles={"judge": {"model": "small"}},
            prices={"m": {"input": 1, "output": 2.5}},
            allow_private="localhost:8080, 10.0.0.0/8",
            time_target=3,
        )
        assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config
        assert config.allow_private == ("localhost:8080", "10.0.0.0/8")

    def test_can_be_changed_by_replace_even_back_to_nothing(self) -> None:
        config = dataclasses.replace(Config(time_target=5), time_target=None, model="x")
        assert (config.time_target, config.model) == (None, "x")

    def test_does_not_share_what_it_was_given(self) -> None:
        keys: dict[str, Any] = {"brave": ["a"]}
        config = Config(api_keys=keys)
        keys["brave"].append("b")
        assert config.keys_for("brave") == ("a",)

    def test_trims_what_people_paste(self) -> None:
        config = Config(api_key=" sk-1\n", base_url=f" {LOCAL} ", jina_key=None)
        assert (config.api_key, config.base_url, config.jina_key) == ("sk-1", LOCAL, "")

    def test_from_a_dictionary_is_checked(self) -> None:
        error = failure(lambda: Config.from_dict({"max_context": 0, "default_effort": "x"}))
        assert error.cause == 'max_context must be a positive integer (got 0); default_effort must be one of s, m, l (got "x")'
        assert failure(lambda: Config.from_dict([])).cause == "it must be an object (got [])"  # type: ignore[arg-type]

    def test_from_a_dictionary_notes_unknown_settings(self) -> None:
        assert Config.from_dict({"modle": "x"}).notes == ('unknown setting "modle"; did you mean model?',)


class TestValidation:
    @pytest.mark.parametrize("name", ["base_url", "api_key", "model", "default_effort", "max_output_tokens"])
    def test_names_a_required_field_that_is_missing(self, name: str) -> None:
        data = {k: v for k, v in WHOLE.items() if k != name}
        assert validate_config(data) == (False, [f"{name} is missing"])

    def test_accepts_an_empty_key_and_leaves_optional_fields_out(self) -> None:
        assert validate_config(WHOLE) == (True, [])

    @pytest.mark.parametrize("data", [None, [], "text", 3])
    def test_refuses_what_is_no_object(self, data: object) -> None:
        ok, messages = validate_config(data)
        assert (ok, len(messages)) == (False, 1)

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            (
                "base_url",
                [
                    "",
                    "ftp://x",
                    "openrouter.ai",
                    "http://",
                    "https://a b",
                    "http://x:99999",
                    "http://[",
                    3,
                    None,
                    "https://e\\@x",
                ],
            ),
            ("api_key", [None, 3, "schlüssel", "a\nb", ["k"]]),
            ("model", ["", "  ", None, 3, "a\nb"]),
            ("jina_key", [3, "a\x00b", ["k"]]),
            ("default_effort", ["", "x", "M", None, [], 1]),
            ("time_target", [0, -1, 1.5, True, "60", float("nan")]),
            ("max_timeout", [0, -1, 1.5, True, "60"]),
            ("max_output_tokens", [0, -1, None, True, 1.0, "8192", 10**40]),
            ("max_context", [0, -5, None, True, 1e5, 10**400]),
            ("auto_compact_thresh", [-0.1, 1.1, True, None, "0.9", float("nan"), float("inf")]),
            ("compact_target_words", [0, None, True, 2.0]),
            ("preserve_last_n_messages", [-1, None, False, 1.0]),
            ("tokenizer_encoding", ["", " ", None, 1]),
            ("jina_timeout", [0, -1, None, True, float("inf")]),
            ("llm_max_retries", [-1, None, True, 1.5]),
            ("search_backend", [None, 3, [""], ["a", 3], {"a": 1}]),
            ("content_fetcher", [None, ["a", ""]]),
            ("api_keys", [None, [], {"a": 3}, {"a": ["k", None]}, {"a": "ü"}]),
            ("searxng_url", [None, "searx.local", "ftp://x", 1]),
            ("roles", [None, [], {"boss": {}}, {"judge": "m"}, {"judge": {"mood": 1}}, {"judge": {"max_context": 0}}]),
            ("prices", [None, [], {"m": 1}, {"m": {"input": 1}}, {"m": {"input": 1, "output": -1}}]),
            ("allow_private", [None, 3, ["*"], ["http://x"], ["a/b"], [3], ["host:99999"], "a b", ["10.0.0.0/99"]]),
            ("respect_robots", [None, 1, "yes"]),
            ("prefetch", [0]),
            ("stream", ["true"]),
            ("color", [1]),
            ("max_pages", [0, None, True]),
            ("max_cost", [0, -1, True, float("nan"), "1"]),
            ("max_tokens", [0, 1.5, True]),
            ("fetch_timeout", [0, None, float("inf")]),
            ("http_proxy", [None, "ftp://p", 3, "http://"]),
            ("https_proxy", [None, "a b"]),
            ("no_proxy", [None, 3]),
            ("runs_keep_days", [-1, None, 1.5]),
            ("pages_max_mb", [-1, None]),
            ("system_prompt", [3, "\ud800"]),
            ("token", [None, 3, "ü", "a\nb"]),
            ("serve_hosts", [None, 3, [3], ["a b"], ["http://x"], ["x:80"], ["*"], "a/b"]),
        ],
    )
    def test_names_the_field_of_every_bad_value(self, name: str, values: list[object]) -> None:
        for value in values:
            ok, messages = validate_config({**WHOLE, name: value})
            assert (ok, len(messages)) == (False, 1), value
            assert messages[0].startswith(name)

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("base_url", ["HTTPS://Example.org/v1", LOCAL, "http://user:pw@host/v1", "http://[::1]:8080"]),
            ("api_key", ["", "sk-1", " sk-1\n"]),
            ("jina_key", ["", None, "jina_1"]),
            ("time_target", [None, 1, 3600]),
            ("auto_compact_thresh", [0, 1, 0.0, 1.0, 0.5]),
            ("preserve_last_n_messages", [0, 5]),
            ("search_backend", ["", "jina", ["searxng", "duckduckgo"], []]),
            ("api_keys", [{}, {"tavily": "a", "jina": ["b", "c"]}]),
            ("roles", [{}, {"answer": {}, "judge": {"base_url": LOCAL, "api_key": "", "model": "m", "max_context": 4096}}]),
            ("prices", [{}, {"m": {"input": 0, "output": 0.4}}]),
            ("allow_private", [[], ["localhost"], ["host:80", "[::1]:80", "::1", "10.0.0.0/8", "fd00::/8"], "a,b:1", ""]),
            ("http_proxy", ["", "proxy:3128", "socks5://user:pw@host:1"]),
            ("system_prompt", ["", None, "Line\nline {braces}"]),
            ("token", ["", "t0ken"]),
            ("serve_hosts", [[], ["nexi.example"], "nexi, search.example.org", ""]),
        ],
    )
    def test_accepts_every_good_value(self, name: str, values: list[object]) -> None:
        assert [validate_config({**WHOLE, name: value}) for value in values] == [(True, [])] * len(values)

    def test_reports_everything_at_once_with_the_place_inside(self) -> None:
        data = {**WHOLE, "roles": {"judge": {"model": "", "base_url": "x"}}, "max_pages": 0}
        assert validate_config(data)[1] == [
            'roles.judge.model must be a non-empty string on one line (got "")',
            "roles.judge.base_url must start with http:// or https:// and name a host",
            "max_pages must be a positive integer (got 0)",
        ]

    def test_never_repeats_a_key_or_an_address_with_a_password(self) -> None:
        data = {
            **WHOLE,
            "api_key": "sécret",
            "jina_key": "sécret",
            "api_keys": {"a": "sécret"},
            "base_url": "ftp://u:sécret@h",
            "http_proxy": "ftp://u:sécret@h",
            "searxng_url": "ftp://u:sécret@h",
            "roles": {"judge": {"api_key": "sécret"}},
        }
        messages = validate_config(data)[1]
        assert len(messages) == 7
        assert "cret" not in " ".join(messages)

    def test_unknown_keys_come_with_the_name_that_was_meant(self) -> None:
        assert describe_unknown_keys({"max_contxt": 1, "model": "m", "zzz": 2, "max_timeout": 5}) == [
            'unknown setting "max_contxt"; did you mean max_context?',
            'unknown setting "zzz"',
        ]


class TestPrecedence:
    def test_is_flag_then_environment_then_file_then_default(self, tmp_path: Path) -> None:
        assert loaded(tmp_path).model == GEMINI
        assert loaded(tmp_path, {"model": "file"}).model == "file"
        config = loaded(tmp_path, {"model": "file"}, NEXI_MODEL="env", OPENAI_MODEL="other")
        assert config.model == "env"
        assert config.override(model="flag").model == "flag"

    def test_an_empty_variable_counts_as_none(self, tmp_path: Path) -> None:
        assert loaded(tmp_path, {"model": "file"}, NEXI_MODEL=" ", OPENAI_MODEL="").model == "file"

    @pytest.mark.parametrize(
        ("variable", "value", "name", "result"),
        [
            ("OPENAI_BASE_URL", LOCAL, "base_url", LOCAL),
            ("OPENAI_API_BASE", LOCAL, "base_url", LOCAL),
            ("OPENAI_MODEL", "gpt", "model", "gpt"),
            ("SEARXNG_URL", "http://s:8080/", "searxng_url", "http://s:8080"),
            ("SEARXNG_API_URL", "http://s/searx/search", "searxng_url", "http://s/searx"),
            ("SEARXNG_QUERY_URL", "http://s:8080/search?q=<query>", "searxng_url", "http://s:8080"),
            ("SEARX_URL", "http://s", "searxng_url", "http://s"),
            ("NEXI_ALLOW_PRIVATE", "localhost:1, 10.0.0.0/8", "allow_private", ("localhost:1", "10.0.0.0/8")),
            ("NEXI_TOKEN", "secret", "token", "secret"),
            ("HTTP_PROXY", "proxy:3128", "http_proxy", "http://proxy:3128"),
            ("https_proxy", "http://p:1", "https_proxy", "http://p:1"),
            ("NO_PROXY", "localhost,.corp", "no_proxy", "localhost,.corp"),
            ("NO_COLOR", "1", "color", False),
            ("TERM", "dumb", "color", False),
            ("MODEL_CHOICE", "gpt-4o-mini", "roles", {"judge": {"model": "gpt-4o-mini"}}),
        ],
    )
    def test_every_variable_reaches_its_setting(
        self, tmp_path: Path, variable: str, value: str, name: str, result: object
    ) -> None:
        config = loaded(tmp_path, None, **{variable: value})
        changed = {k: getattr(config, k) for k in DEFAULT_CONFIG if getattr(config, k) != getattr(Config(), k)}
        assert changed == {name: result}

    @pytest.mark.parametrize(
        ("variable", "value"),
        [
            ("OPENAI_BASE_URL", "api.openai.com"),
            ("NEXI_ALLOW_PRIVATE", "*"),
            ("OPENAI_API_KEY", "sk-\udcff"),
            ("MODEL_CHOICE", "a\nb"),
        ],
    )
    def test_a_variable_that_cannot_be_used_is_named(self, tmp_path: Path, variable: str, value: str) -> None:
        error = failure(lambda: loaded(tmp_path, None, **{variable: value}))
        assert error.cause.startswith(variable)
        assert variable in error.fix

    def test_a_flag_that_cannot_be_used_is_named(self) -> None:
        assert (
            failure(lambda: Config().override(time_target=0)).cause == "time_target must be a positive integer or null (got 0)"
        )
        assert failure(lambda: Config().override(modle="x")).cause == 'unknown setting "modle"; did you mean model?'

    def test_a_flag_that_was_not_given_changes_nothing(self) -> None:
        config = Config(time_target=5)
        assert config.override(time_target=None, model=None) == config

    def test_a_flag_may_have_the_old_name(self) -> None:
        assert Config(time_target=5).override(max_timeout=7).time_target == 7

    def test_an_override_keeps_home_notes_and_origin(self, tmp_path: Path) -> None:
        config = loaded(tmp_path, {"oops": 1}, JINA_API_KEY="j")
        other = config.override(default_effort="l")
        assert (other.home, other.notes, other.origin) == (config.home, config.notes, config.origin)

    def test_a_model_named_by_flag_or_environment_wins_over_the_answer_role_of_the_file(self, tmp_path: Path) -> None:
        file = {"base_url": LOCAL, "roles": {"answer": {"model": "file", "max_context": 4096}, "judge": {"model": "j"}}}
        assert loaded(tmp_path, file).endpoint("answer") == Endpoint(LOCAL, (), "file", 4096)
        assert loaded(tmp_path, file, NEXI_MODEL="env").endpoint("answer") == Endpoint(LOCAL, (), "env", 4096)
        flagged = loaded(tmp_path, file).override(model="flag")
        assert flagged.endpoint("answer") == Endpoint(LOCAL, (), "flag", 4096)
        assert flagged.endpoint("judge") == Endpoint(LOCAL, (), "j", 128000)


class TestEndpoint:
    def test_without_a_key_the_default_address_means_the_extractive_model(self) -> None:
        assert Config().endpoint("answer") == Endpoint("", (), "extractive", 128000)
        assert Config().endpoint("answer").is_extractive

    def test_an_address_the_user_set_is_called_without_a_key(self) -> None:
        assert Config(base_url=LOCAL, model="qwen").endpoint("answer") == Endpoint(LOCAL, (), "qwen", 128000)

    def test_the_model_extractive_is_never_called_and_asks_for_no_key(self) -> None:
        config = Config(base_url=LOCAL, api_key="k", model="extractive")
        assert config.endpoint("judge") == Endpoint("", (), "extractive", 128000)

    def test_the_flag_extractive_silences_every_role(self) -> None:
        config = Config(base_url=LOCAL, roles={"judge": {"model": "j"}, "answer": {"model": "a"}}).override(model="extractive")
        assert [config.endpoint(role).model for role in ("answer", "extract", "judge")] == ["extractive"] * 3

    def test_roles_take_what_they_do_not_name_from_the_main_settings(self) -> None:
        config = Config(api_key="main", roles={"extract": {"model": "small", "max_context": 8192}})
        assert config.endpoint("answer") == Endpoint(OPENROUTER, ("main",), GEMINI, 128000)
        assert config.endpoint("extract") == Endpoint(OPENROUTER, ("main",), "small", 8192)

    def test_a_role_at_another_address_never_gets_the_main_key(self) -> None:
        roles = {"judge": {"base_url": LOCAL}, "extract": {"base_url": LOCAL, "api_key": "own"}}
        config = Config(api_key="main", roles=roles)
        assert config.endpoint("judge").api_keys == ()
        assert config.endpoint("extract").api_keys == ("own",)

    def test_a_role_that_only_leaves_encryption_never_gets_the_main_key(self) -> None:
        config = Config(
            base_url="https://models.example/v1", api_key="main", roles={"judge": {"base_url": "http://models.example/v1"}}
        )
        assert config.endpoint("judge").api_keys == ()

    def test_an_unknown_role_is_an_error(self) -> None:
        assert "boss" in failure(lambda: Config().endpoint("boss")).message  # type: ignore[arg-type]

    def test_more_keys_follow_in_order_and_once(self) -> None:
        config = Config(api_key="a", api_keys={"openrouter": ["b", "a"], "llm": "c", "openai": "no"})
        assert config.endpoint("answer").api_keys == ("a", "b", "c")


class TestKeysOfTheEnvironment:
    BOTH: Mapping[str, str] = {"OPENAI_API_KEY": "oa", "OPENROUTER_API_KEY": "or"}

    @pytest.mark.parametrize(
        ("file", "base_url", "keys"),
        [
            (None, None, ("or",)),
            (None, OPENAI, ("oa",)),
            (None, LOCAL, ("oa",)),
            ({"base_url": OPENAI}, None, ("oa",)),
            ({"base_url": LOCAL}, None, ("oa",)),
            ({"base_url": OPENAI, "api_key": "file"}, None, ("oa", "file")),
            ({"base_url": LOCAL, "api_key": "file"}, None, ("file",)),
            ({"base_url": LOCAL, "api_key": "file"}, LOCAL, ("oa", "file")),
            ({"api_key": "file"}, None, ("or", "file")),
            ({"api_key": "file"}, LOCAL, ("oa",)),
            ({"base_url": "https://api.openai.com.evil.example/v1"}, None, ("oa",)),
            ({"base_url": "https://openrouter.ai@evil.example/v1", "api_key": "file"}, None, ("file",)),
        ],
    )
    def test_go_only_where_they_belong(self, tmp_path: Path, file: object, base_url: str | None, keys: tuple[str, ...]) -> None:
        env = {**self.BOTH, **({"OPENAI_BASE_URL": base_url} if base_url else {})}
        assert loaded(tmp_path, file, **env).endpoint("answer").api_keys == keys

    def test_openai_never_reaches_the_default_address(self, tmp_path: Path) -> None:
        config = loaded(tmp_path, {"base_url": OPENROUTER}, OPENAI_API_KEY="oa")
        assert config.endpoint("answer") == Endpoint("", (), "extractive", 128000)
        assert config.notes == (
            "OPENAI_API_KEY is not used: it goes only to OpenAI or to an address you set; "
            "for OpenAI set OPENAI_BASE_URL=https://api.openai.com/v1 and NEXI_MODEL",
        )

    def test_openrouter_reaches_no_other_address(self, tmp_path: Path) -> None:
        env = {"OPENROUTER_API_KEY": "or"}
        assert loaded(tmp_path, {"base_url": LOCAL}, **env).endpoint("answer").api_keys == ()
        assert loaded(tmp_path, None, OPENAI_BASE_URL="http://openrouter.ai/api/v1", **env).endpoint("answer").api_keys == ()

    def test_a_role_gets_the_key_that_is_known_to_be_its_own(self, tmp_path: Path) -> None:
        file = {"roles": {"judge": {"base_url": OPENAI, "model": "gpt"}, "extract": {"base_url": LOCAL}}}
        config = loaded(tmp_path, file, **self.BOTH)
        assert config.endpoint("judge") == Endpoint(OPENAI, ("oa",), "gpt", 128000)
        assert config.endpoint("extract").api_keys == ()

    def test_a_flag_wins_over_them(self, tmp_path: Path) -> None:
        assert loaded(tmp_path, {"api_key": "file"}, **self.BOTH).override(api_key="flag").endpoint("answer").api_keys == (
            "flag",
        )

    def test_the_file_key_withheld_from_another_address_is_noted(self, tmp_path: Path) -> None:
        config = loaded(tmp_path, {"api_key": "file"}, OPENAI_BASE_URL=LOCAL)
        assert config.notes == (
            f"the api_key in {tmp_path / 'config.json'} is not sent to 127.0.0.1: it belongs to another address",
        )

    def test_are_not_in_the_dictionary_nor_in_any_text(self, tmp_path: Path) -> None:
        secret = "sk-0123456789abcdef"
        config = loaded(
            tmp_path,
            {"api_key": secret, "jina_key": secret, "api_keys": {"brave": [secret]}, "roles": {"judge": {"api_key": secret}}},
            OPENAI_API_KEY=secret,
            OPENAI_BASE_URL=f"http://user:{secret}@host/v1",
            HTTP_PROXY=f"http://user:{secret}@proxy:1",
        )
        for text in (
            repr(config),
            str(config),
            repr(config.endpoint("answer")),
            repr(config.origin),
            json.dumps(config.to_masked_dict()),
        ):
            assert "0123456789" not in text
        assert config.to_masked_dict()["environment_keys"] == {"OPENAI_API_KEY": "sk-…ef"}
        assert config.to_masked_dict()["base_url"] == "http://…@host/v1"

    @pytest.mark.parametrize(("key", "shown"), [("", ""), ("short", "set"), ("sk-0123456789", "sk-…89")])
    def test_are_shown_by_their_ends(self, key: str, shown: str) -> None:
        assert mask_key(key) == shown


class TestChains:
    def test_without_anything_search_is_free(self) -> None:
        assert Config().search_chain() == ("services",)
        assert Config().fetch_chain() == ("http",)

    def test_keyed_providers_come_in_a_fixed_order_with_jina_first(self, tmp_path: Path) -> None:
        config = loaded(
            tmp_path, {"api_keys": {"serper": "s", "exa": ["e"]}, "jina_key": "j"}, BRAVE_API_KEY="b", TAVILY_API_KEY="t"
        )
        assert config.search_chain() == ("jina", "tavily", "brave", "exa", "serper")
        assert config.fetch_chain() == ("http", "jina")

    def test_searxng_goes_before_keys(self, tmp_path: Path) -> None:
        assert loaded(tmp_path, None, SEARXNG_URL="http://s", JINA_API_KEY="j").search_chain() == ("searxng",)

    def test_a_configured_chain_is_taken_as_it_is(self) -> None:
        config = Config(search_backend=["wikipedia", "searxng"], content_fetcher="jina", searxng_url="http://s")
        assert config.search_chain() == ("wikipedia", "searxng")
        assert config.fetch_chain() == ("jina",)
        assert Config(search_backend="tavily, brave").search_chain() == ("tavily", "brave")

    def test_keys_of_a_provider_are_tried_environment_first(self, tmp_path: Path) -> None:
        config = loaded(tmp_path, {"jina_key": "file", "api_keys": {"jina": ["list", "env"]}}, JINA_API_KEY="env")
        assert config.keys_for("jina") == ("env", "file", "list")
        assert config.override(jina_key="flag").keys_for("jina") == ("flag", "list", "env")
        assert config.keys_for("tavily") == ()


class TestPlaces:
    @pytest.mark.parametrize(
        ("env", "home", "cache"),
        [
            ({"HOME": "/u"}, "/u/.local/share/nexi", "/u/.cache/nexi"),
            ({"HOME": "/u", "XDG_DATA_HOME": "/d", "XDG_CACHE_HOME": "/c"}, "/d/nexi", "/c/nexi"),
            (
                {"HOME": "/u", "XDG_DATA_HOME": "relative", "XDG_CACHE_HOME": "relative"},
                "/u/.local/share/nexi",
                "/u/.cache/nexi",
            ),
            ({"HOME": "/u", "XDG_DATA_HOME": "/d", "NEXI_HOME": "/n"}, "/n", "/n/cache"),
            ({"HOME": "/u", "NEXI_HOME": "~/n"}, "/u/n", "/u/n/cache"),
            ({"NEXI_HOME": "/n"}, "/n", "/n/cache"),
        ],
    )
    def test_follow_the_environment(self, env: dict[str, str], home: str, cache: str) -> None:
        assert (nexi_home(env, windows=False), nexi_cache(env, windows=False)) == (Path(home), Path(cache))

    def test_on_windows_are_in_local_app_data(self) -> None:
        assert nexi_home({"LOCALAPPDATA": "/l"}, windows=True) == Path("/l/nexi")
        assert nexi_home({"USERPROFILE": "/u"}, windows=True) == Path("/u/AppData/Local/nexi")
        assert nexi_cache({"LOCALAPPDATA": "/l"}, windows=True) == Path("/l/nexi/cache")

    def test_without_any_home_are_an_error_that_says_what_to_set(self) -> None:
        error = failure(lambda: load_config(env={}))
        assert ("HOME" in error.cause, "NEXI_HOME" in error.fix) == (True, True)

    def test_of_a_config_lie_together(self, tmp_path: Path) -> None:
        config = load_config(env={"NEXI_HOME": str(tmp_path)})
        assert {
            name: getattr(config, name)
            for name in (
                "config_path",
                "history_path",
                "knowledge_path",
                "runs_dir",
                "pages_dir",
                "state_dir",
                "prompts_dir",
                "cache_dir",
            )
        } == {
            "config_path": tmp_path / "config.json",
            "history_path": tmp_path / "history.jsonl",
            "knowledge_path": tmp_path / "knowledge.db",
            "runs_dir": tmp_path / "runs",
            "pages_dir": tmp_path / "pages",
            "state_dir": tmp_path / "state",
            "prompts_dir": tmp_path / "prompts",
            "cache_dir": tmp_path / "cache",
        }

    def test_of_a_config_without_a_home_come_from_the_environment_when_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NEXI_HOME", "/n")
        assert (Config().runs_dir, Config().cache_dir) == (Path("/n/runs"), Path("/n/cache"))

    def test_beside_a_named_file_need_no_home(self, tmp_path: Path) -> None:
        config = load_config(tmp_path / "mine.json", {})
        assert (config.config_path, config.runs_dir) == (tmp_path / "mine.json", tmp_path / "runs")

    def test_move_together_when_the_home_does(self, tmp_path: Path) -> None:
        config = loaded(tmp_path / "old").override(home=tmp_path / "new")
        assert (config.config_path, config.cache_dir) == (tmp_path / "new" / "config.json", tmp_path / "new" / "cache")

    def test_named_by_hand_hold_everything(self, tmp_path: Path) -> None:
        config = Config(home=str(tmp_path))
        assert (config.config_path, config.cache_dir) == (tmp_path / "config.json", tmp_path / "cache")


class TestEditor:
    def test_is_the_users_own_with_its_arguments(self) -> None:
        assert editor_command({"EDITOR": "code --wait 'a b'"}, windows=False) == ["code", "--wait", "a b"]

    def test_falls_back_to_what_every_system_has(self) -> None:
        assert editor_command({}, windows=False) == ["vi"]
        assert editor_command({"EDITOR": " "}, windows=True) == ["notepad"]

    def test_with_open_quotes_is_an_error(self) -> None:
        assert "EDITOR" in failure(lambda: editor_command({"EDITOR": "vi 'x"}, windows=False)).fix


class TestLoading:
    def test_a_missing_file_gives_the_defaults(self, tmp_path: Path) -> None:
        assert loaded(tmp_path) == Config()

    def test_a_file_may_name_only_what_differs_and_begin_with_a_mark(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_bytes(b'\xef\xbb\xbf{"model": "m", "max_timeout": 9}')
        assert loaded(tmp_path) == Config(model="m", time_target=9)

    @pytest.mark.parametrize(
        ("content", "cause"),
        [
            (b'{\n  "model": "m",\n  5\n}', "line 3, column 3"),
            (b"", "line 1, column 1"),
            (b"[1, 2]", "[1, 2]"),
            (b"null", "null"),
            (b'{"model": "\xff"}', "byte 11"),
            (b"[" * 200_000, ""),
            (b'{"max_context": ' + b"9" * 5000 + b"}", "digits"),
            (b'{"model": "' + b"x" * 1_000_001 + b'"}', "1,000,000 bytes"),
            (b'{"max_context": NaN}', "max_context"),
        ],
    )
    def test_a_broken_file_says_what_why_and_the_way_out(self, tmp_path: Path, content: bytes, cause: str) -> None:
        path = tmp_path / "config.json"
        path.write_bytes(content)
        error = failure(lambda: load_config(path, {}))
        assert error.message.startswith(str(path))
        assert cause in error.cause
        assert "nexi --edit-config" in error.fix
        assert error.exit_code == 2

    def test_a_folder_or_a_pipe_in_its_place_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        os.mkfifo(tmp_path / "pipe")
        for name in ("folder", "pipe"):
            error = failure(lambda name=name: load_config(tmp_path / name, {}))
            assert (error.code, str(tmp_path / name) in error.message) == ("config", True)

    def test_a_file_that_may_not_be_read_is_an_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(path: Path, mode: str) -> NoReturn:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        (tmp_path / "config.json").touch()
        monkeypatch.setattr(Path, "open", refuse)
        error = failure(lambda: load_config(tmp_path / "config.json", {}))
        assert (str(tmp_path / "config.json") in error.message, error.cause) == (True, "Permission denied")

    def test_a_file_under_a_file_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert failure(lambda: load_config(tmp_path / "file" / "config.json", {})).cause == "Not a directory"

    def test_unknown_settings_are_noted(self, tmp_path: Path) -> None:
        config = loaded(tmp_path, {"modle": "x", "model": "m"})
        assert config.notes == (f'{tmp_path / "config.json"}: unknown setting "modle"; did you mean model?',)

    @pytest.mark.parametrize(
        ("data", "noted"),
        [
            ({"api_key": "k"}, True),
            ({"api_keys": {"brave": "k"}}, True),
            ({"roles": {"judge": {"api_key": "k"}}}, True),
            ({"api_key": "", "model": "m"}, False),
        ],
    )
    def test_keys_that_others_can_read_are_noted(self, tmp_path: Path, data: object, noted: bool) -> None:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(data))
        path.chmod(0o644)
        note = f"{path} holds keys and other users can read it; run: chmod 600 {path}"
        assert load_config(path, {}).notes == ((note,) if noted else ())


class TestSaving:
    def test_gives_the_file_and_its_folder_to_the_owner_alone(self, tmp_path: Path) -> None:
        path = save_config(Config(api_key="k"), tmp_path / "new" / "config.json")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    def test_tightens_a_file_that_was_open(self, tmp_path: Path) -> None:
        path = tmp_path / "config.json"
        path.write_text("{}")
        path.chmod(0o644)
        save_config(Config(), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_and_loading_gives_the_same_settings(self, tmp_path: Path) -> None:
        config = Config(model="mödel", search_backend=("a", "b"), system_prompt="Sei kurz.\n", max_cost=0.5, home=tmp_path)
        save_config(config)
        assert load_config(tmp_path / "config.json", {}) == config

    def test_writes_the_documented_settings_and_others_only_where_they_differ(self, tmp_path: Path) -> None:
        path = save_config(Config(max_pages=9), tmp_path / "config.json")
        documented = {name: DEFAULT_CONFIG[name] for name in ALWAYS_SAVED}
        assert json.loads(path.read_text()) == {**documented, "max_pages": 9}

    def test_keeps_what_the_file_held_beyond_our_settings(self, tmp_path: Path) -> None:
        config = loaded(tmp_path, {"future": {"a": 1}, "prefetch": True, "odd": "\ud800"})
        data = json.loads(save_config(config.override(model="m")).read_text())
        assert (data["future"], data["prefetch"], data["odd"], data["model"]) == ({"a": 1}, True, "\ud800", "m")

    def test_writes_nothing_that_only_the_environment_said(self, tmp_path: Path) -> None:
        before = {"model": "file", "roles": {"extract": {"model": "e"}}}
        config = loaded(
            tmp_path,
            before,
            OPENAI_API_KEY="sk-secret",
            JINA_API_KEY="jina-secret",
            OPENAI_BASE_URL=LOCAL,
            NEXI_MODEL="env",
            MODEL_CHOICE="judge",
            SEARXNG_URL="http://s",
            NEXI_ALLOW_PRIVATE="localhost",
            HTTPS_PROXY="http://u:secret@p",
        )
        path = save_config(config)
        assert json.loads(path.read_text()) == {**{n: DEFAULT_CONFIG[n] for n in ALWAYS_SAVED}, **before}

    def test_through_a_link_keeps_the_link(self, tmp_path: Path) -> None:
        (tmp_path / "dotfiles").mkdir()
        link = tmp_path / "config.json"
        link.symlink_to(tmp_path / "dotfiles" / "nexi.json")
        save_config(Config(model="m"), link)
        assert link.is_symlink()
        assert load_config(link, {}).model == "m"

    @pytest.mark.parametrize("step", ["fsync", "open"])
    def test_that_fails_leaves_the_old_file_and_no_rest(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        path = save_config(Config(model="old"), tmp_path / "config.json")

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, step, full)
        with pytest.raises(StoreError) as caught:
            save_config(Config(model="new"), path)
        monkeypatch.undo()
        assert (str(path) in caught.value.message, caught.value.cause) == (True, "No space left on device")
        assert caught.value.fix
        assert [p.name for p in tmp_path.iterdir()] == ["config.json"]
        assert load_config(path, {}).model == "old"


class Dialogue:
    """Answers in order; the end of them is the end of the input."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.said: list[str] = []

    def ask(self, prompt: str) -> str:
        self.asked.append(prompt)
        if not self.answers:
            raise EOFError
        return self.answers.pop(0)

    def run(self, path: Path, **env: str) -> Config:
        return run_first_time_setup(path, env, ask=self.ask, ask_secret=self.ask, say=self.said.append)


class TestFirstRun:
    def test_asks_five_things_and_saves_them(self, tmp_path: Path) -> None:
        path = tmp_path / "config.json"
        config = Dialogue(LOCAL, "sk-1", "qwen", "jina-1", "l").run(path)
        expected = Config(base_url=LOCAL, api_key="sk-1", model="qwen", jina_key="jina-1", default_effort="l")
        assert config == expected
        assert load_config(path, {}) == expected

    @pytest.mark.parametrize(
        ("address", "given", "agreed", "starts"),
        [
            ("", "y", False, True),
            ("", "", False, False),
            ("", "", True, True),
            ("", "n", True, False),
            ("http://127.0.0.1:8888", None, False, False),
        ],
    )
    def test_a_container_is_started_only_after_a_yes(
        self, tmp_path: Path, address: str, given: str | None, agreed: bool, starts: bool
    ) -> None:
        path = save_config(Config(searxng_autostart=agreed), tmp_path / "config.json")
        lines = [address, *([] if given is None else [given])]
        prompts: list[str] = []
        config = run_first_time_setup(
            path,
            {},
            ask=lambda prompt: (prompts.append(prompt), lines.pop(0))[1],
            say=lambda text: None,
            questions=[SEARXNG_QUESTION],
            container_engine="podman",
        )
        assert (config.searxng_autostart, lines) == (starts, [])
        assert any("Start a SearXNG container with podman" in prompt for prompt in prompts) == (given is not None)

    def test_nobody_is_asked_for_a_container_who_has_a_searxng_or_no_engine(self, tmp_path: Path) -> None:
        for number, (engine, env) in enumerate((("", {}), ("podman", {"SEARXNG_URL": "http://127.0.0.1:8888"}))):
            config = run_first_time_setup(
                tmp_path / f"{number}.json",
                env,
                ask=lambda prompt: "" if "URL of your SearXNG" in prompt else pytest.fail(prompt),
                say=lambda text: None,
                questions=[SEARXNG_QUESTION],
                container_engine=engine,
            )
            assert config.searxng_autostart is False

    def test_enter_keeps_what_is_there_and_a_dash_removes_a_key(self, tmp_path: Path) -> None:
        path = save_config(Config(api_key="sk-0123456789", jina_key="jina-0123456789", model="m"), tmp_path / "config.json")
        dialogue = Dialogue("", "", "", "-", "")
        assert dialogue.run(path) == Config(api_key="sk-0123456789", model="m")
        assert "0123" not in " ".join(dialogue.asked + dialogue.said)

    def test_asks_again_after_a_bad_answer(self, tmp_path: Path) -> None:
        dialogue = Dialogue("openrouter", LOCAL, "", "m", "", "x", "s")
        assert dialogue.run(tmp_path / "config.json") == Config(base_url=LOCAL, model="m", default_effort="s")
        assert dialogue.said[1:3] == [
            "base_url must start with http:// or https:// and name a host",
            'default_effort must be one of s, m, l (got "x")',
        ]

    def test_neither_offers_nor_saves_what_the_environment_says(self, tmp_path: Path) -> None:
        path = tmp_path / "config.json"
        config = Dialogue("", "", "", "", "").run(path, OPENAI_API_KEY="sk-secret", NEXI_MODEL="env")
        assert config.model == "env"
        assert load_config(path, {}) == Config()
        assert "secret" not in path.read_text()

    def test_that_ends_early_saves_nothing_and_says_how_to_go_on(self, tmp_path: Path) -> None:
        error = failure(lambda: Dialogue(LOCAL).run(tmp_path / "config.json"))
        assert "nexi config setup" in error.fix
        assert list(tmp_path.iterdir()) == []

    def test_speaks_on_stderr_only(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("builtins.input", lambda: "")
        monkeypatch.setattr("getpass.getpass", lambda prompt, stream: "")
        assert run_first_time_setup(tmp_path / "config.json", {}) == Config()
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("These settings are saved in")

    def test_is_offered_only_at_a_terminal_and_only_without_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "config.json"
        wizard = Config(model="from the wizard")
        assert ensure_config(path, {}, interactive=True, setup=lambda *_: wizard) is wizard
        assert ensure_config(path, {}, interactive=False, setup=lambda *_: wizard) == Config()
        save_config(Config(model="saved"), path)
        assert ensure_config(path, {}, interactive=True, setup=lambda *_: wizard) == Config(model="saved")

    def test_does_not_wait_for_input_that_is_no_terminal(self, tmp_path: Path) -> None:
        code = "from nexi.config import ensure_config; import sys; sys.stdout.write(ensure_config().default_effort)"
        done = subprocess.run(
            [sys.executable, "-c", code], input="", env={"NEXI_HOME": str(tmp_path)}, capture_output=True, text=True, check=True
        )
        assert (done.stdout, done.stderr) == ("m", "")


class TestPromptFaces:
    def test_the_system_prompt_has_date_effort_and_iterations(self) -> None:
        text = get_system_prompt("l", today="Tuesday, 6 May 2031")
        assert "Today is Tuesday, 6 May 2031." in text
        assert "The effort level is l (Thorough research): you have at most 32 iterations" in text
        assert "at most 5 iterations" in get_system_prompt("l", 5)

    def test_an_unknown_effort_is_an_error(self) -> None:
        assert "s, m, l" in failure(lambda: get_system_prompt("xl")).fix

    def test_own_words_come_first_and_the_rules_stay(self, tmp_path: Path) -> None:
        text = get_system_prompt("s", today="today", config=Config(home=tmp_path, system_prompt="Use {curly} braces."))
        assert text.startswith("Use {curly} braces.\n")
        assert "[1]" in text
        assert "at most 8 iterations" in text

    def test_an_own_file_replaces_the_prompt(self, tmp_path: Path) -> None:
        (tmp_path / "prompts").mkdir()
        (tmp_path / "prompts" / "system.md").write_text("{today} {effort} {description} {max_iter}")
        assert get_system_prompt("m", 3, today="now", config=Config(home=tmp_path)) == "now m Balanced 3"

    def test_the_compaction_prompt_holds_query_content_and_target(self) -> None:
        text = get_compaction_prompt("why?", "because {of} this", 300)
        for words in ("why?", "because {of} this", "at most 300 words", "PRESERVE EXACTLY", "MERGE"):
            assert words in text
        assert "at most 5000 words" in get_compaction_prompt("q", "c")

    def test_the_extractor_prompt_holds_query_and_instructions(self) -> None:
        assert "What to look for: prices" in get_extractor_prompt("q", "prices")
        assert "What to look for: Answer the question." in get_extractor_prompt("q")

    def test_the_templates_have_their_documented_names(self) -> None:
        assert "{max_iter}" in module.DEFAULT_SYSTEM_PROMPT_TEMPLATE
        assert "{instructions}" in module.EXTRACTOR_PROMPT_TEMPLATE
        assert "{target_words}" in module.COMPACTION_PROMPT_TEMPLATE
        with pytest.raises(AttributeError):
            _ = module.NO_SUCH_TEMPLATE


def test_importing_the_configuration_loads_nothing_heavy() -> None:
    code = "import sys, nexi.config; sys.stdout.write(' '.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "difflib", "getpass", "httpx2", "importlib.resources", "nexi.prompts", "pkgutil", "tempfile"}
    assert heavy & set(done.stdout.split()) == set()
