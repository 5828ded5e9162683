"""Every client believes the certificates that the environment names, and only those."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from nexi import fetchers
from nexi.app import Nexi
from nexi.app.plugins import fetch_as_plugin
from nexi.backends.sender import BackendRequest, Sender
from nexi.config import Config, load_config
from nexi.errors import BackendError, ConfigError, FetchError, LLMError, NexiError
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.http import HttpFetcher
from nexi.fetchers.jina import JinaFetcher
from nexi.llm.local import server_time
from nexi.llm.openai.client import OpenAICompatible
from nexi.net.trust import Trust
from nexi.testing import FakeClock
from nexi.types import FetchLimits
from tests.raising import has_code

CERTIFICATE = Path(__file__).parent / "fetchers" / "loopback.pem"
NAMED = Trust(str(CERTIFICATE))
BODY = json.dumps({"data": [{"id": "m"}], "text": "Some words of a page."}).encode()


@asynccontextmanager
async def secure_server() -> AsyncIterator[str]:
    """Answers every request over TLS with one JSON body."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "Date: Fri, 02 Jan 2026 03:04:05 GMT\r\nContent-Type: application/json\r\nConnection: close"
        writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def ask_model(url: str, trust: Trust) -> None:
    llm = OpenAICompatible(f"{url}/v1", "m", clock=FakeClock(), max_retries=0, trust=trust)
    try:
        assert await llm.models() == ["m"]
    finally:
        await llm.aclose()


async def ask_service(url: str, trust: Trust) -> None:
    sender = Sender(user_agent="nexi", trust=trust)
    try:
        assert (await sender.send("service", BackendRequest(url))).body == BODY
    finally:
        await sender.aclose()


async def read_page(url: str, trust: Trust) -> None:
    guard = AddressGuard(["127.0.0.1"])
    fetcher = HttpFetcher(guard=guard, clock=FakeClock(), respect_robots=False, trust=trust)
    try:
        assert "Some words" in (await fetcher.fetch(f"{url}/", FetchLimits(timeout_s=300.0))).text
    finally:
        await fetcher.aclose()


async def read_through_jina(url: str, trust: Trust) -> None:
    fetcher = JinaFetcher(guard=AddressGuard(["127.0.0.1"]), clock=FakeClock(), base_url=url, trust=trust)
    try:
        await fetcher.fetch("http://127.0.0.1/page", FetchLimits(timeout_s=300.0))
    finally:
        await fetcher.aclose()


Client: TypeAlias = Callable[[str, Trust], Awaitable[None]]
CLIENTS = [ask_model, ask_service, read_page, read_through_jina]


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_named_certificate_is_believed(client: Client) -> None:
    async with secure_server() as url:
        await client(url, NAMED)


@pytest.mark.parametrize("client", CLIENTS)
async def test_without_it_the_machines_own_are_believed_whatever_the_library_would_read(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    async with secure_server() as url:
        with pytest.raises((LLMError, BackendError, FetchError)) as caught:
            await client(url, Trust())
    assert "certificate" in f"{caught.value} {caught.value.cause}"


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_file_without_certificates_is_told_with_its_name(client: Client, tmp_path: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n")
    with pytest.raises((LLMError, BackendError, FetchError)) as caught:
        await client("https://127.0.0.1:8443", Trust(str(junk)))
    assert str(junk) in caught.value.cause
    assert "SSL_CERT_FILE" in caught.value.fix


async def test_the_clock_of_a_server_is_read_with_the_same_certificates() -> None:
    async with secure_server() as url:
        told = await server_time(url, patience_s=5, trust=NAMED)
        assert told is not None
        assert told.isoformat() == "2026-01-02T03:04:05+00:00"
        assert await server_time(url, patience_s=5) is None


def test_the_environment_names_the_certificates(tmp_path: Path) -> None:
    env = {"NEXI_HOME": str(tmp_path), "SSL_CERT_FILE": str(CERTIFICATE), "SSL_CERT_DIR": str(tmp_path)}
    assert load_config(env=env).trust == Trust(str(CERTIFICATE), str(tmp_path))
    assert load_config(env={"NEXI_HOME": str(tmp_path)}).trust.context() is None


@pytest.mark.parametrize("name", ["ssl_cert_file", "ssl_cert_dir"])
async def test_what_is_not_there_is_refused_before_a_search_begins(name: str, tmp_path: Path) -> None:
    async with Nexi(Config(home=tmp_path).override(**{name: str(tmp_path / "none")})) as nexi:
        with pytest.raises(ConfigError, check=has_code("config")) as caught:
            nexi.ports.check()
    error: NexiError = caught.value
    assert str(tmp_path / "none") in error.cause


async def test_every_client_of_a_config_is_told(tmp_path: Path) -> None:
    config = Config(home=tmp_path, ssl_cert_file=str(CERTIFICATE), model="m", allow_private=["127.0.0.1"], respect_robots=False)
    async with secure_server() as url, Nexi(config.override(base_url=f"{url}/v1", searxng_url=url)) as nexi:
        assert "Some words" in (await nexi.fetch(f"{url}/page")).text
        outcome = await nexi.find("tea")
        assert [f.code for f in outcome.failures if f.code == "tls"] == []
        assert await nexi.gate().list_models() == ["m"]


async def test_a_fetch_in_the_seeds_way_believes_what_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    made: list[Any] = []
    real = fetchers.create_fetcher

    def create(name: str, settings: fetchers.Settings) -> Any:
        made.append(settings)
        return real(name, settings)

    monkeypatch.setattr(fetchers, "create_fetcher", create)
    [view] = await fetch_as_plugin("http", ["https://127.0.0.1/"], "", 1.0)
    assert view.error.startswith("blocked")
    assert [settings.trust for settings in made] == [NAMED]
