"""No page comes from an address that is not public, however it is spelt, named or redirected to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Sequence

import httpcore2
import pytest

from nexi.errors import ConfigError, FetchError
from nexi.fetchers import guard as guard_module
from nexi.fetchers.guard import AddressGuard, GuardedBackend, forbidden_reason, resolve_host
from nexi.net.addresses import is_address
from tests.raising import has_code

FORBIDDEN = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "10.0.0.1": "private",
    "100.64.0.1": "carrier-grade NAT",
    "100.100.100.200": "cloud metadata",
    "168.63.129.16": "cloud metadata",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "169.254.1.1": "link-local",
    "169.254.169.254": "cloud metadata",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.1": "reserved",
    "192.0.2.1": "documentation",
    "192.88.99.1": "6to4",
    "192.168.1.1": "private",
    "198.18.0.1": "benchmarking",
    "198.19.255.255": "benchmarking",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "224.0.0.1": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::7f00:1": "IPv4 inside IPv6",
    "::ffff:127.0.0.1": "IPv4 inside IPv6",
    "2a00:1::5efe:a9fe:a9fe": "ISATAP",
    "2a00:1::200:5efe:10.0.0.1": "ISATAP",
    "::ffff:8.8.8.8": "IPv4 inside IPv6",
    "64:ff9b::7f00:1": "IPv4 inside IPv6",
    "64:ff9b:1::1": "IPv4 inside IPv6",
    "100::1": "reserved",
    "2001::1": "Teredo",
    "2001:2::1": "benchmarking",
    "2001:10::1": "reserved",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4",
    "3fff::1": "documentation",
    "4000::1": "reserved",
    "fc00::1": "private",
    "fd00:ec2::254": "cloud metadata",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "2606:4700::1111%eth0": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "not an address": "not an address",
}
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.215.14",
    "100.63.255.255",
    "172.32.0.1",
    "198.20.0.1",
    "2606:4700::1111",
    "2a00:1450::1",
    "2a00:1::5eff:a9fe:a9fe",
]


@pytest.mark.parametrize(("address", "reason"), FORBIDDEN.items())
def test_addresses_that_are_not_public_are_forbidden(address: str, reason: str) -> None:
    assert forbidden_reason(address) == reason


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    assert forbidden_reason(address) == ""


def test_an_address_behind_a_nat64_prefix_of_a_networks_own_is_not_recognised() -> None:
    assert forbidden_reason("2a00:64:ff9b::7f00:1") == ""


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        ("ftp://example.com/", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("http://user:secret@example.com/", "user name or password"),
        ("http://example.com:22/", "port 22"),
        ("http://example.com:25/", "port 25"),
        ("http://127.0.0.1/", "loopback"),
        ("http://127.1/", "loopback"),
        ("http://0x7f.0x1/", "loopback"),
        ("http://017700000001/", "loopback"),
        ("http://2130706433/", "loopback"),
        ("http://①②⑦.⓪.⓪.①/", "loopback"),
        ("http://[::1]/", "loopback"),
        ("http://[::ffff:a9fe:a9fe]/", "IPv4 inside IPv6"),
        ("http://169.254.169.254/latest/meta-data/", "cloud metadata"),
        ("\thttp://10.0.0.1/", "private"),
        ("http:/\\10.0.0.1/", "private"),
        ("http://exa mple.com/", "not a URL"),
        ("//example.com/", "not a URL"),
    ],
)
def test_urls_that_show_what_they_are_get_refused_before_any_lookup(url: str, cause: str) -> None:
    with pytest.raises(FetchError) as caught:
        AddressGuard().check_url(url)
    assert caught.value.reason == "blocked"
    assert cause in caught.value.cause
    assert caught.value.fix


# the "bad ports" of the Fetch standard, and those of LDAP, Windows shares, databases, Docker, remote desktops and memcached
OTHER_PROTOCOLS = {
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113,
    115, 117, 119, 123, 135, 137, 138, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548,
    554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2375, 3306, 3389, 3659, 4045, 5060,
    5061, 5432, 5900, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 9100, 10080, 11211, 27017,
}  # fmt: skip


def test_the_ports_of_other_protocols_are_refused_and_those_beside_them_are_not() -> None:
    guard = AddressGuard()

    def is_refused(port: int) -> bool:
        try:
            guard.check_url(f"http://example.com:{port}/")
        except FetchError:
            return True
        return False

    neighbours = {port + step for port in OTHER_PROTOCOLS for step in (-1, 0, 1)}
    assert {port for port in neighbours if is_refused(port)} == OTHER_PROTOCOLS


def test_a_refusal_names_no_more_than_the_beginning_of_a_long_url() -> None:
    url = f"ftp://example.com/{'a' * 300}"
    with pytest.raises(FetchError) as caught:
        AddressGuard().check_url(url)
    assert caught.value.message == f"{url[:200]} is not fetched"


def test_an_empty_exception_allows_nothing() -> None:
    with pytest.raises(FetchError):
        AddressGuard(["", " "]).check_url("http://127.0.0.1/")


def test_a_refusal_does_not_repeat_the_password() -> None:
    with pytest.raises(FetchError) as caught:
        AddressGuard().check_url("http://user:secret@example.com/")
    assert "secret" not in str(caught.value)


def test_a_public_url_comes_back_parsed() -> None:
    assert AddressGuard().check_url("HTTP://Example.com:80/a").href == "http://example.com/a"


@pytest.mark.parametrize(
    ("allow", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080/"),
        ("127.0.0.1:8080", "http://127.1:8080/"),
        ("0x7f.1", "http://127.0.0.1/"),
        ("::1", "http://[::1]/"),
        ("[::1]:8080", "http://[0:0::1]:8080/"),
        ("10.0.0.0/8", "http://10.1.2.3/"),
        ("10.0.0.5/8", "http://10.1.2.3/"),
        ("fd00::/8", "http://[fd12::1]/"),
        (" 10.0.0.5 ", "http://10.0.0.5/"),
        ("example.com:6379", "http://example.com:6379/"),
    ],
)
def test_exceptions_are_exact_hosts_ports_or_networks(allow: str, url: str) -> None:
    assert AddressGuard([allow]).check_url(url)


@pytest.mark.parametrize(
    ("allow", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8081/"),
        ("127.0.0.1:0", "http://127.0.0.1/"),
        ("127.0.0.1", "http://127.0.0.2/"),
        ("10.0.0.0/8", "http://11.0.0.1.:25/"),
        ("10.0.0.0/24", "http://10.0.1.1/"),
        ("example.com", "http://example.com:25/"),
        ("::1", "http://127.0.0.1/"),
    ],
)
def test_an_exception_covers_nothing_beside_itself(allow: str, url: str) -> None:
    with pytest.raises(FetchError):
        AddressGuard([allow]).check_url(url)


@pytest.mark.parametrize("entry", ["10.0.0.0/99", "http://wiki.lan/", "a b", "host:port", "user@host"])
def test_an_exception_that_cannot_be_read_is_a_configuration_error(entry: str) -> None:
    with pytest.raises(ConfigError, check=has_code("config", "allow_private")):
        AddressGuard([entry])


def test_of_several_exceptions_that_cannot_be_read_the_first_is_named() -> None:
    for entries in (["wiki.lan/", "user@host", "10.0.0.0/8"], ["user@host", "wiki.lan/"]):
        with pytest.raises(ConfigError, match=f"cannot be used: '{entries[0]}'"):
            AddressGuard(entries)


def test_the_table_of_forbidden_addresses_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        guard_module._TABLE.ports = frozenset()  # type: ignore[misc]


class Wire(httpcore2.AsyncNetworkBackend):
    """Notes every connect; those to addresses in `dead` fail."""

    def __init__(self, dead: Iterable[str] = ()) -> None:
        self.connects: list[tuple[str, int]] = []
        self.dead = set(dead)

    async def connect_tcp(self, host: str, port: int, *_: object, **__: object) -> httpcore2.AsyncNetworkStream:
        self.connects.append((host, port))
        if host in self.dead:
            raise httpcore2.ConnectError("dead")
        return httpcore2.AsyncMockStream([])


class Names:
    """A resolver with a scripted answer for each question, in order."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0)


async def test_a_name_is_resolved_once_and_its_checked_address_is_connected_to() -> None:
    wire, names = Wire(), Names(["93.184.215.14"], ["127.0.0.1"])
    await GuardedBackend(AddressGuard(), resolve=names, inner=wire).connect_tcp("rebind.test", 80)
    assert (names.asked, wire.connects) == (["rebind.test"], [("93.184.215.14", 80)])


async def test_a_name_that_later_turns_private_is_refused_then() -> None:
    wire, names = Wire(), Names(["93.184.215.14"], ["127.0.0.1"])
    backend = GuardedBackend(AddressGuard(), resolve=names, inner=wire)
    await backend.connect_tcp("rebind.test", 80)
    with pytest.raises(FetchError, check=has_code("blocked", "rebind.test", "127.0.0.1")):
        await backend.connect_tcp("rebind.test", 80)
    assert wire.connects == [("93.184.215.14", 80)]


async def test_of_mixed_answers_only_the_public_ones_are_tried() -> None:
    wire = Wire(dead=["8.8.8.8"])
    names = Names(["10.0.0.1", "8.8.8.8", "::1", "1.1.1.1"])
    await GuardedBackend(AddressGuard(), resolve=names, inner=wire).connect_tcp("mixed.test", 443)
    assert wire.connects == [("8.8.8.8", 443), ("1.1.1.1", 443)]


async def test_the_last_address_that_fails_is_the_failure() -> None:
    wire = Wire(dead=["8.8.8.8", "1.1.1.1"])
    with pytest.raises(httpcore2.ConnectError):
        await GuardedBackend(AddressGuard(), resolve=Names(["8.8.8.8", "1.1.1.1"]), inner=wire).connect_tcp("down.test", 443)


@pytest.mark.parametrize("answers", [["127.0.0.1"], ["10.0.0.1", "fd00::1"], []])
async def test_a_name_with_only_private_addresses_never_reaches_the_wire(answers: list[str]) -> None:
    wire = Wire()
    with pytest.raises(FetchError) as caught:
        await GuardedBackend(AddressGuard(), resolve=Names(answers), inner=wire).connect_tcp("private.test", 80)
    assert (caught.value.reason, wire.connects) == ("blocked", [])


async def test_an_allowed_host_name_may_be_private_on_its_port_only() -> None:
    wire, guard = Wire(), AddressGuard(["wiki.lan:8080"])
    names = Names(["10.0.0.1"], ["10.0.0.1"])
    backend = GuardedBackend(guard, resolve=names, inner=wire)
    await backend.connect_tcp("wiki.lan", 8080)
    with pytest.raises(FetchError):
        await backend.connect_tcp("wiki.lan", 80)
    assert wire.connects == [("10.0.0.1", 8080)]


async def test_an_allowed_address_does_not_open_the_door_to_names_that_point_at_it() -> None:
    with pytest.raises(FetchError):
        await GuardedBackend(AddressGuard(["127.0.0.1"]), resolve=Names(["127.0.0.1"]), inner=Wire()).connect_tcp(
            "evil.test", 80
        )


async def test_local_sockets_are_refused() -> None:
    with pytest.raises(FetchError, check=has_code("blocked")):
        await GuardedBackend(AddressGuard(), inner=Wire()).connect_unix_socket("/run/docker.sock")


async def test_a_literal_address_is_never_looked_up() -> None:
    names, wire = Names(), Wire()
    await GuardedBackend(AddressGuard(), resolve=names, inner=wire).connect_tcp("8.8.8.8", 80)
    assert (names.asked, wire.connects) == ([], [("8.8.8.8", 80)])


async def test_a_pause_between_attempts_is_that_of_the_wire() -> None:
    pauses: list[float] = []

    class PausedWire(Wire):
        async def sleep(self, seconds: float) -> None:
            pauses.append(seconds)

    await GuardedBackend(AddressGuard(), inner=PausedWire()).sleep(0.5)
    assert pauses == [0.5]


class SilentStream(httpcore2.AsyncNetworkStream):
    """A peer that takes nothing: writing to it and a handshake with it never end."""

    def __init__(self) -> None:
        self.is_closed = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return b"x" * max_bytes

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await asyncio.Event().wait()

    async def start_tls(self, *_: object) -> httpcore2.AsyncNetworkStream:
        await asyncio.Event().wait()
        raise AssertionError

    async def aclose(self) -> None:
        self.is_closed = True

    def get_extra_info(self, info: str) -> str:
        return f"the {info} of the peer"


class SilentWire(Wire):
    def __init__(self) -> None:
        super().__init__()
        self.stream = SilentStream()

    async def connect_tcp(self, host: str, port: int, *_: object, **__: object) -> httpcore2.AsyncNetworkStream:
        return self.stream


@pytest.mark.parametrize("step", ["write", "handshake"])
async def test_a_connection_is_closed_when_a_write_or_a_handshake_is_cancelled(step: str) -> None:
    wire = SilentWire()
    stream = await GuardedBackend(AddressGuard(), inner=wire).connect_tcp("8.8.8.8", 80)
    work = stream.write(b"GET /") if step == "write" else stream.start_tls(ssl.create_default_context())
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert wire.stream.is_closed


async def test_a_guarded_connection_reads_tells_and_closes_like_its_own() -> None:
    wire = SilentWire()
    stream = await GuardedBackend(AddressGuard(), inner=wire).connect_tcp("8.8.8.8", 80)
    assert (await stream.read(3), stream.get_extra_info("socket")) == (b"xxx", "the socket of the peer")
    await stream.aclose()
    assert wire.stream.is_closed


def test_a_host_with_any_forbidden_address_is_refused_where_a_proxy_picks_one() -> None:
    guard = AddressGuard()
    guard.check_all("both.test", 80, ["8.8.8.8", "1.1.1.1"])
    with pytest.raises(FetchError) as refusal:
        guard.check_all("both.test", 80, ["8.8.8.8", "10.0.0.1"])
    assert refusal.value.cause == "10.0.0.1 is private"


@pytest.mark.parametrize(
    ("address", "port", "fix"),
    [
        ("10.0.0.1", 8080, "if its pages may be read: nexi config add allow_private wiki.test:8080"),
        ("10.0.0.1", 443, "if its pages may be read: nexi config add allow_private wiki.test"),
        (
            "169.254.169.254",
            80,
            "add the host, host:port or network to allow_private (NEXI_ALLOW_PRIVATE) if its pages may be read",
        ),
    ],
)
def test_a_refusal_says_how_to_allow_the_host(address: str, port: int, fix: str) -> None:
    with pytest.raises(FetchError) as refusal:
        AddressGuard().usable_addresses("wiki.test", port, [address])
    assert (refusal.value.fix, str(refusal.value).startswith("wiki.test is not fetched")) == (fix, True)


def test_what_is_no_address_is_never_connected_to() -> None:
    with pytest.raises(FetchError) as refusal:
        AddressGuard().usable_addresses("odd.test", 80, ["10.0.0.300"])
    assert refusal.value.cause == "10.0.0.300 is not an address"
    assert [is_address(host) for host in ("10.0.0.30", "::1", "10.0.0.300")] == [True, True, False]


def test_a_name_without_an_address_is_refused() -> None:
    with pytest.raises(FetchError) as refusal:
        AddressGuard().usable_addresses("nowhere.test", 80, [])
    assert refusal.value.cause == "the name has no address"


async def test_only_the_last_address_may_take_the_whole_time() -> None:
    timeouts: list[float | None] = []

    class TimedWire(Wire):
        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            *_: object,
            **__: object,
        ) -> httpcore2.AsyncNetworkStream:
            timeouts.append(timeout)
            raise httpcore2.ConnectTimeout

    names = Names(["8.8.8.8", "1.1.1.1", "9.9.9.9"])
    with pytest.raises(httpcore2.ConnectTimeout):
        await GuardedBackend(AddressGuard(), resolve=names, inner=TimedWire()).connect_tcp("slow.test", 80, 30.0)
    assert timeouts == [3.0, 3.0, 30.0]


async def test_the_addresses_of_a_name_are_listed_once_each() -> None:
    addresses = await resolve_host("localhost", 80)
    assert set(addresses) <= {"127.0.0.1", "::1"}
    assert len(addresses) == len(set(addresses)) > 0
