"""The apps of a team: a server finds out who asks and hands on to an app of that person alone; a worker tells its health.

Above are `nexi.web.server` and `nexi work`; below are `Team`, the guard, the worker, and the doors, which know one person each.
Nobody can reach the runs, feeds, sessions or files of somebody else through a door, because the app that answers has only her
own. Public paths are answered by an anonymous app.
"""

from __future__ import annotations

import asyncio
import gc
import math
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http.cookies import CookieError, SimpleCookie

import uvicorn
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from nexi.app.components import secrets_of
from nexi.app.hosting import MAX_RUNS, RunHost
from nexi.app.pool import PersonalPool
from nexi.config import Config
from nexi.errors import StoreError
from nexi.tasks import cancel_until_ended
from nexi.team.assembly import Team, open_database
from nexi.team.limits import MAX_IDLE_PERSON_S, MAX_OPEN_PEOPLE, MAX_OPEN_REQUESTS, MAX_PEOPLE_PER_ADDRESS, MAX_REQUEST_S
from nexi.team.postgres.limits import PostgresPacing
from nexi.team.postgres.people import People
from nexi.team.web import page as team_page
from nexi.team.web import routes as team_routes
from nexi.team.web.account import COOKIE, AccountDoor, LoginDoor
from nexi.team.web.administration import ADMIN_PATH, AdministrationDoor
from nexi.team.worker import TeamWorker
from nexi.types import Principal
from nexi.web import UNROUTED, build_personal_app, list_error_shapes
from nexi.web.guard import PAGES, PRINCIPAL, GuardRules, RequestGuard, given_token, matches_any, unauthorized
from nexi.web.operations import METRICS_TYPE, Metrics, healthz
from nexi.web.payload import Refused, build_refusal, problem_of
from nexi.web.server import GC_THRESHOLDS, ServerOptions, bind_socket, configure_logging, strict_config

LOGIN_PATHS = ("/login", "/login/*")
ANONYMOUS = "00000000-0000-0000-0000-000000000000"
SETTINGS_PATH = "/page/settings"
FOR_ADMINISTRATORS = (ADMIN_PATH, "/metrics", "/page/doctor", SETTINGS_PATH)


def create_team_app(team: Team, *, rules: GuardRules, most_runs: int = MAX_RUNS) -> Starlette:
    """The app of one server process of a team."""
    people, metrics = People(team.database, patience_s=MAX_REQUEST_S), Metrics()
    apps = _PersonalApps(team, metrics, most_runs, wants_login=bool(team.config.oidc_issuer))
    # how often one person may ask, on all servers together
    pacing = PostgresPacing(team.database, team.clock, "person", burst=rules.burst, rate=rules.per_minute / 60)
    many = {"per_minute": rules.per_minute * MAX_PEOPLE_PER_ADDRESS, "burst": rules.burst * MAX_PEOPLE_PER_ADDRESS}
    rules = replace(rules, public=(*rules.public, *LOGIN_PATHS, team_page.ACCOUNT_PATH), most_of_one=MAX_OPEN_REQUESTS, **many)
    guard = Middleware(
        RequestGuard,
        rules=rules,
        metrics=metrics,
        clock=team.clock,
        shapes=list_error_shapes(),
        host=apps,
        identify=partial(_identify, people, pacing),
    )

    async def show_readiness(request: Request) -> Response:
        """It takes work: not while it shuts down, nor without its database, nor with the schema of another version."""
        if trouble := "draining" if apps.draining else await team.find_trouble():
            return PlainTextResponse(f"{trouble}\n", 503, {"retry-after": "5"})
        return PlainTextResponse("ready\n")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await apps.close()
            await team.close()

    routes = [
        Route("/readyz", show_readiness, methods=["GET"]),
        *LoginDoor(team.config, people).routes(),
        *AccountDoor(team, people).routes(),
        *AdministrationDoor(team, people).routes(),
        Mount("/", app=apps),
    ]
    app = Starlette(routes=routes, middleware=[guard], lifespan=lifespan)
    app.router.redirect_slashes = False
    app.state.host, app.state.people, app.state.team = apps, people, team
    return app


async def _identify(people: People, pacing: PostgresPacing, headers: Headers, scope: Scope) -> Principal:
    """Who a request comes from, by its token or by the session in its cookie. Raises Refused."""
    find, secret = people.find_by_token, given_token(headers)
    if not secret:
        find, secret = people.find_by_session, _session_of(headers)
    try:
        principal = await asyncio.to_thread(find, secret) if secret else None
    except StoreError as error:
        raise Refused(problem_of(error)) from error
    if principal is None:
        raise unauthorized()
    if wait := await pacing.try_take(principal.person):
        message, fix = "too many requests of this person", "ask less often"
        raise build_refusal(429, "rate_limited", message, fix=fix, retry_after=math.ceil(wait))
    if scope["path"] in FOR_ADMINISTRATORS and not principal.is_administrator:
        raise build_refusal(403, "not_an_administrator", "this is for administrators", fix="ask one of them")
    if scope["path"].startswith(SETTINGS_PATH) and scope["method"] == "POST":
        fix = "change the configuration of servers and workers, and restart them"
        raise build_refusal(403, "not_here", "a team server is not configured in the browser", fix=fix)
    return principal


def _session_of(headers: Headers) -> str:
    """The secret of the session in the cookie of a request; "" where there is none."""
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""


class _PersonalApps:
    """The apps of the people who are here."""

    def __init__(self, team: Team, metrics: Metrics, most_runs: int, *, wants_login: bool) -> None:
        self._team, self._metrics, self._most_runs, self._wants_login = team, metrics, most_runs, wants_login
        self._apps = PersonalPool(
            self._open_app,
            max_open=MAX_OPEN_PEOPLE,
            max_idle_s=MAX_IDLE_PERSON_S,
            is_busy=lambda app: app.state.host.active > 0,
        )
        self.draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal: Principal | None = scope["state"][PRINCIPAL]
        is_page = matches_any(scope["path"], (*PAGES, team_page.ACCOUNT_PATH))
        if self._wants_login and is_page and not _session_of(Headers(scope=scope)):
            return await RedirectResponse("/login", 303)(scope, receive, send)
        async with self._apps.use(principal.person if principal else ANONYMOUS) as app:
            scope["app"], scope["root_path"] = app, ""  # in place, so that the guard learns which route it was
            await ExceptionMiddleware(app.router, handlers=UNROUTED)(scope, receive, send)
        return None

    @asynccontextmanager
    async def _open_app(self, person: str) -> AsyncIterator[Starlette]:
        nexi, queue = self._team.build_nexi(person), self._team.queue_of(person)
        host = RunHost(nexi, self._metrics, max_runs=self._most_runs, queue=queue)
        app = build_personal_app(host, more=[*team_routes.CONTRACT.routes, *team_page.CONTRACT.routes])
        async with app.router.lifespan_context(app):
            yield app

    async def drain(self, patience_s: float) -> None:
        """Take nothing new, and give what is under way some time."""
        self.draining = True
        await asyncio.gather(*(app.state.host.drain(patience_s) for app in self._apps.values))

    async def close(self) -> None:
        await self._apps.close()


async def run_worker(
    config: Config,
    max_runs: int,
    drain_s: float,
    log_level: str,
    *,
    address: tuple[str, int] | None = None,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Work until SIGTERM or SIGINT; at `address`, tell health and metrics. Raises ConfigError without a database or a port."""
    configure_logging(log_level, secrets_of(config))
    gc.set_threshold(*GC_THRESHOLDS)
    listener = bind_socket(ServerOptions(*address)) if address else None
    try:
        database = await asyncio.to_thread(open_database, config)
    except BaseException:
        if listener:
            listener.close()
        raise
    team, stopping, metrics = Team(config, database), asyncio.Event(), Metrics()
    worker = TeamWorker(team, max_runs=max_runs, drain_s=drain_s, observe=metrics.observe)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    health_task = None
    if listener:
        server = _SilentServer(strict_config(worker_app(worker, team, metrics), drain_s=0.0, lifespan="off"))
        health_task = asyncio.create_task(server.serve([listener]))
    try:
        on_ready()
        await worker.work(stopping)
    finally:
        if health_task:
            await cancel_until_ended([health_task])
        await team.close()


def worker_app(worker: TeamWorker, team: Team, metrics: Metrics) -> Starlette:
    """What an operator asks a worker: whether it lives, whether it takes work, and what it has done. No question is in it."""

    async def show_readiness(request: Request) -> Response:
        trouble = "draining" if worker.draining else await team.find_trouble()
        return PlainTextResponse(f"{trouble}\n", 503) if trouble else PlainTextResponse("ready\n")

    async def show_metrics(request: Request) -> Response:
        return PlainTextResponse(metrics.text({"nexi_runs_active": worker.active}), media_type=METRICS_TYPE)

    endpoints = {"/healthz": healthz, "/readyz": show_readiness, "/metrics": show_metrics}
    return Starlette(routes=[Route(path, endpoint, methods=["GET"]) for path, endpoint in endpoints.items()])


class _SilentServer(uvicorn.Server):
    """Leaves the signals to the worker."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
