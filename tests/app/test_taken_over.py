"""A run that another process has taken over ends here without a word: whoever has it now writes its end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

from nexi.app import Nexi, RunRequest
from nexi.config import Config
from nexi.errors import RunTakenError
from nexi.events import Fact, RunFailed, RunStarted
from nexi.runs.log import MemoryRunLog
from nexi.testing import FakeWeb, ScriptedLLM, searching
from tests.scenarios.world import PAGES, QUESTION

Make = Callable[..., Config]


class LogWithLostLease(MemoryRunLog):
    """Refuses the end of the run."""

    async def append(self, fact: Fact) -> int:
        if isinstance(fact, RunFailed):
            raise RunTakenError("the run was taken over")
        return await super().append(fact)


async def leave_after_the_start(config: Config) -> list[type[Fact]]:
    web = FakeWeb(PAGES)
    async with Nexi(config, llms={"answer": ScriptedLLM(searching("moon"))}, backends=[web], fetchers=[web]) as nexi:
        async with nexi.run(RunRequest(QUESTION), log=LogWithLostLease()) as run:
            async for event in run:
                if isinstance(event, RunStarted):
                    break
        return [type(fact) for fact in run.facts]


async def test_leaving_a_run_that_was_taken_over_leaves_no_error_behind(make_config: Make) -> None:
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    facts = await leave_after_the_start(make_config())
    gc.collect()  # a task reports an error that nothing asked for when it is collected
    assert (facts, problems) == ([RunStarted], [])
