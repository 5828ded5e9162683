"""searcher.yaml: what the operator says about the service, read from its text.

The app finds the file and reads it; here its words become a value or a ConfigError that names the place.

    service:
      cache:
        enabled: true
        dir: /var/cache/searcher
        ttl_s: 86400
        sweep_interval_s: 3600
      backends: [searxng, duckduckgo]
      fallback: true
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from nexi.errors import ConfigError
from nexi.structured.schema_check import check_schema

__all__ = ["FILE", "SearcherSettings", "read_settings"]

FILE = "searcher.yaml"
MAX_CHARS = 100_000
SWEEP_INTERVAL_S = 3600.0
_SECONDS = {"type": ["number", "null"], "minimum": 1}
SCHEMA: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {
        "service": {
            "type": ["object", "null"],
            "properties": {
                "cache": {
                    "type": ["object", "null"],
                    "properties": {
                        "enabled": {"type": ["boolean", "null"]},
                        "dir": {"type": ["string", "null"]},
                        "ttl_s": _SECONDS,
                        "sweep_interval_s": _SECONDS,
                    },
                    "additionalProperties": False,
                },
                "backends": {"type": ["array", "null"], "items": {"type": "string", "minLength": 1}, "minItems": 1},
                "fallback": {"type": ["boolean", "null"]},
            },
            "additionalProperties": False,
        }
    },
    "additionalProperties": False,
}


class CacheSettings(Struct, frozen=True):
    """The cache of page texts; None and "" leave the word of nexi's own config."""

    enabled: bool | None = None
    dir: str = ""
    ttl_s: float | None = None
    sweep_interval_s: float = SWEEP_INTERVAL_S


class SearcherSettings(Struct, frozen=True):
    """`backends` empty means the search chain of nexi's config; `fallback` whether others may answer for the first."""

    cache: CacheSettings = CacheSettings()
    backends: tuple[str, ...] = ()
    fallback: bool = True


def read_settings(text: str, where: str = FILE) -> SearcherSettings:
    """The settings in a YAML text; an empty one leaves everything as it is. Raises ConfigError."""
    value = _parse_yaml(text, where)
    if problems := check_schema(value, SCHEMA):
        raise _settings_error(where, "; ".join(problems[:3]))
    service = ((value or {}).get("service")) or {}
    cache = service.get("cache") or {}
    return SearcherSettings(
        CacheSettings(
            cache.get("enabled"),
            (cache.get("dir") or "").strip(),
            cache.get("ttl_s"),
            cache.get("sweep_interval_s") or SWEEP_INTERVAL_S,
        ),
        tuple(name.strip().lower() for name in service.get("backends") or ()),
        service.get("fallback") is not False,
    )


def _parse_yaml(text: str, where: str) -> Any:
    try:
        import yaml  # type: ignore[import-untyped]  # it ships no types
    except ImportError as error:
        cause = "reading YAML needs PyYAML"
        raise ConfigError(f"{where} cannot be read", cause=cause, fix="install it: pip install pyyaml") from error
    if len(text) > MAX_CHARS:
        raise _settings_error(where, f"it has more than {MAX_CHARS:,} characters")
    try:
        value = yaml.safe_load(text)
    except RecursionError as error:
        raise _settings_error(where, "it is nested too deeply") from error
    except (yaml.YAMLError, ValueError) as error:
        raise _settings_error(where, " ".join(str(error).split())[:300]) from error
    return dict(value) if isinstance(value, Mapping) else value


def _settings_error(where: str, cause: str) -> ConfigError:
    return ConfigError(f"{where} cannot be used", cause=cause, fix="correct it, or delete it to use the defaults")
