"""Hostile input through every door of the HTTP server, counted.

    python -m evals.doors [--data FOLDER] [--sample N]

The naughty strings, as questions, parameters, headers and parts of a path, and the JSON suite, as bodies, go to every route of
a real server over a web in memory. Every reply must come in time, be no fault of the server, hold no traceback, and be an error
in the shape of its contract where it is one. A violation ends with exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from nexi.web import SHAPES
from nexi.web.problems import Problem, own_shape
from tests.web.world import Served, serving

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "security"
SLOW_S = 10.0
AT_ONCE = 4
CHAT = "/v1/chat/completions"
POSTS: dict[str, Any] = {
    "/v1/runs": lambda s: {"question": s},
    CHAT: lambda s: {"model": "nexi-s", "messages": [{"role": "user", "content": s}]},
    "/v1/search": lambda s: {"query": s},
    "/v1/snippet_rank": lambda s: {"query": s, "items": [{"title": s, "url": s, "snippet": s}]},
    "/v1/cache/clear": lambda s: {"x": s},
    "/tavily/search": lambda s: {"query": s},
    "/tavily/extract": lambda s: {"urls": [s]},
    "/openwebui/search": lambda s: {"query": s, "count": 2},
    "/openwebui/load": lambda s: {"urls": [s]},
}
GETS = ("/v1/runs/{}", "/v1/runs/{}/events", "/v1/runs/{}/result", "/v1/models/{}", "/{}")
QUERIES = ("/searxng/search?q={}", "/searxng/?q={}&format=json", "/v1/runs?limit={}", "/v1/runs?state={}")


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
        for problem in problems_of(path, reply, time.perf_counter() - began):
            self.violations.append(f"{method} {path[:80]!r} {reply.status_code}: {problem}")


def problems_of(path: str, reply: httpx2.Response, seconds: float) -> Iterator[str]:
    if seconds > SLOW_S:
        yield f"took {seconds:.1f} s"
    if "Traceback" in reply.text:
        yield "holds a traceback"
    if reply.status_code >= 500 and reply.status_code != 503:
        yield f"a fault: {reply.text[:200]}"
    if reply.status_code >= 400:
        shape = next((s for prefix, s in SHAPES.items() if path.startswith(prefix)), own_shape)
        try:
            same = set(reply.json()) == set(shape(Problem(400, "x", "y")))
        except ValueError:
            same = False
        if not same:
            yield f"not in the shape of its contract: {reply.text[:120]}"


async def run(data: Path, sample: int) -> Judge:
    judge = Judge()
    picked = random.Random(8)
    naughty, suite = strings(data), list(bodies(data))
    if sample:
        naughty, suite = (picked.sample(items, min(sample, len(items))) for items in (naughty, suite))
    with tempfile.TemporaryDirectory() as home:
        async with serving(Path(home), most_runs=1000) as served:
            work = [*(attack(judge, served, text) for text in naughty), *(feed(judge, served, body) for _, body in suite)]
            gate = asyncio.Semaphore(AT_ONCE)
            await asyncio.gather(*(_gated(gate, part) for part in work))
            while served.app.state.host.active:
                await asyncio.sleep(0.05)
    return judge


async def _gated(gate: asyncio.Semaphore, part: Awaitable[None]) -> None:
    async with gate:
        await part


async def feed(judge: Judge, served: Served, body: bytes) -> None:
    """A body as it is, and as a part of one that is nearly right."""
    whole = b'{"question": "x", "model": "nexi-s", "query": ' + body + b', "messages": ' + body + b', "urls": ' + body + b"}"
    for path in POSTS:
        await judge.send(served, "POST", path, content=body)
        await judge.send(served, "POST", path, content=whole)


async def attack(judge: Judge, served: Served, text: str) -> None:
    for path, made in POSTS.items():
        await judge.send(served, "POST", path, content=json.dumps(made(text)).encode())
    for path in (*GETS, *QUERIES):
        await judge.send(served, "GET", path.format(quote(text, safe="", errors="replace")))
    for name in ("authorization", "last-event-id", "accept", "origin", "x-api-key", "content-type"):
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
