"""Schedules of one's own: added, listed and removed over HTTP, asked by a worker, and unknown to everybody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nexi.team.limits import MAX_SCHEDULES
from tests.team.world import QUESTION, ServedTeam, serving_team

LATER = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0)


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path) as team:
        yield team


async def test_a_person_adds_lists_and_removes_her_schedules_and_nobody_elses(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    async with served.client_of(make_person("Ada")) as ada, served.client_of(make_person("Eve")) as eve:
        body = {"question": QUESTION, "every": "week", "first": LATER.isoformat(), "options": {"effort": "s"}}
        made = await ada.post("/v1/schedules", json=body)
        row = {"question": QUESTION, "mode": "search", "every": "week", "next": LATER.isoformat(), "last_run": ""}
        number = made.json()["id"]
        assert (made.status_code, made.json()) == (201, {"id": number, **row})
        assert made.headers["location"] == f"/v1/schedules/{number}"
        assert (await ada.get("/v1/schedules")).json() == {"schedules": [{"id": number, **row}]}
        assert (await eve.get("/v1/schedules")).json() == {"schedules": []}
        refused = await eve.delete(f"/v1/schedules/{number}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
        assert (await ada.delete(f"/v1/schedules/{number}")).status_code == 204
        assert (await ada.delete(f"/v1/schedules/{number}")).status_code == 404
        assert (await ada.get("/v1/schedules")).json() == {"schedules": []}


async def test_a_schedule_that_is_due_becomes_a_run_with_its_options(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    async with served.client_of(make_person("Ada")) as ada, asyncio.timeout(60):
        made = await ada.post("/v1/schedules", json={"question": QUESTION, "options": {"effort": "s", "count": 3}})
        assert made.status_code == 201, made.text
        while not (runs := (await ada.get("/v1/runs")).json()["runs"]) or runs[0]["state"] == "running":
            await asyncio.sleep(0.05)
        (schedule,) = (await ada.get("/v1/schedules")).json()["schedules"]
        assert (runs[0]["question"], runs[0]["state"], schedule["last_run"]) == (QUESTION, "finished", runs[0]["id"])
        assert timedelta(hours=23) < datetime.fromisoformat(schedule["next"]) - datetime.now(UTC) <= timedelta(days=1)
    (request,) = served.team.database.fetch("select request from runs where run = %(run)s", {"run": runs[0]["id"]})[0]
    assert (request["effort"], request["query"]["count"]) == ("s", 3)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": " "},
        {"question": QUESTION, "every": "second"},
        {"question": QUESTION, "first": "tomorrow"},
        {"question": QUESTION, "first": "9999-12-31T23:59:59Z"},
        {"question": QUESTION, "continues": "0" * 32},
    ],
)
async def test_a_schedule_that_makes_no_sense_is_refused(
    served: ServedTeam, make_person: Callable[..., str], body: dict[str, Any]
) -> None:
    async with served.client_of(make_person("Ada")) as ada:
        assert (await ada.post("/v1/schedules", json=body)).status_code == 400
        assert (await ada.get("/v1/schedules")).json() == {"schedules": []}


async def test_a_person_has_so_many_schedules_and_a_token_that_only_looks_adds_none(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    person = make_person("Ada")
    body = {"question": QUESTION, "first": LATER.isoformat()}
    async with served.client_of(person) as ada, served.client_of(person, ("read",)) as looking:
        assert (await looking.post("/v1/schedules", json=body)).status_code == 403
        replies = await asyncio.gather(*(ada.post("/v1/schedules", json=body) for _ in range(MAX_SCHEDULES + 2)))
        assert sorted(reply.status_code for reply in replies) == [201] * MAX_SCHEDULES + [429] * 2
        assert len((await looking.get("/v1/schedules")).json()["schedules"]) == MAX_SCHEDULES
