"""The fetcher `crawl4ai`: an installed Chromium reads pages that scripts write, and reaches only what the guard allows.

`gateway` is its only way out and `worker` the program that drives it in a process of its own. The process starts with the
first page, serves several at once, and is retired when a page hangs in it: the next page gets a new one. Its environment is
empty, and what it writes lies in a folder that goes with it. Robots.txt, pacing, statuses and obstacles are those of `http`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from nexi import urls
from nexi.errors import FetchError
from nexi.extract import page_of
from nexi.fetchers import obstacles
from nexi.fetchers.apart import end_process
from nexi.fetchers.browser.gateway import Gateway
from nexi.fetchers.guard import AddressGuard, Resolver, resolve_host
from nexi.fetchers.transport import proxy_of
from nexi.formats import extract, media_type
from nexi.install import install_command
from nexi.ports import Clock
from nexi.tasks import pause_timeout
from nexi.types import FetchLimits, Page
from nexi.urls import Url

PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "microsoft-edge", "msedge")
START_TIMEOUT_S = 40.0
GRACE_S = 2.0  # the worker's own deadline comes first, so that it can say what happened
MAX_TABS = 4
MAX_LINE = 16_000_000
WORKER = Path(__file__).with_name("worker.py")
_PAGE_TYPES = ("text/html", "application/xhtml+xml", "text/plain", "")
Admit: TypeAlias = Callable[[Url], Awaitable[None]]
Close: TypeAlias = Callable[[], Awaitable[None]]


def browser_install_fix() -> str:
    """How both parts of this fetcher are installed."""
    return f"{install_command('crawl4ai')} and install Chromium (Debian: apt install chromium), or use another fetcher"


class RenderedPage(Struct, frozen=True):
    """A page as a browser has it after its scripts ran."""

    url: str
    status: int = 200
    content_type: str = "text/html"
    html: str = ""
    cut: bool = False


class PageRenderer(Protocol):
    """What the fetcher needs of a browser. Raises FetchError."""

    async def render(self, url: str, timeout_s: float) -> RenderedPage: ...

    async def aclose(self) -> None: ...


class Crawl4aiFetcher:
    """The ContentFetcher port over a browser. `admit` returns when the site may be asked, or says why it may not."""

    name = "crawl4ai"

    def __init__(
        self, browser: PageRenderer, *, guard: AddressGuard, clock: Clock, admit: Admit, close: Close | None = None
    ) -> None:
        self._browser, self._guard, self._clock = browser, guard, clock
        self._admit, self._close = admit, close

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        target = self._guard.check_url(url)
        try:
            async with asyncio.timeout(limits.timeout_s) as timer:
                with pause_timeout(timer):
                    await self._admit(target)
                document = await self._browser.render(target.href, limits.timeout_s)
                final = self._guard.check_url(document.url)
                if final.origin != target.origin:
                    with pause_timeout(timer):
                        await self._admit(final)
                obstacles.check_status(document.status, {}, final)
                kind = media_type(document.content_type)
                if kind not in _PAGE_TYPES:
                    message, cause = f"{final.href[:200]} is no page for a browser", f"its type is {kind}"
                    fix = "put http before crawl4ai in content_fetcher"
                    raise FetchError(message, reason="content_type", cause=cause, fix=fix)
                return await self._build_page(url, document, limits)
        except TimeoutError as error:
            cause = f"it was not read within {limits.timeout_s:g} s"
            fix = "try again, a browser takes some seconds to start; or try another page"
            raise FetchError(f"{url[:200]} took too long", reason="timeout", cause=cause, fix=fix) from error

    async def aclose(self) -> None:
        await self._browser.aclose()
        if self._close:
            await self._close()

    async def _build_page(self, url: str, document: RenderedPage, limits: FetchLimits) -> Page:
        data = document.html.encode("utf-8", "replace")
        content = await asyncio.to_thread(extract, data[: limits.max_bytes], "text/html; charset=utf-8", document.url)
        obstacles.check_obstacles(url, document.url, data, content, is_rendered=True)
        return page_of(
            url,
            content,
            max_chars=limits.max_chars,
            final_url=document.url,
            content_type="text/html",
            downloaded_bytes=len(data),
            truncated=document.cut or len(data) > limits.max_bytes,
            fetched_at=self._clock.now().isoformat(),
            fetcher=self.name,
        )


def missing_parts(python: str = sys.executable, program: str = "", *, library: str = "crawl4ai") -> str:
    """What this machine lacks for a browser, or ""."""
    if python == sys.executable and find_spec(library) is None:
        return f"{library} is not installed"
    return "" if program or installed_browser() else "no Chromium is on the PATH"


def installed_browser() -> str:
    """The first Chromium of this machine's PATH, or ""."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), "")


class Browser:
    """Owns the process, the gateway and the folder; all three go with `aclose`."""

    def __init__(
        self,
        guard: AddressGuard,
        *,
        user_agent: str,
        resolve: Resolver = resolve_host,
        proxy: str = "",
        no_proxy: Sequence[str] = (),
        python: str = sys.executable,
        program: str = "",
        worker: Path = WORKER,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self._guard, self._resolve, self._user_agent = guard, resolve, user_agent
        self._proxy, self._no_proxy = proxy_of(proxy) if proxy else None, no_proxy
        self._python, self._program, self._worker_file = python, program, worker
        self._start_timeout_s = start_timeout_s
        self._worker: asyncio.Task[_BrowserWorker] | None = None
        self._tabs = asyncio.Semaphore(MAX_TABS)
        self._retired: dict[asyncio.Task[None], _BrowserWorker] = {}

    async def render(self, url: str, timeout_s: float) -> RenderedPage:
        async with self._tabs:
            if self._worker and self._worker.done() and (self._worker.cancelled() or self._worker.exception()):
                self._worker = None
            if self._worker is None:
                self._worker = asyncio.ensure_future(self._start_worker())
            # Pages that come while it starts share it, and a page that gives up leaves it.
            worker = await asyncio.shield(self._worker)
            try:
                return await worker.render(url, max(1.0, timeout_s - GRACE_S))
            except (asyncio.CancelledError, _HungError):
                # The next page gets a new worker; this one ends with its last reader.
                if self._worker and self._worker.done() and not self._worker.cancelled() and self._worker.result() is worker:
                    self._worker = None
                    task = asyncio.ensure_future(worker.close_when_free())
                    self._retired[task] = worker
                    task.add_done_callback(self._retired.pop)
                raise

    async def aclose(self) -> None:
        starting, self._worker = self._worker, None
        if starting:
            starting.cancel()
            with suppress(asyncio.CancelledError, FetchError):
                await (await starting).aclose()
        for worker in self._retired.values():
            worker.free.set()
        await asyncio.gather(*self._retired)

    async def _start_worker(self) -> _BrowserWorker:
        if lack := missing_parts(self._python, self._program):
            raise FetchError("the browser did not start", cause=lack, fix=browser_install_fix())
        sandbox = "no" if hasattr(os, "geteuid") and os.geteuid() == 0 else "yes"  # Chromium has none for root
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nexi-browser-", ignore_cleanup_errors=True))
            gateway = Gateway(self._guard, self._resolve, proxy=self._proxy, no_proxy=self._no_proxy)
            await stack.enter_async_context(gateway.open())
            words = [self._program or installed_browser(), folder, str(gateway.port), sandbox, self._user_agent]
            process = await asyncio.create_subprocess_exec(
                self._python, "-P", str(self._worker_file), *words,
                stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=MAX_LINE, start_new_session=True, cwd=folder,
                env={"HOME": folder, "PATH": os.defpath, "CRAWL4_AI_BASE_DIRECTORY": folder, "CRAWL4AI_NO_CLOUD_NOTICE": "1"},
            )  # fmt: skip
            stack.push_async_callback(end_process, process)
            worker = _BrowserWorker(process, gateway)
            await worker.wait_until_ready(self._start_timeout_s)
            worker.stack = stack.pop_all()
            return worker


class _HungError(FetchError):
    """A page that the browser is not done with, or a browser that is gone."""


class _BrowserWorker:
    """A running worker and the pages that wait for its lines."""

    def __init__(self, process: Process, gateway: Gateway) -> None:
        self._process, self._gateway, self._count = process, gateway, 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listening: asyncio.Task[None] | None = None
        self.free, self.stack = asyncio.Event(), AsyncExitStack()

    async def wait_until_ready(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                first = _parse_message(await self._read_line())
        except TimeoutError as error:
            raise FetchError("the browser did not start", cause=f"it was not ready within {timeout_s:g} s") from error
        if not first.get("ready"):
            cause = str(first.get("error", "")) or "crawl4ai cannot be imported, or it ended at once"
            raise FetchError("the browser did not start", cause=cause, fix=browser_install_fix())
        self._gateway.closed_ports.add(int(first["port"]))
        self._listening = asyncio.ensure_future(self._read_messages())

    async def render(self, url: str, timeout_s: float) -> RenderedPage:
        self._count += 1
        number, answer = self._count, asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self.free.clear()
        earlier_refusals = len(self._gateway.refusals)
        try:
            assert self._process.stdin is not None  # noqa: S101 - it is a pipe
            self._process.stdin.write(json.dumps({"id": number, "url": url, "timeout_s": timeout_s}).encode() + b"\n")
            with suppress(ConnectionError):
                await self._process.stdin.drain()
            return _parse_rendered(url, await answer, self._gateway.refusals[earlier_refusals:])
        finally:
            del self._answers[number]
            if not self._answers:
                self.free.set()

    async def close_when_free(self) -> None:
        await self.free.wait()
        await self.aclose()

    async def aclose(self) -> None:
        if self._listening:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await self.stack.aclose()

    async def _read_messages(self) -> None:
        while line := await self._read_line():
            message = _parse_message(line)
            answer = self._answers.get(message.get("id", 0))
            if answer and not answer.done():
                answer.set_result(message)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(_HungError("the browser ended", cause="its process is gone", fix="try again"))

    async def _read_line(self) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            return await self._process.stdout.readline()
        except ValueError:
            return b""  # a line beyond any page we would take


def _parse_message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _parse_rendered(url: str, message: dict[str, Any], refusals: Sequence[tuple[str, FetchError]]) -> RenderedPage:
    if message.get("timeout"):
        raise _HungError(f"{url[:200]} took too long", reason="timeout", cause="the browser was not done with it in time")
    if "error" in message:
        # A page does not come where its own address was refused, or one that it led to.
        own = urls.parse(url)
        host = f"[{own.host}]" if ":" in own.host else own.host
        own_refusals = [error for place, error in refusals if place in (url, f"{host}:{own.port}")]
        if causes := [*own_refusals, *(error for _, error in refusals if error.reason == "blocked")]:
            raise causes[0]
        # What a browser's driver says, without its traceback.
        lines = [line.strip() for line in str(message["error"]).splitlines() if line.strip()]
        cause = next((line for line in lines if "ERR_" in line), lines[0] if lines else "unknown")[:300]
        raise FetchError(f"{url[:200]} could not be read", cause=cause, fix="try another page")
    final = str(message["url"])
    for place, error in refusals:
        if place == final:
            raise error
    return RenderedPage(final, int(message["status"]), str(message["content_type"]), str(message["html"]), bool(message["cut"]))
