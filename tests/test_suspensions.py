"""The breakers' file: kept across processes, private, and never the reason that a search fails."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexi.errors import BackendError
from nexi.net.breaker import Suspension
from nexi.net.suspensions import FileBreaker, read_state
from nexi.testing import FakeClock

LIMITED = BackendError("too often", code="rate_limit", cause="HTTP 429", fix="wait")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nexi" / "state" / "backends.json"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_a_backend_that_never_failed_is_asked_and_leaves_no_file(path: Path, clock: FakeClock) -> None:
    breaker = FileBreaker(path, clock=clock)
    assert await breaker.admit("jina") is None
    await breaker.record_success("jina")
    assert not path.exists()


async def test_another_process_sees_the_suspension_until_its_time_has_passed(path: Path, clock: FakeClock) -> None:
    await FileBreaker(path, clock=clock).record_failure("jina", LIMITED)
    other = FileBreaker(path, clock=clock)
    now = clock.now().timestamp()
    assert await other.admit("jina") == Suspension(now, now + 10, "rate_limit", "too often: HTTP 429", "wait")
    assert await other.admit("brave") is None
    assert list(other.suspended_backends()) == ["jina"]
    clock.advance(10)
    assert await other.admit("jina") is None
    assert await other.admit("jina") is not None, "one tries, the others wait for it"
    await other.record_success("jina")
    assert await FileBreaker(path, clock=clock).admit("jina") is None
    assert json.loads(path.read_bytes()) == {"schema": 1, "backends": {}}


async def test_another_key_starts_afresh(path: Path, clock: FakeClock) -> None:
    await FileBreaker(path, clock=clock, marks={"jina": "old"}).record_failure("jina", LIMITED)
    assert await FileBreaker(path, clock=clock, marks={"jina": "new"}).admit("jina") is None
    assert await FileBreaker(path, clock=clock, marks={"jina": "old"}).admit("jina") is not None


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
async def test_the_file_is_for_its_owner_only(path: Path, clock: FakeClock) -> None:
    await FileBreaker(path, clock=clock).record_failure("jina", LIMITED)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema": 99, "backends": {"jina": {}}}',
        b'{"schema": 1, "backends": []}',
        b'{"schema": 1, "backends": {"jina": 3}}',
        b'{"schema": 1, "backends": {"jina": {"since": "x"}}}',
        b" " * 1_000_001,
    ],
)
async def test_a_damaged_file_counts_as_empty_and_is_mended_by_the_next_failure(
    path: Path, clock: FakeClock, junk: bytes
) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(junk)
    breaker = FileBreaker(path, clock=clock)
    assert await breaker.admit("jina") is None
    await breaker.record_failure("jina", LIMITED)
    assert await FileBreaker(path, clock=clock).admit("jina") is not None


async def test_where_nothing_can_be_written_the_process_remembers_for_itself(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "file").write_text("in the way")
    breaker = FileBreaker(tmp_path / "file" / "backends.json", clock=clock)
    await breaker.record_failure("jina", LIMITED)
    assert await breaker.admit("jina") is not None
    await breaker.record_success("jina")
    assert await breaker.admit("jina") is None


def test_two_who_write_at_once_lose_nothing(path: Path, clock: FakeClock) -> None:
    import asyncio

    def fail(name: str) -> None:
        asyncio.run(FileBreaker(path, clock=clock).record_failure(name, LIMITED))

    names = [f"backend{n}" for n in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fail, names))
    assert sorted(FileBreaker(path, clock=clock).suspended_backends()) == sorted(names)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda v: st.lists(v, max_size=2),
    max_leaves=3,
)


@given(st.dictionaries(st.sampled_from(["since", "until", "trial_until", "code", "reason", "fix", "errors"]), json_values))
def test_an_entry_of_any_shape_is_a_suspension_or_none(entry: dict[str, Any]) -> None:
    assert read_state(entry) is None or isinstance(read_state(entry), Suspension)
