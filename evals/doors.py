"""Hostile input through every door of the HTTP server, counted.

    python -m evals.doors [--data FOLDER] [--sample N]
    python -m evals.doors --count 11000 [--seed N]

The naughty strings, as questions, fields, parameters, headers, parts of a path and arguments of MCP tools, and the JSON suite,
as bodies, go to every route the server has, over a web in memory. Every reply must come in time, be no fault of the server,
hold no traceback, and be an error in the shape of its contract where it is one. A violation ends with exit code 1.
With `--count`, that many requests are made up from a seed instead: bodies of the right fields with wrong values, damaged
files, parts of paths, parameters. They need no data.
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

from nexi.web import list_error_shapes
from nexi.web.documents import VerifyBody
from nexi.web.payload import Problem, own_shape
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
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, 10**30, "", "x", "1", "true", "\0", "\ud800", "a" * 5_000, "é" * 200, "\u202e",
    [], {}, [[]], ["x"] * 300, "../../etc/passwd", "<script>", "http://127.0.0.1/", "javascript:1", "2026-13-45",
    "9999-12-31T23:59:59+14:00", "nexi-s", "nexi-local", "nexi-deep", "search", "research", {"type": "json_schema"},
    [{"role": "user", "content": "hi"}], "tools/call", "tools/list",
    [{"role": "user", "content": [{"type": "input_image", "image_url": "http://169.254.169.254/"}]}],
)  # fmt: skip
KEYS = ("role", "content", "type", "text", "url", "id", "model", "depth", "plan", "name", "arguments", "format", "schema")
BODY_FIELDS = {
    "/v1/runs": "question mode options continues files session limits",
    "/v1/responses": "model input instructions previous_response_id max_output_tokens stream background text tools include",
    "/v1/completions": "model prompt max_tokens stream echo suffix n",
    "/v1/embeddings": "model input dimensions encoding_format",
    CHAT: "model messages stream response_format tools max_tokens stream_options sources",
    "/v1/search": "query context_hint limit",
    "/v1/snippet_rank": "query candidates",
    "/v1/verify": " ".join(VerifyBody.__struct_fields__),
    "/page/check": " ".join(VerifyBody.__struct_fields__),
    "/tavily/search": "query max_results topic time_range include_answer include_domains country",
    "/tavily/extract": "urls query format extract_depth",
    "/tavily/crawl": "url instructions max_depth limit select_paths exclude_paths max_breadth",
    "/tavily/map": "url instructions max_depth limit select_paths",
    "/tavily/research": "input model stream output_schema",
    "/page/settings": "base_url model api_key",
    "/page/settings/models": "base_url api_key",
    "/page/settings/test": "base_url model api_key",
    "/page/render": "text markdown",
    "/page/knowledge/forget": "urls",
    "/openwebui/search": "query count",
    "/openwebui/load": "urls",
    "/page/history/{id}": "title pinned tags folder",
    "/v1/runs/{id}/plan": "tasks",
    "/v1/runs/{id}/shares": "team people",
    "/v1/knowledge/shares": "team people",
    "/v1/schedules": "question every first mode options",
    "/account/tokens": "name read_only days",
    "/account": "name",
    MCP: "jsonrpc id method params",
}
FILES = (
    b"%PDF-1.4\n1 0 obj<<>>endobj", b"{\\rtf1 hi}", b"WEBVTT\n\n00:00.000 --> 00:01.000\nhi", b"Subject: x\n\nhi",
    b"hello world", b"WARC/1.0\r\nContent-Length: 3\r\n\r\nabc", b'{"nbformat":4,"cells":[]}', b"\x89PNG\r\n\x1a\n",
    b"PK\x03\x04", b"a,b\n1,2\n",
)  # fmt: skip
NAMES = ("f", "../../x", "a\0b", "é", ".", "CON", "a" * 300, "x\n")
ENDINGS = "pdf docx xlsx pptx odt epub rtf eml mbox ipynb csv tex srt vtt warc mhtml png zip txt html md"
PIECES = (
    "",
    "x",
    "-1",
    "0",
    "9" * 20,
    "%00",
    "%ff",
    "..%2f..%2f",
    "a" * 3_000,
    "%0d%0a",
    "NaN",
    "'",
    "%22",
    "%C2%B2",
    "%D9%A1",
)
SPEAKS_MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Doors:
    """The routes of an app, by how they can be attacked."""

    def __init__(self, app: Starlette) -> None:
        served = [(r.path, r.methods or {"GET", "POST", "DELETE"}) for r in app.routes if isinstance(r, Route)]
        known = [(path, methods) for path, methods in served if path not in ASLEEP]
        self.posts = sorted({path for path, methods in known if "POST" in methods and "{" not in path})
        self.puts = sorted({path for path, methods in known if "PUT" in methods and "{" not in path})
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

    async def send(self, client: httpx2.AsyncClient, method: str, path: str, **more: Any) -> None:
        began = time.perf_counter()
        try:
            reply = await client.request(method, path, **more)
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
    shape = next((s for prefix, s in list_error_shapes().items() if path.startswith(prefix)), own_shape)
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
            await judge.send(served.client, "POST", path, content=sent, headers=SPEAKS_MCP if path == MCP else {})


async def attack(judge: Judge, served: Served, doors: Doors, text: str) -> None:
    quoted = quote(text, safe="", errors="replace")
    for path in doors.posts:
        made = POSTS.get(path, lambda s: dict.fromkeys(FIELDS, s))
        headers = SPEAKS_MCP if path == MCP else {}
        await judge.send(served.client, "POST", path, content=json.dumps(made(text)).encode(), headers=headers)
    for method, path in doors.paths:
        await judge.send(served.client, method, re.sub(r"{[^}]*}", lambda _: quoted, path))
    turn = zlib.crc32(text.encode("utf-8", "replace"))  # another parameter of each path for every string
    for number, path in enumerate(doors.queries):
        await judge.send(served.client, "GET", f"{path}?{PARAMETERS[(number + turn) % len(PARAMETERS)]}={quoted}")
    await judge.send(served.client, "GET", f"/{quoted}")
    for name in HEADERS:
        await judge.send(served.client, "GET", "/v1/models", headers={name: text})


class Fuzzer:
    """Requests that are made up from a seed."""

    def __init__(self, doors: Doors, seed: int) -> None:
        self._random = random.Random(seed)
        self._bodies = [("POST", path) for path in doors.posts] + [("PUT", path) for path in doors.puts]
        self._bodies += [door for door in doors.paths if door[0] in ("POST", "PUT")]
        self._others = [door for door in doors.paths if door not in self._bodies] + [("GET", path) for path in doors.queries]

    def next_request(self) -> tuple[str, str, dict[str, Any]]:
        """A method, a path, and the rest for the client."""
        kind = self._random.random()
        if kind < 0.1:
            name = quote(f"{self._random.choice(NAMES)}.{self._random.choice(ENDINGS.split())}")
            return "POST", f"/page/files?name={name}", {"content": self._damage(self._random.choice(FILES))}
        method, path = self._random.choice(self._bodies if kind < 0.7 else self._others)
        url = re.sub(r"{[^}]*}", lambda _: self._random.choice(PIECES) or "x", path)
        if kind >= 0.7:
            return method, f"{url}?{self._random.choice(PARAMETERS)}={self._random.choice(PIECES)}", {}
        body = json.dumps(self._body_of(path)).encode() if self._random.random() < 0.97 else self._random.randbytes(300)
        return method, url, {"content": body, "headers": SPEAKS_MCP if path == MCP else {}}

    def _body_of(self, path: str) -> dict[str, Any]:
        names = BODY_FIELDS.get(path, " ".join(FIELDS)).split()
        return {name: self._value() for name in self._random.sample(names, self._random.randint(0, len(names)))}

    def _value(self, depth: int = 0) -> Any:
        kind = self._random.random()
        if depth > 3 or kind < 0.65:
            return self._random.choice(VALUES)
        values = [self._value(depth + 1) for _ in range(self._random.randint(0, 3))]
        return values if kind < 0.8 else {self._random.choice(KEYS): value for value in values}

    def _damage(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self._random.randint(0, 8)):
            changed[self._random.randrange(len(changed))] = self._random.randrange(256)
        return bytes(changed[: self._random.randint(1, len(changed))]) * self._random.choice((1, 1, 1, 30))


async def fuzz(count: int, seed: int) -> Judge:
    judge = Judge()
    with tempfile.TemporaryDirectory() as home:
        async with serving(Path(home), most_runs=1000) as served:
            fuzzer = Fuzzer(Doors(served.app), seed)
            gate = asyncio.Semaphore(AT_ONCE)
            requests = [fuzzer.next_request() for _ in range(count)]
            sent = (judge.send(served.client, method, path, **more) for method, path, more in requests)
            await asyncio.gather(*(_gated(gate, part) for part in sent))
    return judge


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N strings and N bodies")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="N made-up requests instead")
    parser.add_argument("--seed", type=int, default=29, help="of the made-up requests")
    given = parser.parse_args()
    data = given.data
    if not given.count and not (data / "blns.tar.gz").exists():
        print(f"doors: skipped, blns.tar.gz is not in {data}")
        return 0
    began = time.perf_counter()
    judge = asyncio.run(fuzz(given.count, given.seed) if given.count else run(data, given.sample))
    told = ", ".join(f"{status}: {count}" for status, count in sorted(judge.statuses.items()))
    print(f"doors: {sum(judge.statuses.values())} requests in {time.perf_counter() - began:.0f} s; {told}")
    print(f"doors: {sum(count for status, count in judge.statuses.items() if status >= 500)} replies of 500 and above")
    for violation in judge.violations[:50]:
        print(f"  {violation}", file=sys.stderr)
    print(f"doors: {len(judge.violations)} violations")
    return 1 if judge.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
