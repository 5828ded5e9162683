"""The record of one paper by its DOI, from several indexes at once, since one knows of a notice that another does not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nexi.errors import BackendError
from nexi.ports import SearchBackend
from nexi.routing.fusion import merge_papers
from nexi.types import Paper, Query

MAX_RECORD_S = 4.0  # a page is read while its record is not known, so it must not wait long


async def find_record(doi: str, backends: Sequence[SearchBackend], max_s: float = MAX_RECORD_S) -> Paper | None:
    """One record of what each index says in time; an index that fails says nothing."""

    async def ask(backend: SearchBackend) -> Paper | None:
        try:
            async with asyncio.timeout(max_s):
                hits = await backend.search(Query(doi, count=1))
        except (BackendError, TimeoutError):
            return None
        return next((hit.paper for hit in hits if hit.paper and hit.paper.doi == doi), None)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(backend)) for backend in backends]
    merged = None
    for task in tasks:
        merged = merge_papers(merged, task.result())
    return merged
