"""What the app of each person answers on a team server alone: sharing of runs and knowledge bases, and schedules.

`app` adds these routes; below are the ports RunSharing, KnowledgeSharing and ScheduleStore. A shared run is read by its id, at
the same paths as one's own; a shared knowledge base is searched with one's own. A run of a schedule is within the quotas of its
owner. Whatever would change what belongs to somebody else answers as if it were not there.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
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
from nexi.web.spaces import read_audience, team_state_of

CONTRACT = Contract()


class _OfferAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a shared knowledge base is searched with one's own."""

    accepted: bool


@CONTRACT.serve("GET /v1/runs/{id}/shares")
async def _show_audience(request: Request) -> Response:
    audience = await asyncio.to_thread(team_state_of(request).sharing.read_audience, request.path_params["id"])
    return json_reply(msgspec.to_builtins(audience))


@CONTRACT.serve("PUT /v1/runs/{id}/shares")
async def _set_audience(request: Request) -> Response:
    """Let exactly these people read it; nobody else, where none is named."""
    audience = await read_audience(request)
    await asyncio.to_thread(team_state_of(request).sharing.set_audience, request.path_params["id"], audience)
    return await _show_audience(request)


@CONTRACT.serve("GET /v1/shared-runs")
async def _list_shared(request: Request) -> Response:
    runs = await asyncio.to_thread(team_state_of(request).sharing.list_shared)
    return json_reply({"runs": [msgspec.to_builtins(run) for run in runs]})


@CONTRACT.serve("GET /v1/knowledge/shares")
async def _show_knowledge_audience(request: Request) -> Response:
    audience = await asyncio.to_thread(team_state_of(request).knowledge_sharing.read_audience)
    return json_reply(msgspec.to_builtins(audience))


@CONTRACT.serve("PUT /v1/knowledge/shares")
async def _set_knowledge_audience(request: Request) -> Response:
    """Let exactly these people read all of one's knowledge base; nobody else, where none is named."""
    await asyncio.to_thread(team_state_of(request).knowledge_sharing.set_audience, await read_audience(request))
    return await _show_knowledge_audience(request)


@CONTRACT.serve("GET /v1/shared-knowledge")
async def _list_shared_knowledge(request: Request) -> Response:
    """Whose knowledge bases one may read, and the names of those whose are searched with one's own, since one accepted them."""
    offers = await asyncio.to_thread(team_state_of(request).knowledge_sharing.list_offers)
    people = sorted(offer.name for offer in offers if offer.state == "accepted")
    return json_reply({"people": people, "offers": [msgspec.to_builtins(offer) for offer in offers]})


@CONTRACT.serve("PUT /v1/shared-knowledge/{owner}")
async def _answer_offer(request: Request) -> Response:
    """Accept the knowledge base of somebody, so that it enters one's answers, or mute it."""
    answer = await read_body(request, _OfferAnswer)
    sharing, owner = team_state_of(request).knowledge_sharing, request.path_params["owner"]
    await asyncio.to_thread(lambda: sharing.answer_offer(owner, is_accepted=answer.accepted))
    return await _list_shared_knowledge(request)


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
