"""Several SearXNG instances as one backend: each query goes to the next one, and another answers where that one does not.

The searcher knows a backend with a `route`: it keeps the suspensions of each instance, which are its health, and the pause
between two queries to one of them. Public instances are other people's machines, so the pause is long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from nexi.errors import BackendError
from nexi.ports import SearchBackend
from nexi.routing.route import Choice, Route
from nexi.types import Hit, Query
from nexi.urls import host_of

INTERVAL_S = 5.0  # between two queries to one instance


class SearxngInstances:
    """The SearchBackend port over instances that take turns."""

    name = "searxng"
    filters = frozenset({"site", "time", "language", "focus"})

    def __init__(self, urls: Sequence[str], build: Callable[[str], SearchBackend]) -> None:
        self._members = {f"searxng at {host_of(url)}": _Instance(f"searxng at {host_of(url)}", build(url)) for url in urls}
        self._turns = count()

    def route(self, query: Query) -> Route:
        """The instance whose turn it is, and the others in reserve."""
        names = list(self._members)
        start = next(self._turns) % len(names)
        first, *others = [Choice(name, "its turn") for name in names[start:] + names[:start]]
        return Route((first,), tuple(others))

    def member(self, name: str) -> SearchBackend:
        return self._members[name]

    def phrase(self, query: Query, name: str) -> Query:
        return query

    async def search(self, query: Query) -> list[Hit]:
        route = self.route(query)
        failure: BackendError | None = None
        for choice in (*route.first, *route.reserve):
            try:
                return await self.member(choice.service).search(query)
            except BackendError as error:
                failure = error
        raise failure or BackendError("no instance is named")


class _Instance:
    """One instance under its own name, so that it is paced and suspended by itself."""

    interval_s = INTERVAL_S

    def __init__(self, name: str, backend: SearchBackend) -> None:
        self.name, self.search = name, backend.search
        self.filters: frozenset[str] = getattr(backend, "filters", frozenset())
