"""Runs work with an open nexi for a command that has no event loop of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from nexi.app import Nexi
    from nexi.config import Config

T = TypeVar("T")


def run_with_nexi(work: Callable[[Nexi], Coroutine[Any, Any, T]], config: Config | None = None) -> T:
    """Open nexi with this config, or the user's own, do the work and close it."""
    import asyncio

    from nexi.app import Nexi
    from nexi.config import load_config

    async def run() -> T:
        async with Nexi(config or load_config()) as nexi:
            return await work(nexi)

    return asyncio.run(run())
