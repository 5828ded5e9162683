"""Assembly: builds the ports from a Config, owns their clients, and runs searches.

Engines and adapters meet only here. Doors call `Nexi` and read events; they build nothing themselves.

    async with Nexi(config) as nexi, nexi.search("question") as run:
        async for event in run:
            ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexi.app.assembly import Nexi
from nexi.app.clients import built_in, container_options
from nexi.app.clock import SystemClock
from nexi.app.emit import QuietEmit, RunEmit
from nexi.app.options import AS_CONFIGURED, MAX_QUESTION_CHARS, SearchOptions, clean_question
from nexi.app.parts import Parts
from nexi.app.run import Run, RunResult, error_of

if TYPE_CHECKING:
    from nexi.app.plugins import fetch_as_plugin, search_as_plugin
    from nexi.app.verification import Target

__all__ = [
    "AS_CONFIGURED",
    "MAX_QUESTION_CHARS",
    "Nexi",
    "Parts",
    "QuietEmit",
    "Run",
    "RunEmit",
    "RunResult",
    "SearchOptions",
    "SystemClock",
    "Target",
    "built_in",
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
