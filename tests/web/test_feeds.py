"""Many readers of one run: all get all of it, in batches that cost the run little, and none is worked for who has left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from nexi.app import hosting
from nexi.app.hosting import READERS_AT_PACE, Feed, FeedItem, Mark
from nexi.events import Event, Warned
from nexi.web.payload import EventStream
from tests.web.world import GatedWeb, serving

FACTS = [Warned("x", f"number {n}") for n in range(40)]
WHOLE = b"".join(FeedItem(Mark(n), fact).frame for n, fact in enumerate(FACTS, 1))


async def batches(feed: Feed) -> list[bytes]:
    return [frame async for frame in feed.frames()]


@pytest.mark.parametrize("readers", [1, READERS_AT_PACE, 50])
async def test_every_reader_gets_everything_once_and_in_few_batches(readers: int) -> None:
    feed = Feed(FACTS[:10], pace_s=600.0)
    reading = [asyncio.create_task(batches(feed)) for _ in range(readers)]
    for fact in FACTS[10:]:
        feed.put(fact)
        await asyncio.sleep(0)
    feed.end()
    for told in await asyncio.gather(*reading):
        assert b"".join(told) == WHOLE
        assert len(told) <= 3


async def test_an_event_is_written_once_for_all_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Event] = []

    def counted(event: Event) -> dict[str, Any]:
        written.append(event)
        return {}

    monkeypatch.setattr(hosting, "encode", counted)
    feed = Feed(FACTS)
    feed.end()
    await asyncio.gather(*(batches(feed) for _ in range(50)))
    assert len(written) == len(FACTS)


async def test_one_of_many_begins_with_the_next_batch_also_where_nothing_comes() -> None:
    feed = Feed(FACTS, pace_s=0.001)
    many = [feed.frames() for _ in range(READERS_AT_PACE + 5)]
    first = await asyncio.gather(*(anext(frames) for frames in many))
    assert set(first) == {WHOLE}
    for frames in many:
        await frames.aclose()


async def test_a_quiet_feed_says_that_it_is_still_there() -> None:
    frames = Feed().frames(beat_s=0.001)
    assert await anext(frames) == b": still here\n\n"
    await frames.aclose()


async def test_what_comes_while_a_batch_is_on_its_way_is_not_missed() -> None:
    feed, told = Feed(FACTS[:1], pace_s=0.001), b""
    async for frame in feed.frames():
        told += frame
        if feed.fact_count < len(FACTS):
            feed.put(FACTS[feed.fact_count])
        else:
            feed.end()
    assert told == WHOLE


class Frames:
    """Frames without an end, and whether they were closed."""

    closed = False

    async def __call__(self) -> AsyncGenerator[bytes, None]:
        try:
            yield b"one"
            await asyncio.Event().wait()
        finally:
            self.closed = True


async def test_frames_are_closed_as_soon_as_the_reader_leaves() -> None:
    frames, sent, left = Frames(), asyncio.Queue[Any](), asyncio.Event()

    async def receive() -> dict[str, str]:
        await left.wait()
        return {"type": "http.disconnect"}

    streaming = asyncio.create_task(EventStream(frames())({"method": "GET"}, receive, sent.put))
    assert (await sent.get())["type"] == "http.response.start"
    assert (await sent.get())["body"] == b"one"
    left.set()
    await streaming
    assert (frames.closed, sent.empty()) == (True, True)


async def test_a_fault_while_streaming_reaches_the_guard() -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"one"
        raise RuntimeError("broken")

    async def nothing(_: object = None) -> Any:
        await asyncio.Event().wait()

    async def send(_: object) -> None:
        return None

    with pytest.raises(RuntimeError, match="broken"):
        await EventStream(broken())({"method": "GET"}, nothing, send)


async def test_a_head_of_the_events_ends_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        run_id = await served.ask()
        reply = await served.client.head(f"/v1/runs/{run_id}/events")
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        served.web.gate.set()
