"""`agentic_search` over the clients of one config: the engine's four stages, with this store, these judges and this web.

Above, `Nexi.agentic_search` and the doors that offer it; below, `nexi.knowledge.agentic`. What the web gives is kept as
evidence like any page that is read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from nexi.app.emit import QuietEmit
from nexi.app.knowledge import settings_of
from nexi.app.options import AS_CONFIGURED, SearchOptions, budget_of, clean_question
from nexi.app.parts import Parts
from nexi.app.past import Past
from nexi.app.run import Run
from nexi.budget import Meter
from nexi.errors import ConfigError, NexiError
from nexi.model import CallCounter
from nexi.ports import LLM, Emit
from nexi.runs.session import Session
from nexi.types import Answer, Query, SearchOutcome, StopReason

if TYPE_CHECKING:
    from nexi.app.assembly import Nexi
    from nexi.knowledge.agentic import Web
    from nexi.knowledge.settings import KnowledgeSettings

ASKED = ("completeness_threshold", "max_iterations", "max_urls_per_iteration", "url_score_threshold", "use_search_hints")


async def agentic_search(nexi: Nexi, query: str, asked: Mapping[str, Any], emit: Emit | None = None) -> dict[str, Any]:
    """The seed's response, within the budget of the config. Raises QuestionError or ConfigError."""
    question, emit = clean_question(query), emit or QuietEmit()
    asked_settings(nexi, asked)
    meter = Meter(budget_of(nexi.config), started=nexi.clock.monotonic())
    async with asyncio.TaskGroup() as tasks:
        parts = Parts(nexi, Session(), meter, emit, tasks, question, AS_CONFIGURED)
        told = await _carried(searched(nexi, parts, asked))
    if isinstance(told, NexiError):
        raise told
    return told


async def searched(nexi: Nexi, parts: Parts, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The engine over these parts, so that every model call, search and page is metered, told and not paid for twice."""
    from nexi.knowledge.agentic import Web

    judge = None if nexi.config.endpoint("judge").is_extractive else parts.metered("judge")
    if parts.options.only_local:
        return await known_alone(nexi, parts, asked)
    web = Web(nexi.searcher(parts.emit, parts.track).search, parts.reader.read)
    return await _answered(nexi, parts, asked, judge, web)


async def known_alone(nexi: Nexi, parts: Parts, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is known by now, at once: nothing is read, and no model is waited for."""
    from nexi.knowledge.agentic import Web

    async def find(wanted: Query) -> SearchOutcome:
        return SearchOutcome(wanted.text)

    return await _answered(nexi, parts, {**asked, "max_iterations": 1}, None, Web(find, parts.reader.read))


async def _answered(nexi: Nexi, parts: Parts, asked: Mapping[str, Any], judge: LLM | None, web: Web) -> dict[str, Any]:
    from nexi.knowledge.agentic import agentic_search as search
    from nexi.knowledge.judge import Judge

    settings, knowledge = asked_settings(nexi, asked), nexi.knowledge()
    return await search(
        parts.question,
        retriever=await knowledge.retriever(parts.emit),
        indexer=await knowledge.indexer(parts.emit, embeds=await knowledge.embeds_behind_a_run()),
        judge=Judge(
            judge,
            emit=parts.emit,
            temperature=settings.llm_temperature,
            deadline=parts.meter.deadline,
            prompts_folder=nexi.config.prompts_dir,
        ),
        web=web,
        emit=parts.emit,
        settings=settings,
    )


async def _carried(work: Awaitable[dict[str, Any]]) -> dict[str, Any] | NexiError:
    """The response, or the error that a task group would bundle."""
    try:
        return await work
    except NexiError as error:
        return error


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
            parts = self._own_parts(tasks)
            searching = tasks.create_task(_carried(searched(self._nexi, parts, self._asked)))
            await asyncio.wait((searching, stopped), timeout=self._left(), return_when=asyncio.FIRST_COMPLETED)
            if not searching.done():
                stop = StopReason.CANCELLED if self.stopping.is_set() else StopReason.TIME_TARGET
                searching.cancel()
                await asyncio.wait((searching,))
            told = await self._told(parts, searching)
            parts.reader.cancel()
            for task in (watcher, stopped):
                task.cancel()
        if isinstance(told, NexiError):
            raise told
        return Answer(json.dumps(told, ensure_ascii=False), stop=stop)

    def _own_parts(self, tasks: asyncio.TaskGroup) -> Parts:
        track, calls = self.past.recording.of(""), CallCounter(self.past.calls)
        return Parts(
            self.nexi, self.session, self.meter, self.emit, tasks, self.question, self.options, track=track, calls=calls
        )

    async def _told(self, parts: Parts, searching: asyncio.Task[dict[str, Any] | NexiError]) -> dict[str, Any] | NexiError:
        if not searching.cancelled():
            return searching.result()
        return await _carried(known_alone(self._nexi, parts, self._asked))

    def _left(self) -> float | None:
        deadline = self.meter.deadline
        return None if deadline is None else max(0.0, deadline - self.nexi.clock.monotonic())
