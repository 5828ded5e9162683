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
}
FIELD_VARIABLES = {
    "base_url": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "model": ("NEXI_MODEL", "OPENAI_MODEL"),
    "searxng_url": ("SEARXNG_URL", "SEARXNG_API_URL", "SEARXNG_QUERY_URL", "SEARX_URL"),
    "searxng_tag": ("SEARXNG_IMAGE_TAG",),
    "allow_private": ("NEXI_ALLOW_PRIVATE",),
    "http_proxy": ("http_proxy", "HTTP_PROXY"),
    "https_proxy": ("https_proxy", "HTTPS_PROXY"),
    "no_proxy": ("no_proxy", "NO_PROXY"),
    "ssl_cert_file": ("SSL_CERT_FILE",),
    "ssl_cert_dir": ("SSL_CERT_DIR",),
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
