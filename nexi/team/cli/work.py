"""`nexi work`: runs the questions of a team server."""

from __future__ import annotations

import asyncio
from functools import partial

import click

from nexi.cli.exits import report_errors
from nexi.cli.flags import HELP, LOG_LEVELS
from nexi.config import load_config
from nexi.output import print_note
from nexi.team.limits import DEFAULT_DRAIN_S, DEFAULT_WORKER_RUNS

_setting = partial(click.option, show_default=True)


@click.command("work", context_settings=HELP)
@_setting("--max-runs", type=click.IntRange(1, 1000), default=DEFAULT_WORKER_RUNS, metavar="N", help="Maximum parallel runs.")
@_setting(
    "--drain",
    "drain_s",
    type=click.FloatRange(0),
    default=DEFAULT_DRAIN_S,
    metavar="S",
    help="Seconds for runs to finish on shutdown; other workers resume the rest.",
)
@_setting("--host", default="127.0.0.1", metavar="HOST", help="Address for --port.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="PORT", help="Serve /healthz, /readyz and /metrics here.")
@_setting("--log-level", type=click.Choice(LOG_LEVELS), default="info", help="Log level.")
def work_command(max_runs: int, drain_s: float, host: str, port: int | None, log_level: str) -> None:
    """Run the questions of a team server, with any number of other workers.

    It needs the database of the team: set NEXI_DATABASE_URL, or `database_url` in the config.
    """
    with report_errors():
        from nexi.team.web.app import run_worker

        address, on_ready = (host, port) if port else None, partial(print_note, "Waiting for runs")
        asyncio.run(run_worker(load_config(), max_runs, drain_s, log_level, address=address, on_ready=on_ready))
