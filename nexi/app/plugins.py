"""The seeds' plug-in signature, both ways: their objects behind our ports, and our adapters asked in their way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from nexi import __version__
from nexi.app.clock import SystemClock
from nexi.app.emit import QuietEmit
from nexi.errors import FetchError
from nexi.plugins import FetchPlugin, SearchPlugin, takes_lists
from nexi.ports import ContentFetcher, SearchBackend
from nexi.searcher import Searcher
from nexi.types import FetchLimits, PageView, Query, SearchOutcome


def as_backend(backend: Any) -> SearchBackend:
    wrapped: SearchBackend = SearchPlugin(backend) if takes_lists(backend.search, "queries") else backend
    return wrapped


def as_fetcher(fetcher: Any) -> ContentFetcher:
    wrapped: ContentFetcher = FetchPlugin(fetcher) if takes_lists(fetcher.fetch, "urls") else fetcher
    return wrapped


def _connections() -> dict[str, Any]:
    """Such a call brings no config, and the proxies and certificates of this machine hold for it all the same."""
    from nexi.app.factory import factory_for
    from nexi.config import load_config

    return factory_for(load_config()).connections()


async def search_as_plugin(name: str, queries: Sequence[str], api_key: str, timeout_s: float) -> list[SearchOutcome]:
    """A backend of ours asked in the seeds' way: several queries and a key with the call."""
    from nexi.backends import Settings, create_backend
    from nexi.backends.sender import Sender

    connections = _connections()
    sender = Sender(user_agent=f"nexi/{__version__}", **connections)
    settings = Settings("", api_key, timeout_s, connections["proxy"], certificates=connections["trust"].file)
    backend = create_backend(name, settings, sender)
    searcher = Searcher(lambda: [backend], emit=QuietEmit(), clock=SystemClock())
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(searcher.search(Query(text))) for text in queries]
    finally:
        await sender.aclose()
    return [task.result() for task in tasks]


async def fetch_as_plugin(name: str, urls: Sequence[str], api_key: str, timeout_s: float) -> list[PageView]:
    """A fetcher of ours asked in the seeds' way: several URLs and a key with the call."""
    from nexi.fetchers import Settings, create_fetcher

    fetcher: Any = create_fetcher(name, Settings(clock=SystemClock(), api_key=api_key, **_connections()))
    limits = FetchLimits(timeout_s=timeout_s)

    async def one(url: str) -> PageView:
        try:
            page = await fetcher.fetch(url, limits)
        except FetchError as error:
            return PageView(url, error=f"{error.reason}: {error}")
        return PageView(url, title=page.title, text=page.text)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(url)) for url in urls]
    finally:
        await fetcher.aclose()
    return [task.result() for task in tasks]
