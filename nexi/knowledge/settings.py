"""The settings of a knowledge search, with the defaults of the seed.

Config fills it from the environment variables named beside each field; engines only read it.
"""

from __future__ import annotations

import math

from msgspec import Struct

from nexi.errors import ConfigError

REFINER_TEMPERATURE = 0.5


class KnowledgeSettings(Struct, frozen=True):
    """AGENTIC_SEARCH_* are the first ten, USE_* the four after them."""

    enabled: bool = True
    completeness_threshold: float = 0.8
    max_iterations: int = 3
    max_urls_per_iteration: int = 3
    url_score_threshold: float = 0.7
    use_search_hints: bool = False
    llm_temperature: float = 0.3
    max_qdrant_results: int = 10
    concurrency: int = 3
    max_page_age_days: int = 30
    use_contextual_embeddings: bool = False
    use_hybrid_search: bool = True
    use_reranking: bool = False
    use_agentic_rag: bool = False
    follows_pages: bool = True  # without a model; a run recorded before this goes on as it began


_NAMES = KnowledgeSettings.__struct_fields__
VARIABLES = {f"AGENTIC_SEARCH_{name.upper()}": name for name in _NAMES[:10]} | {name.upper(): name for name in _NAMES[10:14]}
RANGES = {
    "completeness_threshold": (0.0, 1.0),
    "url_score_threshold": (0.0, 1.0),
    "llm_temperature": (0.0, 2.0),
    "max_iterations": (1, 20),
    "max_urls_per_iteration": (1, 20),
    "max_qdrant_results": (1, 100),
    "concurrency": (1, 20),
    "max_page_age_days": (0, 36_500),
}


def check_settings(settings: KnowledgeSettings) -> None:
    """Raises ConfigError for the first value that is out of its range."""
    for name, (low, high) in RANGES.items():
        value = getattr(settings, name)
        if not math.isfinite(value) or not low <= value <= high:
            raise ConfigError(f"{name} is {value}", cause="it is out of range", fix=f"give a number from {low} to {high}")
