"""A whole search through Debian's searx over the loopback web, where the package `searx` is installed."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rig import miniweb, scripted_llm
from tests.contract.pages import HTML

SEARX = Path("/usr/lib/python3/dist-packages/searx/webapp.py")
FILES = Path("/usr/share/python3-searx")  # the package keeps them apart from its code, and has no settings of its own
PYTHON = "/usr/bin/python3"
SETTINGS = """
general: {{debug: false, instance_name: test}}
search:
  {{safe_search: 0, autocomplete: "", default_lang: "", ban_time_on_fail: 1, max_ban_time_on_fail: 1,
    formats: [html, json]}}
server:
  {{port: {port}, bind_address: 127.0.0.1, secret_key: for-this-test-only, base_url: false, image_proxy: false,
    http_protocol_version: "1.0", method: POST}}
ui: {{static_path: {files}/static, templates_path: {files}/templates, default_theme: oscar, default_locale: en}}
outgoing: {{request_timeout: 5.0, useragent_suffix: "", pool_connections: 10, pool_maxsize: 10}}
locales: {{en: English}}
doi_resolvers: {{none.test: "http://127.0.0.1:9/"}}
default_doi_resolver: none.test
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

QUESTION = "How far is the Moon from Earth on average?"

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
    settings.write_text(SETTINGS.format(port=port, web=web, files=FILES))
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


async def asked(home: Path, base: str, web: str, *words: str, **env: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command, which knows the search engine and may read the loopback web."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "nexi",
        *words,
        env={
            "PATH": os.environ["PATH"],
            "NEXI_HOME": str(home),
            "SEARXNG_URL": base,
            "NEXI_ALLOW_PRIVATE": urlsplit(web).netloc,
            **env,
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, out.decode(), err.decode()


async def test_a_question_is_searched_read_and_answered_through_a_real_searx(tmp_path: Path) -> None:
    with miniweb.serve(miniweb.Corpus(HTML)) as web, scripted_llm.serve() as model:
        async with searx(tmp_path, web) as base:
            found = await asked(tmp_path / "a", base, web, "find", "moons of Mars Phobos Deimos", "--json")
            env = {"OPENAI_BASE_URL": f"{model}/v1", "NEXI_MODEL": "scripted"}
            by_model = await asked(tmp_path / "b", base, web, "--json", QUESTION, **env)
            without = await asked(tmp_path / "c", base, web, "--json", "-m", "extractive", QUESTION)
    first = json.loads(found[1])
    assert (found[0], first["backend"], first["hits"][0]["url"]) == (0, "searxng", f"{web}/mars.test/facts"), found
    for code, out, err in (by_model, without):
        answer = json.loads(out)
        assert (code, answer["sources"][0]["url"]) == (0, f"{web}/moon.test/facts"), err
        assert "384,400 km" in answer["answer"]
