"""Spaces: what a question asked in one is given, and the files and pages in it, which belong to it by its tag."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from msgspec.structs import replace

from nexi.app.factory import PortFactory
from nexi.app.knowledge import Knowledge, open_knowledge_of
from nexi.app.request import RunRequest
from nexi.errors import NexiError
from nexi.ports import KnowledgeStore
from nexi.types import EVERYTHING, SPACE_TAG, Passage, Scope, Space, StoredSource, StoreStats, Vector


async def enter_space(ports: PortFactory, request: RunRequest) -> RunRequest:
    """The request with what its space says; the request itself wins, but for a local scope. Raises NexiError."""
    if ports.config.is_for_guests:
        raise NexiError("a guest has no spaces", fix="ask without a space", code="no_such_space")
    space = await asyncio.to_thread(ports.spaces().get, request.space)
    return replace(
        request,
        space=space.address,
        instructions=space.instructions,
        services=space.services,
        effort=request.effort or space.effort,
        model=request.model or space.model,
        scope="local" if "local" in (request.scope, space.scope) else space.scope or request.scope,
    )


async def find_own_space(ports: PortFactory, address: str) -> Space:
    """A space that its owner may change. Raises NexiError."""
    space = await asyncio.to_thread(ports.spaces().get, address)
    if space.owner:
        raise NexiError(f"{space.address} is not yours to change", fix=f"ask {space.owner}", code="not_yours")
    return space


async def open_space_knowledge(ports: PortFactory, address: str) -> Knowledge | None:
    """The files and pages of a space as a knowledge base of their own; None where there are none. Raises NexiError."""
    space = await asyncio.to_thread(ports.spaces().get, address)
    knowledge = await _narrowed_knowledge(ports, space)
    return knowledge if await knowledge.first_source() else None


async def _narrowed_knowledge(ports: PortFactory, space: Space) -> Knowledge:
    whole = open_knowledge_of(ports, space.owner_id) if space.owner else ports.knowledge()
    store = cast("KnowledgeStore", SpaceKnowledge(await whole.open_store(), space.tag))
    about = f"Search the files and pages of the space {space.name!r}, in which the user asks. Ask here first."
    return Knowledge(ports, store=store, about=about)


async def list_space_sources(ports: PortFactory, space: Space) -> list[StoredSource]:
    """The files and pages of a space, the last fetched first. Raises StoreError."""
    if not ports.knowledge().may_hold_something():
        return []
    return [source async for source in (await _narrowed_knowledge(ports, space)).sources()]


async def remove_from_space(ports: PortFactory, space: Space, urls: Sequence[str], *, deletes: bool = False) -> int:
    """Take sources out of one's own space, and say how many; it `deletes` those in no other space. Raises StoreError."""
    store = await ports.knowledge().open_store()
    sources = [source for url in urls if (source := await store.source(url)) and space.tag in source.tags]
    for source in sources:
        other_tags = tuple(tag for tag in source.tags if tag != space.tag)
        if deletes and not any(tag.startswith(SPACE_TAG) for tag in other_tags):
            await store.remove([source.url])
        else:
            await store.link(replace(source, tags=other_tags))
    return len(sources)


async def remove_space(ports: PortFactory, name: str, *, deletes_files: bool = False) -> int:
    """Forget one's own space; its sources and threads stay. Say how many sources were deleted with it. Raises NexiError."""
    space = await find_own_space(ports, name)
    urls = [source.url for source in await list_space_sources(ports, space)] if deletes_files else []
    count = await remove_from_space(ports, space, urls, deletes=True) if urls else 0
    await asyncio.to_thread(ports.spaces().remove, name)
    return count


class SpaceKnowledge:
    """What a KnowledgeStore can be asked, over the sources of one space in a larger store; nothing in it writes."""

    def __init__(self, store: KnowledgeStore, tag: str) -> None:
        self._store, self._tag, self.name = store, tag, store.name

    def _narrow(self, scope: Scope) -> Scope:
        return replace(scope, tags=(*scope.tags, self._tag))

    async def source(self, url: str) -> StoredSource | None:
        source = await self._store.source(url)
        return source if source and self._tag in source.tags else None

    async def sources(self, scope: Scope = EVERYTHING, *, count: int = 100, skip: int = 0) -> list[StoredSource]:
        return await self._store.sources(self._narrow(scope), count=count, skip=skip)

    async def passages(self, url: str, first: int = 0, last: int | None = None) -> list[Passage]:
        return await self._store.passages(url, first, last) if await self.source(url) else []

    async def lexical(self, text: str, *, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        return await self._store.lexical(text, count=count, scope=self._narrow(scope))

    async def dense(self, vector: Vector, *, embedder: str, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        return await self._store.dense(vector, embedder=embedder, count=count, scope=self._narrow(scope))

    async def stats(self) -> StoreStats:
        return await self._store.stats()

    async def aclose(self) -> None:
        """The larger store is closed by whoever opened it."""
