"""A web site on loopback that says exactly the bytes it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

Writer: TypeAlias = asyncio.StreamWriter
TURNS = 5  # of the loop; it takes three to accept a connection
Answer: TypeAlias = "bytes | Callable[[Writer], Awaitable[None]] | list[bytes]"


def response(body: bytes | str = b"", status: int = 200, content_type: str = "text/html", **headers: str) -> bytes:
    """One whole HTTP/1.1 answer; `content_encoding="gzip"` becomes the header of that name."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}"]
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def page(text: str, title: str = "Title") -> bytes:
    return response(f"<html><head><title>{title}</title></head><body><p>{text}</p></body></html>")


class Site:
    """Answers by path. A list is used up from the front; an unknown path is a 404."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.port = 0
        self.connections: dict[Writer, asyncio.Task[None]] = {}
        self.now = self.most_at_once = 0
        self._is_closed = False

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def accept(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        if self._is_closed:  # on a busy machine a connection may come in after its client gave up
            writer.close()
        else:
            self.connections[writer] = asyncio.ensure_future(self._serve(reader, writer))

    async def close(self) -> None:
        """End every connection. Raises what went wrong in one of them."""
        self._is_closed = True
        for task in self.connections.values():
            task.cancel()
        ends = await asyncio.gather(*self.connections.values(), return_exceptions=True)
        for writer in self.connections:  # a task that was cancelled before its first step has closed nothing
            writer.close()
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head.decode("latin-1"), writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: str, writer: Writer) -> None:
        first, *rest = head.strip().split("\r\n")
        path = first.split(" ")[1]
        self.requests.append((path, {k.lower(): v for k, _, v in (line.partition(": ") for line in rest)}))
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)
        answer = self.answers.get(path, response("none", 404))
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
        else:
            await answer(writer)
        self.now -= 1


@asynccontextmanager
async def serving(answers: Mapping[str, Answer] | None = None) -> AsyncIterator[Site]:
    """A site that is up inside the block; answers may be added to it there."""
    site = Site(answers or {})
    server = await asyncio.start_server(site.accept, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        await stop_listening(server)
        await site.close()


async def stop_listening(server: asyncio.Server) -> None:
    """Close a listener. What it is about to accept is accepted first: it would otherwise never be closed."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
    server.close()
