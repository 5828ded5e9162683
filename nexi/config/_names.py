"""Constants of the configuration: defaults, providers, effort levels, and the environment variables that are no settings."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

EndpointRole: TypeAlias = Literal["answer", "extract", "judge"]
Keys: TypeAlias = tuple[str, ...]
DEFAULT_BASE_URL = "https://openrouter.ai/api/v1"
DEFAULT_MODEL = "google/gemini-2.5-flash-lite"
EXTRACTIVE = "extractive"
EMBEDDING_MODEL = "text-embedding-3-small"
EMBEDDING_LIBRARIES = ("e5:", "minilm:", "model2vec:", "fastembed:")  # prefixes of models that run on this machine
ROLES: tuple[EndpointRole, ...] = ("answer", "extract", "judge")
REQUIRED = ("base_url", "api_key", "model", "default_effort", "max_output_tokens")
OLD_NAMES = {"max_timeout": "time_target"}
FREE_BACKENDS = ("services",)
KEYED_BACKENDS = ("jina", "tavily", "brave", "exa", "serper", "firecrawl")
KEY_HOSTS = {"openrouter.ai": "openrouter", "api.openai.com": "openai"}
_KEY_OWNERS = ("openai", "openrouter", *KEYED_BACKENDS, "stackexchange", "qdrant")
KEY_VARIABLES = {**{owner: f"{owner.upper()}_API_KEY" for owner in _KEY_OWNERS}, "embedding": "NEXI_EMBEDDING_API_KEY"}
ALWAYS = "always"  # value of serve_token
GUEST_PERSON = "guest"  # whose files are those of callers that a server does not know
GUEST_KEEP_DAYS = 1
PRIVATE_BACKENDS = ("ripgrep",)  # they search files of the owner
JUDGE_VARIABLE = "MODEL_CHOICE"
PLACE_VARIABLES = ("NEXI_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA", "USERPROFILE")
EDIT_FIX = "run `nexi --edit-config` to fix it, or delete the file to start from the defaults"


class EffortLevel(TypedDict):
    max_iter: int
    description: str


EFFORT_LEVELS: dict[str, EffortLevel] = {
    "s": {"max_iter": 8, "description": "Quick search"},
    "m": {"max_iter": 16, "description": "Balanced"},
    "l": {"max_iter": 32, "description": "Thorough research"},
}


@cache
def _read_service_names() -> dict[str, str]:
    names: dict[str, str] = json.loads(Path(__file__).with_name("service_names.json").read_bytes())
    return names


def name_service(backend: str) -> str:
    return _read_service_names().get(backend, backend.capitalize())
