"""`agentic_search` over the clients of one config: the engine's four stages, with this store, these judges and this web.

Above, `Nexi.agentic_search` and the doors that offer it; below, `nexi.knowledge.agentic`. What the web gives is kept as
evidence like any page that is read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from nexi.app.emit import QuietEmit
from nexi.app.knowledge import settings_of
from nexi.app.options import SearchOptions, clean_question
from nexi.app.past import Past
from nexi.app.run import Run
from nexi.errors import ConfigError, NexiError
from nexi.ports import Emit
from nexi.session import Session
from nexi.types import Answer, Page, Query, SearchOutcome, StopReason

if TYPE_CHECKING:
    from nexi.app.assembly import Nexi
    from nexi.knowledge.settings import KnowledgeSettings

ASKED = ("completeness_threshold", "max_iterations", "max_urls_per_iteration", "url_score_threshold", "use_search_hints")


async def agentic_search(
    nexi: Nexi, query: str, asked: Mapping[str, Any], emit: Emit | None = None, *, reads: bool = True
) -> dict[str, Any]:
    """The seed's response; without `reads` from what is known alone. Raises QuestionError or ConfigError."""
    from nexi.knowledge.agentic import Web
    from nexi.knowledge.agentic import agentic_search as search
    from nexi.knowledge.judge import Judge

    settings, emit = asked_settings(nexi, asked), emit or QuietEmit()
    knowledge, question = nexi.knowledge(), clean_question(query)

    async def find(wanted: Query) -> SearchOutcome:
        if not reads:
            return SearchOutcome(wanted.text)
        return await nexi.searcher(emit).search(wanted)

    async def read(url: str) -> Page:
        page = await nexi.fetch(url)
        await nexi.pages().put(page.text)
        return page

    return await search(
        question,
        retriever=await knowledge.retriever(emit),
        indexer=await knowledge.indexer(emit, embeds=await knowledge.embeds_behind_a_run()),
        judge=Judge(knowledge.judge_llm(), emit=emit, temperature=settings.llm_temperature),
        web=Web(find, read),
        emit=emit,
        settings=settings,
    )


def asked_settings(nexi: Nexi, asked: Mapping[str, Any]) -> KnowledgeSettings:
    """The settings of one call. Raises ConfigError for one that is switched off or unknown."""
    settings = settings_of(nexi.config)
    if not settings.enabled:
        raise ConfigError(
            "agentic_search is switched off",
            cause="agentic_search_enabled is false",
            fix="nexi config set agentic_search_enabled true, and unset AGENTIC_SEARCH_ENABLED",
        )
    unknown = sorted(set(asked) - set(ASKED))
    if unknown:
        raise ConfigError(f"agentic_search has no {unknown[0]}", fix=f"it takes {', '.join(ASKED)}")
    wrong = [f.name for f in fields(settings) if isinstance(asked.get(f.name), str)]
    if wrong:
        raise ConfigError(f"{wrong[0]} must be a number, or true or false", cause=f"it is {asked[wrong[0]]!r}")
    return replace(settings, **{name: value for name, value in asked.items() if value is not None})


class AgenticRun(Run):
    """An agentic search as a run: its answer is the seed's response, as JSON. Stopped, it tells what is known by then."""

    mode = "agentic"

    def __init__(
        self,
        nexi: Nexi,
        question: str,
        options: SearchOptions,
        session: Session,
        past: Past | None = None,
        *,
        asked: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(nexi, question, replace(options, keeps_history=False), session, past)
        self._nexi = nexi
        self._asked = dict(asked or {})
        asked_settings(nexi, self._asked)

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "agentic": self._asked}

    def _open_conversation(self) -> None:
        return None  # there is none: passages are found and judged, nobody talks

    async def _engine(self) -> Answer:
        stop = StopReason.FINAL_ANSWER
        async with asyncio.TaskGroup() as tasks:
            watcher = tasks.create_task(self._watch_for_stop())
            stopped = tasks.create_task(self.stopping.wait())
            searching = tasks.create_task(self._told(reads=True))
            await asyncio.wait((searching, stopped), timeout=self._left(), return_when=asyncio.FIRST_COMPLETED)
            if not searching.done():
                stop = StopReason.CANCELLED if self.stopping.is_set() else StopReason.TIME_TARGET
                searching.cancel()
            for task in (watcher, stopped):
                task.cancel()
        told = await self._told(reads=False) if searching.cancelled() else searching.result()
        if isinstance(told, NexiError):
            raise told
        return Answer(json.dumps(told, ensure_ascii=False), stop=stop)

    async def _told(self, *, reads: bool) -> dict[str, Any] | NexiError:
        """The response, or the error that a task group would bundle."""
        asked = self._asked if reads else {**self._asked, "max_iterations": 1}
        try:
            return await agentic_search(self._nexi, self.question, asked, self.emit, reads=reads)
        except NexiError as error:
            return error

    def _left(self) -> float | None:
        deadline = self.meter.deadline
        return None if deadline is None else max(0.0, deadline - self.nexi.clock.monotonic())
