"""Team: the people of one server, each with a `Nexi` of her own over a shared database.

`team.web` serves them and `worker` runs their questions; below are `Nexi` and `team.postgres`. A person's runs, history and
knowledge are in the database under her id; her cached pages and the labels of the page are in a folder of her own.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import partial

from nexi.app.assembly import Nexi
from nexi.app.clock import SystemClock
from nexi.app.hosting import DOOR
from nexi.app.knowledge import remove_remote_knowledge
from nexi.app.pool import PersonalPool
from nexi.app.request import RunRequest, request_to_dict
from nexi.config import Config
from nexi.errors import ConfigError, StoreError
from nexi.ports import Embedder, PersonalState
from nexi.team.limits import MAX_IDLE_PERSON_S, MAX_OPEN_PEOPLE, MAX_READY_S, MAX_REQUEST_S, MAX_RETRY_S
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People
from nexi.team.postgres.runs import QUEUE_NOTICE
from nexi.team.postgres.schedules import Schedules
from nexi.team.postgres.state import PostgresState
from nexi.types import TEAM

MakeNexi = Callable[[Config, PersonalState], Nexi]


def open_database(config: Config, *, for_requests: bool = False) -> Database:
    """The database of the config, with its schema up to date. Requests wait for it less long than runs. Raises ConfigError."""
    if not config.database_url:
        raise ConfigError(
            "there is no database for a team server", cause="database_url is not set", fix="set NEXI_DATABASE_URL"
        )
    return Database(config.database_url, retry_s=MAX_REQUEST_S if for_requests else MAX_RETRY_S).open()


class Team:
    """Everything one process shares among people: the database, the queue, and a `Nexi` for each who is busy."""

    def __init__(self, config: Config, database: Database, *, make_nexi: MakeNexi | None = None) -> None:
        self.config, self.database = config, database
        self.people, self.clock = People(database), SystemClock()
        self._local_embedders: dict[str, Embedder | None] = {}  # loaded once for everybody
        self._make_nexi = make_nexi or (lambda personal, state: Nexi(personal, state=state))
        self._nexis = PersonalPool(self.build_nexi, max_open=MAX_OPEN_PEOPLE, max_idle_s=MAX_IDLE_PERSON_S)

    async def close(self) -> None:
        await self._nexis.close()
        await asyncio.to_thread(self.database.close)

    def state_of(self, owner: str) -> PostgresState:
        from nexi.stores.pgvector.store import PgvectorStore

        return PostgresState(self.database, owner, self.clock, partial(PgvectorStore, self.database), self._local_embedders)

    def remove_person(self, person: str) -> None:
        """Delete a person with everything of hers: in the database, in Qdrant, and in her folder on this machine. It blocks."""
        if self.config.qdrant_url:  # first: while it fails, she is still there to be deleted
            asyncio.run(remove_remote_knowledge(self.config.for_person(person)))
        self.people.remove(person)
        shutil.rmtree(self.config.for_person(person).personal_dir, ignore_errors=True)

    def build_nexi(self, owner: str) -> Nexi:
        """A `Nexi` of a person, or of TEAM, whose knowledge everybody reads, for a caller that enters and leaves it."""
        return self._make_nexi(self.config.for_person(owner), self.state_of(owner))

    def use_nexi(self, owner: str) -> AbstractAsyncContextManager[Nexi]:
        """The `Nexi` of a person in this process, which stays open for as long as the block."""
        return self._nexis.use(owner)

    async def embed_knowledge(self, *, afresh: bool = False) -> AsyncIterator[int]:
        """Give every chunk of everybody its vector, in batches, and say how many got one. Raises StoreError, LLMError."""
        people = [] if self.config.qdrant_url and afresh else [row[0] for row in self.people.list_all()]
        for owner in (TEAM, *people):  # in Qdrant, the vectors of everybody change together
            async with self.use_nexi(owner) as nexi:
                async for count in nexi.knowledge().embed_the_rest(nexi.gate(), afresh=afresh):
                    yield count

    async def find_trouble(self) -> str:
        """Why this process cannot work now; "" where it can: a connection that does the work answers in time, the leases of
        its runs are renewed, and the database has this nexi's schema."""
        if not self.database.keeps_leases():
            return "leases are not renewed"
        try:
            async with asyncio.timeout(MAX_READY_S):
                return "" if await self.database.in_thread(self.database.is_current) else "schema of another version"
        except (StoreError, TimeoutError):
            return "no database"

    async def submit_due(self) -> None:
        """Ask the scheduled questions whose time has come. Raises StoreError."""
        if await self.database.in_thread(Schedules(self.database, self.clock).submit_due):
            self.database.announce(QUEUE_NOTICE)

    def add_schedule(self, owner: str, question: str, every: timedelta, first: datetime | None = None) -> int:
        """Ask a question again and again for a person, by its id; it blocks. Raises StoreError."""
        request = RunRequest(question, door=DOOR)
        schedules = Schedules(self.database, self.clock)
        return schedules.add(owner, question, request.mode, request_to_dict(request), every=every, first=first)

    def queue_of(self, owner: str) -> _TeamRunQueue:
        return _TeamRunQueue(self, owner)


class _TeamRunQueue:
    """Hands the runs of one person to the workers."""

    def __init__(self, team: Team, owner: str) -> None:
        self._team, self._runs = team, team.state_of(owner).runs

    async def submit(self, request: RunRequest) -> str:
        """A new run, by its id. Raises StoreError."""
        run_id = await asyncio.to_thread(self._runs.submit, request.question, request.mode, request_to_dict(request))
        self._team.database.announce(QUEUE_NOTICE)
        return run_id

    async def resubmit(self, run_id: str) -> None:
        """Let a worker go on with a run that was left. Raises StoreError."""
        await asyncio.to_thread(self._runs.resubmit, run_id)
        self._team.database.announce(QUEUE_NOTICE)
