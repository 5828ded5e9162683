"""Assembly: builds the ports from a Config, owns their clients, and runs searches. Engines and adapters meet only here.

A name is loaded when it is first used, so that a door which only lists files does not wait for the engines.

    async with Nexi(config) as nexi, nexi.search("question") as run:
        async for event in run:
            ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nexi.app.assembly import Nexi as Nexi
    from nexi.app.clock import SystemClock as SystemClock
    from nexi.app.emit import QuietEmit as QuietEmit
    from nexi.app.history import open_runs as open_runs
    from nexi.app.request import LAST_RUN as LAST_RUN
    from nexi.app.request import RunLimits as RunLimits
    from nexi.app.request import RunRequest as RunRequest
    from nexi.app.run import Run as Run
    from nexi.app.run import RunOpening as RunOpening
    from nexi.app.run import RunResult as RunResult
    from nexi.app.run import error_of as error_of
    from nexi.app.run import result_of as result_of
    from nexi.app.value_table import TableRequest as TableRequest
    from nexi.app.verification import Target as Target
    from nexi.app.verification import VerifyRequest as VerifyRequest
    from nexi.fetchers.apart import find_protections as find_protections
    from nexi.fetchers.browser import browser_install_fix as browser_install_fix
    from nexi.fetchers.browser import installed_browser as installed_browser
    from nexi.fetchers.browser import missing_parts as missing_parts
    from nexi.fetchers.guard import resolve_host as resolve_host
    from nexi.runs.log_format import ReadLog as ReadLog
    from nexi.runs.log_format import RunSummary as RunSummary
    from nexi.runs.log_format import check_run_id as check_run_id
    from nexi.runs.session import Session as Session
else:
    _NAMES = {
        "nexi.app.assembly": ("Nexi",),
        "nexi.app.clock": ("SystemClock",),
        "nexi.app.emit": ("QuietEmit",),
        "nexi.app.history": ("open_runs",),
        "nexi.app.request": ("LAST_RUN", "RunLimits", "RunRequest"),
        "nexi.app.run": ("Run", "RunOpening", "RunResult", "error_of", "result_of"),
        "nexi.app.value_table": ("TableRequest",),
        "nexi.app.verification": ("Target", "VerifyRequest"),
        "nexi.fetchers.apart": ("find_protections",),
        "nexi.fetchers.browser": ("browser_install_fix", "installed_browser", "missing_parts"),
        "nexi.fetchers.guard": ("resolve_host",),
        "nexi.runs.log_format": ("ReadLog", "RunSummary", "check_run_id"),
        "nexi.runs.session": ("Session",),
    }
    _MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
    __all__ = sorted(_MODULE_OF)

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_MODULE_OF[name]), name)
