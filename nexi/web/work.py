"""The process of `nexi work`: its log, its signals, and its end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from nexi.app.components import secrets_of
from nexi.config import Config
from nexi.web import logs

__all__ = ["run_worker"]


async def run_worker(
    config: Config, max_runs: int, drain_s: float, log_level: str, *, on_ready: Callable[[], None] = lambda: None
) -> None:
    """Work until SIGTERM or SIGINT. Raises ConfigError where there is no database."""
    from nexi.app.team import Team, open_database
    from nexi.app.worker import TeamWorker

    logs.configure_logging(log_level, secrets_of(config))
    database = await asyncio.to_thread(open_database, config)
    team, stopping = Team(config, database), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await team.open()
    try:
        on_ready()
        await TeamWorker(team, max_runs=max_runs, drain_s=drain_s).work(stopping)
    finally:
        await team.close()
