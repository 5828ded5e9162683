"""Who else may read something: the body that says so, and the refusal where there is nobody else."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request

from nexi.types import RunAudience
from nexi.web.payload import read_body
from nexi.web.problems import Refused, build_refusal

__all__ = ["Audience", "no_team", "read_audience"]

MAX_PEOPLE = 100


class Audience(Struct, frozen=True, forbid_unknown_fields=True):
    """Who else may read: everybody of the team, or people by their names."""

    team: bool = False
    people: Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=MAX_PEOPLE)] = ()


async def read_audience(request: Request) -> RunAudience:
    body = await read_body(request, Audience)
    return RunAudience(body.team, body.people)


def no_team() -> Refused:
    return build_refusal(404, "no_team", "this server has one person", fix="set NEXI_DATABASE_URL to serve a team")
