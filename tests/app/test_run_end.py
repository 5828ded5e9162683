"""Whoever follows a run is told that it has ended, whatever ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nexi.app import Nexi, RunRequest
from nexi.config import Config
from nexi.runs.log import MemoryRunLog
from nexi.testing import FakeClock, FakeWeb, ScriptedLLM, answering, reading, searching
from tests.scenarios.world import MOON, PAGES, QUESTION


class SlowLog(MemoryRunLog):
    """Takes for ever to be closed for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closing = asyncio.Event()

    async def close(self) -> None:
        if not self.is_closing.is_set():
            self.is_closing.set()
            await asyncio.Event().wait()


async def test_a_run_that_is_cancelled_while_its_log_is_closed_still_ends_for_those_who_follow_it(
    make_config: Callable[..., Config],
) -> None:
    llm, web, log = ScriptedLLM(searching("moon"), reading(MOON), answering("It has no air [1].")), FakeWeb(PAGES), SlowLog()
    async with (
        Nexi(make_config(), clock=FakeClock(), llms={"answer": llm, "judge": llm}, backends=[web], fetchers=[web]) as nexi,
        nexi.run(RunRequest(QUESTION), log=log) as run,
    ):
        following = asyncio.create_task(run.drive())
        await log.is_closing.wait()
        run.abort()
        async with asyncio.timeout(60):
            await following
    assert log.facts[-1].kind == "run_finished"
