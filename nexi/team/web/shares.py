"""Sharing on a team server: who else may read a run or one's knowledge base, and what others let one read.

`team` adds these routes to the app of each person; below are the ports RunSharing and KnowledgeSharing. To read a shared run is
to ask for it by its id, at the same paths as one's own; a shared knowledge base is searched with one's own. Whatever changes
either answers as if it were not there.
"""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.web.contract import Contract
from nexi.web.payload import json_reply, read_body
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
