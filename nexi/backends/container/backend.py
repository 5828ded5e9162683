"""SearXNG as a search backend that starts its own container at the first search and leaves it at the end.

A start that fails is a failure of this backend like any other, so that the chain goes on; it is not tried again at once.
"""

from __future__ import annotations

import asyncio
import atexit
import time
from collections.abc import Callable

from nexi.backends.container import Lifecycle
from nexi.errors import BackendError, NexiError
from nexi.ports import SearchBackend
from nexi.types import Hit, Query

START_S = 60.0  # a search waits no longer; `nexi searxng start` has the time for a large download
FAILED_FOR_S = 60.0
LOST = "refused"


class ContainerBackend:
    """The SearchBackend port over a container; `connect` makes the backend of a URL."""

    name = "searxng"

    def __init__(
        self, lifecycle: Lifecycle, connect: Callable[[str], SearchBackend], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._lifecycle, self._connect, self._monotonic = lifecycle, connect, monotonic
        self._starting = asyncio.Lock()
        self._backend: SearchBackend | None = None
        self._failure: tuple[BackendError, float] | None = None
        self._may_have_joined = False

    async def search(self, query: Query) -> list[Hit]:
        async with self._starting:
            if self._backend is None:
                if self._failure and self._monotonic() < self._failure[1]:
                    raise _as_backend_error(self._failure[0])
                if not self._may_have_joined:
                    self._may_have_joined = True
                    atexit.register(self._lifecycle.leave)
                patience = self._lifecycle.patience(START_S)
                try:
                    url = await asyncio.to_thread(self._lifecycle.join, patience)
                except asyncio.CancelledError:
                    patience.give_up()
                    raise
                except NexiError as error:
                    failure = _as_backend_error(error)
                    self._failure = (failure, self._monotonic() + FAILED_FOR_S)
                    raise failure from error
                self._backend = self._connect(url)
            backend = self._backend
        try:
            return await backend.search(query)
        except BackendError as error:
            if error.code == LOST:
                self._backend = None  # the next search looks for the container again
            raise

    async def aclose(self) -> None:
        if self._may_have_joined:
            await asyncio.to_thread(self._lifecycle.leave)
            atexit.unregister(self._lifecycle.leave)


def _as_backend_error(error: NexiError) -> BackendError:
    return BackendError(error.message, code=error.code, cause=error.cause, fix=error.fix)
