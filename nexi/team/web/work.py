"""The process of `nexi work`: its log, its signals, its health, and its end."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from nexi.app.components import secrets_of
from nexi.config import Config
from nexi.tasks import cancel_until_ended
from nexi.team.assembly import Team, open_database
from nexi.team.worker import TeamWorker
from nexi.web.operations import METRICS_TYPE, Metrics, healthz
from nexi.web.server import GC_THRESHOLDS, ServerOptions, bind_socket, configure_logging, strict_config

__all__ = ["run_worker"]


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
