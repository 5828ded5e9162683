"""What a team server deletes and when: old runs a week after they were marked, and texts that no run names."""

from __future__ import annotations

from collections.abc import Callable

from nexi.events import PageFetched, RunFinished, RunStarted
from nexi.team.postgres.database import Database
from nexi.team.postgres.runs import PostgresRuns, prune_expired
from nexi.testing import FakeClock
from nexi.types import StopReason, Usage

STARTED = RunStarted("why?", "m", "scripted")
FINISHED = RunFinished("because", (), StopReason.FINAL_ANSWER, 1, Usage(), 0.5, 1, 1)


async def test_old_runs_are_marked_and_deleted_a_week_later_with_their_pages(
    database: Database, make_person: Callable[..., str]
) -> None:
    owner = make_person()
    runs = PostgresRuns(database, owner, FakeClock())
    ids = {}
    for name in ("old", "kept", "new"):
        log = runs.create()
        page = await runs.pages.put(f"{name} page of {owner}")
        for fact in (
            STARTED,
            PageFetched("https://a.example", "https://a.example", "A", page, 1, 1, 0.1),
        ):
            await log.append(fact)
        await log.append(FINISHED)
        await log.close()
        ids[name] = (log.run_id, page)
    old = [ids["old"][0], ids["kept"][0]]
    database.fetch("update runs set created = now() - interval '40 days' where run = any(%(runs)s)", {"runs": old})
    database.fetch("update runs set is_kept = true where run = %(run)s", {"run": ids["kept"][0]})
    database.fetch("update pages set used = now() - interval '2 hours' where digest = %(page)s", {"page": ids["old"][1]})
    assert prune_expired(database, 30, 1000) == 0
    assert all(runs.has_run(run_id) for run_id, _ in ids.values())
    database.fetch("update runs set expires = expires - interval '8 days' where expires is not null")
    assert prune_expired(database, 30, 1000) == 1
    assert {name: runs.has_run(run_id) for name, (run_id, _) in ids.items()} == {"old": False, "kept": True, "new": True}
    assert [await runs.pages.get(page) is not None for _, page in ids.values()] == [False, True, True]


async def test_the_oldest_runs_beyond_the_room_of_a_person_are_marked(
    database: Database, make_person: Callable[..., str]
) -> None:
    owner = make_person()
    runs = PostgresRuns(database, owner, FakeClock())
    ids = []
    for _ in range(3):
        log = runs.create()
        await log.append(STARTED)
        await log.append(FINISHED)
        await log.close()
        ids.append(log.run_id)
    database.fetch("update runs set bytes = 600000 where owner = %(owner)s", {"owner": owner})
    prune_expired(database, 30, 1)
    marked = database.fetch("select run from runs where owner = %(owner)s and expires is not null", {"owner": owner})
    assert {run for (run,) in marked} == set(ids[:2])
    prune_expired(database, 30, 1000)  # a limit that was a mistake takes its marks back
    assert database.fetch("select 1 from runs where owner = %(owner)s and expires is not null", {"owner": owner}) == []


async def test_a_room_of_a_megabyte_is_a_million_bytes(database: Database, make_person: Callable[..., str]) -> None:
    ids = []
    for name, size in (("Ada", 1_000_000), ("Eve", 1_000_001)):
        log = PostgresRuns(database, make_person(name), FakeClock()).create()
        await log.append(STARTED)
        await log.append(FINISHED)
        await log.close()
        database.fetch("update runs set bytes = %(size)s where run = %(run)s", {"size": size, "run": log.run_id})
        ids.append(log.run_id)
    prune_expired(database, 30, 1)
    marked = database.fetch("select run from runs where run = any(%(ids)s) and expires is not null", {"ids": ids})
    assert marked == [(ids[1],)]


async def test_one_worker_deletes_at_a_time(database: Database, make_person: Callable[..., str]) -> None:
    runs = PostgresRuns(database, make_person(), FakeClock())
    log = runs.create()
    await log.append(STARTED)
    await log.append(FINISHED)
    await log.close()
    database.fetch("update runs set expires = now() - interval '1 s' where run = %(run)s", {"run": log.run_id})
    with database.transaction() as connection:
        connection.execute("select pg_advisory_xact_lock(hashtext('prune_expired'))")
        assert (prune_expired(database, 0, 0), runs.has_run(log.run_id)) == (0, True)
    assert (prune_expired(database, 0, 0), runs.has_run(log.run_id)) == (1, False)


async def test_texts_that_no_run_names_are_pruned(database: Database, make_person: Callable[..., str]) -> None:
    runs = PostgresRuns(database, make_person(), FakeClock())
    named, unnamed, young = [await runs.pages.put(f"{word} text of {make_person()}") for word in ("named", "unnamed", "young")]
    log = runs.create()
    await log.append(STARTED)
    await log.append(PageFetched("https://a.example", "https://a.example", "A", named, 10, 10, 0.1))
    await log.close()
    database.fetch("update pages set used = now() - interval '2 hours' where digest = any(%(old)s)", {"old": [named, unnamed]})
    prune_expired(database, keep_days=3_650, max_mb=1_000)
    assert [await runs.pages.get(digest) is not None for digest in (named, unnamed, young)] == [True, False, True]
