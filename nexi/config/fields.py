"""Settings: every setting, declared once.

A declaration gives the type, the default, the check, the environment variables, and the form in which the value is kept and
shown. A check takes the name to report and the value, and yields what is wrong. Names, checks and environment follow from the
declarations; what each setting means is in docs/configuration.md, which a test compares with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from nexi.config._values import (
    DEFAULT_BASE_URL,
    EFFORT_LEVELS,
    OLD_NAMES,
    ROLES,
    freeze_value,
    hide_password,
    mask_api_keys,
    mask_key,
    mask_roles,
    parse_key,
    parse_names,
    parse_proxy_url,
    parse_searxng_url,
    split_url,
    to_json_value,
)
from nexi.errors import ConfigError

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

DEFAULT_MODEL = "google/gemini-2.5-flash-lite"
REQUIRED = ("base_url", "api_key", "model", "default_effort", "max_output_tokens")
T = TypeVar("T")
_TOOLS_OF_NEXI = frozenset(
    ["web_search", "web_get", "local_search", "search", "scrape", "final_answer", "security_search", "stackexchange", "grep"]
)
_MAX_NUMBER = 10**15  # a larger number is a typing mistake, and would overflow where limits are multiplied
Check: TypeAlias = Callable[[str, Any], Iterator[str]]


def _make_check(requirement: str, is_valid: Callable[[Any], bool], *, secret: bool = False) -> Check:
    """Build a check from one predicate. The message repeats the value, unless the value is secret."""

    def check(name: str, value: Any) -> Iterator[str]:
        if not is_valid(value):
            yield f"{name} {requirement}" if secret else f"{name} {requirement} (got {quote_value(value)})"

    return check


def _make_items_check(requirement: str, item_check: Check, *, kind: Any = Mapping, secret: bool = False) -> Check:
    """Build a check of every value of an object, under its own name, or of every item of a list."""
    whole_check = _make_check(requirement, lambda v: isinstance(v, kind), secret=secret)

    def check(name: str, value: Any) -> Iterator[str]:
        if not isinstance(value, kind):
            yield from whole_check(name, value)
            return
        items = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
        for key, item in items:
            yield from item_check(name if key is None else f"{name}.{key}", item)

    return check


def quote_value(value: Any) -> str:
    """The value as JSON, cut to the length of a message."""
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def _is_int(value: Any, minimum: int, maximum: int = _MAX_NUMBER) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_NUMBER


def _is_line(value: Any) -> bool:
    """One line of text, not empty."""
    return isinstance(value, str) and bool(value.strip()) and value.strip().isprintable()


def _is_key(value: Any) -> bool:
    """What an HTTP header can carry. Empty is valid, since local servers need no key."""
    return isinstance(value, str) and value.strip().isascii() and value.strip().isprintable()


def _is_web_url(value: Any) -> bool:
    return isinstance(value, str) and _is_url(value.strip(), ("http", "https"))


def _is_url(value: str, schemes: tuple[str, ...]) -> bool:
    parts = split_url(value)
    is_clean = value.isprintable() and not set(value) & set(' \\"<>')
    return is_clean and parts is not None and parts.scheme in schemes and bool(parts.hostname)


def _is_encodable(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_path(value: Any) -> bool:
    return _is_encodable(value) and "\0" not in value


def _is_host_list(value: Any) -> bool:
    names = parse_names(value) if isinstance(value, str) else value
    name = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
    return isinstance(names, list | tuple) and all(isinstance(n, str) and name.fullmatch(n.strip()) for n in names)


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value.strip()) is not None


def _empty_or(is_valid: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and (not value.strip() or is_valid(value.strip()))


def _is_private_exception(value: Any) -> bool:
    """A host, a host with its port, or a network. There is no wildcard."""
    import ipaddress

    if not _is_line(value) or set(value.strip()) & set(" \\@*?#"):
        return False
    text = value.strip()
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        parts = split_url(f"//{text}")
        return "/" not in text and parts is not None and bool(parts.hostname)
    return True


def check_private_exceptions(name: str, value: Any) -> Iterator[str]:
    entries = parse_names(value) if isinstance(value, str) else value
    if not isinstance(entries, list | tuple):
        yield f"{name} must be a list of hosts, host:port or networks (got {quote_value(value)})"
        return
    for entry in entries:
        if not _is_private_exception(entry):
            yield f"{name} has {quote_value(entry)}, which is no host, host:port or network"


def _check_tool(name: str, tool: Any) -> Iterator[str]:
    if not isinstance(tool, str) or re.fullmatch(r"[a-z][a-z0-9_-]{0,49}", tool) is None:
        yield f"{name} must have the names of files in the folder plugins, in small letters (got {quote_value(tool)})"
    elif tool.replace("-", "_") in _TOOLS_OF_NEXI:
        yield f"{name} has {quote_value(tool)}, and nexi has a tool of that name: rename the file"


def check_roles(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{name} must be an object with any of {', '.join(ROLES)} (got {quote_value(value)})"
        return
    for role, part in value.items():
        if role not in ROLES:
            yield f"{name} has {quote_value(role)}, which is none of {', '.join(ROLES)}"
        elif not isinstance(part, Mapping):
            yield f"{name}.{role} must be an object with any of {', '.join(_ROLE_CHECKS)}"
        else:
            for key, setting in part.items():
                if key not in _ROLE_CHECKS:
                    yield f"{name}.{role} has {quote_value(key)}, which is none of {', '.join(_ROLE_CHECKS)}"
                else:
                    yield from _ROLE_CHECKS[key](f"{name}.{role}.{key}", setting)


def _is_price(value: Any) -> bool:
    is_pair = isinstance(value, Mapping) and set(value) == {"input", "output"}
    return is_pair and all(_is_number(price) and price >= 0 for price in value.values())


def whole_number_up_to(maximum: int) -> Check:
    return _make_check(f"must be a whole number from 1 to {maximum}", lambda v: _is_int(v, 1, maximum))


BOOLEAN = _make_check("must be true or false", lambda v: isinstance(v, bool))
POSITIVE_INT = _make_check("must be a positive integer", lambda v: _is_int(v, 1))
NON_NEGATIVE_INT = _make_check("must be a non-negative integer", lambda v: _is_int(v, 0))
OPTIONAL_INT = _make_check("must be a positive integer or null", lambda v: v is None or _is_int(v, 1))
POSITIVE_NUMBER = _make_check("must be a positive number", lambda v: _is_number(v) and v > 0)
OPTIONAL_NUMBER = _make_check("must be a positive number or null", lambda v: v is None or (_is_number(v) and v > 0))
SHARE = _make_check("must be a number between 0.0 and 1.0", lambda v: _is_number(v) and 0 <= v <= 1)
TEMPERATURE = _make_check("must be a number between 0.0 and 2.0", lambda v: _is_number(v) and 0 <= v <= 2)
PORT = _make_check("must be a port, or 0 to have one chosen", lambda v: _is_int(v, 0, 65535))
CHUNK_SIZE = _make_check("must be a number of characters from 200 to 20000", lambda v: _is_int(v, 200, 20_000))
EFFORT = _make_check("must be one of s, m, l", lambda v: isinstance(v, str) and v in EFFORT_LEVELS)
SERVE_TOKEN = _make_check("must be private or always", lambda v: v in ("private", "always"))
LINE = _make_check("must be a non-empty string on one line", _is_line)
OPTIONAL_LINE = _make_check("must be a string on one line", lambda v: isinstance(v, str) and v.strip().isprintable())
TEXT = _make_check("must be a string", _is_encodable)
PROMPT = _make_check("must be text", lambda v: v is None or _is_encodable(v), secret=True)
OPTIONAL_EMAIL = _make_check("must be empty, or an email address", _empty_or(_matches(r"[!-?A-~]+@[!-?A-~]+\.[!-?A-~]+")))
NAME_LIST = _make_check(
    "must be a name or a list of names",
    lambda v: v.strip().isprintable() if isinstance(v, str) else isinstance(v, list | tuple) and all(map(_is_line, v)),
)
HOST_LIST = _make_check("must be a list of host names", _is_host_list)
FILE = _make_check("must be empty, or name a file", _is_path)
FOLDER = _make_check("must be empty, or name a folder", _is_path)
# what a container engine reads as an image and never as an option
IMAGE = _make_check("must be the name of a container image", _matches(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*"))
IMAGE_TAG = _make_check("must be the tag of a container image", _matches(r"(?a:\w[\w.-]{0,127})"))
OCR_LANGUAGES = _make_check(
    "must be empty, or names such as deu+eng", _matches(r"(?:[A-Za-z][A-Za-z_]{1,20}(?:[+, ]+|$)){0,10}")
)
KEY = _make_check("must be a string of one line of ASCII text", _is_key, secret=True)
OPTIONAL_KEY = _make_check(
    "must be a string of one line of ASCII text, or null", lambda v: v is None or _is_key(v), secret=True
)
WEB_URL = _make_check("must start with http:// or https:// and name a host", _is_web_url, secret=True)
_EMPTY_OR_URL = "must be empty, or start with http:// or https:// and name a host"
OPTIONAL_WEB_URL = _make_check(_EMPTY_OR_URL, _empty_or(_is_web_url), secret=True)
SEARXNG_URL = _make_check(_EMPTY_OR_URL, _empty_or(lambda v: _is_web_url(parse_searxng_url(v))), secret=True)
PROXY_URL = _make_check(
    "must be the address of a proxy",
    _empty_or(lambda v: _is_url(parse_proxy_url(v), ("http", "https", "socks5", "socks5h"))),
    secret=True,
)
API_KEYS = _make_items_check(
    "must be an object of provider names and keys",
    _make_check(
        "must be a key or a list of keys, each one line of ASCII text",
        lambda v: _is_key(v) or (isinstance(v, list | tuple) and all(map(_is_key, v))),
        secret=True,
    ),
    secret=True,
)
SERVICE_URLS = _make_items_check("must be an object of service names and addresses", WEB_URL, secret=True)
URL_LIST = _make_items_check(
    "must be a list of addresses",
    _make_check("must have addresses that start with http:// or https:// and name a host", _is_web_url, secret=True),
    kind=(list, tuple),
)
TOOLS = _make_items_check("must be a list of names", _check_tool, kind=(list, tuple))
PRICES = _make_items_check(
    "must be an object of model names", _make_check("must have input and output, in dollars per million tokens", _is_price)
)
_ROLE_CHECKS: Mapping[str, Check] = {"base_url": WEB_URL, "api_key": KEY, "model": LINE, "max_context": POSITIVE_INT}


@dataclass(frozen=True)
class _Declaration:
    """What is declared of a setting beside its name, type and default."""

    check: Check
    variables: tuple[str, ...]
    normalize: Callable[[Any], Any]
    mask: Callable[[Any], Any]


def _setting(
    default: T,
    check: Check,
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

    base_url: str = _setting(DEFAULT_BASE_URL, WEB_URL, variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"), mask=hide_password)
    api_key: str = _setting("", KEY, normalize=parse_key, mask=mask_key)
    model: str = _setting(DEFAULT_MODEL, LINE, variables=("NEXI_MODEL", "OPENAI_MODEL"))
    jina_key: str = _setting("", OPTIONAL_KEY, normalize=parse_key, mask=mask_key)
    default_effort: str = _setting("m", EFFORT)
    time_target: int | None = _setting(None, OPTIONAL_INT)
    max_output_tokens: int = _setting(8192, POSITIVE_INT)
    max_context: int = _setting(128_000, POSITIVE_INT)
    auto_compact_thresh: float = _setting(0.9, SHARE)
    compact_target_words: int = _setting(5000, POSITIVE_INT)
    preserve_last_n_messages: int = _setting(3, NON_NEGATIVE_INT)
    tokenizer_encoding: str = _setting("cl100k_base", LINE)
    jina_timeout: float = _setting(30, POSITIVE_NUMBER)
    llm_max_retries: int = _setting(3, NON_NEGATIVE_INT)

    search_backend: str | tuple[str, ...] = _setting("", NAME_LIST)
    content_fetcher: str | tuple[str, ...] = _setting("", NAME_LIST)
    tools: tuple[str, ...] = _setting((), TOOLS)
    api_keys: Mapping[str, str | tuple[str, ...]] = _setting({}, API_KEYS, mask=mask_api_keys)
    contact: str = _setting("", OPTIONAL_EMAIL)
    services: str | tuple[str, ...] = _setting("", NAME_LIST)
    service_urls: Mapping[str, str] = _setting({}, SERVICE_URLS)
    searxng_url: str = _setting(
        "",
        SEARXNG_URL,
        variables=("SEARXNG_URL", "SEARXNG_API_URL", "SEARXNG_QUERY_URL", "SEARX_URL"),
        normalize=parse_searxng_url,
        mask=hide_password,
    )
    searxng_instances: tuple[str, ...] = _setting((), URL_LIST)
    searxng_autostart: bool = _setting(False, BOOLEAN)
    searxng_image: str = _setting("searxng/searxng", IMAGE)
    searxng_tag: str = _setting("latest", IMAGE_TAG, variables=("SEARXNG_IMAGE_TAG",))
    searxng_port: int = _setting(0, PORT)
    vault: str = _setting("", FOLDER)
    grep_root: str = _setting("", FOLDER)
    grep_project: bool = _setting(True, BOOLEAN)
    roles: Mapping[str, Mapping[str, Any]] = _setting({}, check_roles, mask=mask_roles)
    prices: Mapping[str, Mapping[str, float]] = _setting({}, PRICES)
    allow_private: tuple[str, ...] = _setting(
        (), check_private_exceptions, variables=("NEXI_ALLOW_PRIVATE",), normalize=parse_names
    )
    respect_robots: bool = _setting(True, BOOLEAN)
    prefetch: bool = _setting(True, BOOLEAN)
    strict: bool = _setting(False, BOOLEAN)
    verify_judge: bool = _setting(True, BOOLEAN)
    stream: bool = _setting(True, BOOLEAN)
    suggestions: bool = _setting(True, BOOLEAN)
    show_pictures: bool = _setting(True, BOOLEAN)
    share: bool = _setting(False, BOOLEAN)
    color: bool = _setting(True, BOOLEAN)
    max_pages: int = _setting(60, POSITIVE_INT)
    max_cost: float | None = _setting(None, OPTIONAL_NUMBER)
    max_tokens: int | None = _setting(None, OPTIONAL_INT)
    max_model_calls: int | None = _setting(None, OPTIONAL_INT)
    fetch_timeout: float = _setting(20, POSITIVE_NUMBER)
    search_timeout: float = _setting(10, POSITIVE_NUMBER)
    llm_timeout: float = _setting(120, POSITIVE_NUMBER)
    http_proxy: str = _setting(
        "", PROXY_URL, variables=("http_proxy", "HTTP_PROXY"), normalize=parse_proxy_url, mask=hide_password
    )
    https_proxy: str = _setting(
        "", PROXY_URL, variables=("https_proxy", "HTTPS_PROXY"), normalize=parse_proxy_url, mask=hide_password
    )
    no_proxy: str = _setting("", TEXT, variables=("no_proxy", "NO_PROXY"))
    ssl_cert_file: str = _setting("", FILE, variables=("SSL_CERT_FILE",))
    ssl_cert_dir: str = _setting("", FOLDER, variables=("SSL_CERT_DIR",))
    runs_keep_days: int = _setting(30, NON_NEGATIVE_INT)
    pages_max_mb: int = _setting(1024, NON_NEGATIVE_INT)
    page_cache: bool = _setting(True, BOOLEAN)
    page_cache_ttl_s: float = _setting(86400, POSITIVE_NUMBER)
    system_prompt: str = _setting("", PROMPT, normalize=lambda value: value or "")  # its white space is the user's
    token: str = _setting("", KEY, variables=("NEXI_TOKEN",), mask=mask_key)
    serve_token: str = _setting("private", SERVE_TOKEN, variables=("NEXI_SERVE_TOKEN",))
    page_base_url: str = _setting("", OPTIONAL_WEB_URL, mask=hide_password)
    database_url: str = _setting("", KEY, variables=("NEXI_DATABASE_URL",), mask=hide_password)
    oidc_issuer: str = _setting("", OPTIONAL_WEB_URL, variables=("NEXI_OIDC_ISSUER",))
    oidc_client: str = _setting("", OPTIONAL_LINE, variables=("NEXI_OIDC_CLIENT",))
    oidc_secret: str = _setting("", KEY, variables=("NEXI_OIDC_SECRET",), mask=mask_key)
    public_url: str = _setting("", OPTIONAL_WEB_URL, variables=("NEXI_PUBLIC_URL",))
    otel_endpoint: str = _setting("", OPTIONAL_WEB_URL, variables=("OTEL_EXPORTER_OTLP_ENDPOINT",))
    webhook_url: str = _setting("", OPTIONAL_WEB_URL, variables=("NEXI_WEBHOOK_URL",), mask=hide_password)
    webhook_secret: str = _setting("", KEY, variables=("NEXI_WEBHOOK_SECRET",), mask=mask_key)
    team_max_model_calls: int = _setting(0, NON_NEGATIVE_INT)
    team_models: tuple[str, ...] = _setting((), NAME_LIST, normalize=parse_names)
    serve_hosts: tuple[str, ...] = _setting((), HOST_LIST, normalize=parse_names)
    knowledge: bool = _setting(True, BOOLEAN)
    knowledge_max_mb: int = _setting(2048, NON_NEGATIVE_INT)
    ocr_languages: str = _setting(
        "",
        OCR_LANGUAGES,
        variables=("NEXI_OCR_LANGUAGES",),
        normalize=lambda value: "+".join(parse_names(value.replace("+", ",").replace(" ", ","))),
    )
    knowledge_chunk_size: int = _setting(1200, CHUNK_SIZE)
    qdrant_url: str = _setting("", OPTIONAL_WEB_URL, variables=("QDRANT_URL",), mask=hide_password)
    qdrant_shards: int = _setting(0, NON_NEGATIVE_INT)
    qdrant_replicas: int = _setting(1, POSITIVE_INT)
    embedding_base_url: str = _setting("", OPTIONAL_WEB_URL, variables=("NEXI_EMBEDDING_BASE_URL",), mask=hide_password)
    embedding_model: str = _setting("", OPTIONAL_LINE, variables=("NEXI_EMBEDDING_MODEL",))
    contextual_embedding_model: str = _setting("", OPTIONAL_LINE, variables=("CONTEXTUAL_EMBEDDING_MODEL",))
    # each is also read from the variable of its own name: see _OF_VARIABLES
    agentic_search_enabled: bool = _setting(True, BOOLEAN)
    agentic_search_completeness_threshold: float = _setting(0.8, SHARE)
    agentic_search_max_iterations: int = _setting(3, whole_number_up_to(20))
    agentic_search_max_urls_per_iteration: int = _setting(3, whole_number_up_to(20))
    agentic_search_url_score_threshold: float = _setting(0.7, SHARE)
    agentic_search_use_search_hints: bool = _setting(False, BOOLEAN)
    agentic_search_llm_temperature: float = _setting(0.3, TEMPERATURE)
    agentic_search_max_qdrant_results: int = _setting(10, whole_number_up_to(100))
    agentic_search_concurrency: int = _setting(3, whole_number_up_to(20))
    agentic_search_max_page_age_days: int = _setting(30, NON_NEGATIVE_INT)
    use_contextual_embeddings: bool = _setting(False, BOOLEAN)
    use_hybrid_search: bool = _setting(True, BOOLEAN)
    use_reranking: bool = _setting(False, BOOLEAN)
    use_agentic_rag: bool = _setting(False, BOOLEAN)

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
CHECKS: Mapping[str, Check] = {n: DECLARATIONS[OLD_NAMES.get(n, n)].check for n in (*DECLARATIONS, *OLD_NAMES)}


def validate_config(data: Any) -> tuple[bool, list[str]]:
    """Whether `data` is a whole configuration, and every reason why not. Unknown keys are allowed."""
    if not isinstance(data, Mapping):
        return False, [f"the configuration must be an object (got {quote_value(data)})"]
    problems = [f"{name} is missing" for name in REQUIRED if name not in data] + find_problems(data)
    return not problems, problems


def find_problems(data: Mapping[str, Any]) -> list[str]:
    """One line for each value that its setting cannot have."""
    return [problem for name, value in data.items() if name in CHECKS for problem in CHECKS[name](name, value)]


def refuse_problems(message: str, problems: list[str]) -> None:
    """Raise ConfigError with all problems as its cause, where there are any."""
    if problems:
        fix = "correct the setting named here" if len(problems) == 1 else "correct the settings named here"
        raise ConfigError(message, cause="; ".join(problems), fix=fix)


def describe_unknown_keys(data: Mapping[str, Any]) -> list[str]:
    """One line for each setting that does not exist, with the one that was probably meant."""
    lines = []
    for key in (str(key) for key in data if key not in CHECKS):
        import difflib

        close = difflib.get_close_matches(key[:60].lower(), CHECKS, n=1)
        lines.append(f"unknown setting {quote_value(key)}" + (f"; did you mean {close[0]}?" if close else ""))
    return lines
