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

from typing import Annotated

from msgspec import Meta, Struct

from nexi.errors import ConfigError
from nexi.structured.schema_check import read_value

__all__ = ["FILE", "SearcherSettings", "read_settings"]

FILE = "searcher.yaml"
MAX_CHARS = 100_000
MAX_SECONDS = 1_000_000_000
Seconds = Annotated[float, Meta(ge=1, le=MAX_SECONDS)] | None
BackendNames = Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)]


class CacheSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The cache of page texts; None leaves the word of nexi's own config."""

    enabled: bool | None = None
    dir: str | None = None
    ttl_s: Seconds = None
    sweep_interval_s: Seconds = None


class SearcherSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Without `backends` it is the search chain of nexi's config; `fallback` says whether others may answer for the first."""

    cache: CacheSettings | None = CacheSettings()
    backends: BackendNames | None = None
    fallback: bool | None = True


class SearcherFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    service: SearcherSettings | None = None


def read_settings(text: str, where: str = FILE) -> SearcherSettings:
    """The settings in a YAML text; an empty one leaves everything as it is. Raises ConfigError."""
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
    try:
        service = read_value({} if value is None else value, SearcherFile).service or SearcherSettings()
    except ValueError as error:  # what does not fit, or half of a character
        raise _settings_error(where, str(error)) from error
    names = tuple(name.strip().lower() for name in service.backends or ())
    return SearcherSettings(service.cache or CacheSettings(), names or None, service.fallback is not False)


def _settings_error(where: str, cause: str) -> ConfigError:
    return ConfigError(f"{where} cannot be used", cause=cause, fix="correct it, or delete it to use the defaults")
