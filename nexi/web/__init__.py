"""HTTP: `nexi serve` and its contracts, over one `Nexi` that all requests share.

    guard       what every request must pass; guests tells the owner from everybody else
    payload     JSON, streams of events and problems, for every path
    runs        runs over HTTP: start, follow, stop, fetch; `app.hosting` keeps the runs
    documents   texts and reports checked, values of documents by columns
    spaces      questions and files that belong together
    operations  health, metrics, the OpenAPI document
    page        the web page
    server      sockets, workers, signals

The interfaces that other programs know are in `nexi.apis`. Contracts parse, call the app, show what it says and shape errors.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from nexi.app import Nexi
from nexi.app.hosting import MAX_RUNS, RunHost
from nexi.app.intake import keep_vault_indexed
from nexi.app.owner_token import OwnerToken
from nexi.config import Config
from nexi.errors import NexiError
from nexi.web import documents, operations, page, runs, spaces
from nexi.web.contract import Contract
from nexi.web.guard import GuardRules, RequestGuard
from nexi.web.guests import GuestDoor, OwnerAccess
from nexi.web.operations import Metrics
from nexi.web.payload import Problem, Refused, Shape, own_shape

if TYPE_CHECKING:
    from nexi.mcp import HttpDoor

log = logging.getLogger("nexi.web")


def list_contracts() -> tuple[Contract, ...]:
    """The documented paths of this server; `nexi.apis` is loaded here, because its modules use those of this package."""
    from nexi.apis import CONTRACTS

    return (runs.CONTRACT, *CONTRACTS, *(module.CONTRACT for module in (documents, spaces, operations)))


def list_error_shapes() -> Mapping[str, Shape]:
    """The shape of an error by the start of a path; the longest one counts."""
    from nexi.apis import ERROR_SHAPES

    own_paths = ("/v1/runs", "/v1/schedules", "/v1/spaces", "/v1/knowledge", "/v1/shared-", "/v1/verify", "/v1/table")
    return {**ERROR_SHAPES, **dict.fromkeys(own_paths, own_shape)}


def create_app(
    config: Config,
    *,
    rules: GuardRules | None = None,
    most_runs: int = MAX_RUNS,
    nexi: Nexi | None = None,
    more: Sequence[BaseRoute] = (),
    edits_settings: bool = True,  # in the browser, by its owner; several processes would not share the change
) -> Starlette:
    """The app over one `Nexi`, which it builds and closes unless one is given. `more` are routes of other doors."""
    shared, rules = nexi or Nexi(config), rules or GuardRules()
    rules = rules if rules.token else replace(rules, token=config.token)
    metrics, shapes = Metrics(), list_error_shapes()
    host = RunHost(shared, metrics, max_runs=most_runs)
    guard = functools.partial(RequestGuard, rules=rules, metrics=metrics, clock=shared.clock, shapes=shapes, host=host)
    if rules.token:
        app = build_personal_app(host, more=more, middleware=[Middleware(guard)])
    else:
        access = OwnerAccess(OwnerToken(config.state_dir), is_always_asked=config.always_wants_token)
        guests = GuestDoor(access, functools.partial(_open_guest_app, most_runs))
        owned = [Middleware(guard, identify=access.identify), Middleware(guests.stand_before)]
        app = build_personal_app(host, more=more, middleware=owned, guests=guests, is_open=access.is_open_to_guests)
    app.state.edits_settings = app.state.watches_vault = edits_settings  # by one process only
    return app


@asynccontextmanager
async def _open_guest_app(most_runs: int, owner: State) -> AsyncIterator[Starlette]:
    """Every door over the runs of guests, who have nothing that the owner keeps."""
    app = build_personal_app(RunHost(owner.nexi.build_for_guests(), owner.metrics, max_runs=most_runs))
    app.state.searcher_config, app.state.openapi = getattr(owner, "searcher_config", None), owner.openapi
    async with app.router.lifespan_context(app):
        yield app


def build_personal_app(
    host: RunHost,
    *,
    more: Sequence[BaseRoute] = (),
    middleware: Sequence[Middleware] = (),
    guests: GuestDoor | None = None,
    is_open: Callable[[str, str], bool] = lambda _method, _path: False,
) -> Starlette:
    """Every door over the runs of one person. Whoever lets requests in has a guard in front of it."""
    from nexi.apis import sweep_cache

    shared, metrics, mcp, contracts = host.nexi, host.metrics, _McpDoor(host.nexi), list_contracts()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with shared:
            host.open()
            try:
                async with asyncio.TaskGroup() as tasks:
                    behind = [tasks.create_task(sweep_cache(app.state), name="sweep the page cache")]
                    if app.state.watches_vault:
                        behind.append(tasks.create_task(keep_vault_indexed(shared, _log_vault_failure), name="watch the vault"))
                    yield
                    for task in behind:
                        task.cancel()
            finally:
                await host.close()
                await mcp.close()
                if guests:
                    await guests.close()

    routes = [*(route for contract in contracts for route in contract.routes), *page.ROUTES, Route("/mcp", endpoint=mcp), *more]
    app = Starlette(routes=routes, middleware=list(middleware), lifespan=lifespan, exception_handlers=UNROUTED)
    app.router.redirect_slashes = False
    app.state.nexi, app.state.host, app.state.metrics, app.state.guests = shared, host, metrics, guests
    app.state.edits_settings = app.state.watches_vault = False
    app.state.doctor_timeout_s = page.setup.DOCTOR_TIMEOUT_S
    app.state.examining, app.state.printing, app.state.taking = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
    app.state.openapi = operations.assemble_document((contract.openapi() for contract in contracts), is_open=is_open)
    return app


class _McpDoor:
    """MCP at `/mcp`, and the task that owns its sessions; it is begun by the first request to it, so that a server without MCP
    clients starts without its library. The guard stands in front, so it wants no token of its own."""

    def __init__(self, nexi: Nexi) -> None:
        self._nexi = nexi
        self._door: HttpDoor | None = None
        self._making = asyncio.Lock()
        self._owner: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Its library takes a moment to load, in which others are served. Raises ConfigError where it is missing."""
        async with self._making:  # two first requests make one door
            if self._door is None:
                door, running = await asyncio.to_thread(_build_mcp_door, self._nexi), asyncio.Event()
                self._owner = asyncio.create_task(self._run_session_group(door, running))
                await running.wait()
                self._door = door
        await self._door.app(scope, receive, send)

    async def _run_session_group(self, door: HttpDoor, running: asyncio.Event) -> None:
        """A session group must be left by the task that entered it."""
        async with door.run_sessions():
            running.set()
            await self._closing.wait()

    async def close(self) -> None:
        self._closing.set()
        if self._owner:
            await asyncio.wait([self._owner])


def _build_mcp_door(nexi: Nexi) -> HttpDoor:
    from nexi.mcp import HttpDoor

    return HttpDoor(nexi, guarded=True)


def _log_vault_failure(error: NexiError) -> None:
    log.warning("the vault is not watched: %s. %s %s", error, error.cause, error.fix)


async def _refuse_unrouted(request: Request, error: Exception) -> Response:
    """What the router refuses goes to the guard, which knows the shape."""
    status = getattr(error, "status_code", 500)
    words = {404: ("not_found", "there is nothing at this path"), 405: ("method_not_allowed", "this path knows other methods")}
    code, message = words.get(status, ("refused", str(error)))
    allow = ""
    if status == 405:  # each method of the path may have a route of its own
        routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
        allow = ", ".join(sorted({method for route in routes for method in getattr(route, "methods", None) or ()}))
    raise Refused(Problem(status, code, message, "see /openapi.json", allow=allow))


UNROUTED: Mapping[Any, Any] = {HTTPException: _refuse_unrouted}
