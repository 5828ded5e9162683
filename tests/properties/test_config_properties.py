"""What holds of every configuration: checks never crash, dictionaries survive, keys stay hidden and at home."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexi.config import CHECKS, Config, describe_unknown_keys, load_config, save_config, validate_config
from nexi.config.fields import SAVED
from nexi.errors import ConfigError
from nexi.prompts import placeholders, render

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.just(10**500),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
names = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True)
keys = st.from_regex(r"[A-Za-z0-9_-]{16,40}", fullmatch=True)
hosts = st.sampled_from(
    ["https://openrouter.ai/api/v1", "https://api.openai.com/v1", "http://127.0.0.1:1/v1", "https://m.example/v1"]
)
good = st.fixed_dictionaries(
    {},
    optional={
        "base_url": hosts,
        "api_key": keys | st.just(""),
        "model": names,
        "jina_key": keys,
        "default_effort": st.sampled_from("sml"),
        "time_target": st.none() | st.integers(1, 10**6),
        "max_context": st.integers(1, 10**9),
        "auto_compact_thresh": st.floats(0, 1),
        "preserve_last_n_messages": st.integers(0, 99),
        "search_backend": names | st.lists(names, max_size=3),
        "api_keys": st.dictionaries(names, keys | st.lists(keys, max_size=3), max_size=3),
        "roles": st.dictionaries(
            st.sampled_from(["answer", "extract", "judge"]),
            st.fixed_dictionaries(
                {}, optional={"base_url": hosts, "api_key": keys, "model": names, "max_context": st.integers(1, 99)}
            ),
        ),
        "allow_private": st.lists(names, max_size=3),
        "prefetch": st.booleans(),
        "max_cost": st.none() | st.floats(0.01, 100),
        "system_prompt": st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40),
    },
)
quick = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def secrets_of(data: dict[str, Any], env: dict[str, str]) -> set[str]:
    listed = [k for v in data.get("api_keys", {}).values() for k in ([v] if isinstance(v, str) else v)]
    own = [part.get("api_key", "") for part in data.get("roles", {}).values()]
    return {k for k in [data.get("api_key", ""), data.get("jina_key", ""), *listed, *own, *env.values()] if k}


@quick
@given(st.dictionaries(st.sampled_from(sorted(CHECKS)) | st.text(max_size=12), anything, max_size=8))
def test_checking_anything_gives_messages_that_name_the_field_and_never_an_exception(data: dict[str, Any]) -> None:
    ok, messages = validate_config(data)
    assert ok == (not messages)
    assert all(message.split(" ")[0].split(".")[0] in CHECKS for message in messages)
    assert len(describe_unknown_keys(data)) == len(set(data) - set(CHECKS))


@quick
@given(st.dictionaries(st.sampled_from(sorted(CHECKS)), anything, max_size=6))
def test_what_passes_the_checks_can_be_built_used_and_written(data: dict[str, Any]) -> None:
    try:
        config = Config.from_dict(data)
    except ConfigError:
        return
    assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert config.search_chain()
    assert config.fetch_chain()
    assert repr(config).startswith("Config(")


@quick
@given(good)
def test_a_good_configuration_survives_its_dictionary(data: dict[str, Any]) -> None:
    config = Config.from_dict(data)
    assert Config.from_dict(config.to_dict()) == config
    assert tuple(config.to_dict()) == SAVED


@quick
@given(good, st.fixed_dictionaries({}, optional={"OPENAI_API_KEY": keys, "OPENROUTER_API_KEY": keys, "JINA_API_KEY": keys}))
def test_keys_are_in_no_text_and_environment_keys_in_no_file(data: dict[str, Any], env: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(data))
        config = load_config(path, env)
        saved = save_config(config).read_text()
        assert load_config(path, {}) == Config.from_dict(data)
    shown = repr(config) + json.dumps(config.to_masked_dict(), ensure_ascii=False) + " ".join(config.notes)
    assert not any(key in shown for key in secrets_of(data, env))
    assert not any(key in saved for key in env.values() if key not in json.dumps(data))


@quick
@given(good, keys, keys)
def test_provider_keys_of_the_environment_reach_only_their_own_host(data: dict[str, Any], openai: str, openrouter: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(data))
        config = load_config(path, {"OPENAI_API_KEY": f"oa.{openai}", "OPENROUTER_API_KEY": f"or.{openrouter}"})
    for role in ("answer", "extract", "judge"):
        endpoint = config.endpoint(role)
        if f"or.{openrouter}" in endpoint.api_keys:
            assert endpoint.base_url == "https://openrouter.ai/api/v1"
        if f"oa.{openai}" in endpoint.api_keys:
            assert "openrouter.ai" not in endpoint.base_url


@quick
@given(st.text(max_size=60), st.text(max_size=60))
def test_a_value_comes_out_of_a_prompt_as_it_went_in(query: str, instructions: str) -> None:
    assert f"Question: {query}\n\nWhat to look for: {instructions}\n" in render(
        "extractor", query=query, instructions=instructions
    )


@quick
@given(st.lists(st.sampled_from([("{{", "{"), ("}}", "}"), ("{problem}", "{x}"), ("word", "word"), ("\n", "\n")]), max_size=12))
def test_a_template_comes_out_piece_by_piece(pieces: list[tuple[str, str]]) -> None:
    written = "!" + "".join(source for source, _ in pieces) + "!"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "force_answer.md").write_text(written)
        values = {"problem": "{x}"} if placeholders(written) else {}
        assert render("force_answer", folder=Path(folder), **values) == "!" + "".join(result for _, result in pieces) + "!"
