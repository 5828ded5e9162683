"""Schedules over HTTP on a team server: questions that workers ask again and again, for the person whose they are.

`team` adds these routes to the app of each person; below is the port ScheduleStore. A run of a schedule is one of hers, within
her quotas. The schedule of somebody else answers as if it were not there.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from nexi.app import Nexi
from nexi.app.request import request_to_dict
from nexi.team.limits import MAX_SCHEDULE_AHEAD_DAYS
from nexi.team.postgres.schedules import INTERVALS, name_interval
from nexi.types import Schedule
from nexi.web.contract import Contract
from nexi.web.payload import bad_request, build_refusal, json_reply, read_body
from nexi.web.runs import RunQuestion, parse_run_request
from nexi.web.spaces import team_state_of

CONTRACT = Contract()


class _NewSchedule(RunQuestion, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question to ask again and again."""

    every: Literal["hour", "day", "week"] = "day"
    first: Annotated[str, Meta(max_length=40, description="When it is asked first, as 2026-12-31T07:00Z.")] = ""


@CONTRACT.serve("GET /v1/schedules")
async def _list_schedules(request: Request) -> Response:
    """One's own, the one that is due next first."""
    schedules = await asyncio.to_thread(team_state_of(request).schedules.list_all)
    return json_reply({"schedules": [_schedule_to_dict(schedule) for schedule in schedules]})


@CONTRACT.serve("POST /v1/schedules")
async def _add_schedule(request: Request) -> Response:
    """Ask a question again and again, with the options of a run; a plan waits for nobody."""
    body, store = await read_body(request, _NewSchedule), team_state_of(request).schedules
    nexi: Nexi = request.app.state.nexi
    run_request = replace(parse_run_request(body), holds_plan=False)  # nobody is there to settle it
    nexi.check_request(run_request)
    every, first = INTERVALS[body.every], None
    if body.first:
        try:
            first = datetime.fromisoformat(body.first)
        except ValueError as error:
            raise bad_request("first must be a time", parameter="first", fix="write it as 2026-12-31T07:00Z") from error
        first = first if first.tzinfo else first.replace(tzinfo=UTC)
        if abs(first - nexi.clock.now().astimezone(UTC)) > timedelta(days=MAX_SCHEDULE_AHEAD_DAYS):
            raise bad_request("first must be within a year from now", parameter="first")
    schedule = await asyncio.to_thread(
        lambda: store.add(run_request.question, run_request.mode, request_to_dict(run_request), every=every, first=first)
    )
    return json_reply(_schedule_to_dict(schedule), 201, {"location": f"/v1/schedules/{schedule.id}"})


@CONTRACT.serve("DELETE /v1/schedules/{id}")
async def _remove_schedule(request: Request) -> Response:
    number = request.path_params["id"]
    if not (number.isascii() and number.isdecimal() and len(number) <= 18):
        raise build_refusal(404, "not_found", f"there is no schedule {number[:40]}", fix="GET /v1/schedules lists yours")
    await asyncio.to_thread(team_state_of(request).schedules.remove, int(number))
    return Response(status_code=204)


def _schedule_to_dict(schedule: Schedule) -> dict[str, Any]:
    return {
        "id": schedule.id,
        "question": schedule.question,
        "mode": schedule.mode,
        "every": name_interval(schedule.every),
        "next": schedule.next_at.astimezone(UTC).isoformat(timespec="seconds"),
        "last_run": schedule.last_run,
    }
