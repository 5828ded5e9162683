"""Debian's searx on a loopback port, with one engine that needs no internet: the search of a miniweb.

    with searx.serve(folder, web) as base: ...

For tests and benchmarks beside a real metasearch engine, where the package `searx` is installed (apt-get install searx). It
knows nothing of nexi.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CODE = Path("/usr/lib/python3/dist-packages/searx/webapp.py")
FILES = Path("/usr/share/python3-searx")  # the package keeps them apart from its code, and has no settings of its own
PYTHON = "/usr/bin/python3"
START_S = 300
SETTINGS = """
general: {{debug: false, instance_name: test}}
search:
  {{safe_search: 0, autocomplete: "", default_lang: "", ban_time_on_fail: 1, max_ban_time_on_fail: 1,
    formats: [html, json]}}
server:
  {{port: {port}, bind_address: 127.0.0.1, secret_key: for-this-test-only, base_url: false, image_proxy: false,
    http_protocol_version: "1.0", method: POST}}
ui: {{static_path: {files}/static, templates_path: {files}/templates, default_theme: oscar, default_locale: en}}
outgoing: {{request_timeout: {patience}, useragent_suffix: "", pool_connections: 100, pool_maxsize: 100}}
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


def missing() -> str:
    """Why it cannot be started here; empty where it can."""
    if sys.platform == "linux" and CODE.exists():
        return ""
    return "Debian's package searx is not installed: apt-get install searx"


@contextmanager
def serve(folder: Path, web: str, patience: float = 5.0) -> Iterator[str]:
    """Run it over the miniweb at that address while the block runs; gives its own address."""
    port = _free_port()
    settings = folder / "searx.yml"
    settings.write_text(SETTINGS.format(port=port, web=web, files=FILES, patience=patience), encoding="utf-8")
    environment = {"PATH": os.defpath, "HOME": str(folder), "SEARX_SETTINGS_PATH": str(settings)}
    silent = subprocess.DEVNULL
    process = subprocess.Popen([PYTHON, "-m", "searx.webapp"], cwd=folder, env=environment, stdout=silent, stderr=silent)
    try:
        _wait(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"searx ended at once, with exit code {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)  # another program's start is waited for, not time
    raise RuntimeError(f"searx did not listen within {START_S} s")
