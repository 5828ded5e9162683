"""Feeds: the events of a run as a list that many readers follow, each from where it left off.

A fact has its number in the run log as its id; a delta after fact 7 has 7.1, 7.2 and so on. Facts can be read again from the
log when the feed is gone; deltas live as long as the feed. How a reader is reached is for the doors.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from functools import cached_property

from msgspec import Struct

from nexi.events import Event, Fact, encode, is_fact

MAX_DELTAS = 20_000  # a reader that comes later still finds them; beyond this only facts are kept
PACE_S = 0.05  # no eye sees the difference
READERS_AT_PACE = 10  # more readers get fewer and larger batches, so that however many there are, they cost a run little
_MARK = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?")


class Mark(Struct, frozen=True):
    """A place in a feed: after so many facts, and so many deltas since the last of them."""

    fact: int = 0
    delta: int = 0

    def __str__(self) -> str:
        return f"{self.fact}.{self.delta}" if self.delta else str(self.fact)


class FeedItem(Struct, frozen=True, dict=True):
    """One event and its place."""

    mark: Mark
    event: Event

    @cached_property
    def frame(self) -> bytes:
        """The event as a server-sent event: JSON in ASCII, so that no text can break the frame."""
        data = json.dumps(encode(self.event), separators=(",", ":"))
        return f"id: {self.mark}\nevent: {self.event.kind}\ndata: {data}\n\n".encode("ascii")


def mark_of(text: str) -> Mark | None:
    """The place a Last-Event-ID names; None for what is no such id."""
    match = _MARK.fullmatch(text.strip())
    return Mark(int(match[1]), int(match[2] or 0)) if match else None


class Feed:
    """The events of one run, as far as it has come. One writer, any number of readers, one event loop."""

    def __init__(self, before: Iterable[Fact] = (), *, pace_s: float = PACE_S) -> None:
        self._pace_s = pace_s
        self._items: list[FeedItem] = []
        self._after: list[int] = [0]  # by number of facts: the index of the first item after them
        self._deltas = 0
        self._here = Mark()
        self._changed = asyncio.Event()  # at once, for who follows each event
        self._due = asyncio.Event()  # now and then, for who takes them in batches
        self._bell: asyncio.TimerHandle | None = None
        self._rung = 0.0
        self._readers = 0
        self.has_ended = False
        for fact in before:
            self.put(fact)

    @property
    def fact_count(self) -> int:
        return self._here.fact

    def put(self, event: Event) -> None:
        fact = is_fact(event)
        if not fact:
            self._deltas += 1
            if self._deltas > MAX_DELTAS:
                return
        self._here = Mark(self._here.fact + 1) if fact else Mark(self._here.fact, self._here.delta + 1)
        self._items.append(FeedItem(self._here, event))
        if fact:
            self._after.append(len(self._items))
        self._wake_readers()
        if self._readers:
            self._set_bell()

    def end(self) -> None:
        """Nothing more will come."""
        self.has_ended = True
        self._wake_readers()
        self._ring_bell()

    async def follow(self, mark: Mark = Mark(), *, beat_s: float = 15.0) -> AsyncIterator[FeedItem | None]:  # noqa: B008
        """Every item after the mark, without gap or repeat, until the end; None when nothing came for a while."""
        index = self._index_after(mark)
        while True:
            while index < len(self._items):
                yield self._items[index]
                index += 1
            if self.has_ended:
                return
            if not await _is_set_within(self._changed, beat_s):
                yield None

    async def frames(self, mark: Mark = Mark(), *, beat_s: float = 15.0) -> AsyncGenerator[bytes, None]:  # noqa: B008
        """The same as server-sent events. Each is written once, however many read it, and what comes together goes together."""
        index = self._index_after(mark)
        self._readers += 1
        try:
            if self._readers > READERS_AT_PACE and not self.has_ended:
                self._set_bell()
                await self._due.wait()  # one of many begins with the next batch
            while not (self.has_ended and index == len(self._items)):
                due = self._due  # of now: what comes while a batch is on its way rings for the next
                if index < len(self._items):
                    batch, index = self._items[index:], len(self._items)
                    yield b"".join(item.frame for item in batch)
                if not self.has_ended and not await _is_set_within(due, beat_s):
                    yield b": still here\n\n"
        finally:
            self._readers -= 1

    def _set_bell(self) -> None:
        if self._bell is None:
            pace = self._pace_s * max(1.0, self._readers / READERS_AT_PACE)
            self._bell = asyncio.get_running_loop().call_at(self._rung + pace, self._ring_bell)

    def _ring_bell(self) -> None:
        """The next batch is due, for all readers at once."""
        if self._bell:
            self._bell.cancel()
        self._bell, self._rung = None, asyncio.get_running_loop().time()
        self._due.set()
        self._due = asyncio.Event()

    def _index_after(self, mark: Mark) -> int:
        if mark.fact >= len(self._after):
            return len(self._items)
        first = self._after[mark.fact]
        following = self._after[mark.fact + 1] - 1 if mark.fact + 1 < len(self._after) else len(self._items)
        return min(first + mark.delta, following)

    def _wake_readers(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
