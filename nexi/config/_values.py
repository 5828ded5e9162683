"""Constants of the configuration, and values of settings: how they are kept, how they stand in JSON, and what may be shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict
from urllib.parse import SplitResult, urlsplit

EndpointRole: TypeAlias = Literal["answer", "extract", "judge"]
Keys: TypeAlias = tuple[str, ...]
DEFAULT_BASE_URL = "https://openrouter.ai/api/v1"
EXTRACTIVE = "extractive"
ROLES: tuple[EndpointRole, ...] = ("answer", "extract", "judge")
OLD_NAMES = {"max_timeout": "time_target"}
KEYED_BACKENDS = ("jina", "tavily", "brave", "exa", "serper", "firecrawl")
KEY_HOSTS = {"openrouter.ai": "openrouter", "api.openai.com": "openai"}
_KEY_OWNERS = ("openai", "openrouter", *KEYED_BACKENDS, "stackexchange", "qdrant")
KEY_VARIABLES = {**{owner: f"{owner.upper()}_API_KEY" for owner in _KEY_OWNERS}, "embedding": "NEXI_EMBEDDING_API_KEY"}
JUDGE_VARIABLE = "MODEL_CHOICE"
PLACE_VARIABLES = ("NEXI_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA", "USERPROFILE")


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


def freeze_value(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | tuple):
        return tuple(freeze_value(item) for item in value)
    return {str(k): freeze_value(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def to_json_value(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [to_json_value(item) for item in value]
    return {k: to_json_value(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def parse_key(value: str | None) -> str:
    return (value or "").strip()


def parse_names(value: str | Iterable[str]) -> tuple[str, ...]:
    """A name, names separated by commas, or a list of names."""
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(part.strip() for part in parts if part.strip())


def parse_keys(value: str | Iterable[str]) -> Keys:
    return (value,) if isinstance(value, str) else tuple(value)


def deduplicate_keys(*keys: str) -> Keys:
    return tuple(dict.fromkeys(key for key in keys if key))


def split_url(url: str) -> SplitResult | None:
    """The parts of the URL; None if it is malformed."""
    with suppress(ValueError):
        parts = urlsplit(url)
        _ = parts.port
        return parts
    return None


@lru_cache(maxsize=64)
def parse_site(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: what a key belongs to."""
    parts = split_url(url)
    if parts is None:
        return ("", url, None)
    return (parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme))


def find_key_owner(base_url: str) -> str:
    """The known provider at this address, if it is reached over HTTPS; else empty."""
    scheme, host, port = parse_site(base_url)
    return KEY_HOSTS.get(host, "") if (scheme, port) == ("https", 443) else ""


def parse_searxng_url(url: str) -> str:
    """The instance behind an address that may come with path and query (`.../search?q=<query>`)."""
    return url.strip().split("?", 1)[0].rstrip("/").removesuffix("/search").rstrip("/")


def parse_proxy_url(proxy: str) -> str:
    """The address with a scheme, which many people leave out."""
    proxy = proxy.strip()
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def complete_url(address: str) -> str:
    """A typed address with the scheme that people leave out: http for a port or an IP address, https for other hosts."""
    address = address.strip()
    host, has_port, _ = address.partition("/")[0].partition(":")
    is_near = bool(has_port) or host == "localhost" or host.replace(".", "").isdecimal()
    if "://" in address or not (is_near or "." in host):
        return address
    return f"{'http' if is_near else 'https'}://{address}"


def hide_password(url: str) -> str:
    parts = split_url(url)
    if parts is None or "@" not in parts.netloc:
        return "…" if parts is None else url
    return parts._replace(netloc=f"…@{parts.netloc.rpartition('@')[2]}").geturl()


def mask_key(key: str) -> str:
    """Enough of a key to recognise it."""
    if not key:
        return ""
    return f"{key[:3]}…{key[-2:]}" if len(key) >= 12 else "set"


def mask_api_keys(keys: Mapping[str, Any]) -> dict[str, list[str]]:
    return {provider: [mask_key(key) for key in parse_keys(value)] for provider, value in keys.items()}


def mask_roles(roles: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    masks = {"api_key": mask_key, "base_url": hide_password}
    return {role: {k: masks[k](v) if k in masks else v for k, v in part.items()} for role, part in roles.items()}
