"""Spaces over HTTP: listed, added, changed and removed; their files and pages, and who else may ask in them.

Below are the port SpaceStore and `app.spaces`. A run is asked in a space with the field `space` of POST /v1/runs. On a team
server, people whom its owner names read a space and ask in it; the space of anybody else answers as if it were not there.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from nexi.app import Nexi
from nexi.app.spaces import find_own_space, list_space_sources, remove_from_space, remove_space
from nexi.ports import PersonalState
from nexi.types import RunAudience, Space
from nexi.urls import is_web_url
from nexi.web.contract import Contract, Named
from nexi.web.payload import bad_request, build_refusal, json_reply, read_body
from nexi.web.runs import Address

__all__ = ["CONTRACT", "read_audience", "team_state_of"]

MAX_URLS = 100
SPACE: dict[str, Any] = {"type": "object", "required": ["name", "address"]}
NAME: Named = {"name": ("The name of the space, with @OWNER where it is somebody else's.", {"type": "string"})}
CONTRACT = Contract("Spaces", path=NAME)
FILES: Named = {"files": ("What becomes of its sources.", {"enum": ["keep", "delete"]})}
URL: Named = {"url": ("The address of the source.", {"type": "string"})}
SpaceScope = Annotated[Literal["", "web", "local"], Meta(description="`local` sends nothing to another machine.")]


class SpaceChange(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of a space that change; what is left out stays."""

    instructions: Annotated[str, Meta(max_length=20_000, description="For the model, with every question.")] | UnsetType = UNSET
    model: Annotated[str, Meta(max_length=200)] | UnsetType = UNSET
    effort: Literal["", "s", "m", "l"] | UnsetType = UNSET
    scope: SpaceScope | UnsetType = UNSET
    services: Annotated[tuple[Annotated[str, Meta(max_length=60)], ...], Meta(max_length=50)] | UnsetType = UNSET


class NewSpace(SpaceChange, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A space to add."""

    name: Annotated[str, Meta(min_length=1, max_length=40)]


class NewPages(Struct, frozen=True, forbid_unknown_fields=True):
    """Pages of the web to put into a space."""

    urls: Annotated[tuple[Address, ...], Meta(min_length=1, max_length=MAX_URLS)]


class Audience(Struct, frozen=True, forbid_unknown_fields=True):
    """Who else may read: everybody of the team, or people by their names."""

    team: bool = False
    people: Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=100)] = ()


async def read_audience(request: Request) -> RunAudience:
    body = await read_body(request, Audience)
    return RunAudience(body.team, body.people)


def _space_view(space: Space) -> dict[str, Any]:
    view = {**msgspec.to_builtins(space), "address": space.address}
    del view["owner_id"]  # the address says as much as others may know
    return view


def _nexi_of(request: Request) -> Nexi:
    nexi: Nexi = request.app.state.nexi
    return nexi


def team_state_of(request: Request) -> PersonalState:
    """What only a team has. Raises Refused where the server has one person."""
    if (state := _nexi_of(request).state) is None:
        raise build_refusal(404, "no_team", "this server has one person", fix="set NEXI_DATABASE_URL to serve a team")
    return state


async def _find_space(request: Request, *, is_own: bool = False) -> Space:
    """The space of the path; with `is_own` one that may be changed. Raises NexiError."""
    address, nexi = request.path_params["name"], _nexi_of(request)
    return await (find_own_space(nexi.ports, address) if is_own else asyncio.to_thread(nexi.spaces().get, address))


@CONTRACT.serve("GET /v1/spaces", "Spaces, one's own first.", {200: {"type": "object", "required": ["spaces"]}})
async def _list_spaces(request: Request) -> Response:
    spaces = await asyncio.to_thread(_nexi_of(request).spaces().list_all)
    return json_reply({"spaces": [_space_view(space) for space in spaces]})


@CONTRACT.serve("POST /v1/spaces", "Add a space.", {201: SPACE}, body=NewSpace)
async def _add_space(request: Request) -> Response:
    body, spaces = await read_body(request, NewSpace), _nexi_of(request).spaces()
    space = msgspec.convert(msgspec.to_builtins(body), Space)
    await asyncio.to_thread(spaces.add, space)
    view = _space_view(await asyncio.to_thread(spaces.get, space.name))
    return json_reply(view, 201, {"location": f"/v1/spaces/{space.name}"})


@CONTRACT.serve("GET /v1/spaces/{name}", "A space.", {200: SPACE})
async def _show_space(request: Request) -> Response:
    return json_reply(_space_view(await _find_space(request)))


@CONTRACT.serve("PATCH /v1/spaces/{name}", "Change a space.", {200: SPACE}, body=SpaceChange)
async def _change_space(request: Request) -> Response:
    change, space = await read_body(request, SpaceChange), await _find_space(request, is_own=True)
    new_space = msgspec.convert({**msgspec.to_builtins(space), **msgspec.to_builtins(change)}, Space)
    await asyncio.to_thread(_nexi_of(request).spaces().change, new_space)
    return json_reply(_space_view(new_space))


@CONTRACT.serve("DELETE /v1/spaces/{name}", "Remove a space.", {204: None}, query=FILES)
async def _remove_space(request: Request) -> Response:
    """Its sources stay, unless `files=delete` is asked for, and its threads stay always."""
    files = request.query_params.get("files", "keep")
    if files not in ("keep", "delete"):
        raise bad_request("files must be keep or delete", parameter="files")
    space = await _find_space(request, is_own=True)
    await remove_space(_nexi_of(request).ports, space.name, deletes_files=files == "delete")
    return Response(status_code=204)


@CONTRACT.serve("GET /v1/spaces/{name}/sources", "Its files and pages.", {200: {"type": "object", "required": ["sources"]}})
async def _list_sources(request: Request) -> Response:
    sources = await list_space_sources(_nexi_of(request).ports, await _find_space(request))
    return json_reply({"sources": [{"url": s.url, "title": s.title, "fetched_at": s.fetched_at} for s in sources]})


@CONTRACT.serve("POST /v1/spaces/{name}/sources", "Put pages into it.", {200: {"type": "object"}}, body=NewPages)
async def _add_pages(request: Request) -> Response:
    """Read pages of the web and put them into the space; files are dropped on the page."""
    from nexi.app.intake import DocumentIndexing

    body, space, nexi = await read_body(request, NewPages), await _find_space(request, is_own=True), _nexi_of(request)
    if (other := next((url for url in body.urls if not is_web_url(url)), None)) is not None:
        raise bad_request(f"{other[:100]} is no web address", parameter="urls")
    taking = DocumentIndexing(nexi, nexi.knowledge(), tags=(space.tag,))
    for url in body.urls:
        await taking.take(url)
    return json_reply(taking.taken.as_json())


@CONTRACT.serve("DELETE /v1/spaces/{name}/sources", "Take a source out of it.", {204: None}, query=URL)
async def _remove_source(request: Request) -> Response:
    """It stays in the knowledge base."""
    space, url = await _find_space(request, is_own=True), request.query_params.get("url", "")
    if not await remove_from_space(_nexi_of(request).ports, space, [url]):
        raise build_refusal(404, "not_found", "the space has no such source", fix=f"GET /v1/spaces/{space.name}/sources")
    return Response(status_code=204)


@CONTRACT.serve("GET /v1/spaces/{name}/shares", "Who else asks in it, on a team server.", {200: Audience})
async def _show_audience(request: Request) -> Response:
    sharing, space = team_state_of(request).space_sharing, await _find_space(request, is_own=True)
    return json_reply(msgspec.to_builtins(await asyncio.to_thread(sharing.read_audience, space.name)))


@CONTRACT.serve("PUT /v1/spaces/{name}/shares", "Share it.", {200: Audience}, body=Audience)
async def _set_audience(request: Request) -> Response:
    """Let exactly these people read the space and ask in it; nobody else, where none is named."""
    audience, sharing = await read_audience(request), team_state_of(request).space_sharing
    space = await _find_space(request, is_own=True)
    await asyncio.to_thread(sharing.set_audience, space.name, audience)
    return json_reply(msgspec.to_builtins(await asyncio.to_thread(sharing.read_audience, space.name)))
