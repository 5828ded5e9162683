"""Sharing a run on a team server: who else may read it, and what others let one read.

`team` adds these routes to the app of each person; below is the port RunSharing. To read a shared run is to ask for it by its
id, at the same paths as one's own; whatever changes it answers as if it were not there.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.app import Nexi
from nexi.ports import RunSharing
from nexi.types import RunAudience
from nexi.web.payload import json_reply, read_json
from nexi.web.problems import build_refusal

__all__ = ["routes"]

MAX_PEOPLE = 100
AUDIENCE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "team": {"type": "boolean"},
        "people": {"type": "array", "maxItems": MAX_PEOPLE, "items": {"type": "string", "maxLength": 200}},
    },
}


def routes() -> list[Route]:
    return [
        Route("/v1/runs/{id}/shares", _show_audience, methods=["GET"]),
        Route("/v1/runs/{id}/shares", _set_audience, methods=["PUT"]),
        Route("/v1/shared-runs", _list_shared, methods=["GET"]),
    ]


def _sharing_of(request: Request) -> RunSharing:
    nexi: Nexi = request.app.state.nexi
    sharing: RunSharing | None = nexi.sharing
    if sharing is None:
        raise build_refusal(404, "no_team", "this server has one person", fix="set NEXI_DATABASE_URL to serve a team")
    return sharing


async def _show_audience(request: Request) -> Response:
    audience = await asyncio.to_thread(_sharing_of(request).read_audience, request.path_params["id"])
    return json_reply(msgspec.to_builtins(audience))


async def _set_audience(request: Request) -> Response:
    """Let exactly these people read it; nobody else, where none is named."""
    wanted = await read_json(request, AUDIENCE)
    sharing, run_id = _sharing_of(request), request.path_params["id"]
    audience = RunAudience(bool(wanted.get("team")), tuple(wanted.get("people") or ()))
    await asyncio.to_thread(sharing.set_audience, run_id, audience)
    return json_reply(msgspec.to_builtins(await asyncio.to_thread(sharing.read_audience, run_id)))


async def _list_shared(request: Request) -> Response:
    found = await asyncio.to_thread(_sharing_of(request).list_shared)
    return json_reply({"runs": [msgspec.to_builtins(run) for run in found]})
