"""Settings: every field with its default, and the form a value is kept in.

Below the checks and `Config`; whether a value is right, and what follows from it, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any

from nexi.config.addresses import ADDRESS_FORMS
from nexi.config.names import DEFAULT_BASE_URL, DEFAULT_MODEL, EXTRACTIVE, OLD_NAMES, Keys
from nexi.values import frozen


@frozen
class Origin:
    """Where a loaded Config came from: what the file said, and what the environment laid over it."""

    path: Path | None = None
    file: Mapping[str, Any] = field(default_factory=dict, repr=False)
    env: Mapping[str, Any] = field(default_factory=dict, repr=False)
    env_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    home: Path | None = None
    cache: Path | None = None


@frozen
class Settings:
    """Every setting with its default. The first block is the file as it always was; the second may be left out of it."""

    base_url: str = DEFAULT_BASE_URL
    api_key: str = ""
    model: str = DEFAULT_MODEL
    jina_key: str = ""
    default_effort: str = "m"
    time_target: int | None = None
    max_output_tokens: int = 8192
    max_context: int = 128_000
    auto_compact_thresh: float = 0.9
    compact_target_words: int = 5000
    preserve_last_n_messages: int = 3
    tokenizer_encoding: str = "cl100k_base"
    jina_timeout: float = 30
    llm_max_retries: int = 3

    search_backend: str | tuple[str, ...] = ""
    content_fetcher: str | tuple[str, ...] = ""
    api_keys: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    searxng_url: str = ""
    searxng_autostart: bool = False
    searxng_image: str = "searxng/searxng"
    searxng_tag: str = "latest"
    searxng_port: int = 0
    grep_root: str = ""
    roles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    allow_private: tuple[str, ...] = ()
    respect_robots: bool = True
    prefetch: bool = True
    strict: bool = False
    verify_judge: bool = False
    stream: bool = True
    suggestions: bool = True
    color: bool = True
    max_pages: int = 60
    max_cost: float | None = None
    max_tokens: int | None = None
    max_model_calls: int | None = None
    fetch_timeout: float = 20
    search_timeout: float = 10
    llm_timeout: float = 120
    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: str = ""
    ssl_cert_file: str = ""
    ssl_cert_dir: str = ""
    runs_keep_days: int = 30
    pages_max_mb: int = 1024
    page_cache: bool = True
    page_cache_ttl_s: float = 86400
    system_prompt: str = ""
    token: str = ""
    serve_hosts: tuple[str, ...] = ()
    knowledge: bool = True
    knowledge_max_mb: int = 2048
    knowledge_chunk_size: int = 1200
    qdrant_url: str = ""
    qdrant_shards: int = 0
    qdrant_replicas: int = 1
    embedding_base_url: str = ""
    embedding_model: str = ""
    contextual_embedding_model: str = ""
    agentic_search_enabled: bool = True
    agentic_search_completeness_threshold: float = 0.8
    agentic_search_max_iterations: int = 3
    agentic_search_max_urls_per_iteration: int = 3
    agentic_search_url_score_threshold: float = 0.7
    agentic_search_use_search_hints: bool = False
    agentic_search_llm_temperature: float = 0.3
    agentic_search_max_qdrant_results: int = 10
    use_contextual_embeddings: bool = False
    use_hybrid_search: bool = True
    use_reranking: bool = False
    use_agentic_rag: bool = False

    home: Path | None = field(default=None, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    origin: Origin = field(default=Origin(), compare=False)


UNSAVED = ("home", "notes", "origin")
SAVED = tuple(f.name for f in fields(Settings) if f.name not in UNSAVED)
ALWAYS_SAVED = SAVED[: SAVED.index("search_backend")]


def normal(name: str, value: Any) -> Any:
    """A setting in the form it is kept in: trimmed, lists as tuples, mappings as copies of our own."""
    if name in UNSAVED:
        return Path(value) if name == "home" and value is not None else value
    if name in ("jina_key", "api_key", "system_prompt") and value is None:
        return ""
    if name in ("allow_private", "serve_hosts"):
        return as_names(value)
    if name in ADDRESS_FORMS and isinstance(value, str):
        return ADDRESS_FORMS[name](value.strip())
    return value if name == "system_prompt" else frozen_copy(value)


def frozen_copy(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | tuple):
        return tuple(frozen_copy(item) for item in value)
    return {str(k): frozen_copy(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return {k: plain(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def known(data: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among `data` under their present names; a new name wins over its old one."""
    old = {OLD_NAMES[k]: v for k, v in data.items() if k in OLD_NAMES}
    return {**old, **{k: v for k, v in data.items() if k in SAVED}}


def as_names(value: str | Iterable[str]) -> tuple[str, ...]:
    """A name, names between commas, or a list of names."""
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(part.strip() for part in parts if part.strip())


def as_keys(value: str | Iterable[str]) -> Keys:
    return (value,) if isinstance(value, str) else tuple(value)


def distinct(*keys: str) -> Keys:
    return tuple(dict.fromkeys(key for key in keys if key))


def roles_under(roles: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The roles that remain when a stronger source names the model or the address: the answer role gives way.

    Naming the extractive model asks for no model at all, so then every role gives way.
    """
    if given.get("model") == EXTRACTIVE:
        return {}
    hidden = {"model"} & set(given) | ({"base_url", "api_key"} if "base_url" in given else set())
    return {role: {k: v for k, v in part.items() if role != "answer" or k not in hidden} for role, part in roles.items()}
