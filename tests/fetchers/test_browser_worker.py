"""The program that drives a browser, with stand-ins for crawl4ai and Chromium: its lines, and that it leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nexi.fetchers.browser import worker

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")

LIBRARY = """
import asyncio, types
print("a banner")
CacheMode = types.SimpleNamespace(BYPASS="bypass")
class CrawlerRunConfig:
    def __init__(self, **options): self.options = options
class BrowserConfig(CrawlerRunConfig): pass
class AsyncWebCrawler:
    def __init__(self, config): self.config = config
    async def __aenter__(self):
        print("started on", self.config.options["cdp_url"])
        return self
    async def __aexit__(self, *error): pass
    async def arun(self, url, config):
        if url.endswith("/hang"): await asyncio.Event().wait()
        if url.endswith("/raise"): raise RuntimeError("it broke")
        result = dict(url=url, redirected_url=url + "?end", html="<p>grüße \\ud800", status_code=200,
            redirected_status_code=None, response_headers={"Content-Type": "text/html"}, success=True, error_message="")
        if url.endswith("/short"): result |= dict(success=False, error_message="Blocked by anti-bot protection")
        if url.endswith("/none"): result |= dict(html="", status_code=None, success=False, error_message="net::ERR_FAILED")
        if url.endswith("/long"): result |= dict(html="x" * 3_000_000)
        return types.SimpleNamespace(**result)
"""
CHROMIUM = """#!/bin/sh
echo $$ > {pid}
echo noise >&2
echo 'DevTools listening on ws://127.0.0.1:4711/devtools/x' >&2
exec sleep 60
"""


class Driver:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(await asyncio.wait_for(self.process.stdout.readline(), 300))

    async def ask(self, path: str, timeout_s: float = 10) -> Any:
        assert self.process.stdin is not None
        asked = {"id": 1, "url": f"http://site.example/{path}", "timeout_s": timeout_s}
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        return await self.line()

    async def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await asyncio.wait_for(self.process.wait(), 300)


@asynccontextmanager
async def driving(tmp_path: Path, chromium: str = CHROMIUM) -> AsyncIterator[Driver]:
    (tmp_path / "crawl4ai.py").write_text(LIBRARY)
    program, profile = tmp_path / "chromium", tmp_path / "profile"
    program.write_text(chromium.format(pid=tmp_path / "pid"))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", worker.__file__, str(program), str(profile), "3128", "yes", "nexi",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.defpath, "PYTHONPATH": str(tmp_path)}, limit=16_000_000,
    )  # fmt: skip
    try:
        yield Driver(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_line_is_answered_by_a_line_whatever_the_library_prints(tmp_path: Path) -> None:
    page = {"id": 1, "status": 200, "content_type": "text/html", "cut": False}
    async with driving(tmp_path) as driver:
        assert await driver.line() == {"ready": True, "port": 4711}
        assert await driver.ask("a") == {**page, "url": "http://site.example/a?end", "html": "<p>grüße ?"}
        assert await driver.ask("short") == {**page, "url": "http://site.example/short?end", "html": "<p>grüße ?"}
        assert await driver.ask("none") == {"id": 1, "error": "net::ERR_FAILED", "status": 0}
        assert await driver.ask("raise") == {"id": 1, "error": "RuntimeError: it broke"}
        assert await driver.ask("hang", 0.05) == {"id": 1, "timeout": True}
        long = await driver.ask("long")
        assert (len(long["html"]), long["cut"]) == (worker.MAX_HTML, True)
        assert await driver.end() == 0


async def test_it_ends_with_its_input_and_takes_the_browser_and_the_profile_along(tmp_path: Path) -> None:
    async with driving(tmp_path) as driver:
        await driver.line()
        pid = (tmp_path / "pid").read_text().strip()
        settings = json.loads((tmp_path / "profile" / "Default" / "Preferences").read_text())
        assert settings["webrtc"]["ip_handling_policy"] == "disable_non_proxied_udp"
        await driver.end()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    assert not (tmp_path / "profile").exists()


async def test_a_browser_that_ends_at_once_is_told(tmp_path: Path) -> None:
    async with driving(tmp_path, "#!/bin/sh\nexit 1\n") as driver:
        assert await driver.line() == {"ready": False, "error": "Chromium ended at once"}
