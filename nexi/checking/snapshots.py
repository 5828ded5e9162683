"""The stored texts behind the citation numbers of a session, each prepared once, off the event loop.

Above it the checker asks for numbers; below it are the session's pages and the page store. A text that is gone or damaged is
None, which the proof calls unchecked: a gap is said, never passed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from nexi.checking.pages import Snapshot, prepare
from nexi.errors import StoreError
from nexi.ports import PageStore
from nexi.runs.session import Session
from nexi.types import Source


@dataclass(eq=False, repr=False)
class Snapshots:
    """Of one session. A page that was numbered in an earlier run is found by its digest."""

    session: Session
    store: PageStore
    _prepared: dict[str, Snapshot] = field(default_factory=dict, init=False)  # by address: an answer may change numbers
    _running: dict[str, asyncio.Future[Snapshot]] = field(default_factory=dict, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    @property
    def numbers(self) -> list[int]:
        """Every number there is."""
        return [source.number for source in self.session.book.sources]

    async def of(self, numbers: Collection[int]) -> dict[int, Snapshot | None]:
        """The snapshots of these numbers; None for a number without a stored text."""
        async with self._turn:
            for source in filter(None, map(self.session.book.by_number, numbers)):
                if source.url not in self._prepared:
                    await self._prepare(source)
        sources = {number: self.session.book.by_number(number) for number in numbers}
        return {number: self._prepared.get(source.url) if source else None for number, source in sources.items()}

    async def prepare_all(self) -> None:
        """Prepare whatever was numbered, so that the first sentence need not wait for it."""
        for number in self.numbers:
            await self.of([number])

    async def _prepare(self, source: Source) -> None:
        page = self.session.find_page(source.url)
        text = page.text if page and source.digest in ("", page.digest) else None
        if text is None and source.digest:
            with suppress(StoreError):
                text = await self.store.get(source.digest)
        if text is not None:
            if source.url not in self._running:  # a caller that is cancelled leaves its work to the next one
                work = partial(prepare, text, source.url, source.digest, title=source.title)
                self._running[source.url] = asyncio.get_running_loop().run_in_executor(None, work)
            self._prepared[source.url] = await asyncio.shield(self._running[source.url])
