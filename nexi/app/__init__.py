"""Assembly: builds the ports from a Config, owns their clients, and runs searches.

Engines and adapters meet only here. Doors call `Nexi` and read events; they build nothing themselves.

    async with Nexi(config) as nexi, nexi.search("question") as run:
        async for event in run:
            ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexi.app.assembly import Nexi
from nexi.app.clock import SystemClock
from nexi.app.emit import QuietEmit, RunEmit
from nexi.app.factory import built_in_llm, container_options
from nexi.app.request import LAST_RUN, MAX_QUESTION_CHARS, RunLimits, RunRequest, clean_question
from nexi.app.run import Run, RunOpening, RunResult, error_of

if TYPE_CHECKING:
    from nexi.app.plugins import fetch_as_plugin, search_as_plugin
    from nexi.app.verification import Target

__all__ = [
    "LAST_RUN",
    "MAX_QUESTION_CHARS",
    "Nexi",
    "QuietEmit",
    "Run",
    "RunEmit",
    "RunLimits",
    "RunOpening",
    "RunRequest",
    "RunResult",
    "SystemClock",
    "Target",
    "built_in_llm",
    "clean_question",
    "container_options",
    "error_of",
    "fetch_as_plugin",
    "search_as_plugin",
]


LATE = {"fetch_as_plugin": "plugins", "search_as_plugin": "plugins", "Target": "verification"}

if not TYPE_CHECKING:  # the names are declared above; a checker would take any other name for one of them

    def __getattr__(name: str) -> Any:
        """What few programs need, when it is asked for."""
        if name not in LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"nexi.app.{LATE[name]}"), name)
