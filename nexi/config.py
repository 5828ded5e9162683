"""Config: one value that says how nexi runs. Loaded, checked, saved; the only reader of the environment.

Above sit the doors and `app`, which pass a Config whole; below are the error words and the prompts. What a backend, a fetcher
or a model does with its settings is not known here, and nothing here reaches a network.

A setting comes from a flag, else the environment, else the file, else its default. Keys found in the environment are kept
apart from the settings, so they never reach the file, and each goes only to the host it belongs to.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict
from urllib.parse import SplitResult, urlsplit

from nexi.errors import ConfigError, StoreError
from nexi.values import frozen

DEFAULT_SYSTEM_PROMPT_TEMPLATE: str
EXTRACTOR_PROMPT_TEMPLATE: str
COMPACTION_PROMPT_TEMPLATE: str

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
}
JUDGE_VARIABLE = "MODEL_CHOICE"
PLACE_VARIABLES = ("NEXI_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA", "USERPROFILE")

MAX_FILE_BYTES = 1_000_000
MAX_NUMBER = 10**15  # larger is a typing slip, and would overflow where limits are multiplied
EDIT_FIX = "run `nexi --edit-config` to mend it, or delete the file to start from the defaults"


class EffortLevel(TypedDict):
    max_iter: int
    description: str


EFFORT_LEVELS: dict[str, EffortLevel] = {
    "s": {"max_iter": 8, "description": "Quick search"},
    "m": {"max_iter": 16, "description": "Balanced"},
    "l": {"max_iter": 32, "description": "Thorough research"},
}


# Values


@frozen
class Endpoint:
    """Where one role's model is called. Keys are tried in order; an empty tuple means none is sent."""

    base_url: str
    api_keys: Keys
    model: str
    max_context: int

    def __repr__(self) -> str:
        return f"Endpoint({without_password(self.base_url)}, {len(self.api_keys)} keys, {self.model}, {self.max_context})"

    @property
    def is_extractive(self) -> bool:
        """Whether this is the built-in model, which calls nobody."""
        return self.model == EXTRACTIVE


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
    stream: bool = True
    color: bool = True
    max_pages: int = 60
    max_cost: float | None = None
    max_tokens: int | None = None
    fetch_timeout: float = 20
    search_timeout: float = 10
    llm_timeout: float = 120
    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: str = ""
    runs_keep_days: int = 30
    pages_max_mb: int = 1024
    page_cache: bool = True
    page_cache_ttl_s: float = 86400
    system_prompt: str = ""

    home: Path | None = field(default=None, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    origin: Origin = field(default=Origin(), compare=False)


UNSAVED = ("home", "notes", "origin")
SAVED = tuple(f.name for f in fields(Settings) if f.name not in UNSAVED)
ALWAYS_SAVED = SAVED[: SAVED.index("search_backend")]


class Config(Settings):
    """The settings, and what follows from them: endpoints, chains, keys and places. Frozen as Settings is."""

    def __init__(self, *, max_timeout: int | None = None, **values: Any) -> None:
        """Every field of Settings by name; `max_timeout` is the old name of `time_target`."""
        if max_timeout is not None:
            values.setdefault("time_target", max_timeout)
        super().__init__(**{name: _normal(name, value) for name, value in values.items()})

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.masked().items() if v != DEFAULT_CONFIG.get(k)}
        return f"Config({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    @property
    def max_timeout(self) -> int | None:
        """The old name of `time_target`."""
        return self.time_target

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Config:
        """A checked Config; absent settings have their defaults, unknown ones become notes. Raises ConfigError."""
        problems = _problems(data) if isinstance(data, Mapping) else [f"it must be an object (got {_short(data)})"]
        if problems:
            raise ConfigError("the configuration cannot be used", cause="; ".join(problems), fix=_fix_for(problems))
        return cls(**_known(data), notes=tuple(unknown_keys(data)))

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values, keys in the clear. What the environment gave as keys is not among them."""
        return {name: _plain(getattr(self, name)) for name in SAVED}

    def override(self, **flags: Any) -> Config:
        """A Config in which these settings win; None means the flag was not given. Raises ConfigError."""
        given = {OLD_NAMES.get(k, k): v for k, v in flags.items() if v is not None}
        problems = _problems(given) + unknown_keys({k: v for k, v in given.items() if k not in UNSAVED})
        if problems:
            raise ConfigError("a setting cannot be used", cause="; ".join(problems), fix=_fix_for(problems))
        current = {f.name: getattr(self, f.name) for f in fields(self)}
        return Config(**{**current, "roles": _roles_under(self.roles, given), **given})

    # Models

    def endpoint(self, role: EndpointRole = "answer") -> Endpoint:
        """Where `role` is served. The default address without a key means the built-in extractive model."""
        if role not in ROLES:
            raise ConfigError(f"there is no role called {role!r}", fix=f"the roles are {', '.join(ROLES)}")
        part = self.roles.get(role, {})
        base_url = part.get("base_url") or self.base_url
        model = part.get("model") or self.model
        max_context = part.get("max_context") or self.max_context
        keys = self._endpoint_keys(base_url, part)
        if model == EXTRACTIVE or (not keys and _site(base_url) == _site(DEFAULT_BASE_URL)):
            return Endpoint("", (), EXTRACTIVE, max_context)
        return Endpoint(base_url, keys, model, max_context)

    def _endpoint_keys(self, base_url: str, part: Mapping[str, Any]) -> Keys:
        """A key follows the address it was given for; another address gets only keys that are known to be its own."""
        if part.get("api_key"):
            return (part["api_key"],)
        if _site(base_url) == _site(self.base_url):
            return self._main_keys()
        owner = _key_owner(base_url)
        return _distinct(self.origin.env_keys.get(owner, ""), *_as_keys(self.api_keys.get(owner, "")))

    def _main_keys(self) -> Keys:
        owner = _key_owner(self.base_url)
        more = (*_as_keys(self.api_keys.get(owner, "")), *_as_keys(self.api_keys.get("llm", "")))
        if self._is_explicit("api_key"):
            return _distinct(self.api_key, *more)
        return _distinct(self._environment_key(owner), self._file_key(), *more)

    def _file_key(self) -> str:
        """The file's key belongs to the file's address: elsewhere it is not sent."""
        address = self.origin.file.get("base_url", DEFAULT_BASE_URL).strip()
        return self.api_key if _site(address) == _site(self.base_url) else ""

    def _environment_key(self, owner: str) -> str:
        """The address's own key; else OPENAI_API_KEY, which many servers take, where the user chose the address.

        A file that names another address and its own key keeps the two together.
        """
        keys = self.origin.env_keys
        if keys.get(owner):
            return keys[owner]
        chosen_in_environment = self.origin.env.get("base_url") == self.base_url
        chosen = chosen_in_environment or _site(self.base_url) != _site(DEFAULT_BASE_URL)
        return keys.get("openai", "") if chosen and (chosen_in_environment or not self._file_key()) else ""

    def _is_explicit(self, name: str) -> bool:
        """Whether a flag or the caller set this, and not the file."""
        value = getattr(self, name)
        return bool(value) and value != _normal(name, self.origin.file.get(name))

    # Providers

    def keys_for(self, provider: str) -> Keys:
        """The keys of a search or fetch provider, in the order to try them."""
        configured = _as_keys(self.api_keys.get(provider, ""))
        if provider == "jina":
            configured = (self.jina_key, *configured)
            if self._is_explicit("jina_key"):
                return _distinct(*configured)
        return _distinct(self.origin.env_keys.get(provider, ""), *configured)

    def search_chain(self) -> tuple[str, ...]:
        """The backends to ask, in order."""
        if configured := _as_names(self.search_backend):
            return configured
        if self.searxng_url:
            return ("searxng",)
        others = tuple(name for name in KEYED_BACKENDS if self.keys_for(name)) or FREE_BACKENDS
        return ("searxng", *others) if self.searxng_autostart else others

    def fetch_chain(self) -> tuple[str, ...]:
        """The fetchers to ask, in order. Jina learns what is read, so it takes part only where it was asked for."""
        if configured := _as_names(self.content_fetcher):
            return configured
        return ("http", "jina") if self.keys_for("jina") else ("http",)

    # Showing

    def masked(self) -> dict[str, Any]:
        """The settings fit for eyes and logs: no key is whole, no password is in an address."""
        data = self.to_dict()
        for name in ("api_key", "jina_key"):
            data[name] = mask(data[name])
        for name in ("base_url", "searxng_url", "http_proxy", "https_proxy"):
            data[name] = without_password(data[name])
        data["api_keys"] = {k: [mask(key) for key in _as_keys(v)] for k, v in self.api_keys.items()}
        data["roles"] = {role: _masked_role(part) for role, part in self.roles.items()}
        if self.origin.env_keys:
            data["environment_keys"] = {KEY_VARIABLES[k]: mask(v) for k, v in self.origin.env_keys.items()}
        return data

    # Places

    @property
    def root(self) -> Path:
        """The folder everything lives in."""
        return self.home or nexi_home()

    @property
    def config_path(self) -> Path:
        return self.origin.path if self.origin.path and not self._has_moved() else self.root / "config.json"

    @property
    def history_path(self) -> Path:
        return self.root / "history.jsonl"

    @property
    def knowledge_path(self) -> Path:
        return self.root / "knowledge.db"

    @property
    def runs_dir(self) -> Path:
        return self.root / "runs"

    @property
    def pages_dir(self) -> Path:
        return self.root / "pages"

    @property
    def page_cache_dir(self) -> Path:
        """Pages that were read once, kept for `page_cache_ttl_s`."""
        return self.cache_dir / "pages"

    @property
    def state_dir(self) -> Path:
        return self.root / "state"

    @property
    def searxng_settings(self) -> Path:
        """Where the user's own version of the container's settings is looked for."""
        return self.root / "searxng" / "default-settings.yml"

    @property
    def prompts_dir(self) -> Path:
        """Where the user's own versions of the prompts are looked for."""
        return self.root / "prompts"

    @property
    def cache_dir(self) -> Path:
        """What may be deleted at any time."""
        if self.origin.cache and not self._has_moved():
            return self.origin.cache
        return self.home / "cache" if self.home else nexi_cache()

    def _has_moved(self) -> bool:
        """Whether another home was set after loading: then nothing is written at the old one."""
        return self.home != self.origin.home


def _normal(name: str, value: Any) -> Any:
    """A setting in the form it is kept in: trimmed, lists as tuples, mappings as copies of our own."""
    if name in UNSAVED:
        return Path(value) if name == "home" and value is not None else value
    if name in ("jina_key", "api_key", "system_prompt") and value is None:
        return ""
    if name == "allow_private":
        return _as_names(value)
    if name in ADDRESS_FORMS and isinstance(value, str):
        return ADDRESS_FORMS[name](value.strip())
    return value if name == "system_prompt" else _frozen(value)


def _frozen(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    return {str(k): _frozen(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among `data` under their present names; a new name wins over its old one."""
    old = {OLD_NAMES[k]: v for k, v in data.items() if k in OLD_NAMES}
    return {**old, **{k: v for k, v in data.items() if k in SAVED}}


def _as_names(value: str | Iterable[str]) -> tuple[str, ...]:
    """A name, names between commas, or a list of names."""
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(part.strip() for part in parts if part.strip())


def _as_keys(value: str | Iterable[str]) -> Keys:
    return (value,) if isinstance(value, str) else tuple(value)


def _distinct(*keys: str) -> Keys:
    return tuple(dict.fromkeys(key for key in keys if key))


def _roles_under(roles: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The roles that remain when a stronger source names the model or the address: the answer role gives way.

    Naming the extractive model asks for no model at all, so then every role gives way.
    """
    if given.get("model") == EXTRACTIVE:
        return {}
    hidden = {"model"} & set(given) | ({"base_url", "api_key"} if "base_url" in given else set())
    return {role: {k: v for k, v in part.items() if role != "answer" or k not in hidden} for role, part in roles.items()}


# Addresses


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _site(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: what a key belongs to."""
    parts = _split(url)
    if parts is None:
        return ("", url, None)
    return (parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme))


def _key_owner(base_url: str) -> str:
    """The provider this address is known to be, reached safely; else nothing."""
    scheme, host, port = _site(base_url)
    return KEY_HOSTS.get(host, "") if (scheme, port) == ("https", 443) else ""


def _searxng_base(url: str) -> str:
    """The instance behind an address that others write with its path and query (`.../search?q=<query>`)."""
    return url.split("?", 1)[0].rstrip("/").removesuffix("/search").rstrip("/")


def _proxy_address(proxy: str) -> str:
    """Proxies are often named without a scheme."""
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


ADDRESS_FORMS = {"searxng_url": _searxng_base, "http_proxy": _proxy_address, "https_proxy": _proxy_address}


def without_password(url: str) -> str:
    parts = _split(url)
    if parts is None:
        return "…"
    if "@" not in parts.netloc:
        return url
    return parts._replace(netloc=f"…@{parts.netloc.rpartition('@')[2]}").geturl()


def mask(key: str) -> str:
    """Enough of a key to tell which one it is."""
    if not key:
        return ""
    return f"{key[:3]}…{key[-2:]}" if len(key) >= 12 else "set"


def _masked_role(part: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(part)
    if "api_key" in shown:
        shown["api_key"] = mask(shown["api_key"])
    if "base_url" in shown:
        shown["base_url"] = without_password(shown["base_url"])
    return shown


# Checks: each takes the name to blame and the value, and yields what is wrong

Check: TypeAlias = Callable[[str, Any], Iterator[str]]


def _rule(says: str, holds: Callable[[Any], bool], *, secret: bool = False) -> Check:
    def check(name: str, value: Any) -> Iterator[str]:
        if not holds(value):
            yield f"{name} {says}" if secret else f"{name} {says} (got {_short(value)})"

    return check


def _short(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def _is_int(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MAX_NUMBER


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def _is_line(value: Any) -> bool:
    """One line of text, with something in it."""
    return isinstance(value, str) and bool(value.strip()) and value.strip().isprintable()


def _is_key(value: Any) -> bool:
    """What an HTTP header can carry; empty is valid, since local servers want no key."""
    return isinstance(value, str) and value.strip().isascii() and value.strip().isprintable()


def _is_web_address(value: Any) -> bool:
    return isinstance(value, str) and _is_address(value.strip(), ("http", "https"))


def _is_address(value: str, schemes: tuple[str, ...]) -> bool:
    parts = _split(value)
    plain = value.isprintable() and not set(value) & set(' \\"<>')
    return plain and parts is not None and parts.scheme in schemes and bool(parts.hostname)


def _is_proxy(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    return not value.strip() or _is_address(_proxy_address(value.strip()), ("http", "https", "socks5", "socks5h"))


def _is_encodable(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_names(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().isprintable()
    return isinstance(value, list | tuple) and all(_is_line(item) for item in value)


def _is_keys(value: Any) -> bool:
    return _is_key(value) or (isinstance(value, list | tuple) and all(_is_key(item) for item in value))


def _is_image(value: Any) -> bool:
    """What a container engine takes for an image and never for an option."""
    import re

    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*", value.strip()) is not None


def _is_tag(value: Any) -> bool:
    import re

    return isinstance(value, str) and re.fullmatch(r"\w[\w.-]{0,127}", value.strip(), re.ASCII) is not None


def _is_private_exception(value: Any) -> bool:
    """A host, a host with its port, or a network; nothing wider can be written."""
    import ipaddress

    if not _is_line(value) or set(value.strip()) & set(" \\@*?#"):
        return False
    text = value.strip()
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        parts = _split(f"//{text}")
        return "/" not in text and parts is not None and bool(parts.hostname)
    return True


def _check_private(name: str, value: Any) -> Iterator[str]:
    entries = _as_names(value) if isinstance(value, str) else value
    if not isinstance(entries, list | tuple):
        yield f"{name} must be a list of hosts, host:port or networks (got {_short(value)})"
        return
    for entry in entries:
        if not _is_private_exception(entry):
            yield f"{name} has {_short(entry)}, which is no host, host:port or network"


def _check_api_keys(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{name} must be an object of provider names and keys"
        return
    for provider, keys in value.items():
        if not _is_keys(keys):
            yield f"{name}.{provider} must be a key or a list of keys, each one line of ASCII text"


def _check_roles(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{name} must be an object with any of {', '.join(ROLES)} (got {_short(value)})"
        return
    for role, part in value.items():
        if role not in ROLES:
            yield f"{name} has {_short(role)}, which is none of {', '.join(ROLES)}"
        elif not isinstance(part, Mapping):
            yield f"{name}.{role} must be an object with any of {', '.join(ROLE_CHECKS)}"
        else:
            yield from _check_role(f"{name}.{role}", part)


def _check_role(name: str, part: Mapping[str, Any]) -> Iterator[str]:
    for key, value in part.items():
        if key not in ROLE_CHECKS:
            yield f"{name} has {_short(key)}, which is none of {', '.join(ROLE_CHECKS)}"
        else:
            yield from CHECKS[key](f"{name}.{key}", value)


def _check_prices(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{name} must be an object of model names (got {_short(value)})"
        return
    for model, price in value.items():
        good = isinstance(price, Mapping) and set(price) == {"input", "output"}
        if not good or not all(_is_number(p) and p >= 0 for p in price.values()):
            yield f"{name}.{model} must have input and output, in dollars per million tokens (got {_short(price)})"


ROLE_CHECKS = ("base_url", "api_key", "model", "max_context")
_positive_int = _rule("must be a positive integer", lambda v: _is_int(v, 1))
_non_negative_int = _rule("must be a non-negative integer", lambda v: _is_int(v, 0))
_positive_number = _rule("must be a positive number", lambda v: _is_number(v) and v > 0)
_optional_int = _rule("must be a positive integer or null", lambda v: v is None or _is_int(v, 1))
_optional_number = _rule("must be a positive number or null", lambda v: v is None or (_is_number(v) and v > 0))
_bool = _rule("must be true or false", lambda v: isinstance(v, bool))
_line = _rule("must be a non-empty string on one line", _is_line)
_names = _rule("must be a name or a list of names", _is_names)
_proxy = _rule("must be the address of a proxy", _is_proxy, secret=True)

CHECKS: Mapping[str, Check] = {
    "base_url": _rule("must start with http:// or https:// and name a host", _is_web_address, secret=True),
    "api_key": _rule("must be a string of one line of ASCII text", _is_key, secret=True),
    "model": _line,
    "jina_key": _rule("must be a string of one line of ASCII text, or null", lambda v: v is None or _is_key(v), secret=True),
    "default_effort": _rule("must be one of s, m, l", lambda v: isinstance(v, str) and v in EFFORT_LEVELS),
    "time_target": _optional_int,
    "max_timeout": _optional_int,
    "max_output_tokens": _positive_int,
    "max_context": _positive_int,
    "auto_compact_thresh": _rule("must be a number between 0.0 and 1.0", lambda v: _is_number(v) and 0 <= v <= 1),
    "compact_target_words": _positive_int,
    "preserve_last_n_messages": _non_negative_int,
    "tokenizer_encoding": _line,
    "jina_timeout": _positive_number,
    "llm_max_retries": _non_negative_int,
    "search_backend": _names,
    "content_fetcher": _names,
    "api_keys": _check_api_keys,
    "searxng_url": _rule(
        "must be empty, or start with http:// or https:// and name a host",
        lambda v: isinstance(v, str) and (not v.strip() or _is_web_address(_searxng_base(v.strip()))),
        secret=True,
    ),
    "searxng_autostart": _bool,
    "searxng_image": _rule("must be the name of a container image", _is_image),
    "searxng_tag": _rule("must be the tag of a container image", _is_tag),
    "searxng_port": _rule("must be a port, or 0 to have one chosen", lambda v: _is_int(v, 0) and v < 65536),
    "grep_root": _rule("must be empty, or name a folder", lambda v: _is_encodable(v) and "\0" not in v),
    "roles": _check_roles,
    "prices": _check_prices,
    "allow_private": _check_private,
    "respect_robots": _bool,
    "prefetch": _bool,
    "stream": _bool,
    "color": _bool,
    "max_pages": _positive_int,
    "max_cost": _optional_number,
    "max_tokens": _optional_int,
    "fetch_timeout": _positive_number,
    "search_timeout": _positive_number,
    "llm_timeout": _positive_number,
    "http_proxy": _proxy,
    "https_proxy": _proxy,
    "no_proxy": _rule("must be a string", _is_encodable),
    "runs_keep_days": _non_negative_int,
    "pages_max_mb": _non_negative_int,
    "page_cache": _bool,
    "page_cache_ttl_s": _positive_number,
    "system_prompt": _rule("must be text", lambda v: v is None or _is_encodable(v), secret=True),
}


def validate_config(data: Any) -> tuple[bool, list[str]]:
    """Whether `data` is a whole configuration, and every reason why not. Unknown keys are no reason: see `unknown_keys`."""
    if not isinstance(data, Mapping):
        return False, [f"the configuration must be an object (got {_short(data)})"]
    problems = [f"{name} is missing" for name in REQUIRED if name not in data] + _problems(data)
    return not problems, problems


def _problems(data: Mapping[str, Any]) -> list[str]:
    return [problem for name, value in data.items() if name in CHECKS for problem in CHECKS[name](name, value)]


def _fix_for(problems: list[str]) -> str:
    return "correct the setting named here" if len(problems) == 1 else "correct the settings named here"


def unknown_keys(data: Mapping[str, Any]) -> list[str]:
    """One line for each setting nexi does not know, with the one that was probably meant."""
    return [_unknown(str(key)) for key in data if key not in CHECKS]


def _unknown(key: str) -> str:
    import difflib

    close = difflib.get_close_matches(key[:60].lower(), CHECKS, n=1)
    return f"unknown setting {_short(key)}" + (f"; did you mean {close[0]}?" if close else "")


# Places


def nexi_home(env: Mapping[str, str] | None = None, *, windows: bool = os.name == "nt") -> Path:
    """The folder everything lives in: NEXI_HOME, else the user's data folder."""
    env = os.environ if env is None else env
    if named := env.get("NEXI_HOME", "").strip():
        return _expanded(named, env)
    if windows:
        local = env.get("LOCALAPPDATA", "").strip()
        return Path(local) / "nexi" if local else _user_folder(env, windows=True) / "AppData" / "Local" / "nexi"
    data = Path(env.get("XDG_DATA_HOME", "").strip())
    return (data if data.is_absolute() else _user_folder(env) / ".local" / "share") / "nexi"


def nexi_cache(env: Mapping[str, str] | None = None, *, windows: bool = os.name == "nt") -> Path:
    """The folder for what may be deleted at any time."""
    env = os.environ if env is None else env
    if windows or env.get("NEXI_HOME", "").strip():
        return nexi_home(env, windows=windows) / "cache"
    cache = Path(env.get("XDG_CACHE_HOME", "").strip())
    return (cache if cache.is_absolute() else _user_folder(env) / ".cache") / "nexi"


def _user_folder(env: Mapping[str, str], *, windows: bool = False) -> Path:
    name = "USERPROFILE" if windows else "HOME"
    if folder := env.get(name, "").strip():
        return Path(folder).absolute()
    raise ConfigError(
        "nexi does not know where to keep its files",
        cause=f"{name} is not set",
        fix="set NEXI_HOME to a folder of yours, for example NEXI_HOME=/var/lib/nexi",
    )


def _expanded(folder: str, env: Mapping[str, str]) -> Path:
    if folder == "~" or folder.startswith("~/"):
        return _user_folder(env) / folder[2:]
    return Path(folder).absolute()


def editor_command(env: Mapping[str, str] | None = None, *, windows: bool = os.name == "nt") -> list[str]:
    """The user's editor, with its arguments. It is needed most when the file is broken, so it is no setting."""
    import shlex

    env = os.environ if env is None else env
    try:
        words = shlex.split(env.get("EDITOR", ""), posix=not windows)
    except ValueError as error:
        raise ConfigError("EDITOR cannot be used", cause=str(error), fix="close the quotes in EDITOR, or unset it") from error
    return words or (["notepad"] if windows else ["vi"])


def wants_color(env: Mapping[str, str] | None = None) -> bool:
    """Whether the environment lets a terminal be shown colours."""
    env = os.environ if env is None else env
    return not env.get("NO_COLOR") and not is_dumb_terminal(env)


def is_dumb_terminal(env: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal can only show text, one line after another."""
    env = os.environ if env is None else env
    return env.get("TERM", "") == "dumb"


# Loading


def load_config(path: Path | str | None = None, env: Mapping[str, str] | None = None) -> Config:
    """The file with the environment laid over it. A missing file is no error; one that cannot be used is. Raises ConfigError.

    With a `path`, everything else lives beside it unless NEXI_HOME says otherwise.
    """
    env = os.environ if env is None else env
    place = Path(path).absolute() if path is not None else None
    home = nexi_home(env) if place is None or env.get("NEXI_HOME", "").strip() else place.parent
    cache = nexi_cache(env) if place is None else home / "cache"
    place = place or home / "config.json"
    data = _read_file(place)
    if problems := _problems(data):
        raise ConfigError(f"{place} has settings that cannot be used", cause="; ".join(problems), fix=EDIT_FIX)
    overlay = _environment(env, _known(data).get("roles") or {})
    origin = Origin(place, data, overlay, _environment_keys(env), home, cache)
    config = Config(**{**_known(data), **overlay}, home=home, origin=origin)
    return Config(**{**vars(config), "notes": tuple(_notes(config))})


def _read_file(path: Path) -> dict[str, Any]:
    """The object in the file; empty where there is no file."""
    try:
        raw = _read_bytes(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        fix = f"make {path} a file that you may read, or set NEXI_HOME to another folder"
        raise ConfigError(f"{path} cannot be read", cause=cause, fix=fix) from error
    return _parse(path, raw)


def _read_bytes(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        raw = file.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} is too large", cause=f"it has more than {MAX_FILE_BYTES:,} bytes", fix=EDIT_FIX)
    return raw


def _parse(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        cause = f"byte {error.start} does not belong there"
        raise ConfigError(f"{path} is not UTF-8 text", cause=cause, fix=f"save it as UTF-8, or {EDIT_FIX}") from error
    except json.JSONDecodeError as error:
        cause = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise ConfigError(f"{path} is not valid JSON", cause=cause, fix=EDIT_FIX) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON", cause=str(error), fix=EDIT_FIX) from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} is no configuration", cause=f"it holds {_short(data)} and not an object", fix=EDIT_FIX)
    return data


def _environment(env: Mapping[str, str], roles: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The settings the environment names; empty variables do not count."""
    values = {name: _variable(env, name, variables) for name, variables in FIELD_VARIABLES.items()}
    overlay: dict[str, Any] = {name: _normal(name, value) for name, value in values.items() if value}
    if not wants_color(env):
        overlay["color"] = False
    merged = _roles_under(roles, overlay)
    if judge := _checked("model", JUDGE_VARIABLE, env.get(JUDGE_VARIABLE, "").strip()):
        merged["judge"] = {**merged.get("judge", {}), "model": judge}
    return overlay if merged == roles else {**overlay, "roles": _frozen(merged)}


def _variable(env: Mapping[str, str], name: str, variables: tuple[str, ...]) -> str:
    found = ((variable, env.get(variable, "").strip()) for variable in variables)
    return next((_checked(name, variable, value) for variable, value in found if value), "")


def _environment_keys(env: Mapping[str, str]) -> dict[str, str]:
    keys = {provider: _checked("api_key", name, env.get(name, "").strip()) for provider, name in KEY_VARIABLES.items()}
    return {provider: key for provider, key in keys.items() if key}


def _checked(name: str, variable: str, value: str) -> str:
    """The value of a variable, held to the rule of the setting it stands for."""
    if value and (problems := list(CHECKS[name](variable, value))):
        fix = f"correct {variable} in your environment, or unset it"
        raise ConfigError("a variable of the environment cannot be used", cause="; ".join(problems), fix=fix)
    return value


def _notes(config: Config) -> Iterator[str]:
    """What a person should hear of although it stops nothing."""
    origin = config.origin
    yield from (f"{origin.path}: {problem}" for problem in unknown_keys(origin.file))
    if _holds_keys(origin.file) and origin.path and _is_open_to_others(origin.path):
        yield f"{origin.path} holds keys and other users can read it; run: chmod 600 {origin.path}"
    if config.api_key and not config._is_explicit("api_key") and not config._file_key():
        yield f"the api_key in {origin.path} is not sent to {_site(config.base_url)[1]}: it belongs to another address"
    if "openai" in origin.env_keys and config.model != EXTRACTIVE and config.endpoint("answer").is_extractive:
        yield (
            "OPENAI_API_KEY is not used: it goes only to OpenAI or to an address you set; "
            "for OpenAI set OPENAI_BASE_URL=https://api.openai.com/v1 and NEXI_MODEL"
        )


def _holds_keys(data: Mapping[str, Any]) -> bool:
    roles = data.get("roles") or {}
    return any(data.get(name) for name in ("api_key", "jina_key", "api_keys")) or any(r.get("api_key") for r in roles.values())


def _is_open_to_others(path: Path) -> bool:
    return os.name != "nt" and path.exists() and bool(path.stat().st_mode & 0o077)


# Saving


def save_config(config: Config, path: Path | str | None = None) -> Path:
    """Write the settings, whole or not at all, for the owner's eyes. Raises StoreError.

    What only the environment said stays in the environment, and what the file held beyond our settings stays in the file.
    """
    place = Path(path) if path is not None else config.config_path
    text = json.dumps(_file_form(config), indent=2, ensure_ascii=False) + "\n"
    try:
        place = place.resolve()
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(place, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        fix = "check that the folder can be written and the disk is not full, or set NEXI_HOME to another folder"
        raise StoreError(f"{place} was not saved", cause=error.strerror or str(error), fix=fix) from error
    return place


def _file_form(config: Config) -> dict[str, Any]:
    before = config.origin.file
    kept = {k: v for k, v in before.items() if k not in CHECKS}
    named = _known(before)
    for name, value in config.to_dict().items():
        if name in config.origin.env and value == _plain(config.origin.env[name]):
            value = named.get(name, DEFAULT_CONFIG[name])
        if name in ALWAYS_SAVED or name in named or value != DEFAULT_CONFIG[name]:
            kept[name] = value
    return kept


def change_config(
    changes: Mapping[str, Any],
    *,
    remove: Iterable[str] = (),
    path: Path | str | None = None,
    env: Mapping[str, str] | None = None,
) -> Path:
    """Set and remove settings of the file, and leave the rest of it as it is. Raises ConfigError or StoreError.

    The file is judged as it will be, so that a setting which cannot be used can be mended. The environment has no say.
    """
    env = os.environ if env is None else env
    place = Path(path).absolute() if path is not None else nexi_home(env) / "config.json"
    gone = {*remove, *changes}
    old = {name for name, new in OLD_NAMES.items() if new in gone}
    data = {**{k: v for k, v in _read_file(place).items() if k not in gone | old}, **changes}
    problems = _problems(data) + unknown_keys({k: v for k, v in changes.items() if k not in CHECKS})
    if problems:
        raise ConfigError("nothing was changed", cause="; ".join(problems), fix=_fix_for(problems))
    config = Config(**_known(data), home=place.parent, origin=Origin(place, data, home=place.parent))
    return save_config(config, place)


def file_settings(path: Path | str | None = None, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the file itself says, under present names, whether or not it can be used. Raises ConfigError."""
    env = os.environ if env is None else env
    return _known(_read_file(Path(path).absolute() if path is not None else nexi_home(env) / "config.json"))


def _replace(path: Path, data: bytes) -> None:
    """A new file beside the old one, made durable, then renamed over it."""
    from nexi.files import sync_directory

    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


# First run

Ask: TypeAlias = Callable[[str], str]


@frozen
class Question:
    name: str
    text: str
    secret: bool = False


QUESTIONS = (
    Question("base_url", "Address of the model's API (any OpenAI-compatible server)"),
    Question("api_key", "API key (empty for a local server or for the built-in extractive model)", secret=True),
    Question("model", "Model"),
    Question("jina_key", "Jina key for search and reading (optional)", secret=True),
    Question("default_effort", "Default effort: s quick, m balanced, l thorough"),
)
SEARXNG_QUESTION = Question("searxng_url", "Address of your SearXNG with JSON on (empty: SEARXNG_URL, or another service)")
REMOVE = "-"


@frozen
class Offer:
    """A model that was found and can be chosen in the setup; `max_context` is None where its server does not say."""

    label: str
    base_url: str
    model: str
    max_context: int | None = None

    @property
    def answers(self) -> dict[str, Any]:
        window = {"max_context": self.max_context} if self.max_context else {}
        return {"base_url": self.base_url, "api_key": "", "model": self.model, **window}


def ensure_config(
    path: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    *,
    interactive: bool | None = None,
    setup: Callable[[Path | str | None, Mapping[str, str] | None], Config] | None = None,
) -> Config:
    """The configuration; where there is no file yet and a person is at the terminal, the first-time setup."""
    config = load_config(path, env)
    at_terminal = _at_terminal() if interactive is None else interactive
    if config.config_path.exists() or not at_terminal:
        return config
    return (setup or run_first_time_setup)(path, env)


def run_first_time_setup(
    path: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    *,
    ask: Ask | None = None,
    ask_secret: Ask | None = None,
    say: Callable[[str], None] | None = None,
    offers: Sequence[Offer] = (),
    questions: Sequence[Question] = QUESTIONS,
    window: Callable[[str, str], int | None] | None = None,
) -> Config:
    """Ask for the settings that matter, save them, and load the result. Raises ConfigError when the input ends.

    One of `offers` may be chosen by its number in place of address, key and model. `window` tells the real context window
    of the model at an address, where its server does.
    """
    env = os.environ if env is None else env
    say = say or _say
    config = load_config(path, {name: env[name] for name in PLACE_VARIABLES if name in env})
    say(f"Settings for nexi; they are saved in {config.config_path}. Enter keeps what is in brackets, {REMOVE} removes a key.")
    try:
        answers = _choice(offers, ask or _ask, say)
        for q in questions:
            if q.name not in answers:
                answers[q.name] = _answer(q, config, (ask_secret or _ask_secret) if q.secret else (ask or _ask), say)
    except EOFError as error:
        raise ConfigError("the setup was not finished", cause="the input ended", fix="run `nexi config setup` again") from error
    if window and "max_context" not in answers and (size := window(answers["base_url"], answers["model"])):
        answers["max_context"] = size
        say(f"The server gives {answers['model']} a window of {size} tokens.")
    place = save_config(Config(**{**vars(config), **answers}), config.config_path)
    say(f"Saved in {place}.")
    return load_config(path, env)


def _choice(offers: Sequence[Offer], ask: Ask, say: Callable[[str], None]) -> dict[str, Any]:
    """The settings of the model that was chosen by its number; none where another address is wanted."""
    if not offers:
        return {}
    say("Models on this machine:\n" + "\n".join(f"  {n}  {offer.label}" for n, offer in enumerate(offers, 1)))
    while given := ask("Number of the model to use (Enter for another address): ").strip():
        if given.isdecimal() and 1 <= int(given) <= len(offers):
            return offers[int(given) - 1].answers
        say(f"There is no number {given[:20]}.")
    return {}


def _answer(question: Question, config: Config, ask: Ask, say: Callable[[str], None]) -> str:
    """Ask until the answer is valid."""
    current = str(getattr(config, question.name))
    shown = mask(current) if question.secret else current
    while True:
        given = ask(f"{question.text} [{shown}]: ").strip() or current
        given = "" if question.secret and given == REMOVE else given
        problems = list(CHECKS[question.name](question.name, given))
        if not problems:
            return given
        say("; ".join(problems))


def _at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _ask(prompt: str) -> str:
    """The prompt is no data, so it does not go to stdout."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return input()


def _ask_secret(prompt: str) -> str:
    import getpass

    return getpass.getpass(prompt, sys.stderr)


# Prompts


def get_system_prompt(effort: str, max_iter: int | None = None, *, today: str = "", config: Config | None = None) -> str:
    """What the answering model is told; the user's own words, where the config has them, come first."""
    from nexi.prompts import render

    if effort not in EFFORT_LEVELS:
        raise ConfigError(f"there is no effort level {effort!r}", fix=f"use one of {', '.join(EFFORT_LEVELS)}")
    level = EFFORT_LEVELS[effort]
    values = {
        "today": today or "unknown",
        "effort": effort,
        "description": level["description"],
        "max_iter": level["max_iter"] if max_iter is None else max_iter,
    }
    folder = config.prompts_dir if config else None
    if config and config.system_prompt.strip():
        return render("custom_system", folder=folder, instructions=config.system_prompt.strip(), **values)
    return render("system", folder=folder, **values)


def get_compaction_prompt(original_query: str, content: str, target_words: int = 5000, *, config: Config | None = None) -> str:
    """What the model is told when a conversation must become shorter."""
    from nexi.prompts import render

    folder = config.prompts_dir if config else None
    return render("compaction", folder=folder, original_query=original_query, content=content, target_words=target_words)


def get_extractor_prompt(query: str, instructions: str = "", *, config: Config | None = None) -> str:
    """What the model is told about reading one page; the page is the message after it."""
    from nexi.prompts import render

    folder = config.prompts_dir if config else None
    return render("extractor", folder=folder, query=query, instructions=instructions or "Answer the question.")


_TEMPLATES = {
    "DEFAULT_SYSTEM_PROMPT_TEMPLATE": "system",
    "EXTRACTOR_PROMPT_TEMPLATE": "extractor",
    "COMPACTION_PROMPT_TEMPLATE": "compaction",
}


if not TYPE_CHECKING:  # the names are declared above; a checker would take any other name for one of them

    def __getattr__(name: str) -> str:
        """The templates by their documented names, read when first asked for."""
        if name not in _TEMPLATES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from nexi.prompts import packaged

        return packaged(_TEMPLATES[name])


DEFAULT_CONFIG: dict[str, Any] = Config().to_dict()
