"""Every variable of the seed's knowledge search: its setting, its default, and what it does to the settings of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nexi.app.knowledge import settings_of
from nexi.config import load_config
from nexi.errors import ConfigError
from nexi.knowledge.agentic import VARIABLES, KnowledgeSettings
from tests.raising import has_code

TABLE = [
    ("AGENTIC_SEARCH_ENABLED", True, "false", False),
    ("AGENTIC_SEARCH_COMPLETENESS_THRESHOLD", 0.8, "0.55", 0.55),
    ("AGENTIC_SEARCH_MAX_ITERATIONS", 3, "5", 5),
    ("AGENTIC_SEARCH_MAX_URLS_PER_ITERATION", 3, "1", 1),
    ("AGENTIC_SEARCH_URL_SCORE_THRESHOLD", 0.7, "0", 0.0),
    ("AGENTIC_SEARCH_USE_SEARCH_HINTS", False, "true", True),
    ("AGENTIC_SEARCH_LLM_TEMPERATURE", 0.3, "0.9", 0.9),
    ("AGENTIC_SEARCH_MAX_QDRANT_RESULTS", 10, "25", 25),
    ("AGENTIC_SEARCH_CONCURRENCY", 3, "1", 1),
    ("AGENTIC_SEARCH_MAX_PAGE_AGE_DAYS", 30, "0", 0),
    ("USE_CONTEXTUAL_EMBEDDINGS", False, "on", True),
    ("USE_HYBRID_SEARCH", True, "0", False),
    ("USE_RERANKING", False, "1", True),
    ("USE_AGENTIC_RAG", False, "Yes", True),
]
WRONG = [
    ("AGENTIC_SEARCH_ENABLED", "perhaps"),
    ("AGENTIC_SEARCH_COMPLETENESS_THRESHOLD", "1.5"),
    ("AGENTIC_SEARCH_COMPLETENESS_THRESHOLD", "nan"),
    ("AGENTIC_SEARCH_MAX_ITERATIONS", "0"),
    ("AGENTIC_SEARCH_MAX_ITERATIONS", "2.5"),
    ("AGENTIC_SEARCH_MAX_URLS_PER_ITERATION", "21"),
    ("AGENTIC_SEARCH_URL_SCORE_THRESHOLD", "-0.1"),
    ("AGENTIC_SEARCH_LLM_TEMPERATURE", "warm"),
    ("AGENTIC_SEARCH_MAX_QDRANT_RESULTS", "inf"),
    ("USE_HYBRID_SEARCH", "2"),
    ("QDRANT_URL", "qdrant:6333"),
    ("NEXI_EMBEDDING_BASE_URL", "not an address"),
]


def test_the_table_has_every_variable_of_the_engine() -> None:
    assert {row[0] for row in TABLE} == set(VARIABLES)


@pytest.mark.parametrize(("variable", "default", "text", "value"), TABLE, ids=lambda v: v if isinstance(v, str) else "")
def test_a_variable_has_its_default_and_its_effect(variable: str, default: Any, text: str, value: Any, tmp_path: Path) -> None:
    home = {"NEXI_HOME": str(tmp_path)}
    name = VARIABLES[variable]
    unset, given = settings_of(load_config(env=home)), settings_of(load_config(env={**home, variable: text}))
    assert (getattr(unset, name), getattr(given, name)) == (default, value)
    assert unset == KnowledgeSettings()
    assert given == KnowledgeSettings(**{name: value})


@pytest.mark.parametrize(("variable", "text"), WRONG)
def test_a_variable_that_makes_no_sense_is_refused_by_name(variable: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=has_code("config")) as refused:
        load_config(env={"NEXI_HOME": str(tmp_path), variable: text})
    assert variable in refused.value.cause


def test_the_embedding_endpoint_comes_from_its_own_variables(tmp_path: Path) -> None:
    env = {
        "NEXI_HOME": str(tmp_path),
        "NEXI_EMBEDDING_BASE_URL": "http://127.0.0.1:7997/v1",
        "NEXI_EMBEDDING_MODEL": "bge-small",
        "NEXI_EMBEDDING_API_KEY": "secret-of-embeddings",
        "OPENAI_API_KEY": "another-key",
    }
    endpoint = load_config(env=env).embedding_endpoint()
    assert endpoint is not None
    assert (endpoint.base_url, endpoint.model, endpoint.api_keys) == (
        "http://127.0.0.1:7997/v1", "bge-small", ("secret-of-embeddings",),
    )  # fmt: skip


def test_an_address_alone_has_the_seeds_model_and_gets_no_key_of_another_host(tmp_path: Path) -> None:
    env = {"NEXI_HOME": str(tmp_path), "NEXI_EMBEDDING_BASE_URL": "http://127.0.0.1:7997/v1", "OPENAI_API_KEY": "another-key"}
    endpoint = load_config(env=env).embedding_endpoint()
    assert endpoint is not None
    assert (endpoint.model, endpoint.api_keys) == ("text-embedding-3-small", ())


def test_a_model_alone_is_asked_of_the_main_address_with_its_key(tmp_path: Path) -> None:
    env = {
        "NEXI_HOME": str(tmp_path),
        "NEXI_EMBEDDING_MODEL": "text-embedding-3-large",
        "OPENAI_BASE_URL": "https://api.openai.com/v1",
        "OPENAI_API_KEY": "the-key",
    }
    endpoint = load_config(env=env).embedding_endpoint()
    assert endpoint is not None
    assert (endpoint.base_url, endpoint.api_keys) == ("https://api.openai.com/v1", ("the-key",))


def test_nothing_named_means_no_endpoint(tmp_path: Path) -> None:
    assert load_config(env={"NEXI_HOME": str(tmp_path)}).embedding_endpoint() is None


def test_the_judge_and_the_contextual_model_are_their_own_variables(tmp_path: Path) -> None:
    env = {
        "NEXI_HOME": str(tmp_path),
        "MODEL_CHOICE": "gpt-4o-mini",
        "CONTEXTUAL_EMBEDDING_MODEL": "small",
        "OPENROUTER_API_KEY": "k",
    }
    config = load_config(env=env)
    assert (config.endpoint("judge").model, config.contextual_embedding_model) == ("gpt-4o-mini", "small")
