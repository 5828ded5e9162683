"""A whole search through Debian's searx over the loopback web, where the package `searx` is installed."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nexi.app import Nexi
from nexi.config import Config
from rig import miniweb
from tests.contract.pages import ADDRESSES, HTML

SEARX = Path("/usr/lib/python3/dist-packages/searx/webapp.py")
PYTHON = "/usr/bin/python3"
SETTINGS = """
general: {{instance_name: test}}
search: {{formats: [html, json]}}
server: {{port: {port}, bind_address: 127.0.0.1, secret_key: for-this-test-only}}
outgoing: {{request_timeout: 5.0}}
engines:
  - name: mini
    engine: json_engine
    shortcut: mini
    categories: general
    enable_http: true
    search_url: {web}/search?q={{query}}&format=json
    results_query: results
    url_query: url
    title_query: title
    content_query: content
"""

pytestmark = [
    pytest.mark.skipif(not SEARX.exists(), reason="Debian's package searx is not installed"),
    pytest.mark.skipif(sys.platform != "linux", reason="Debian only"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def searx(folder: Path, web: str) -> AsyncIterator[str]:
    port = free_port()
    settings = folder / "settings.yml"
    settings.write_text(SETTINGS.format(port=port, web=web))
    process = await asyncio.create_subprocess_exec(
        PYTHON,
        "-m",
        "searx.webapp",
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder), "SEARX_SETTINGS_PATH": str(settings)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(30):
            await _listening(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _listening(process: asyncio.subprocess.Process, port: int) -> None:
    while True:
        assert process.returncode is None, "searx ended at once"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)  # another program's start is waited for, not time
            continue
        writer.close()
        await writer.wait_closed()
        return


async def test_a_question_is_searched_through_a_real_searx(make_config: Callable[..., Config], tmp_path: Path) -> None:
    with miniweb.serve(miniweb.Corpus(HTML), url_mode="original") as web:
        async with searx(tmp_path, web) as base, Nexi(make_config(searxng_url=base)) as nexi:
            outcome = await nexi.find("moons of Mars Phobos Deimos")
    assert (outcome.backend, outcome.hits[0].url) == ("searxng", ADDRESSES["mars"]), json.dumps(
        [f.message for f in outcome.failures]
    )
