"""Hostile input against the fetcher and the extraction, counted.

    python -m evals.security [--save] [--data FOLDER]

Every SSRF URL is fetched directly, behind a redirect, and under names that resolve to a private address at once or the
second time; so are 10,000 URLs made of forbidden addresses in many spellings, for which Python's `ipaddress` and not our own
table says what is forbidden. An audit hook on `socket.connect` sees every attempt and lets only the loopback site through, so
a forbidden connect is counted before it happens and no public host is disturbed. Then the URL cases of the web platform
tests, the malformed HTML, the JSON suite and the naughty strings. A violation ends with exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
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
from nexi.fetchers.guard import AddressGuard, forbidden_reason
from nexi.fetchers.http import HttpFetcher
from nexi.formats import extract
from nexi.types import FetchLimits

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "security"
SAVED = ROOT / "evals" / "security.md"
ARCHIVES = ("ssrf-and-fuzz", "wpt-url", "html5-tree-construction", "json-test-suite", "blns")
LIMITS = FetchLimits(timeout_s=60.0)  # no case waits for it
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
    rows.append(await _made(watch))
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


# Made URLs

FORBIDDEN = (
    *(f"127.{n}.{n}.1" for n in (0, 1, 127, 255)), "10.0.0.1", "10.255.255.254", "172.16.0.1", "172.31.255.1", "192.168.0.1",
    "192.168.1.254", "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "100.64.0.1", "100.127.255.254",
    "0.0.0.0", "0.1.2.3", "192.0.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1",
)  # fmt: skip
FORBIDDEN_V6 = ("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1")
ODD_METADATA = frozenset(("168.63.129.16", "100.100.100.200"))  # global by the registry, forbidden all the same
FULLWIDTH = str.maketrans("0123456789.", "０１２３４５６７８９．")
CIRCLED = str.maketrans("123456789", "①②③④⑤⑥⑦⑧⑨")


def spellings(address: str) -> Iterator[str]:
    """Hosts that some parser takes for this IPv4 address."""
    parts = [int(part) for part in address.split(".")]
    number = int(ipaddress.ip_address(address))
    rest = (parts[1] << 16) + (parts[2] << 8) + parts[3]
    yield from (address, f"{address}.", f"{number}", f"{number:#x}", f"{number:#o}", f"0{number:o}", f"{number:#X}")
    yield from (".".join(f"{p:#x}" for p in parts), ".".join(f"0{p:o}" for p in parts), ".".join(f"{p:#04x}" for p in parts))
    yield from (f"{parts[0]}.{rest}", f"{parts[0]:#x}.{rest:#x}", f"{parts[0]}.{parts[1]}.{(parts[2] << 8) + parts[3]}")
    yield from (f"0{parts[0]:o}.{parts[1]}.{parts[2]:#x}.{parts[3]}", f"{parts[0]}.{parts[1]:#x}.0{parts[2]:o}.{parts[3]}")
    yield from (
        address.translate(FULLWIDTH),
        address.translate(CIRCLED),
        address.replace(".", "。"),
        address.replace(".", "%2e"),
    )
    yield from ("".join(f"%{ord(c):02x}" for c in address), f"{number + (1 << 32)}", f"0000{parts[0]:o}.{rest}")
    mapped = ipaddress.ip_address(number)
    for prefix in ("::ffff:", "::ffff:0:", "::", "64:ff9b::", "64:ff9b:1::"):
        yield f"[{prefix}{mapped}]"
    yield from (f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]", f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]")
    yield f"[2001:0:{number >> 16:x}:{number & 0xFFFF:x}::{number ^ 0xFFFFFFFF:x}]"[:45].replace("::", ":0:0:", 1)


def made_urls(count: int = 10_000) -> list[str]:
    """Different URLs whose host is a forbidden address in some spelling."""
    hosts = [host for address in FORBIDDEN for host in spellings(address)]
    for v6 in FORBIDDEN_V6:
        whole = ipaddress.ip_address(v6).exploded
        hosts += [f"[{v6}]", f"[{whole}]", f"[{whole.upper()}]", f"[{v6}%25eth0]", f"[{v6}%eth0]"]
    forms = (
        "http://{}/", "https://{}/", "http://{}:8080/x", "HTTP://{}/", "http:/{}/", "http:{}/", "http:\\\\{}\\", "http://{}?a=b",
        "http://{}#@public.example/", "http://public.example@{}/", "http://public.example:80@{}/", "http://{}:80/%2e%2e/",
        "\thttp://{}/", "ht\ntp://{}/", "http://{}\t/", "//{}/", "https://{}:443/latest/meta-data/",
    )  # fmt: skip
    made = list(dict.fromkeys(form.replace("{}", host) for form in forms for host in hosts))
    return made[:count]


def is_forbidden_by_registry(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return True
    is_site_local = getattr(found, "is_site_local", False)
    return not found.is_global or found.is_multicast or is_site_local or address in ODD_METADATA


async def _made(watch: Watch) -> Row:
    """Any address but a public one is a violation, and so is a page that was read."""
    payloads = made_urls()
    fetcher = HttpFetcher(
        guard=AddressGuard(), clock=SystemClock(), per_host_rate=1e6, respect_robots=False, resolve=_always("127.0.0.1")
    )
    reasons = await _all(fetcher, payloads)
    tried = watch.taken()
    bad = [a for a in tried if is_forbidden_by_registry(a)] + [r for r in reasons if r in ("read", "untyped")]
    return Row("made SSRF URLs", len(payloads), len(bad), f"{reasons.count('blocked'):,} blocked, {len(tried)} connects tried")


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
    parser.add_argument("--save", action="store_true", help="write the table to evals/security.md")
    options = parser.parse_args()
    folder: Path = options.data
    if missing := [name for name in ARCHIVES if not (folder / f"{name}.tar.gz").exists()]:
        print(f"security: skipped, {missing[0]}.tar.gz is not in {folder}")
        return 0
    rows = asyncio.run(evaluate(folder))
    print(table(rows))
    if options.save:
        SAVED.write_text(f"# Hostile input\n\nMade by `python -m evals.security --save`.\n\n{table(rows)}\n", encoding="utf-8")
    return 1 if any(row.violations for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
