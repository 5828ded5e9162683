"""A proxy that cannot be used is named by every part that is sent through it; what stands behind it is not blamed."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence

import pytest

from nexi.backends.sender import BackendRequest, Sender
from nexi.errors import FetchError, NexiError
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.http import HttpFetcher
from nexi.llm.openai.client import OpenAICompatible
from nexi.net.causes import describe_proxy_fault
from nexi.testing import FakeClock
from nexi.types import FetchLimits, Message
from tests.fetchers.site import response, serving

Ask = Callable[[str, str], Awaitable[object]]


async def search(url: str, proxy: str) -> None:
    sender = Sender(user_agent="x", proxy=proxy)
    try:
        await sender.send("searxng", BackendRequest(url))
    finally:
        await sender.aclose()


async def fetch(url: str, proxy: str) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise FetchError("only the proxy knows it")

    fetcher = HttpFetcher(guard=AddressGuard(), clock=FakeClock(), proxy=proxy, respect_robots=False, resolve=resolve)
    try:
        await fetcher.fetch(url, FetchLimits())
    finally:
        await fetcher.aclose()


async def ask_model(url: str, proxy: str) -> None:
    llm = OpenAICompatible(url, "m", clock=FakeClock(), proxy=proxy, max_retries=0)
    try:
        await llm.complete([Message("user", "hello")], max_tokens=8)
    finally:
        await llm.aclose()


ASKS = pytest.mark.parametrize("ask", [search, fetch, ask_model])


async def failure(ask: Ask, url: str, proxy: str) -> tuple[str, str, str]:
    with pytest.raises(NexiError) as caught:
        await ask(url, proxy)
    return caught.value.message, caught.value.cause, caught.value.fix


@ASKS
async def test_a_proxy_that_is_not_running_is_named(ask: Ask) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{closed.getsockname()[1]}"
        assert await failure(ask, "http://far.test/", f"http://{place}") == (
            f"the proxy {place} cannot be reached",
            "nothing answers at that address",
            "start it, correct HTTP_PROXY and HTTPS_PROXY, or unset them if there is no proxy",
        )


@ASKS
async def test_a_proxy_that_requires_a_login_is_named_without_the_password_that_it_refused(ask: Ask) -> None:
    refusal = response(status=407)
    async with serving(dict.fromkeys(("http://far.test/", "http://far.test/chat/completions"), refusal)) as site:
        place = site.url().removeprefix("http://").rstrip("/")
        assert await failure(ask, "http://far.test/", f"http://me:secret@{place}") == (
            f"the proxy {place} requires a login",
            "HTTP 407: it does not accept the user name and password in HTTP_PROXY, or there are none",
            f"set HTTP_PROXY and HTTPS_PROXY to http://USER:PASSWORD@{place}",
        )


@ASKS
async def test_a_proxy_that_allows_no_tunnel_is_named_with_the_host(ask: Ask) -> None:
    async with serving({"far.test:443": response(status=403)}) as site:
        place = site.url().removeprefix("http://").rstrip("/")
        assert await failure(ask, "https://far.test/", f"http://{place}") == (
            f"the proxy {place} refused the connection",
            "HTTP 403 for far.test",
            "ask its operator to allow far.test, or add far.test to NO_PROXY if it can be reached directly",
        )


def test_a_proxy_is_named_by_host_and_port_alone() -> None:
    assert describe_proxy_fault("proxy.test:3128", "far.test").message == "the proxy proxy.test:3128 cannot be reached"
