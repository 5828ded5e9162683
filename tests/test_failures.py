"""The forty commonest failures, as every door shows them: one cause, one fix, and no dump of a library."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from nexi.agent._search_failures import explain_no_evidence
from nexi.app import Nexi, RunRequest
from nexi.backends import sender
from nexi.backends.duckduckgo import _translate_error
from nexi.backends.sender import BackendRequest
from nexi.cli.delivery import output_path
from nexi.cli.flags import OutputFlags
from nexi.config import Config, load_config
from nexi.errors import NexiError
from nexi.llm.openai import faults
from nexi.notices import Notice, list_notices, map_notice
from nexi.types import Failure, FetchLimits, Message, SearchOutcome, ToolResult
from tests.golden_files import compare_golden
from tests.test_messages import render_at_doors

Reply = tuple[int, str, bytes]
KEY = "sk-0123456789abcdef0123456789abcdef"
PAGE = b"<html><body><main><h1>Sign in</h1><p>Please sign in to continue to the service.</p></main></body></html>"
ENDPOINT = faults.EndpointLabel("api.example", "gpt", (KEY,))
SERVICE = BackendRequest("https://en.wikipedia.org/w/api.php")
DUMPS = re.compile(r"Errno|Exception|Error\(|0x[0-9a-f]{4}|object at|Traceback|_ssl\.c|\bNone\b|\{'|DNSError|httpx|httpcore")


@contextmanager
def serving(answer: Callable[[str], Reply]) -> Iterator[str]:
    """Answer every request by its path."""

    class Handler(BaseHTTPRequestHandler):
        def do_any(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            status, kind, body = answer(self.path)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


class Bench:
    """Brings failures about, each in a home of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._count = 0

    def config(self, **settings: Any) -> Config:
        self._count += 1
        base = {"base_url": "http://127.0.0.1:9/v1", "model": "gpt", "searxng_url": "http://127.0.0.1:9", "llm_max_retries": 0}
        return Config(**{**base, "home": self._home / str(self._count), **settings})

    def ask(self, **settings: Any) -> NexiError:
        """The error of a search with these settings."""

        async def search() -> None:
            config = self.config(**settings)
            async with Nexi(config) as nexi, nexi.run(RunRequest("How far is the Moon?", effort="s")) as run:
                async for _ in run:
                    pass
                run.result()

        return failure_of(lambda: asyncio.run(search()))

    def ask_model(self, status: int, body: object, kind: str = "application/json") -> NexiError:
        """The error of a search whose model answers like this."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with serving(lambda _: (status, kind, data)) as url:
            error = self.ask(base_url=f"{url}/v1", api_key=KEY)
        return without_port(error, url)

    def search(self, status: int, body: object, kind: str = "application/json") -> NexiError:
        """The error of a question where SearXNG answers like this, asked without a model."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with serving(lambda _: (status, kind, data)) as url:
            return without_port(self.ask(searxng_url=url, model="extractive"), url)

    def fetch(self, status: int, body: bytes, kind: str = "text/html") -> NexiError:
        with serving(lambda path: (404, "text/plain", b"") if path == "/robots.txt" else (status, kind, body)) as url:
            host = url.removeprefix("http://")
            error = self.fetch_url(f"{url}/page", allow_private=(host,))
        return without_port(error, url)

    def fetch_url(self, url: str, **settings: Any) -> NexiError:
        async def fetch() -> None:
            async with Nexi(self.config(**settings)) as nexi:
                await nexi.ports.fetchers()[0].fetch(url, FetchLimits(max_bytes=10_000))

        return failure_of(lambda: asyncio.run(fetch()))

    def load(self, text: str) -> NexiError:
        path = self._home / "config.json"
        path.write_text(text)
        error = failure_of(lambda: load_config(path, {}))
        return replace_text(error, str(path), "~/.local/share/nexi/config.json")

    def call(self, act: Callable[[Nexi], Any]) -> NexiError:
        async def run() -> None:
            async with Nexi(self.config()) as nexi:
                found = act(nexi)
                if asyncio.iscoroutine(found):
                    await found

        return failure_of(lambda: asyncio.run(run()))


def failure_of(act: Callable[[], object]) -> NexiError:
    with pytest.raises(NexiError) as caught:
        act()
    return caught.value


def without_port(error: NexiError, url: str) -> NexiError:
    return replace_text(error, url.removeprefix("http://"), "127.0.0.1:8000")


def replace_text(error: NexiError, old: str, new: str) -> NexiError:
    error.message, error.cause, error.fix = (
        map_notice(text, lambda said: said.replace(old, new)) for text in (error.message, error.cause, error.fix)
    )
    error.args = (str(error).replace(old, new),)
    return error


def below(inner: Exception) -> Exception:
    error = httpx2.ConnectError(str(inner))
    error.__cause__ = inner
    return error


def no_network() -> NexiError:
    failures = (Failure("duckduckgo", "dns", "a dump"), Failure("wikipedia", "dns", "another"))
    searched = Message("tool", "", result=ToolResult((SearchOutcome("moon", (), "", failures),), ""))
    return explain_no_evidence([searched], message="there is no answer", cause="", fix="ask again")


def of_openai(message: str, **more: str) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


def bring_about(bench: Bench) -> dict[str, NexiError]:
    unknown_name = below(socket.gaierror(-2, "Name or service not known"))
    broken_tls = below(
        ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed (_ssl.c:1006)")
    )
    rust = "error sending request for url (https://html.duckduckgo.com/html/) > client error (Connect) > dns error"
    return {
        "no network": no_network(),
        "the model server is not running": bench.ask(),
        "the name of the model server is unknown": faults.from_transport(ENDPOINT, unknown_name),
        "the model server has no valid certificate": faults.from_transport(ENDPOINT, broken_tls),
        "the model closed the connection": faults.from_transport(
            ENDPOINT, httpx2.RemoteProtocolError("peer closed connection")
        ),
        "the model says nothing": faults.timed_out(ENDPOINT, 60),
        "a wrong key": bench.ask_model(401, of_openai(f"Incorrect API key provided: {KEY}")),
        "a key without rights": bench.ask_model(403, of_openai("Your account does not have access to this model")),
        "an unknown model": bench.ask_model(404, of_openai("The model `gpt` does not exist", code="model_not_found")),
        "a model that is not pulled": bench.ask_model(404, {"error": "model 'gpt' not found, try pulling it first"}),
        "an address without /v1": bench.ask_model(404, b"404 page not found", "text/plain"),
        "a web page instead of a model": bench.ask_model(200, PAGE, "text/html"),
        "no credit": bench.ask_model(402, of_openai("Insufficient credits")),
        "a spent quota": bench.ask_model(429, of_openai("You exceeded your current quota", code="insufficient_quota")),
        "too many requests": bench.ask_model(429, of_openai("Rate limit reached")),
        "a fault of the provider": bench.ask_model(500, of_openai("The server had an error")),
        "an overloaded provider": bench.ask_model(503, b"<html><body>Service Unavailable</body></html>", "text/html"),
        "a window that is too small": bench.ask_model(400, of_openai("This model's maximum context length is 512 tokens.")),
        "an empty reply": bench.ask_model(200, {"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]}),
        "a reply that is no completion": bench.ask_model(200, {"hello": "world"}),
        "SearXNG is not running": bench.ask(model="extractive"),
        "SearXNG without JSON": bench.search(403, PAGE, "text/html"),
        "SearXNG with a limiter": bench.search(429, b""),
        "SearXNG with a fault": bench.search(500, b""),
        "another server instead of SearXNG": bench.search(200, PAGE, "text/html"),
        "SearXNG whose engines are suspended": bench.search(
            200, {"results": [], "unresponsive_engines": [["google", "captcha"]]}
        ),
        "SearXNG that finds nothing": bench.search(200, {"results": []}),
        "pages on a private address": bench.search(200, {"results": [{"url": "http://192.168.1.1/moon", "title": "Moon"}]}),
        "Wikipedia out of reach": sender._translate_error("wikipedia", SERVICE, unknown_name),
        "Wikipedia too slow": sender._translate_error("wikipedia", SERVICE, httpx2.ReadTimeout("timed out")),
        "DuckDuckGo out of reach": _translate_error(RuntimeError(rust)),
        "DuckDuckGo without results": _translate_error(RuntimeError("No results found.")),
        "a search service without its key": bench.ask(search_backend="brave"),
        "an unknown search service": bench.ask(search_backend="gooogle"),
        "a page that is gone": bench.fetch(404, b"gone"),
        "a page for subscribers": bench.fetch(403, PAGE),
        "a film instead of a page": bench.fetch(200, b"\0\0\0\x18ftypmp42", "video/mp4"),
        "a private address": bench.fetch_url("http://192.168.1.1/admin"),
        "no URL at all": bench.fetch_url("moon facts"),
        "a config file that is no JSON": bench.load("{base_url: 1}"),
        "a setting with a wrong value": bench.load('{"max_context": "many"}'),
        "an unknown setting": failure_of(lambda: Config().override(modle="gpt")),
        "an output file that exists": failure_of(lambda: output_path(OutputFlags(output="README.md"))),
        "an unknown run": bench.call(lambda nexi: nexi.runs().open_log("abcdef")),
    }


# Pages, settings and files: they end no run that the page could show.
WITHOUT_CODE = {"blocked", "content_type", "error", "exists", "config"}


def test_the_commonest_failures_help_at_every_door(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = bring_about(Bench(tmp_path))
    assert len(shown) >= 40
    lines = []
    for name, error in shown.items():
        rendered = render_at_doors(error, capsys)
        assert error.fix, f"{name}: {error} has no fix"
        assert not DUMPS.search("\n".join(rendered)), f"{name}: {rendered[0]}"
        assert len(str(error)) <= 300, name
        assert KEY not in "\n".join(rendered), name
        assert KEY not in str(list_notices([str(error)])), name
        assert isinstance(error.message, Notice) or error.code in WITHOUT_CODE, f"{name} has no text by a code"
        lines += [f"# {name}, exit code {error.exit_code}", *rendered, ""]
    compare_golden("failures.txt", "\n".join(lines))
