"""A process that waits for its turn again and again: python -m tests.team.paced_process DATABASE_URL BURST RATE TURNS."""

from __future__ import annotations

import asyncio
import sys
import time

from nexi.app.clock import SystemClock
from nexi.team.postgres.database import Database
from nexi.team.postgres.limits import PostgresPacing


async def main(url: str, burst: float, rate: float, turns: float) -> None:
    database = Database(url).open()
    pacing = PostgresPacing(database, SystemClock(), "test", burst=burst, rate=rate)
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(turns)):
        await pacing.wait("slow.example")
        print(f"{time.time():.3f}", flush=True)
    database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(float, sys.argv[2:])))
