"""The settings are the seed's, by name and by default."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from nexi.errors import ConfigError
from nexi.knowledge.agentic import RANGES, VARIABLES, AgenticSearch, KnowledgeSettings
from nexi.knowledge.judge import REFINER_TEMPERATURE
from tests.raising import has_code

SEED = {
    "AGENTIC_SEARCH_ENABLED": True,
    "AGENTIC_SEARCH_COMPLETENESS_THRESHOLD": 0.8,
    "AGENTIC_SEARCH_MAX_ITERATIONS": 3,
    "AGENTIC_SEARCH_MAX_URLS_PER_ITERATION": 3,
    "AGENTIC_SEARCH_URL_SCORE_THRESHOLD": 0.7,
    "AGENTIC_SEARCH_USE_SEARCH_HINTS": False,
    "AGENTIC_SEARCH_LLM_TEMPERATURE": 0.3,
    "AGENTIC_SEARCH_MAX_QDRANT_RESULTS": 10,
    "AGENTIC_SEARCH_CONCURRENCY": 3,
    "AGENTIC_SEARCH_MAX_PAGE_AGE_DAYS": 30,
    "USE_CONTEXTUAL_EMBEDDINGS": False,
    "USE_HYBRID_SEARCH": True,
    "USE_RERANKING": False,
    "USE_AGENTIC_RAG": False,
}


def test_every_variable_of_the_seed_is_a_setting_with_its_default() -> None:
    defaults = msgspec.structs.asdict(KnowledgeSettings())
    assert {variable: defaults[name] for variable, name in VARIABLES.items()} == SEED
    assert set(VARIABLES.values()) == set(defaults) - {"follows_pages"}
    assert REFINER_TEMPERATURE == 0.5


def begin_search(name: str, value: float) -> None:
    parts: dict[str, Any] = dict.fromkeys(("retriever", "indexer", "judge", "web", "emit"), SimpleNamespace(has_model=False))
    parts["settings"] = KnowledgeSettings(**{name: value})
    AgenticSearch("moon", **parts)


@pytest.mark.parametrize(("name", "bounds"), RANGES.items())
def test_a_value_out_of_its_range_is_refused_and_its_bounds_are_not(name: str, bounds: tuple[float, float]) -> None:
    low, high = bounds
    for fine in bounds:
        begin_search(name, fine)
    for bad in (low - 1, high + 1, float("nan"), float("inf")):
        with pytest.raises(ConfigError, check=has_code("config", name)):
            begin_search(name, bad)
