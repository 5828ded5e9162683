"""Jina's reader (r.jina.ai) reads a page for us, scripts and all, and sends it as Markdown.

It tells a third party what is read, so it is used only when configured or keyed, and never for a URL the guard refuses:
literal and locally resolvable private names go to nobody.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import partial

import httpx2
from msgspec.structs import replace

from nexi import urls
from nexi.errors import FetchError
from nexi.extract import read_outline
from nexi.fetchers.guard import AddressGuard, Resolver, resolve_host
from nexi.fetchers.transport import check_resolved, load_certificates
from nexi.net.trust import MACHINE, Trust, trust_nobody
from nexi.ports import Clock
from nexi.types import FetchLimits, Page

NAME = "jina"
BASE_URL = "https://r.jina.ai"
_HEAD = re.compile(r"^(Title|URL Source|Published Time): ?(.*)$", re.MULTILINE)
_BODY = "Markdown Content:\n"


class JinaFetcher:
    """The ContentFetcher port over the reader."""

    name = NAME

    def __init__(
        self,
        *,
        guard: AddressGuard,
        clock: Clock,
        api_key: str = "",
        base_url: str = BASE_URL,
        proxy: str = "",
        no_proxy: Sequence[str] = (),
        resolve: Resolver = resolve_host,
        trust: Trust = MACHINE,
        timeout_s: float | None = None,
    ) -> None:
        """`timeout_s` is used in the place of a run's limit: the reader opens a page with a browser, which takes longer."""
        self._guard, self._resolve, self._trust = guard, resolve, trust
        self._clock, self._timeout_s, self._api_key = clock, timeout_s, api_key
        self._base_url = base_url.rstrip("/")
        self._proxy = "" if urls.bypasses_proxy(urls.parse(self._base_url), tuple(no_proxy)) else proxy
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        await check_resolved(self._guard.check_url(url), self._guard, self._resolve)
        limits = replace(limits, timeout_s=self._timeout_s or limits.timeout_s)
        try:
            async with asyncio.timeout(limits.timeout_s):
                status, body, is_cut = await self._read_body(url, limits)
        except (TimeoutError, httpx2.TimeoutException) as error:
            cause = f"it took more than {limits.timeout_s:g} s"
            raise FetchError("Jina's reader did not answer in time", reason="timeout", cause=cause) from error
        except httpx2.InvalidURL as error:
            raise FetchError("this is not a URL", reason="blocked", cause=str(error), fix="use a full http(s) URL") from error
        except httpx2.HTTPError as error:
            raise FetchError("Jina's reader cannot be reached", cause=str(error) or type(error).__name__) from error
        if status != 200:
            cause = f"HTTP {status}: {body[:200].decode('utf-8', 'replace')}"
            if status in (401, 402):
                message, fix = "Jina's reader refused us", "check JINA_API_KEY"
                raise FetchError(message, reason="blocked", cause=cause, fix=fix, status=status)
            if status == 429:
                message, fix = "Jina's reader limits how often it may be asked", "set JINA_API_KEY, or wait"
                raise FetchError(message, reason="blocked", cause=cause, fix=fix, status=status)
            raise FetchError("Jina's reader could not read the page", cause=cause, status=status)
        page = _parse_reader(url, body.decode("utf-8", "replace"), limits)
        fetched_at = self._clock.now().isoformat()
        return replace(page, downloaded_bytes=len(body), fetched_at=fetched_at, truncated=page.truncated or is_cut)

    async def aclose(self) -> None:
        if self._client:
            await self._client.aclose()

    async def _read_body(self, url: str, limits: FetchLimits) -> tuple[int, bytes, bool]:
        headers = {"X-Retain-Images": "none", "X-Retain-Links": "gpt-oss", "X-Timeout": str(int(limits.timeout_s))}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        async with self._opening:
            if self._client is None:
                make_default = partial(httpx2.create_ssl_context, trust_env=False)
                is_tls = self._base_url.startswith("https")
                self._client = httpx2.AsyncClient(
                    verify=await asyncio.to_thread(load_certificates, self._trust, make_default) if is_tls else trust_nobody(),
                    trust_env=False,
                    proxy=self._proxy or None,
                    timeout=None,
                    headers={"Accept-Encoding": "gzip", "Accept": "text/plain"},
                )
        body = bytearray()
        async with self._client.stream("GET", f"{self._base_url}/{url}", headers=headers) as response:
            async for chunk in response.aiter_bytes(65536):
                body += chunk
                if len(body) >= limits.max_bytes:
                    return response.status_code, bytes(body[: limits.max_bytes]), True
            return response.status_code, bytes(body), False


def _parse_reader(url: str, text: str, limits: FetchLimits) -> Page:
    head, mark, body = text.partition(_BODY)
    fields = dict(_HEAD.findall(head)) if mark else {}
    body = (body if mark else text).strip()
    if not body:
        raise FetchError("Jina's reader has no text of the page", cause="its answer is empty")
    headings, code_languages = read_outline(body)
    source = fields.get("URL Source", "").strip()
    return Page(
        url,
        body[: limits.max_chars],
        title=fields.get("Title", "").strip(),
        final_url=source if urls.is_web_url(source) else url,
        content_type="text/markdown",
        published=fields.get("Published Time", "").strip(),
        truncated=len(body) > limits.max_chars,
        fetcher=NAME,
        headings=headings,
        code_languages=code_languages,
    )
