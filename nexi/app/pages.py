"""One page outside a run, along the fetch chain, for a caller who vouches for its URL. The guard holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from nexi.app.emit import QuietEmit
from nexi.app.factory import PortFactory
from nexi.budget import Budget, Meter
from nexi.errors import FetchError
from nexi.ports import ContentFetcher, Emit
from nexi.reader import Reader
from nexi.runs.directory import MemoryPages
from nexi.runs.session import Session
from nexi.tasks import run_in_group
from nexi.types import FetchLimits, Page
from nexi.urls import is_web_url

MAX_LONG_PAGE_BYTES = 16_000_000
MAX_LONG_PAGE_CHARS = 8_000_000  # of a page that is read by its passages


def long_page_limits(timeout_s: float) -> FetchLimits:
    """What a page may cost where a question chooses what is read of it."""
    return FetchLimits(max_bytes=MAX_LONG_PAGE_BYTES, max_chars=MAX_LONG_PAGE_CHARS, timeout_s=timeout_s)


async def read_page(
    ports: PortFactory,
    url: str,
    limits: FetchLimits | None = None,
    *,
    emit: Emit | None = None,
    fetchers: Callable[[], Sequence[ContentFetcher]] | None = None,
) -> Page:
    """Without `limits` it is read whole, as far as a long page is. Raises FetchError."""
    if not is_web_url(url):
        fix = "write it in full, like https://example.com/page"
        raise FetchError(f"{url[:200]!r} is not the address of a web page", reason="blocked", fix=fix)

    async def read(tasks: asyncio.TaskGroup) -> Page:
        reader = Reader(
            fetchers or ports.fetchers,
            limits=limits or long_page_limits(ports.config.fetch_timeout),
            session=Session(),
            meter=Meter(Budget(), started=ports.clock.monotonic()),
            store=MemoryPages(),
            emit=emit or QuietEmit(),
            clock=ports.clock,
            tasks=tasks,
        )
        return await reader.read(url)

    return await run_in_group(read)
