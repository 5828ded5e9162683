"""A worker of a team server with a slow model and a web in memory, for trials that kill, stall and restart things.

    python -m rig.team_worker DATABASE_URL HOME STEP_SECONDS

The model searches once, reads pages, and answers after STEPS steps. Each of its calls is noted in the table `trial_calls`,
so that a trial can count what was paid for twice.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

STEPS = 4
QUESTION = "How far is the Moon?"
URLS = [f"https://moon{number}.example/" for number in range(STEPS - 1)]
PAGES = {url: f"The Moon is 384,400 km from Earth. Page {url}" for url in URLS}
ANSWER = "The Moon is 384,400 km from Earth [1]."


def make_model(database: Any, step_s: float, *, note: bool = True) -> Any:
    from nexi.testing import answering, reading, searching

    class SlowModel:
        """Takes its time for each step; which step it is follows from the conversation, as with a real model."""

        name = "slow"

        async def complete(self, messages: Any, tools: Any = (), *, on_call: Any = None, **_: Any) -> Any:
            done = sum(message.role == "tool" for message in messages)
            await asyncio.sleep(step_s)
            script = [searching("Moon Earth km"), *map(reading, URLS), answering(ANSWER)]
            reply = script[min(done, STEPS)]
            if note:
                await asyncio.to_thread(
                    database.fetch,
                    "insert into trial_calls (step, pid) values (%(step)s, %(pid)s)",
                    {"step": done, "pid": os.getpid()},
                )
            for call in reply.tool_calls if on_call else ():
                on_call(call)
            return reply

    return SlowModel()


async def main(url: str, home: str, step_s: float) -> None:
    from nexi.app.assembly import Nexi
    from nexi.config import Config
    from nexi.team.assembly import Team, open_database
    from nexi.team.worker import TeamWorker
    from nexi.testing import FakeWeb

    config = Config(
        home=Path(home), database_url=url, base_url="http://127.0.0.1:9/v1", model="slow", verify_judge=False, suggestions=False
    )
    database = open_database(config)
    web, model = FakeWeb(PAGES), make_model(database, step_s)

    def make(personal: Config, state: Any) -> Nexi:
        llms = {"answer": model, "extract": model, "judge": model}
        return Nexi(personal, state=state, llms=llms, backends=(web,), fetchers=(web,))

    team = Team(config, database, make_nexi=make)
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    print("ready", flush=True)
    await TeamWorker(team, max_runs=2, drain_s=0.5).work(stopping)
    await team.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
