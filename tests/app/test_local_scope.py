"""Scope `local`, setting by setting: what is on this machine stays, what is elsewhere is left out, and the user is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nexi.app.local_scope import MODEL_NOT_ASKED, ROLE_NOT_ASKED, restrict_to_local
from nexi.config import Config
from nexi.errors import ConfigError

Make = Callable[..., Config]
HERE = "http://127.0.0.1:11434/v1"
ELSEWHERE = "http://192.0.2.7:8000/v1"
ROLES = ("answer", "extract", "judge")


def models_of(config: Config) -> list[str]:
    return [config.endpoint(role).model for role in ROLES]  # type: ignore[arg-type]


def test_a_model_of_this_machine_is_asked_and_nothing_is_said(make_config: Make) -> None:
    config, notices = restrict_to_local(make_config(base_url=HERE, model="llama"))
    assert (models_of(config), config.knowledge, notices) == (["llama"] * 3, True, ())


def test_a_model_elsewhere_is_not_asked_in_any_role(make_config: Make) -> None:
    config, notices = restrict_to_local(make_config(base_url=ELSEWHERE, model="large", api_key="k"))
    assert (models_of(config), notices) == (["extractive"] * 3, (MODEL_NOT_ASKED,))


def test_a_model_elsewhere_for_answers_alone_is_not_asked(make_config: Make) -> None:
    roles = {"answer": {"base_url": ELSEWHERE, "model": "large", "api_key": "k"}}
    config, notices = restrict_to_local(make_config(base_url=HERE, model="llama", roles=roles))
    assert (config.endpoint("answer").model, notices) == ("extractive", (MODEL_NOT_ASKED,))


@pytest.mark.parametrize(
    ("role", "models"), [("extract", ["llama", "extractive", "llama"]), ("judge", ["llama", "llama", "extractive"])]
)
def test_a_helper_elsewhere_is_left_out_and_the_model_of_this_machine_stays(
    make_config: Make, role: str, models: list[str]
) -> None:
    roles = {role: {"base_url": ELSEWHERE, "model": "large", "api_key": "k"}}
    config, notices = restrict_to_local(make_config(base_url=HERE, model="llama", roles=roles))
    assert (models_of(config), notices) == (models, (ROLE_NOT_ASKED,))


@pytest.mark.parametrize(
    ("settings", "is_hybrid"),
    [
        ({"embedding_base_url": ELSEWHERE, "embedding_model": "e"}, False),
        ({"embedding_base_url": HERE, "embedding_model": "e"}, True),
        ({"embedding_model": "fastembed:BAAI/bge-small-en-v1.5"}, False),
        ({"embedding_model": "e5:small"}, True),
        ({}, True),
    ],
)
def test_an_embedder_that_is_elsewhere_or_would_be_fetched_is_not_used(
    make_config: Make, settings: dict[str, Any], is_hybrid: bool
) -> None:
    config, _ = restrict_to_local(make_config(base_url=HERE, model="llama", **settings))
    assert config.use_hybrid_search is is_hybrid


@pytest.mark.parametrize("name", ["otel_endpoint", "webhook_url"])
def test_traces_and_webhooks_go_to_this_machine_only(make_config: Make, name: str) -> None:
    here, _ = restrict_to_local(make_config(**{name: "http://127.0.0.1:4318"}))
    elsewhere, _ = restrict_to_local(make_config(**{name: "http://192.0.2.7:4318"}))
    assert (getattr(here, name), getattr(elsewhere, name)) == ("http://127.0.0.1:4318", "")


def test_a_knowledge_store_elsewhere_refuses_a_local_question(make_config: Make) -> None:
    with pytest.raises(ConfigError) as refusal:
        restrict_to_local(make_config(qdrant_url="http://192.0.2.7:6333"))
    assert refusal.value.cause == "qdrant_url is on another machine"
    assert restrict_to_local(make_config(qdrant_url="http://127.0.0.1:6333"))[0].qdrant_url == "http://127.0.0.1:6333"
    team = make_config(qdrant_url="http://192.0.2.7:6333", person="ann")
    assert restrict_to_local(team)[0].qdrant_url == "http://192.0.2.7:6333"
