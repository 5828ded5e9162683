"""Streams: responses that last, as server-sent events, until nothing more comes or the reader has left.

Above, `runs` and `openai` make the frames; below is the web server. What the frames say is not known here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class EventStream(Response):
    """Frames as they come. They are closed when the reader leaves, so that no work is done for a reader who has left."""

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes, None]) -> None:
        self._frames = frames
        self.status_code, self.background = 200, None
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending, leaving = asyncio.create_task(self._send_all(scope, send)), asyncio.create_task(wait_for_disconnect(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait((sending, leaving))  # neither outlives the response
        return None if sending.cancelled() else sending.result()

    async def _send_all(self, scope: Scope, send: Send) -> None:
        async with aclosing(self._frames) as frames:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                async for frame in frames:
                    if frame:  # one that its reader has seen is empty
                        await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def send_frames(frames: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Frames that are all there, for a stream."""
    for frame in frames:
        yield frame


async def wait_for_disconnect(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
