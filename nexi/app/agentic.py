"""AgenticEngine: the seed's `agentic_search` as a run, over the store, the judge and the web of one config."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from msgspec.structs import replace

from nexi.app.components import RunComponents
from nexi.app.environment import RunEnvironment
from nexi.app.knowledge import open_temporary_knowledge, settings_of
from nexi.app.request import AGENTIC_SETTINGS
from nexi.app.run import RunEngine
from nexi.config import Config
from nexi.errors import ConfigError
from nexi.knowledge.agentic import AgenticSearch, KnowledgeSettings, Web
from nexi.knowledge.judge import AgenticJudge
from nexi.tasks import catch_error, raise_error
from nexi.types import Answer, Query, SearchOutcome, StopReason


async def _find_nothing(query: Query) -> SearchOutcome:
    return SearchOutcome(query.text)


async def _search(components: RunComponents, options: Mapping[str, Any], *, is_at_once: bool = False) -> dict[str, Any]:
    """The four stages; every model call, search and page is metered, logged and not paid for twice. With `is_at_once`, what the
    store holds now: nothing is fetched, and no model is waited for."""
    ports, llm = components.ports, None
    web = Web(_find_nothing, components.reader.read)
    if is_at_once or ports.is_offline:
        options = {**options, "max_iterations": 1}
    else:
        web = replace(web, search=ports.searcher(components.emit, components.replay).search)
        llm = None if ports.config.endpoint("judge").is_extractive else components.metered_llm("judge")
    has_details = components.environment.recorded.has_setting("agentic_details")
    settings = replace(_agentic_settings(ports.config, options), follows_pages=has_details)
    async with AsyncExitStack() as closing:
        knowledge = ports.knowledge()
        if components.replay.is_replay_only:  # an empty one takes in the recorded pages and leaves the user's as it is
            knowledge = await closing.enter_async_context(open_temporary_knowledge(ports, ""))
        search = AgenticSearch(
            components.question,
            retriever=await knowledge.retriever(components.gate),
            indexer=await knowledge.indexer(components.gate, embeds=await knowledge.embeds_behind_a_run()),
            judge=AgenticJudge(
                llm,
                emit=components.emit,
                temperature=settings.llm_temperature,
                deadline=components.meter.deadline,
                prompts_folder=ports.config.prompts_dir,
            ),
            web=web,
            emit=components.emit,
            settings=settings,
        )
        return await search.run()


def _agentic_settings(config: Config, options: Mapping[str, Any]) -> KnowledgeSettings:
    """The settings of one call. Raises ConfigError for one that is switched off or unknown."""
    settings = settings_of(config)
    if not settings.enabled:
        fix = "nexi config set agentic_search_enabled true, and unset AGENTIC_SEARCH_ENABLED"
        raise ConfigError("agentic_search is switched off", cause="agentic_search_enabled is false", fix=fix)
    if unknown := sorted(set(options) - set(AGENTIC_SETTINGS)):
        raise ConfigError(f"agentic_search has no {unknown[0]}", fix=f"it takes {', '.join(AGENTIC_SETTINGS)}")
    if wrong := [name for name in settings.__struct_fields__ if isinstance(options.get(name), str)]:
        raise ConfigError(f"{wrong[0]} must be a number, or true or false", cause=f"it is {options[wrong[0]]!r}")
    return replace(settings, **{name: value for name, value in options.items() if value is not None})


class AgenticEngine(RunEngine):
    """An agentic search: its answer is the seed's response, as JSON. Stopped, it gives what the store holds by then."""

    def __init__(self, environment: RunEnvironment) -> None:
        self._environment = environment
        self._asked = dict(environment.request.agentic)
        self._has_details = environment.recorded.has_setting("agentic_details")  # pages are followed and described
        _agentic_settings(environment.config, self._asked)

    def settings(self) -> dict[str, Any]:
        return {"agentic": self._asked, **({"agentic_details": True} if self._has_details else {})}

    async def answer(self, tasks: asyncio.TaskGroup) -> Answer:
        environment, reason = self._environment, StopReason.FINAL_ANSWER
        components = RunComponents(environment, tasks)
        stopping = tasks.create_task(environment.stop.wait())
        searching = tasks.create_task(catch_error(_search(components, self._asked)))
        deadline = environment.meter.deadline
        seconds_left = None if deadline is None else max(0.0, deadline - environment.ports.clock.monotonic())
        await asyncio.wait((searching, stopping), timeout=seconds_left, return_when=asyncio.FIRST_COMPLETED)
        if not searching.done():
            reason = StopReason.CANCELLED if environment.stop.is_set() else StopReason.TIME_TARGET
            searching.cancel()
            await asyncio.wait((searching,))
        is_cut = searching.cancelled()
        outcome = await catch_error(_search(components, self._asked, is_at_once=True)) if is_cut else searching.result()
        components.reader.cancel()
        stopping.cancel()
        response = raise_error(outcome)
        if self._has_details:
            meter, steps = components.meter, response["search_history"]
            response["usage"] = {
                "model_calls": meter.model_calls,
                "input_tokens": meter.usage.input_tokens,
                "output_tokens": meter.usage.output_tokens,
                "cost": meter.usage.cost,
                "searches": sum(step["action"] == "web_search" for step in steps),
                "pages_read": sum(len(step["urls"]) for step in steps if step["action"] == "crawl"),
            }
        else:
            for step in response["search_history"]:
                step.pop("pages", None)
        return Answer(json.dumps(response, ensure_ascii=False), stop=reason)
