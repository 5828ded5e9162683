"""One page outside a run, along the fetch chain, for a caller who vouches for its URL. The guard holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nexi.budget import Budget, Meter
from nexi.errors import FetchError, NexiError
from nexi.ports import ContentFetcher, Emit
from nexi.reader import Reader
from nexi.runs.pages import MemoryPages
from nexi.runs.session import Session
from nexi.types import FetchLimits, Page
from nexi.urls import is_web_url

if TYPE_CHECKING:
    from nexi.app.clients import Clients


async def read_page(
    nexi: Clients,
    url: str,
    limits: FetchLimits,
    *,
    emit: Emit,
    fetchers: Callable[[], Sequence[ContentFetcher]] | None = None,
) -> Page:
    """Raises FetchError."""
    if not is_web_url(url):
        fix = "write it in full, like https://example.com/page"
        raise FetchError(f"{url[:200]!r} is not the address of a web page", reason="blocked", fix=fix)
    async with asyncio.TaskGroup() as tasks:
        reader = Reader(
            fetchers or nexi.fetchers,
            limits=limits,
            session=Session(),
            meter=Meter(Budget(), started=nexi.clock.monotonic()),
            store=MemoryPages(),
            emit=emit,
            clock=nexi.clock,
            tasks=tasks,
        )
        try:
            page: Page | NexiError = await reader.read(url)
        except NexiError as error:
            page = error  # carried past the task group, which would bundle it
    if isinstance(page, NexiError):
        raise page
    return page
