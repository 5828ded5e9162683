"""The fetcher crawl4ai with the real library and a real Chromium, where both are installed, over loopback."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nexi.app import SystemClock
from nexi.errors import FetchError
from nexi.fetchers.browser import Browser, Crawl4aiFetcher, installed_browser
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.http import HttpFetcher
from nexi.types import FetchLimits
from tests.fetchers.leaks import no_leaks
from tests.fetchers.site import Site, Writer, response, serving

APART = Path(__file__).resolve().parents[2] / ".venv-crawl4ai" / "bin" / "python"
PYTHON = sys.executable if find_spec("crawl4ai") else str(APART)

if not find_spec("crawl4ai") and not APART.exists():
    pytest.skip("crawl4ai is installed neither here nor in .venv-crawl4ai", allow_module_level=True)
if not installed_browser():
    pytest.skip("no Chromium is installed", allow_module_level=True)

LIMITS = FetchLimits(timeout_s=300.0)
WRITTEN = "A script wrote this sentence after the page had come. "
APP = f"""<html lang=en><head><title>App</title></head><body><div id=root></div><script>
fetch('/data').then(r => r.json()).then(d => setTimeout(() => {{
  document.getElementById('root').innerHTML = '<main><h1>' + d.title + '</h1><p>' + '{WRITTEN}'.repeat(20) +
    '</p><pre><code class="language-python">print(1)</code></pre><p><a href="/next">next</a></p></main>';
}}, 200));
</script></body></html>"""

# Every way that a page knows to make its browser connect somewhere.
PROBES = """<html><head><link rel=preconnect href="URL"><link rel=prefetch href="URL/p"><link rel=stylesheet href="URL/c.css">
<link rel=preload as=script href="URL/l.js"><link rel=icon href="URL/i.ico"></head><body>
<iframe src="URL/f"></iframe><iframe srcdoc='<meta http-equiv=refresh content="0;url=URL/m">'></iframe><img src="URL/i.png">
<iframe src="/away?URL/r"></iframe><script src="URL/s.js"></script><object data="URL/o"></object><embed src="URL/e">
<video src="URL/v.mp4" preload=auto></video><form id=f action="URL/form" method=post target=t></form><iframe name=t></iframe>
<script>
const tries = [
  () => fetch('URL/fetch', {mode: 'no-cors'}), () => navigator.sendBeacon('URL/beacon', 'x'), () => new EventSource('URL/es'),
  () => new WebSocket('URL/ws'.replace('http', 'ws')), () => document.getElementById('f').submit(), () => import('URL/i.js'),
  () => { const x = new XMLHttpRequest(); x.open('GET', 'URL/x'); x.send(); }, () => window.open('URL/open'),
  () => new Worker(URL.createObjectURL(new Blob(["importScripts('URL/w.js')"]))),
  () => fetch('/away?URL/again', {mode: 'no-cors'}),
  () => new WebTransport('https://HOST/'),
  () => { const p = new RTCPeerConnection({iceServers: [{urls: 'stun:HOST'}, {urls: 'turn:HOST?transport=tcp', username: 'u',
    credential: 'c'}]}); p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o)); },
];
for (const attempt of tries) { try { Promise.resolve(attempt()).catch(() => 0); } catch (e) {} }
</script></body></html>"""
LATER = "setTimeout(() => { document.body.append('Every way was tried by this page. '.repeat(30)); }, 2500);"
HOSTS = ["127.0.0.1", "localhost", "[::1]", "127.1", "2130706433", "0.0.0.0", "[::ffff:127.0.0.1]"]


class Canary:
    """Counts who knocks, by TCP and UDP, on both families."""

    def __init__(self) -> None:
        self.knocks: list[str] = []
        self.port = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Canary]:
        knocks = self.knocks

        def accept(reader: asyncio.StreamReader, writer: Writer) -> None:
            knocks.append("tcp")
            writer.close()

        class Datagrams(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, addr: object) -> None:
                knocks.append("udp")

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        second = await asyncio.start_server(accept, "::1", self.port) if socket.has_dualstack_ipv6() else None
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Datagrams, local_addr=("127.0.0.1", self.port))
        try:
            yield self
        finally:
            transport.close()
            for each in filter(None, (server, second)):
                each.close()


async def looked_up(host: str, port: int) -> Sequence[str]:
    """Nobody but the pages asks for names, and they ask for this machine."""
    assert host == "localhost"
    return ["127.0.0.1", "::1"]


@asynccontextmanager
async def reading(site: Site, *allow: str) -> AsyncIterator[Crawl4aiFetcher]:
    guard, clock = AddressGuard([f"127.0.0.1:{site.port}", *allow]), SystemClock()
    manners = HttpFetcher(guard=guard, clock=clock)
    browser = Browser(guard, user_agent="nexi", python=PYTHON, resolve=looked_up)
    fetcher = Crawl4aiFetcher(browser, guard=guard, clock=clock, admit=manners.admit, close=manners.aclose)
    async with no_leaks():
        try:
            yield fetcher
        finally:
            await fetcher.aclose()


def probes(host: str) -> bytes:
    return response(PROBES.replace("HOST", host).replace("'URL", f"'http://{host}").replace('"URL', f'"http://{host}')
                    .replace("?URL", f"?http://{host}").replace("url=URL", f"url=http://{host}"))  # fmt: skip


class Redirects(dict[str, Any]):
    """`/away?X` leads to X; whatever else is there is there."""

    def get(self, path: str, default: Any = None) -> Any:
        if path.startswith("/away?"):
            return response(status=302, Location=path.partition("?")[2])
        return super().get(path, default)


async def test_a_page_that_a_script_writes_is_read_with_its_shape() -> None:
    async with serving(
        {"/": response(APP), "/data": response('{"title": "Written"}', content_type="application/json")}
    ) as site:
        plain = HttpFetcher(guard=AddressGuard([f"127.0.0.1:{site.port}"]), clock=SystemClock())
        with pytest.raises(FetchError) as caught:
            await plain.fetch(site.url(), LIMITS)
        await plain.aclose()
        assert "crawl4ai" in caught.value.fix
        async with reading(site) as fetcher:
            page = await fetcher.fetch(site.url(), LIMITS)
            again = await asyncio.gather(*(fetcher.fetch(site.url(), LIMITS) for _ in range(3)))
            with pytest.raises(FetchError) as missing:
                await fetcher.fetch(site.url("/missing"), LIMITS)
    assert (page.title, page.language, page.links) == ("App", "en", (site.url("/next"),))
    assert WRITTEN.strip() in page.text
    assert "```python\nprint(1)\n```" in page.text
    assert {other.text for other in again} == {page.text}
    assert missing.value.status == 404


async def test_no_page_reaches_a_private_address_by_any_means() -> None:
    async with Canary().listening() as canary, serving() as site:
        site.answers = Redirects({f"/{n}": probes(f"{host}:{canary.port}") for n, host in enumerate(HOSTS)})
        frames = "".join(f"<iframe src=/{n}></iframe>" for n in range(len(HOSTS)))
        site.answers["/"] = response(f"{frames}<script>{LATER}</script>")
        async with reading(site) as fetcher:
            page = await fetcher.fetch(site.url(), LIMITS)
    assert "Every way was tried" in page.text
    assert {f"/{n}" for n in range(len(HOSTS))} < set(site.paths)
    assert canary.knocks == []


async def test_the_same_page_knocks_where_it_is_allowed_to() -> None:
    async with Canary().listening() as canary, serving() as site:
        site.answers = Redirects({"/0": probes(f"127.0.0.1:{canary.port}")})
        site.answers["/"] = response(f"<iframe src=/0></iframe><script>{LATER}</script>")
        async with reading(site, f"127.0.0.1:{canary.port}") as fetcher:
            await fetcher.fetch(site.url(), LIMITS)
    assert canary.knocks.count("tcp") > 10


async def test_a_page_that_leads_to_a_private_address_is_blocked_and_one_that_never_ends_meets_the_deadline() -> None:
    endless = response("<p>x<script>while (true) {}</script>")
    fine = response(f"<main><p>{WRITTEN * 20}</p></main>")
    async with Canary().listening() as canary, serving({"/endless": endless, "/": fine}) as site:
        site.answers = Redirects(site.answers)
        async with reading(site) as fetcher:
            with pytest.raises(FetchError) as away:
                await fetcher.fetch(site.url(f"/away?http://127.0.0.1:{canary.port}/"), LIMITS)
            with pytest.raises(FetchError) as secure:
                await fetcher.fetch(site.url(f"/away?https://127.0.0.1:{canary.port}/"), LIMITS)
            start = time.monotonic()
            with pytest.raises(FetchError) as hung:
                await fetcher.fetch(site.url("/endless"), FetchLimits(timeout_s=5.0))
            taken = time.monotonic() - start
            page = await fetcher.fetch(site.url(), LIMITS)
    assert (away.value.reason, secure.value.reason, hung.value.reason) == ("blocked", "blocked", "timeout")
    assert "127.0.0.1 is loopback" in secure.value.cause
    assert taken < 6
    assert WRITTEN.strip() in page.text
    assert canary.knocks == []
