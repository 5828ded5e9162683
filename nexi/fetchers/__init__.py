"""Fetchers by name, each imported when its name is asked for; third parties add theirs by the entry point `nexi.fetchers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from nexi.errors import ConfigError
from nexi.net.trust import MACHINE, Trust
from nexi.ports import Clock, ContentFetcher, MakePacing

if TYPE_CHECKING:
    from nexi.fetchers.http import HttpFetcher

ENTRY_POINTS = "nexi.fetchers"


class Settings(Struct, frozen=True):
    """What a fetcher may need; keys and exceptions come from the configuration."""

    clock: Clock
    api_key: str = ""
    allow_private: tuple[str, ...] = ()
    respect_robots: bool = True
    user_agent: str = ""
    proxy: str = ""
    no_proxy: tuple[str, ...] = ()
    trust: Trust = MACHINE
    per_host_burst: int = 8
    per_host_rate: float = 4.0
    make_pacing: MakePacing | None = None  # of a team, whose machines keep the pace together
    cache_folder: Path | None = None  # None keeps nothing
    cache_ttl_s: float = 86_400.0
    ocr_languages: str = ""
    timeout_s: float | None = None  # in the place of a run's own limit, for a service that reads pages itself
    plugin: Factory | None = None  # what makes a fetcher that is not nexi's own


Factory: TypeAlias = "Callable[[Settings], ContentFetcher]"


def _build_http(settings: Settings) -> HttpFetcher:
    from nexi.fetchers.guard import AddressGuard
    from nexi.fetchers.http import DEFAULT_USER_AGENT, HttpFetcher

    return HttpFetcher(
        guard=AddressGuard(settings.allow_private),
        clock=settings.clock,
        user_agent=settings.user_agent or DEFAULT_USER_AGENT,
        respect_robots=settings.respect_robots,
        proxy=settings.proxy,
        no_proxy=settings.no_proxy,
        per_host_burst=settings.per_host_burst,
        per_host_rate=settings.per_host_rate,
        make_pacing=settings.make_pacing,
        trust=settings.trust,
        ocr_languages=settings.ocr_languages,
    )


def _build_jina(settings: Settings) -> ContentFetcher:
    from nexi.fetchers.guard import AddressGuard
    from nexi.fetchers.jina import JinaFetcher

    return JinaFetcher(
        guard=AddressGuard(settings.allow_private),
        clock=settings.clock,
        api_key=settings.api_key,
        proxy=settings.proxy,
        no_proxy=settings.no_proxy,
        trust=settings.trust,
        timeout_s=settings.timeout_s,
    )


def _build_crawl4ai(settings: Settings) -> ContentFetcher:
    from nexi.fetchers.browser import Browser, Crawl4aiFetcher
    from nexi.fetchers.guard import AddressGuard
    from nexi.fetchers.http import DEFAULT_USER_AGENT

    guard, user_agent = AddressGuard(settings.allow_private), settings.user_agent or DEFAULT_USER_AGENT
    manners = _build_http(settings)
    browser = Browser(guard, user_agent=user_agent, proxy=settings.proxy, no_proxy=settings.no_proxy)
    return Crawl4aiFetcher(browser, guard=guard, clock=settings.clock, admit=manners.admit, close=manners.aclose)


FETCHERS: Mapping[str, Factory] = {"http": _build_http, "jina": _build_jina, "crawl4ai": _build_crawl4ai}


def is_available(name: str) -> bool:
    """Whether nexi or an installed package provides a fetcher of that name."""
    try:
        return bool(FETCHERS.get(name) or _third_party(name))
    except ConfigError:
        return False


def create_fetcher(name: str, settings: Settings) -> ContentFetcher:
    """The fetcher of that name; ConfigError when nobody provides it."""
    fetcher = (FETCHERS.get(name) or settings.plugin or _third_party(name))(settings)
    if settings.cache_folder is None:
        return fetcher
    from nexi.fetchers.cache import CachedFetcher, PageCache
    from nexi.fetchers.guard import AddressGuard

    cache = PageCache(settings.cache_folder, clock=settings.clock, ttl_s=settings.cache_ttl_s)
    return CachedFetcher(fetcher, cache, check=AddressGuard(settings.allow_private).check_url)


def _third_party(name: str) -> Factory:
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        factory: Factory = entry.load()
        return factory
    cause = f"nexi has {', '.join(FETCHERS)}, and no installed package or plug-in file adds it"
    fix = "set content_fetcher to one of these, or install the plug-in that provides it"
    raise ConfigError(f"there is no content fetcher called {name!r}", cause=cause, fix=fix)
