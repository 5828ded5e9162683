"""The program that drives a browser, run in a process of its own: crawl4ai on Chromium, one line of JSON a page.

It imports nothing of nexi's. crawl4ai prints, keeps a folder in its user's home and takes seconds to import: here it may. The
program ends when its input ends, so that a nexi that was killed leaves no browser and no folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from importlib import import_module
from pathlib import Path
from typing import Any

SETTLED_MS = 500
EMPTY_MS = 3_000
PATIENCE = 0.6  # of the deadline; what a page wrote until then is the page
MAX_HTML = 2_000_000

_CHROMIUM = json.loads(Path(__file__).with_name("chromium.json").read_text(encoding="utf-8"))
_SETTLED = Path(__file__).with_name("settled.js").read_text(encoding="utf-8").strip()  # with places for milliseconds


def _chromium_arguments(program: str, folder: str, proxy_port: int, *, sandbox: bool) -> list[str]:
    """How Chromium is started: no window, no way out but the proxy, nothing kept."""
    options = {
        "--proxy-server": f"http://127.0.0.1:{proxy_port}",
        "--user-data-dir": folder,
        # without <-loopback> among them, loopback and link-local addresses go past the proxy
        **_CHROMIUM["options"],
        "--disable-features": ",".join(_CHROMIUM["disabled_features"]),
        # Chromium contacts Google unless told otherwise; these hosts do not exist.
        **dict.fromkeys(_CHROMIUM["greetings"], "http://127.0.0.1:9"),
    }
    switches = [*_CHROMIUM["switches"], *(() if sandbox else ("--no-sandbox",))]
    return [program, *switches, *(f"{name}={value}" for name, value in options.items()), "about:blank"]


async def _read_page(library: Any, crawler: Any, url: str, timeout_s: float) -> dict[str, Any]:
    wait_ms = int(timeout_s * PATIENCE * 1000)
    config = library.CrawlerRunConfig(
        cache_mode=library.CacheMode.BYPASS,
        wait_until="domcontentloaded",
        wait_for=_SETTLED % (wait_ms, SETTLED_MS, min(EMPTY_MS, wait_ms)),
        page_timeout=int(timeout_s * 1000),
        wait_for_images=False,
        remove_overlay_elements=False,
        verbose=False,
    )
    result = await asyncio.wait_for(crawler.arun(url, config=config), timeout_s)
    if not result.html or not result.status_code:  # `success` also judges what a page looks like, which is for us to do
        return {"error": str(result.error_message)[:2_000], "status": result.status_code or 0}
    headers = {str(name).lower(): str(value) for name, value in (result.response_headers or {}).items()}
    return {
        "url": result.redirected_url or result.url,
        "status": result.redirected_status_code or result.status_code,
        "content_type": headers.get("content-type", ""),
        "html": result.html[:MAX_HTML],
        "cut": len(result.html) > MAX_HTML,
    }


async def _serve_requests(output: Any, library: Any, address: str, user_agent: str) -> None:
    """Answer every line of the input, several at once, until it ends."""
    lines = asyncio.StreamReader(limit=1_000_000)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    browser = library.BrowserConfig(cdp_url=address, user_agent=user_agent, verbose=False, accept_downloads=False)
    async with library.AsyncWebCrawler(config=browser) as crawler, asyncio.TaskGroup() as group:
        _write_message(output, {"ready": True, "port": int(address.rpartition(":")[2].partition("/")[0])})
        while line := await lines.readline():
            group.create_task(_answer_request(output, library, crawler, json.loads(line)))


async def _answer_request(output: Any, library: Any, crawler: Any, request: dict[str, Any]) -> None:
    try:
        answer = await _read_page(library, crawler, request["url"], request["timeout_s"])
    except TimeoutError:
        answer = {"timeout": True}
    except Exception as error:  # noqa: BLE001 - a library of many; whatever it raises is its answer to this page
        answer = {"error": f"{type(error).__name__}: {error}"[:2_000]}
    _write_message(output, {"id": request["id"], **answer})


def _write_message(output: Any, message: dict[str, Any]) -> None:
    output.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    output.flush()


def main() -> None:
    """`program folder proxy_port sandbox user_agent`, as words of the command line."""
    program, folder, proxy_port, sandbox, user_agent = sys.argv[1:6]
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed from here on is no answer
    profile = Path(folder) / "Default"
    profile.mkdir(parents=True)
    # WebRTC would send datagrams past the proxy; the switches alone do not stop it
    (profile / "Preferences").write_text(json.dumps(_CHROMIUM["preferences"]), encoding="utf-8")
    arguments = _chromium_arguments(program, folder, int(proxy_port), sandbox=sandbox == "yes")
    quiet = subprocess.DEVNULL
    chromium = subprocess.Popen(arguments, stdin=quiet, stdout=quiet, stderr=subprocess.PIPE, text=True)  # noqa: S603 - our words
    assert chromium.stderr is not None  # noqa: S101 - it is a pipe
    try:
        library = import_module("crawl4ai")
        mark = "DevTools listening on "
        if line := next((line for line in chromium.stderr if mark in line), ""):
            # what else it says is read and dropped, since a full pipe would stop it
            threading.Thread(target=deque, args=(chromium.stderr, 0), daemon=True).start()
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(_serve_requests(output, library, line.partition(mark)[2].strip(), user_agent))
        else:
            _write_message(output, {"ready": False, "error": "Chromium ended at once"})
    finally:
        chromium.kill()
        chromium.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
