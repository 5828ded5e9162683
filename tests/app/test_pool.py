"""The pool of what a process keeps open for each person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from nexi.app.pool import PersonalPool


class World:
    """Resources that note when they are opened and closed, and by which task."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.busy: set[str] = set()

    @asynccontextmanager
    async def open(self, person: str) -> AsyncIterator[str]:
        if person == "mallory":
            raise ValueError("not this one")
        task = asyncio.current_task()
        self.notes.append(f"open {person}")
        yield person
        assert asyncio.current_task() is task
        self.notes.append(f"close {person}")

    def pool(self, max_open: int, max_idle_s: float | None = None) -> PersonalPool[str]:
        return PersonalPool(self.open, max_open=max_open, max_idle_s=max_idle_s, is_busy=lambda person: person in self.busy)


async def visit(pool: PersonalPool[str], *people: str) -> None:
    for person in people:
        async with pool.use(person) as resource:
            assert resource == person
    await asyncio.sleep(0)


async def test_the_one_that_was_used_least_recently_is_closed() -> None:
    world = World()
    pool = world.pool(2)
    await visit(pool, "ada", "bob", "ada", "cleo")
    assert world.notes == ["open ada", "open bob", "open cleo", "close bob"]
    await visit(pool, "bob")
    assert (world.notes[4:], len(pool)) == (["open bob", "close ada"], 2)
    await pool.close()
    assert (sorted(world.notes[6:]), len(pool)) == (["close bob", "close cleo"], 0)


async def test_one_that_is_in_use_or_busy_stays_open_and_is_closed_later() -> None:
    world = World()
    pool = world.pool(1)
    world.busy = {"bob"}
    async with pool.use("ada"):
        await visit(pool, "bob", "cleo")
        assert world.notes == ["open ada", "open bob", "open cleo", "close cleo"]
    world.busy.clear()
    await visit(pool, "dora")
    assert (sorted(world.notes[4:]), pool.values) == (["close ada", "close bob", "open dora"], ["dora"])
    await pool.close()


async def test_two_at_once_share_one_resource() -> None:
    world = World()
    pool = world.pool(4)
    await asyncio.gather(visit(pool, "ada"), visit(pool, "ada"))
    await pool.close()
    assert world.notes == ["open ada", "close ada"]


async def test_one_that_cannot_be_opened_says_why_and_holds_nothing_up() -> None:
    world = World()
    pool = world.pool(4)
    for _ in range(2):
        with pytest.raises(ValueError, match="not this one"):
            await visit(pool, "mallory")
    await visit(pool, "ada")
    await pool.close()
    assert world.notes == ["open ada", "close ada"]


async def test_after_the_last_request_of_a_person_nothing_is_kept_unless_it_is_busy() -> None:
    world = World()
    pool = world.pool(4, max_idle_s=0.0)
    world.busy = {"bob"}
    async with pool.use("cleo"):
        await visit(pool, "ada", "bob")
        async with asyncio.timeout(60):
            while len(pool) > 2:
                await asyncio.sleep(0)
            assert pool.values == ["cleo", "bob"]
            world.busy.clear()
            while len(pool) > 1:
                await asyncio.sleep(0)
    await pool.close()
    assert world.notes == ["open cleo", "open ada", "open bob", "close ada", "close bob", "close cleo"]
