"""Hostile input through every door of the HTTP server, counted.

    python -m evals.doors [--data FOLDER] [--sample N]

The naughty strings, as questions, fields, parameters, headers, parts of a path and arguments of MCP tools, and the JSON suite,
as bodies, go to every route the server has, over a web in memory. Every reply must come in time, be no fault of the server,
hold no traceback, and be an error in the shape of its contract where it is one. A violation ends with exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tarfile
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from starlette.applications import Starlette
from starlette.routing import Route

from nexi.web import SHAPES
from nexi.web.problems import Problem, own_shape
from tests.web.world import Served, serving

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "security"
SLOW_S = 10.0
AT_ONCE = 4
CHAT = "/v1/chat/completions"
MCP = "/mcp"
ASLEEP = ("/page/doctor",)  # it asks the network how it is
POSTS: dict[str, Any] = {
    "/v1/runs": lambda s: {"question": s},
    CHAT: lambda s: {"model": "nexi-s", "messages": [{"role": "user", "content": s}]},
    "/v1/search": lambda s: {"query": s, "context_hint": {"known_topics": [s]}},
    "/v1/snippet_rank": lambda s: {"query": s, "candidates": [{"title": s, "url": s, "snippet": s}]},
    "/tavily/extract": lambda s: {"urls": [s]},
    "/openwebui/search": lambda s: {"query": s, "count": 2},
    "/openwebui/load": lambda s: {"urls": [s]},
    "/page/knowledge/forget": lambda s: {"urls": [s]},
    MCP: lambda s: {
        "jsonrpc": "2.0",
        "id": s,
        "method": "tools/call",
        "params": {"name": "nexi_find", "arguments": {"query": s}},
    },
}
FIELDS = ("query", "text", "markdown", "url", "name", "tasks", "answer")  # for paths without a body of their own above
PARAMETERS = ("q", "limit", "state", "format", "last_event_id", "pageno", "language", "time_range", "source", "n", "url")
HEADERS = (
    "authorization",
    "last-event-id",
    "accept",
    "origin",
    "x-api-key",
    "content-type",
    "content-encoding",
    "range",
    "cookie",
)
SPEAKS_MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Doors:
    """The routes of an app, by how they can be attacked."""

    def __init__(self, app: Starlette) -> None:
        served = [(r.path, r.methods or {"GET", "POST", "DELETE"}) for r in app.routes if isinstance(r, Route)]
        known = [(path, methods) for path, methods in served if path not in ASLEEP]
        self.posts = sorted({path for path, methods in known if "POST" in methods and "{" not in path})
        self.queries = sorted({path for path, methods in known if "GET" in methods and "{" not in path and path != MCP})
        self.paths = sorted({(m, path) for path, methods in known if "{" in path for m in methods})


def strings(data: Path) -> list[str]:
    with tarfile.open(data / "blns.tar.gz") as archive:
        found = archive.extractfile("blns/blns.json")
        return list(json.load(found)) if found else []


def bodies(data: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(data / "json-test-suite.tar.gz") as archive:
        for member in archive.getmembers():
            if member.name.endswith(".json") and (found := archive.extractfile(member)):
                yield Path(member.name).name, found.read()


class Judge:
    """What came back, counted, and what should not have."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.violations: list[str] = []

    async def send(self, served: Served, method: str, path: str, **more: Any) -> None:
        began = time.perf_counter()
        try:
            reply = await served.client.request(method, path, **more)
        except (httpx2.InvalidURL, httpx2.LocalProtocolError, UnicodeError, ValueError):
            return  # the client itself would not send it
        except httpx2.HTTPError as error:
            self.violations.append(f"{method} {path[:80]!r}: {error!r}")
            return
        self.statuses[reply.status_code] += 1
        for problem in problems_of(path, method, reply, time.perf_counter() - began):
            self.violations.append(f"{method} {path[:80]!r} {reply.status_code}: {problem}")


def problems_of(path: str, method: str, reply: httpx2.Response, seconds: float) -> Iterator[str]:
    if seconds > SLOW_S:
        yield f"took {seconds:.1f} s"
    if "Traceback" in reply.text:
        yield "holds a traceback"
    if reply.status_code >= 500 and reply.status_code != 503:
        yield f"a fault: {reply.text[:200]}"
    if reply.status_code >= 400 and method != "HEAD" and not _is_in_shape(path, reply):
        yield f"not in the shape of its contract: {reply.text[:120]}"


def _is_in_shape(path: str, reply: httpx2.Response) -> bool:
    shape = next((s for prefix, s in SHAPES.items() if path.startswith(prefix)), own_shape)
    try:
        told = set(reply.json())
    except (ValueError, TypeError):
        return False
    return told == set(shape(Problem(400, "x", "y"))) or (path == MCP and told == {"jsonrpc", "id", "error"})


async def run(data: Path, sample: int) -> Judge:
    judge = Judge()
    picked = random.Random(8)
    naughty, suite = strings(data), list(bodies(data))
    if sample:
        naughty, suite = picked.sample(naughty, min(sample, len(naughty))), picked.sample(suite, min(sample, len(suite)))
    with tempfile.TemporaryDirectory() as home:
        async with serving(Path(home), most_runs=1000) as served:
            doors = Doors(served.app)
            work = [attack(judge, served, doors, text) for text in naughty]
            work += [feed(judge, served, doors, body) for _, body in suite]
            gate = asyncio.Semaphore(AT_ONCE)
            await asyncio.gather(*(_gated(gate, part) for part in work))
            while served.app.state.host.active:
                await asyncio.sleep(0.05)
    return judge


async def _gated(gate: asyncio.Semaphore, part: Awaitable[None]) -> None:
    async with gate:
        await part


async def feed(judge: Judge, served: Served, doors: Doors, body: bytes) -> None:
    """A body as it is, and as a part of one that is nearly right."""
    names = b'{"question": "x", "model": "nexi-s", "jsonrpc": "2.0", "id": 1, "method": "tools/list"'
    whole = (
        names
        + b"".join(b', "%s": %s' % (name, body) for name in (b"query", b"messages", b"urls", b"params", b"options"))
        + b"}"
    )
    for path in doors.posts:
        for sent in (body, whole):
            await judge.send(served, "POST", path, content=sent, headers=SPEAKS_MCP if path == MCP else {})


async def attack(judge: Judge, served: Served, doors: Doors, text: str) -> None:
    quoted = quote(text, safe="", errors="replace")
    for path in doors.posts:
        made = POSTS.get(path, lambda s: dict.fromkeys(FIELDS, s))
        headers = SPEAKS_MCP if path == MCP else {}
        await judge.send(served, "POST", path, content=json.dumps(made(text)).encode(), headers=headers)
    for method, path in doors.paths:
        await judge.send(served, method, re.sub(r"{[^}]*}", lambda _: quoted, path))
    turn = zlib.crc32(text.encode("utf-8", "replace"))  # another parameter of each path for every string
    for number, path in enumerate(doors.queries):
        await judge.send(served, "GET", f"{path}?{PARAMETERS[(number + turn) % len(PARAMETERS)]}={quoted}")
    await judge.send(served, "GET", f"/{quoted}")
    for name in HEADERS:
        await judge.send(served, "GET", "/v1/models", headers={name: text})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N strings and N bodies")
    given = parser.parse_args()
    data = given.data
    if not (data / "blns.tar.gz").exists():
        print(f"doors: skipped, blns.tar.gz is not in {data}")
        return 0
    began = time.perf_counter()
    judge = asyncio.run(run(data, given.sample))
    told = ", ".join(f"{status}: {count}" for status, count in sorted(judge.statuses.items()))
    print(f"doors: {sum(judge.statuses.values())} requests in {time.perf_counter() - began:.0f} s; {told}")
    for violation in judge.violations[:50]:
        print(f"  {violation}", file=sys.stderr)
    print(f"doors: {len(judge.violations)} violations")
    return 1 if judge.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
