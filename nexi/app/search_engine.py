"""SearchEngine: one conversation with tools, ended by an answer."""

from __future__ import annotations

import asyncio
from typing import Any

from nexi.app.components import RunComponents
from nexi.app.environment import RunEnvironment
from nexi.app.extra_tools import wanted_tools
from nexi.app.run import RunEngine
from nexi.config import get_system_prompt
from nexi.tasks import catch_error, raise_error
from nexi.types import Answer


class SearchEngine(RunEngine):
    """Answers with the agent's loop over the session of its run, into which the loop writes its turns."""

    def __init__(self, environment: RunEnvironment) -> None:
        self._environment = environment

    def settings(self) -> dict[str, Any]:
        tools = wanted_tools(self._environment)
        return {"tools": tools} if tools else {}

    def open_conversation(self) -> None:
        environment, request = self._environment, self._environment.request
        config, own = environment.config, request.system_prompt
        config = config.override(system_prompt=own) if own else config
        prompt = get_system_prompt(request.effort, request.limits.max_iterations, today=environment.today, config=config)
        environment.session.set_instructions(prompt + environment.instructions)
        environment.session.add_question(environment.question)

    async def answer(self, tasks: asyncio.TaskGroup) -> Answer:
        environment = self._environment
        indexer = environment.page_indexer(tasks)
        components = RunComponents(
            environment,
            tasks,
            has_knowledge=await environment.has_knowledge(),
            index_page=indexer.index_page,
            pages_before=environment.pages_answered_before,
            extra_tools=wanted_tools(environment),
        )
        outcome = await catch_error(components.build_loop(environment.stop).run())
        components.cancel()
        await components.reader.report_prefetch()
        await indexer.close(at_once=environment.stop.is_set())
        return raise_error(outcome)
