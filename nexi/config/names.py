"""The words of the configuration: defaults, providers, effort levels, and the variables of the environment by name.

Everything else in this package reads them; they know nothing of it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

EndpointRole: TypeAlias = Literal["answer", "extract", "judge"]
Keys: TypeAlias = tuple[str, ...]
DEFAULT_BASE_URL = "https://openrouter.ai/api/v1"
DEFAULT_MODEL = "google/gemini-2.5-flash-lite"
EXTRACTIVE = "extractive"
EMBEDDING_MODEL = "text-embedding-3-small"
EMBEDDING_LIBRARIES = ("model2vec:", "fastembed:")  # what a model of this machine begins with
ROLES = ("answer", "extract", "judge")
REQUIRED = ("base_url", "api_key", "model", "default_effort", "max_output_tokens")
OLD_NAMES = {"max_timeout": "time_target"}
FREE_BACKENDS = ("duckduckgo", "wikipedia")
KEYED_BACKENDS = ("jina", "tavily", "brave", "exa", "serper", "firecrawl")
KEY_HOSTS = {"openrouter.ai": "openrouter", "api.openai.com": "openai"}
KEY_VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "jina": "JINA_API_KEY",
    "tavily": "TAVILY_API_KEY",
    "brave": "BRAVE_API_KEY",
    "exa": "EXA_API_KEY",
    "serper": "SERPER_API_KEY",
    "firecrawl": "FIRECRAWL_API_KEY",
    "stackexchange": "STACKEXCHANGE_API_KEY",
    "qdrant": "QDRANT_API_KEY",
    "embedding": "NEXI_EMBEDDING_API_KEY",
}
FIELD_VARIABLES = {
    "base_url": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "model": ("NEXI_MODEL", "OPENAI_MODEL"),
    "searxng_url": ("SEARXNG_URL", "SEARXNG_API_URL", "SEARXNG_QUERY_URL", "SEARX_URL"),
    "searxng_tag": ("SEARXNG_IMAGE_TAG",),
    "allow_private": ("NEXI_ALLOW_PRIVATE",),
    "token": ("NEXI_TOKEN",),
    "http_proxy": ("http_proxy", "HTTP_PROXY"),
    "https_proxy": ("https_proxy", "HTTPS_PROXY"),
    "no_proxy": ("no_proxy", "NO_PROXY"),
    "ssl_cert_file": ("SSL_CERT_FILE",),
    "ssl_cert_dir": ("SSL_CERT_DIR",),
    "qdrant_url": ("QDRANT_URL",),
    "embedding_base_url": ("NEXI_EMBEDDING_BASE_URL",),
    "embedding_model": ("NEXI_EMBEDDING_MODEL",),
    "contextual_embedding_model": ("CONTEXTUAL_EMBEDDING_MODEL",),
    "agentic_search_enabled": ("AGENTIC_SEARCH_ENABLED",),
    "agentic_search_completeness_threshold": ("AGENTIC_SEARCH_COMPLETENESS_THRESHOLD",),
    "agentic_search_max_iterations": ("AGENTIC_SEARCH_MAX_ITERATIONS",),
    "agentic_search_max_urls_per_iteration": ("AGENTIC_SEARCH_MAX_URLS_PER_ITERATION",),
    "agentic_search_url_score_threshold": ("AGENTIC_SEARCH_URL_SCORE_THRESHOLD",),
    "agentic_search_use_search_hints": ("AGENTIC_SEARCH_USE_SEARCH_HINTS",),
    "agentic_search_llm_temperature": ("AGENTIC_SEARCH_LLM_TEMPERATURE",),
    "agentic_search_max_qdrant_results": ("AGENTIC_SEARCH_MAX_QDRANT_RESULTS",),
    "use_contextual_embeddings": ("USE_CONTEXTUAL_EMBEDDINGS",),
    "use_hybrid_search": ("USE_HYBRID_SEARCH",),
    "use_reranking": ("USE_RERANKING",),
    "use_agentic_rag": ("USE_AGENTIC_RAG",),
}
JUDGE_VARIABLE = "MODEL_CHOICE"
PLACE_VARIABLES = ("NEXI_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA", "USERPROFILE")
EDIT_FIX = "run `nexi --edit-config` to mend it, or delete the file to start from the defaults"


class EffortLevel(TypedDict):
    max_iter: int
    description: str


EFFORT_LEVELS: dict[str, EffortLevel] = {
    "s": {"max_iter": 8, "description": "Quick search"},
    "m": {"max_iter": 16, "description": "Balanced"},
    "l": {"max_iter": 32, "description": "Thorough research"},
}
