"""The shared sender over loopback: what arrives, what comes back, and what fails below HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from importlib.metadata import EntryPoint
from typing import Any

import httpx2
import pytest

from nexi import backends
from nexi.backends.sender import MAX_BODY, BackendRequest, BackendResponse, Sender
from nexi.errors import BackendError, ConfigError
from nexi.testing import FakeWeb
from nexi.types import Hit, Query
from tests.fetchers.site import Writer, response, serving
from tests.raising import has_code


@pytest.fixture
async def sender() -> AsyncIterator[Sender]:
    sender = Sender(user_agent="nexi/test")
    yield sender
    await sender.aclose()


async def failure(sender: Sender, request: BackendRequest) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await sender.send("service", request)
    assert caught.value.fix
    return caught.value


async def test_a_request_arrives_as_it_was_written(sender: Sender) -> None:
    async with serving({"/search?q=a+b&x=%C3%A4": response(b"{}", content_type="application/json")}) as site:
        request = BackendRequest(site.url("/search"), params=(("q", "a b"), ("x", "ä")), headers={"Accept": "application/json"})
        got = await sender.send("service", request)
        _, headers = site.requests[0]
    assert (got.status, got.headers["content-type"], got.body) == (200, "application/json", b"{}")
    assert (headers["user-agent"], headers["accept"]) == ("nexi/test", "application/json")


async def test_any_status_is_an_answer_and_redirects_are_not_followed(sender: Sender) -> None:
    async with serving({"/": response(status=302, location="/elsewhere")}) as site:
        got = await sender.send("service", BackendRequest(site.url()))
        assert (got.status, site.paths) == (302, ["/"])


async def test_an_endless_answer_is_cut(sender: Sender) -> None:
    async def pour(writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 100_000)
            await writer.drain()

    async with serving({"/": pour}) as site:
        assert len((await sender.send("service", BackendRequest(site.url()))).body) == MAX_BODY


async def test_an_answer_that_drips_meets_the_deadline(sender: Sender) -> None:
    async def never(writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
        await asyncio.Event().wait()

    async with serving({"/": never}) as site:
        error = await failure(sender, BackendRequest(site.url(), timeout_s=0.05))
    assert (error.code, error.retryable) == ("timeout", True)


async def test_the_user_and_password_of_a_url_are_in_no_error(sender: Sender) -> None:
    async with serving() as site:
        place = site.url().removeprefix("http://")
    secret = "http://su:PASSW0RD@"
    for url in (secret + place, secret + "127.0.0.1:99999/", "ftp://su:PASSW0RD@127.0.0.1/"):
        error = await failure(sender, BackendRequest(url))
        assert "PASSW0RD" not in f"{error} {error.cause} {error.fix}"
    error = await failure(sender, BackendRequest(secret + place))
    assert (error.code, error.cause) == ("refused", f"nothing listens at http://{place}")


async def test_nobody_listening_is_refused(sender: Sender) -> None:
    async with serving() as site:
        url = site.url()
    error = await failure(sender, BackendRequest(url))
    assert (error.code, error.cause) == ("refused", f"nothing listens at {url}")


async def test_plain_http_where_https_was_asked_for_is_a_tls_failure(sender: Sender) -> None:
    def answer_in_clear(reader: asyncio.StreamReader, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer_in_clear, "127.0.0.1", 0) as server:
        error = await failure(sender, BackendRequest(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
    assert error.code == "tls"


async def test_a_handshake_without_an_answer_meets_the_deadline(sender: Sender) -> None:
    async with serving() as site:
        error = await failure(sender, BackendRequest(site.url().replace("http:", "https:"), timeout_s=0.3))
    assert error.code == "timeout"


async def test_a_name_that_is_not_found_is_a_dns_failure(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    async def not_found(*_: Any, **__: Any) -> Any:
        raise httpx2.ConnectError("no") from socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", not_found)
    assert (await failure(sender, BackendRequest("http://nowhere.test/"))).code == "dns"


async def test_a_connection_that_breaks_may_be_tried_again(sender: Sender) -> None:
    async def hang_up(writer: Writer) -> None:
        writer.close()

    async with serving({"/": hang_up}) as site:
        error = await failure(sender, BackendRequest(site.url()))
    assert (error.code, error.retryable) == ("network", True)


@pytest.mark.parametrize("url", ["", "search.test", "ftp://search.test/"])
async def test_a_url_that_is_none_is_the_operators_to_mend(sender: Sender, url: str) -> None:
    assert (await failure(sender, BackendRequest(url))).code == "wrong_url"


async def test_a_proxy_is_used_except_where_no_proxy_says() -> None:
    async with serving({"http://far.test/": response("proxied"), "/": response("direct")}) as site:
        sender = Sender(user_agent="x", proxy=site.url(), no_proxy=["127.0.0.1"])
        got = [(await sender.send("service", BackendRequest(url))).body for url in ("http://far.test/", site.url())]
        await sender.aclose()
    assert got == [b"proxied", b"direct"]


async def test_a_search_over_the_wire_gives_no_more_than_was_asked_for(sender: Sender) -> None:
    results = [{"url": f"https://{n}.test/", "title": str(n)} for n in range(20)]
    body = json.dumps({"results": results}).encode()
    async with serving({"/search?q=q&format=json&pageno=1": response(body, content_type="application/json")}) as site:
        backend = backends.create_backend("searxng", backends.Settings(base_url=site.url()), sender)
        hits = await backend.search(Query("q", count=2))
    assert (backend.name, hits) == (
        "searxng",
        [Hit("https://0.test/", "0", backend="searxng"), Hit("https://1.test/", "1", backend="searxng")],
    )


async def test_a_backend_without_its_settings_or_without_a_provider_is_a_configuration_error(sender: Sender) -> None:
    with pytest.raises(ConfigError, check=has_code("config", "SEARXNG_URL")):
        backends.create_backend("searxng", backends.Settings(), sender)
    with pytest.raises(ConfigError, check=has_code("config", "'seraxng'")):
        backends.create_backend("seraxng", backends.Settings(), sender)


def third_party(settings: backends.Settings, sender: Sender) -> FakeWeb:
    return FakeWeb({}, name="theirs")


async def test_other_packages_add_theirs_by_entry_point(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("theirs", f"{__name__}:third_party", backends.ENTRY_POINTS)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name: [entry])
    assert backends.create_backend("theirs", backends.Settings(), sender).name == "theirs"


def test_answers_are_values() -> None:
    assert BackendResponse(200, {}, b"x") == BackendResponse(200, {}, b"x")
