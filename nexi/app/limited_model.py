"""A model that is asked at most so often at once, by a limit that other processes may share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nexi.ports import LLM, ConcurrencyLimit
from nexi.types import Message, Reply, ToolSpec

__all__ = ["LimitedModel"]


class LimitedModel:
    """The LLM port around another one. What that one has beyond the port is reached through this one."""

    def __init__(self, llm: LLM, limit: ConcurrencyLimit) -> None:
        self._llm, self._limit = llm, limit

    @property
    def name(self) -> str:
        return self._llm.name

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **options: Any) -> Reply:
        async with self._limit.acquire():
            return await self._llm.complete(messages, tools, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)
