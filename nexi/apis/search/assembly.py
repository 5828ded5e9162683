"""The search service of one `Nexi`: its ports, joined, and searcher.yaml, which may change its cache and its backends.

Doors ask `Nexi.search_api()` for it. What a request means is decided in `service` and the modules below it. What the operator
says in the file becomes a value, or a ConfigError that names the place:

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

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from nexi.apis.search.schema import Limits
from nexi.apis.search.service import Ports, SearchService
from nexi.app.components import read_page
from nexi.app.factory import PortFactory
from nexi.app.gate import open_gate
from nexi.budget import Budget
from nexi.errors import ConfigError
from nexi.fetchers.cache import KEPT_EXPIRED_S, CachedFetcher, PageCache
from nexi.ports import LLM, ContentFetcher, Emit, SearchBackend
from nexi.searcher import SearchPatience
from nexi.structured.schema_check import read_value
from nexi.types import FetchLimits, Page, Query, SearchOutcome

__all__ = ["build_search_service", "settings_of"]

FILE = "searcher.yaml"
MAX_CHARS = 100_000
MAX_SECONDS = 1_000_000_000
Seconds = Annotated[float, Meta(ge=1, le=MAX_SECONDS)] | None
BackendNames = Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)]
SWEEP_INTERVAL_S = 3600.0
OFFERED = ("searxng", "duckduckgo")  # what a client may ask for beside the chain; the rest is the operator's to offer


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


def settings_of(folder: Path, file: Path | None = None) -> SearcherSettings:
    """What searcher.yaml says: the given file, which must be there, or the one in nexi's folder. Raises ConfigError."""
    path = file or folder / FILE
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        if file is None:
            return SearcherSettings()
        raise ConfigError(f"{path} is not there", fix="name a file that exists, or leave the option out") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read", cause=str(error), fix="make it a readable file in UTF-8") from error
    return read_settings(text, str(path))


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


def build_search_service(ports: PortFactory, settings: SearcherSettings, emit: Emit) -> SearchService:
    """The service over the ports of one `Nexi`."""
    wish, config = settings.cache or CacheSettings(), ports.config
    own_folder = (wish.dir or "").strip()
    folder = Path(own_folder).expanduser() if own_folder and not config.is_for_guests else config.page_cache_dir
    keep_expired_s = KEPT_EXPIRED_S if wish.ttl_s is None else 0.0  # a time that the operator names is the end of a page
    cache = PageCache(folder, clock=ports.clock, ttl_s=wish.ttl_s or config.page_cache_ttl_s, keep_expired_s=keep_expired_s)
    cached_fetchers: list[ContentFetcher] = []

    def list_fetchers() -> Sequence[ContentFetcher]:
        """Nexi's own, unless the file has another word on caching."""
        if wish.enabled is None and not wish.dir and wish.ttl_s is None:
            return ports.fetchers()
        if not cached_fetchers:
            bare = ports.uncached_fetchers()
            cached_fetchers.extend(
                bare if wish.enabled is False else (CachedFetcher(f, cache, check=ports.check_url) for f in bare)
            )
        return cached_fetchers

    async def search(query: Query, chain: Sequence[SearchBackend], limits: Limits) -> SearchOutcome:
        patience = SearchPatience(limits.search_s, limits.total_s)
        return await ports.searcher(emit, backends=lambda: chain, retries=limits.retries, patience=patience).search(query)

    async def read(url: str, limits: FetchLimits) -> Page:
        return await read_page(ports, url, limits, fetchers=list_fetchers, emit=emit)

    def open_judge() -> LLM | None:
        """The model for one call; None where there is none but the built-in one, which ranks nothing."""
        budget = Budget(max_tokens=config.max_tokens, max_cost=config.max_cost, max_model_calls=1)  # nothing is asked twice
        return open_gate(ports, budget=budget, emit=emit).open_judge()

    chain, interval_s = partial(choose_backends, ports, settings), wish.sweep_interval_s or SWEEP_INTERVAL_S
    return SearchService(Ports(search, chain, read, open_judge, ports.clock, emit, cache, interval_s, config.prompts_dir))


def choose_backends(ports: PortFactory, settings: SearcherSettings, name: str) -> tuple[SearchBackend, ...]:
    """The backends for a wanted name: that one first, then the others where a fallback is allowed."""

    def open_extra(name: str) -> SearchBackend | None:  # one outside the chain, where it is set up
        try:
            return ports.extra_backend(name)
        except ConfigError:
            return None

    usual = ports.backends()
    if names := settings.backends:
        backends = {b.name: b for b in usual}
        usual = tuple(b for n in names if (b := backends.get(n) or open_extra(n)))
    if not name:
        return usual if settings.fallback else usual[:1]
    first = next((b for b in usual if b.name == name), None)
    if first is None and name in OFFERED and not names:
        first = open_extra(name)
    preferred: tuple[SearchBackend, ...] = () if first is None else (first,)
    others = tuple(b for b in usual if b.name != name)
    return (*preferred, *others) if settings.fallback else preferred
