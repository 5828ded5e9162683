"""Who else may read something: the body that says so, and the refusal where there is nobody else."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from nexi.types import RunAudience
from nexi.web.payload import read_json
from nexi.web.problems import Refused, build_refusal

__all__ = ["AUDIENCE", "no_team", "read_audience"]

MAX_PEOPLE = 100
AUDIENCE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "team": {"type": "boolean"},
        "people": {"type": "array", "maxItems": MAX_PEOPLE, "items": {"type": "string", "maxLength": 200}},
    },
}


async def read_audience(request: Request) -> RunAudience:
    body = await read_json(request, AUDIENCE)
    return RunAudience(bool(body.get("team")), tuple(body.get("people") or ()))


def no_team() -> Refused:
    return build_refusal(404, "no_team", "this server has one person", fix="set NEXI_DATABASE_URL to serve a team")
