"""Settings: every setting, declared once.

A declaration gives the type, the default, the check, the environment variables, and the form in which the value is kept and
shown. Names, checks and environment follow from it. What each setting means is in docs/configuration.md, which a test compares
with the declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from nexi.config import _checks
from nexi.config._names import DEFAULT_BASE_URL, DEFAULT_MODEL, OLD_NAMES, REQUIRED
from nexi.config._values import (
    freeze_value,
    hide_password,
    mask_api_keys,
    mask_key,
    mask_roles,
    parse_key,
    parse_names,
    parse_proxy_url,
    parse_searxng_url,
    to_json_value,
)

__all__ = [
    "ALWAYS_SAVED",
    "CHECKS",
    "DECLARATIONS",
    "FIELD_VARIABLES",
    "LIST_SETTINGS",
    "NAME_OR_LIST_SETTINGS",
    "SAVED",
    "SECRET_SETTINGS",
    "TEXT_SETTINGS",
    "UNSAVED",
    "Origin",
    "Settings",
]

T = TypeVar("T")


@dataclass(frozen=True)
class _Declaration:
    """What is declared of a setting beside its name, type and default."""

    check: _checks.Check
    variables: tuple[str, ...]
    normalize: Callable[[Any], Any]
    mask: Callable[[Any], Any]


def _setting(
    default: T,
    check: _checks.Check,
    *,
    variables: tuple[str, ...] = (),
    normalize: Callable[[Any], Any] = freeze_value,
    mask: Callable[[Any], Any] = to_json_value,
) -> T:
    """Declare a field of `Settings`. `normalize` gives the form that is kept, `mask` the one that may be shown."""
    metadata = {"declaration": _Declaration(check, variables, normalize, mask)}
    if isinstance(default, dict):
        return cast(T, field(default_factory=dict, metadata=metadata))
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Origin:
    """Where a loaded Config came from: the content of the file, and what the environment set over it."""

    path: Path | None = None
    file: Mapping[str, Any] = field(default_factory=dict, repr=False)
    env: Mapping[str, Any] = field(default_factory=dict, repr=False)
    env_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    home: Path | None = None
    cache: Path | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings:
    """Every setting. First block: always written to the file. Second: written only when changed. Third: never written."""

    base_url: str = _setting(
        DEFAULT_BASE_URL, _checks.WEB_URL, variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"), mask=hide_password
    )
    api_key: str = _setting("", _checks.KEY, normalize=parse_key, mask=mask_key)
    model: str = _setting(DEFAULT_MODEL, _checks.LINE, variables=("NEXI_MODEL", "OPENAI_MODEL"))
    jina_key: str = _setting("", _checks.OPTIONAL_KEY, normalize=parse_key, mask=mask_key)
    default_effort: str = _setting("m", _checks.EFFORT)
    time_target: int | None = _setting(None, _checks.OPTIONAL_INT)
    max_output_tokens: int = _setting(8192, _checks.POSITIVE_INT)
    max_context: int = _setting(128_000, _checks.POSITIVE_INT)
    auto_compact_thresh: float = _setting(0.9, _checks.SHARE)
    compact_target_words: int = _setting(5000, _checks.POSITIVE_INT)
    preserve_last_n_messages: int = _setting(3, _checks.NON_NEGATIVE_INT)
    tokenizer_encoding: str = _setting("cl100k_base", _checks.LINE)
    jina_timeout: float = _setting(30, _checks.POSITIVE_NUMBER)
    llm_max_retries: int = _setting(3, _checks.NON_NEGATIVE_INT)

    search_backend: str | tuple[str, ...] = _setting("", _checks.NAME_LIST)
    content_fetcher: str | tuple[str, ...] = _setting("", _checks.NAME_LIST)
    tools: tuple[str, ...] = _setting((), _checks.TOOLS)
    api_keys: Mapping[str, str | tuple[str, ...]] = _setting({}, _checks.API_KEYS, mask=mask_api_keys)
    contact: str = _setting("", _checks.OPTIONAL_EMAIL)
    services: str | tuple[str, ...] = _setting("", _checks.NAME_LIST)
    service_urls: Mapping[str, str] = _setting({}, _checks.SERVICE_URLS)
    searxng_url: str = _setting(
        "",
        _checks.SEARXNG_URL,
        variables=("SEARXNG_URL", "SEARXNG_API_URL", "SEARXNG_QUERY_URL", "SEARX_URL"),
        normalize=parse_searxng_url,
        mask=hide_password,
    )
    searxng_instances: tuple[str, ...] = _setting((), _checks.URL_LIST)
    searxng_autostart: bool = _setting(False, _checks.BOOLEAN)
    searxng_image: str = _setting("searxng/searxng", _checks.IMAGE)
    searxng_tag: str = _setting("latest", _checks.IMAGE_TAG, variables=("SEARXNG_IMAGE_TAG",))
    searxng_port: int = _setting(0, _checks.PORT)
    vault: str = _setting("", _checks.FOLDER)
    grep_root: str = _setting("", _checks.FOLDER)
    grep_project: bool = _setting(True, _checks.BOOLEAN)
    roles: Mapping[str, Mapping[str, Any]] = _setting({}, _checks.check_roles, mask=mask_roles)
    prices: Mapping[str, Mapping[str, float]] = _setting({}, _checks.PRICES)
    allow_private: tuple[str, ...] = _setting(
        (), _checks.check_private_exceptions, variables=("NEXI_ALLOW_PRIVATE",), normalize=parse_names
    )
    respect_robots: bool = _setting(True, _checks.BOOLEAN)
    prefetch: bool = _setting(True, _checks.BOOLEAN)
    strict: bool = _setting(False, _checks.BOOLEAN)
    verify_judge: bool = _setting(True, _checks.BOOLEAN)
    stream: bool = _setting(True, _checks.BOOLEAN)
    suggestions: bool = _setting(True, _checks.BOOLEAN)
    show_pictures: bool = _setting(True, _checks.BOOLEAN)
    share: bool = _setting(False, _checks.BOOLEAN)
    color: bool = _setting(True, _checks.BOOLEAN)
    max_pages: int = _setting(60, _checks.POSITIVE_INT)
    max_cost: float | None = _setting(None, _checks.OPTIONAL_NUMBER)
    max_tokens: int | None = _setting(None, _checks.OPTIONAL_INT)
    max_model_calls: int | None = _setting(None, _checks.OPTIONAL_INT)
    fetch_timeout: float = _setting(20, _checks.POSITIVE_NUMBER)
    search_timeout: float = _setting(10, _checks.POSITIVE_NUMBER)
    llm_timeout: float = _setting(120, _checks.POSITIVE_NUMBER)
    http_proxy: str = _setting(
        "", _checks.PROXY_URL, variables=("http_proxy", "HTTP_PROXY"), normalize=parse_proxy_url, mask=hide_password
    )
    https_proxy: str = _setting(
        "", _checks.PROXY_URL, variables=("https_proxy", "HTTPS_PROXY"), normalize=parse_proxy_url, mask=hide_password
    )
    no_proxy: str = _setting("", _checks.TEXT, variables=("no_proxy", "NO_PROXY"))
    ssl_cert_file: str = _setting("", _checks.FILE, variables=("SSL_CERT_FILE",))
    ssl_cert_dir: str = _setting("", _checks.FOLDER, variables=("SSL_CERT_DIR",))
    runs_keep_days: int = _setting(30, _checks.NON_NEGATIVE_INT)
    pages_max_mb: int = _setting(1024, _checks.NON_NEGATIVE_INT)
    page_cache: bool = _setting(True, _checks.BOOLEAN)
    page_cache_ttl_s: float = _setting(86400, _checks.POSITIVE_NUMBER)
    system_prompt: str = _setting("", _checks.PROMPT, normalize=lambda value: value or "")  # its white space is the user's
    token: str = _setting("", _checks.KEY, variables=("NEXI_TOKEN",), mask=mask_key)
    serve_token: str = _setting("private", _checks.SERVE_TOKEN, variables=("NEXI_SERVE_TOKEN",))
    page_base_url: str = _setting("", _checks.OPTIONAL_WEB_URL, mask=hide_password)
    database_url: str = _setting("", _checks.KEY, variables=("NEXI_DATABASE_URL",), mask=hide_password)
    oidc_issuer: str = _setting("", _checks.OPTIONAL_WEB_URL, variables=("NEXI_OIDC_ISSUER",))
    oidc_client: str = _setting("", _checks.OPTIONAL_LINE, variables=("NEXI_OIDC_CLIENT",))
    oidc_secret: str = _setting("", _checks.KEY, variables=("NEXI_OIDC_SECRET",), mask=mask_key)
    public_url: str = _setting("", _checks.OPTIONAL_WEB_URL, variables=("NEXI_PUBLIC_URL",))
    otel_endpoint: str = _setting("", _checks.OPTIONAL_WEB_URL, variables=("OTEL_EXPORTER_OTLP_ENDPOINT",))
    webhook_url: str = _setting("", _checks.OPTIONAL_WEB_URL, variables=("NEXI_WEBHOOK_URL",), mask=hide_password)
    webhook_secret: str = _setting("", _checks.KEY, variables=("NEXI_WEBHOOK_SECRET",), mask=mask_key)
    team_max_model_calls: int = _setting(0, _checks.NON_NEGATIVE_INT)
    team_models: tuple[str, ...] = _setting((), _checks.NAME_LIST, normalize=parse_names)
    serve_hosts: tuple[str, ...] = _setting((), _checks.HOST_LIST, normalize=parse_names)
    knowledge: bool = _setting(True, _checks.BOOLEAN)
    knowledge_max_mb: int = _setting(2048, _checks.NON_NEGATIVE_INT)
    ocr_languages: str = _setting(
        "",
        _checks.OCR_LANGUAGES,
        variables=("NEXI_OCR_LANGUAGES",),
        normalize=lambda value: "+".join(parse_names(value.replace("+", ",").replace(" ", ","))),
    )
    knowledge_chunk_size: int = _setting(1200, _checks.CHUNK_SIZE)
    qdrant_url: str = _setting("", _checks.OPTIONAL_WEB_URL, variables=("QDRANT_URL",), mask=hide_password)
    qdrant_shards: int = _setting(0, _checks.NON_NEGATIVE_INT)
    qdrant_replicas: int = _setting(1, _checks.POSITIVE_INT)
    embedding_base_url: str = _setting("", _checks.OPTIONAL_WEB_URL, variables=("NEXI_EMBEDDING_BASE_URL",), mask=hide_password)
    embedding_model: str = _setting("", _checks.OPTIONAL_LINE, variables=("NEXI_EMBEDDING_MODEL",))
    contextual_embedding_model: str = _setting("", _checks.OPTIONAL_LINE, variables=("CONTEXTUAL_EMBEDDING_MODEL",))
    # each is also read from the variable of its own name: see _OF_VARIABLES
    agentic_search_enabled: bool = _setting(True, _checks.BOOLEAN)
    agentic_search_completeness_threshold: float = _setting(0.8, _checks.SHARE)
    agentic_search_max_iterations: int = _setting(3, _checks.whole_number_up_to(20))
    agentic_search_max_urls_per_iteration: int = _setting(3, _checks.whole_number_up_to(20))
    agentic_search_url_score_threshold: float = _setting(0.7, _checks.SHARE)
    agentic_search_use_search_hints: bool = _setting(False, _checks.BOOLEAN)
    agentic_search_llm_temperature: float = _setting(0.3, _checks.TEMPERATURE)
    agentic_search_max_qdrant_results: int = _setting(10, _checks.whole_number_up_to(100))
    agentic_search_concurrency: int = _setting(3, _checks.whole_number_up_to(20))
    agentic_search_max_page_age_days: int = _setting(30, _checks.NON_NEGATIVE_INT)
    use_contextual_embeddings: bool = _setting(False, _checks.BOOLEAN)
    use_hybrid_search: bool = _setting(True, _checks.BOOLEAN)
    use_reranking: bool = _setting(False, _checks.BOOLEAN)
    use_agentic_rag: bool = _setting(False, _checks.BOOLEAN)

    home: Path | None = field(default=None, compare=False)
    person: str = field(default="", compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    origin: Origin = field(default=Origin(), compare=False)

    if TYPE_CHECKING:  # `Config` accepts the old name of `time_target`
        max_timeout: InitVar[int | None] = None


DECLARATIONS: Mapping[str, _Declaration] = {f.name: f.metadata["declaration"] for f in fields(Settings) if f.metadata}
_OF_VARIABLES = ("agentic_search_", "use_")  # settings that were variables of the same names first
SAVED = tuple(DECLARATIONS)
ALWAYS_SAVED = SAVED[: SAVED.index("search_backend")]
UNSAVED = ("home", "person", "notes", "origin")
FIELD_VARIABLES = {
    name: variables
    for name, declaration in DECLARATIONS.items()
    if (variables := (name.upper(),) if name.startswith(_OF_VARIABLES) else declaration.variables)
}
_TYPES = {f.name: str(f.type) for f in fields(Settings) if f.metadata}
TEXT_SETTINGS = frozenset(name for name, kind in _TYPES.items() if kind == "str")
NAME_OR_LIST_SETTINGS = frozenset(name for name, kind in _TYPES.items() if kind == "str | tuple[str, ...]")
LIST_SETTINGS = NAME_OR_LIST_SETTINGS | {name for name, kind in _TYPES.items() if kind == "tuple[str, ...]"}
SECRET_SETTINGS = frozenset(name for name, known in DECLARATIONS.items() if known.mask in (mask_key, mask_api_keys))
CHECKS: Mapping[str, _checks.Check] = {n: DECLARATIONS[OLD_NAMES.get(n, n)].check for n in (*DECLARATIONS, *OLD_NAMES)}


def validate_config(data: Any) -> tuple[bool, list[str]]:
    """Whether `data` is a whole configuration, and every reason why not. Unknown keys are allowed."""
    if not isinstance(data, Mapping):
        return False, [f"the configuration must be an object (got {_checks.quote_value(data)})"]
    problems = [f"{name} is missing" for name in REQUIRED if name not in data] + find_problems(data)
    return not problems, problems


def find_problems(data: Mapping[str, Any]) -> list[str]:
    """One line for each value that its setting cannot have."""
    return [problem for name, value in data.items() if name in CHECKS for problem in CHECKS[name](name, value)]


def suggest_fix(problems: list[str]) -> str:
    return "correct the setting named here" if len(problems) == 1 else "correct the settings named here"


def describe_unknown_keys(data: Mapping[str, Any]) -> list[str]:
    """One line for each setting that does not exist, with the one that was probably meant."""
    lines = []
    for key in (str(key) for key in data if key not in CHECKS):
        import difflib

        close = difflib.get_close_matches(key[:60].lower(), CHECKS, n=1)
        lines.append(f"unknown setting {_checks.quote_value(key)}" + (f"; did you mean {close[0]}?" if close else ""))
    return lines
