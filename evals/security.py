"""Hostile input against the fetcher and the extraction, counted.

    python -m evals.security [--data FOLDER]

Every SSRF URL is fetched directly, behind a redirect, and under names that resolve to a private address at once or the
second time. An audit hook on `socket.connect` sees every attempt and lets only the loopback site through, so a forbidden
connect is counted before it happens and no public host is disturbed. Then the URL cases of the web platform tests, the
malformed HTML, the JSON suite and the naughty strings. A violation ends with exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tarfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from nexi import urls
from nexi.app import SystemClock
from nexi.errors import FetchError
from nexi.extract import extract
from nexi.fetchers.guard import AddressGuard, forbidden_reason
from nexi.fetchers.http import HttpFetcher
from nexi.types import FetchLimits

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "security"
ARCHIVES = ("ssrf-and-fuzz", "wpt-url", "html5-tree-construction", "json-test-suite", "blns")
LIMITS = FetchLimits(timeout_s=5.0)
AT_ONCE = 64
SLOW_S = 2.0
PUBLIC = "93.184.215.14"
PRIVATE = (
    "127.0.0.1",
    "10.0.0.1",
    "169.254.169.254",
    "::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "100.64.0.1",
)
PUBLIC_URLS = (
    "http://example.com/",
    "https://93.184.215.14/a",
    "http://8.8.8.8:8080/",
    "http://[2606:4700::1111]/",
    "http://1.1.1.1/",
)

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass
class Watch:
    """Every connect that was tried, except to the one port that is ours."""

    own_port: int = 0
    tried: list[str] = field(default_factory=list)

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "socket.connect":
            return
        address = args[1]
        if isinstance(address, tuple) and address[1] == self.own_port:
            return
        self.tried.append(str(address[0]) if isinstance(address, tuple) else str(address))
        raise ConnectionRefusedError("nobody is called in this evaluation")

    def taken(self) -> list[str]:
        tried, self.tried = self.tried, []
        return tried


@dataclass(frozen=True)
class Row:
    name: str
    cases: int
    violations: int
    note: str = ""


# Addresses


async def ssrf_rows(payloads: Sequence[str], watch: Watch) -> list[Row]:
    rows = [await _fetched("SSRF URLs", payloads, _always("127.0.0.1"), watch)]
    rows.append(await _redirected(payloads, watch))
    rows.append(
        await _fetched("names with a private address", [f"http://a{n}.example/" for n in range(len(PRIVATE))], _each, watch)
    )
    rows.append(await _fetched("names that turn private", [f"http://b{n}.example/" for n in range(64)], _turning(), watch))
    rows.append(await _public(watch))
    return rows


async def _fetched(name: str, payloads: Sequence[str], resolve: Resolve, watch: Watch) -> Row:
    fetcher = HttpFetcher(guard=AddressGuard(), clock=SystemClock(), per_host_rate=1e6, resolve=resolve)
    reasons = await _all(fetcher, payloads)
    tried = watch.taken()
    bad = [a for a in tried if forbidden_reason(a)] + [r for r in reasons if r in ("read", "untyped")]
    return Row(name, len(payloads), len(bad), f"{reasons.count('blocked')} blocked, {len(tried)} public connects tried")


async def _redirected(payloads: Sequence[str], watch: Watch) -> Row:
    """Each URL as the Location of a redirect from a host that may be read."""
    targets = {f"/{n}": quote(p, safe="%/:=&?~#+!$,;'@()*[]\\|^`{}<>\" ") for n, p in enumerate(payloads)}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                target = targets.get(head.split(b" ", 2)[1].decode("latin-1"))
                lines = [
                    f"HTTP/1.1 {302 if target else 404} X",
                    "Content-Length: 0",
                    *([f"Location: {target}"] if target else []),
                ]
                writer.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        watch.own_port = server.sockets[0].getsockname()[1]
        guard = AddressGuard([f"127.0.0.1:{watch.own_port}"])
        fetcher = HttpFetcher(guard=guard, clock=SystemClock(), per_host_rate=1e6, resolve=_always("10.0.0.1"))
        reasons = await _all(fetcher, [f"http://127.0.0.1:{watch.own_port}{path}" for path in targets])
        watch.own_port = 0
    tried = watch.taken()
    bad = [a for a in tried if forbidden_reason(a)] + [r for r in reasons if r in ("read", "untyped")]
    return Row("redirects to them", len(payloads), len(bad), f"{reasons.count('blocked')} blocked")


async def _public(watch: Watch) -> Row:
    fetcher = HttpFetcher(guard=AddressGuard(), clock=SystemClock(), respect_robots=False, resolve=_always(PUBLIC))
    await _all(fetcher, PUBLIC_URLS)
    tried = set(watch.taken())
    return Row(
        "public URLs pass", len(PUBLIC_URLS), 4 - len(tried), "every one led to a connect" if len(tried) == 4 else str(tried)
    )


async def _all(fetcher: HttpFetcher, payloads: Sequence[str]) -> list[str]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(url: str) -> str:
        async with gate:
            try:
                await fetcher.fetch(url, LIMITS)
            except FetchError as error:
                return error.reason
            except Exception as error:
                print(f"{url!r}: {error!r}", file=sys.stderr)
                return "untyped"
            return "read"

    try:
        return list(await asyncio.gather(*(one(url) for url in payloads)))
    finally:
        await fetcher.aclose()


def _always(address: str) -> Resolve:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return [address]

    return resolve


async def _each(host: str, port: int) -> Sequence[str]:
    return [PRIVATE[int(host[1 : host.index(".")])]]


def _turning() -> Resolve:
    asked: dict[str, int] = {}

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked[host] = asked.get(host, 0) + 1
        return [PUBLIC if asked[host] == 1 else "127.0.0.1"]

    return resolve


# URLs and texts


def wpt_row(cases: Sequence[Any]) -> Row:
    must_fail = [case for case in cases if isinstance(case, dict) and case.get("failure")]
    accepted = [case["input"] for case in must_fail if _accepts(case)]
    return Row("WPT URLs that must fail", len(must_fail), len(accepted), ", ".join(map(repr, accepted[:3])))


def _accepts(case: dict[str, Any]) -> bool:
    try:
        urls.join(case["base"], case["input"]) if case.get("base") else urls.parse(case["input"])
    except ValueError:
        return False
    return True


def text_row(name: str, bodies: Sequence[bytes], content_type: str, slow_s: float = SLOW_S) -> Row:
    """Extraction ends, soon, with a text."""
    bad, slowest = 0, 0.0
    for body in bodies:
        start = time.perf_counter()
        try:
            extract(body, content_type, "https://site.example/")
        except Exception as error:
            print(f"{name}: {body[:80]!r}: {error!r}", file=sys.stderr)
            bad += 1
        slowest = max(slowest, time.perf_counter() - start)
    return Row(name, len(bodies), bad + (slowest > slow_s), f"slowest {slowest * 1000:.0f} ms")


def tree_cases(files: dict[str, bytes]) -> Iterator[bytes]:
    for name, content in files.items():
        if name.endswith(".dat"):
            for block in content.split(b"#data\n")[1:]:
                yield block.partition(b"\n#errors")[0]


# Data


def members(archive: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and (file := tar.extractfile(member)):
                found[member.name] = file.read()
    return found


def named(files: dict[str, bytes], name: str) -> Any:
    return json.loads(next(content for path, content in files.items() if path.endswith(name)))


async def evaluate(folder: Path) -> list[Row]:
    data = {name: members(folder / f"{name}.tar.gz") for name in ARCHIVES}
    watch = Watch()
    sys.addaudithook(watch.hook)
    rows = await ssrf_rows(named(data["ssrf-and-fuzz"], "ssrf_payloads_1022.json"), watch)
    rows.append(wpt_row(named(data["wpt-url"], "/urltestdata.json")))
    rows.append(text_row("malformed HTML", list(tree_cases(data["html5-tree-construction"])), "text/html"))
    suite = [content for path, content in data["json-test-suite"].items() if path.endswith(".json")]
    rows.append(text_row("JSON suite", suite, "application/json"))
    naughty = [text.encode("utf-8", "surrogatepass") for text in named(data["blns"], "blns.json")]
    rows += [text_row(f"naughty strings as {kind}", naughty, kind) for kind in ("text/html", "application/xml", "text/plain")]
    return rows


def table(rows: Sequence[Row]) -> str:
    lines = ["| input | cases | violations | |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {row.name} | {row.cases:,} | {row.violations} | {row.note} |" for row in rows)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    folder: Path = parser.parse_args().data
    if missing := [name for name in ARCHIVES if not (folder / f"{name}.tar.gz").exists()]:
        print(f"security: skipped, {missing[0]}.tar.gz is not in {folder}")
        return 0
    rows = asyncio.run(evaluate(folder))
    print(table(rows))
    return 1 if any(row.violations for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
