"""Runs in Postgres: the log of a run line by line, as in a file, with a lease and a fencing token for its writer.

`state` hands these out as the ports RunStore, PageStore and RunLog; below is `database`. The row of a run says who may write:
an append changes that row and adds its facts in one statement, so a writer that has lost its run adds nothing. The queue of the
workers is the table of runs itself, so there is one truth.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from nexi import events
from nexi.errors import RunTakenError, StoreError
from nexi.events import Fact
from nexi.notices import Notice
from nexi.ports import Clock
from nexi.runs import log_format
from nexi.runs.log_format import ReadLog, RunSummary, locked_error
from nexi.team.limits import DELETION_NOTICE_DAYS, MAX_RESERVED_S, MAX_RETRY_S, MAX_STATEMENT_S
from nexi.team.postgres.commits import FactBatch, FactRow, taken_error
from nexi.team.postgres.database import MAX_ROWS, Database, clean_text, read_statements
from nexi.team.postgres.sharing import SHARED_WITH_ME
from nexi.types import content_digest

QUOTA_STOP = Notice(
    "quota.used_up",
    "your quota of tokens or dollars for today is used up, so this is answered from what was read until now; "
    "ask again tomorrow, or ask an administrator for more",
)

QUEUE_NOTICE = "queue"  # in place of a run's id, among the notices of the database: there may be something to pick, or room
SQL = read_statements(__file__)
SUBMIT_RUN = SQL["submit"]
_MINE = "run = %(run)s and owner = %(owner)s"  # the policies of the database say the same once more
_READABLE = f"run = %(run)s and (owner = %(owner)s or {SHARED_WITH_ME})"
_IS_RUNNING = "(state = 'waiting' or (state = 'running' and (is_queued or lease_until > now())))"
_IN_STATE = {
    "": "true",
    "running": f"(state = 'waiting' or (state = 'running' and {_IS_RUNNING}))",
    "unfinished": f"state = 'running' and not {_IS_RUNNING}",
    "finished": "state = 'finished'",
    "failed": "state = 'failed'",
    "damaged": "false",  # a row is whole or not there
}


class ClaimedRun(Struct, frozen=True):
    """A run that this process may write now, with what it was asked for while it has no fact."""

    log: PostgresRunLog
    read: ReadLog
    question: str
    mode: str
    request: dict[str, Any]


class PostgresRunLog:
    """The log of a run, open for writing. Facts that come together share a commit."""

    def __init__(
        self, database: Database, clock: Clock, run_id: str, *, epoch: int, owner: str = "", count: int = 0, work_s: float = 0.0
    ) -> None:
        self._database, self._clock = database, clock
        self.run_id, self.epoch = run_id, epoch
        self._owner = owner  # of a run whose row is made with its first fact
        self._began = clock.monotonic() - work_s
        self._count = count
        self._pending: list[FactRow] = []
        self._current: asyncio.Future[None] | None = None
        self._next: asyncio.Future[None] | None = None
        self._trouble: StoreError | None = None  # final: what follows would leave a hole, so later appends raise it again
        self._ended = self._closed = False
        self._is_claimed = not owner  # so that others may go on with it
        self._stop = self._is_over_quota = False
        self.is_cancel_requested = False
        if not owner:
            database.hold(self)

    @property
    def is_taken(self) -> bool:
        """Whether another writer has this run."""
        return isinstance(self._trouble, RunTakenError)

    async def append(self, fact: Fact) -> int:
        if self._closed:
            raise ValueError(f"the log of run {self.run_id} is closed")
        if self._ended:
            raise ValueError(f"run {self.run_id} has ended: nothing may follow its terminal fact")
        if self._trouble:
            raise self._trouble
        self._count += 1
        number, self._ended = self._count, isinstance(fact, events.TERMINAL)
        elapsed = self._clock.monotonic() - self._began
        line = log_format.encode_fact(number, self._clock.now(), elapsed, fact).decode("ascii")
        self._pending.append(FactRow(number, fact, line))
        if self._next is None:
            self._next = asyncio.ensure_future(self._commit_after(self._current))
        commit = self._next
        await asyncio.wait([commit])  # unlike awaiting it, a cancelled wait leaves the commit alone
        if self._trouble:
            raise self._trouble
        return number

    async def _commit_after(self, before: asyncio.Future[None] | None) -> None:
        if before:
            await asyncio.wait([before])
        self._current, self._next = self._next, None
        rows, self._pending = self._pending, []
        if self._trouble:
            return
        new_run = {
            "owner": self._owner,
            "header": log_format.encode_header(self.run_id, self._clock.now()).decode("ascii"),
            "holder": self._database.holder,
            "lease": self._database.lease_s,
        }
        batch = FactBatch(self.run_id, self.epoch, rows, new_run if self._owner else None)
        try:
            await self._database.committer.commit(batch)
        except StoreError as error:
            is_shared = self._is_claimed and not isinstance(error, RunTakenError)
            self._trouble = self._trouble or (taken_error(self.run_id, str(error)) if is_shared else error)
            return
        if self._owner:
            self._owner = ""
            self._database.hold(self)
        self._database.announce(self.run_id)

    def stop_requested(self) -> bool:
        return self._stop or self._is_over_quota

    def explain_stop(self) -> str:
        return QUOTA_STOP if self._is_over_quota and not self._stop else ""

    def on_renewed(self, *, stop: bool, cancel: bool, is_over_quota: bool) -> None:
        self._stop, self.is_cancel_requested, self._is_over_quota = stop, cancel, is_over_quota

    def on_taken(self) -> None:
        if not self._ended:  # an ended run has no lease; whether its last fact was kept is for its commit to say
            self._trouble = self._trouble or taken_error(self.run_id)

    async def close(self) -> None:
        """Give the lease back. Closing twice is harmless."""
        was_closed, self._closed = self._closed, True
        if commit := self._next or self._current:  # the next one waits for the one before it
            await asyncio.wait([commit])
        if was_closed:
            return
        self._database.release(self)
        if not (self._ended or self.is_taken or self._owner):
            values, fetch = {"run": self.run_id, "epoch": self.epoch}, partial(self._database.fetch, patience_s=MAX_RETRY_S)
            await self._database.in_thread(fetch, SQL["give_back"], values)


class _PostgresPages:
    """Texts by content hash, each kept once; who has read one is in `page_owners`, and which runs name it in `run_pages`."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database, self._owner = database, owner

    async def put(self, text: str) -> str:
        digest, body = content_digest(text), text.encode("utf-8", "surrogatepass")
        values = {"digest": digest, "body": body, "owner": self._owner, "size": len(body)}
        fetch = partial(self._database.fetch, patience_s=MAX_RETRY_S)
        await self._database.in_thread(fetch, SQL["put_page"], values)
        return digest

    async def get(self, digest: str) -> str | None:
        """The text, or None when it is absent or no longer what its name says."""
        sql, values = "select body from pages where digest = %(digest)s", {"digest": clean_text(digest)}
        rows = await self._database.in_thread(self._database.fetch_as, self._owner, sql, values)
        texts = [bytes(body).decode("utf-8", "surrogatepass") for (body,) in rows]
        return next((text for text in texts if content_digest(text) == digest), None)


class PostgresRuns:
    """The runs of one person; those that others share with her can be read."""

    def __init__(self, database: Database, owner: str, clock: Clock) -> None:
        self._database, self._owner, self._clock = database, owner, clock
        self.pages = _PostgresPages(database, owner)

    def create(self) -> PostgresRunLog:
        """A new run; its row is made with its first fact."""
        return PostgresRunLog(self._database, self._clock, log_format.new_long_id(), epoch=1, owner=self._owner)

    def submit(self, question: str, mode: str, request: dict[str, Any]) -> str:
        """A new run for the workers, by its id."""
        row = describe_waiting_run(self._owner, question, mode, request, self._clock)
        self._database.fetch_as(self._owner, SUBMIT_RUN, row)
        return row["run"]

    def resubmit(self, run_id: str) -> None:
        """Let the workers go on with a run that its writer left."""
        self._ask("update runs set is_queued = true, queued_at = now() where {mine} returning run", run_id)

    def reopen(self, run_id: str) -> tuple[ReadLog, PostgresRunLog]:
        claim = self.claim(run_id)
        return claim.read, claim.log

    def claim(self, run_id: str) -> ClaimedRun:
        """Become the writer of a run that has none; whoever wrote it before is refused from now on."""
        values = {"holder": self._database.holder, "lease": self._database.lease_s}
        rows = self._fetch_mine(SQL["claim"], run_id, values, is_alone=True)
        read = self.open_log(run_id)
        if not rows:
            log_format.refuse_ended(run_id, read)
            raise locked_error(run_id)
        ((epoch, question, mode, request),) = rows
        log = PostgresRunLog(self._database, self._clock, run_id, epoch=epoch, count=len(read.facts), work_s=read.seconds)
        return ClaimedRun(log, read, question, mode, request or {})

    def count_losses(self, run_id: str) -> int:
        """How many writers of a run were lost since it last got further; one that gave it back was not."""
        (losses,) = self._ask("select losses + (holder is not null)::int from runs where {mine}", run_id)
        return int(losses)

    def open_log(self, run_id: str) -> ReadLog:
        header, lines = self._ask(SQL["open"], run_id)
        return log_format.parse_log(run_id, "".join([header, *(lines or ())]).encode("ascii"))

    async def wait_for_facts(self, run_id: str, number: int, timeout_s: float) -> None:
        await self._database.wait_for_notice(run_id, timeout_s)

    def list_runs(self, newest: int = 0, *, state: str = "") -> list[RunSummary]:
        return self._summarise(_IN_STATE[state], newest)

    def find_runs(self, text: str, newest: int) -> list[RunSummary]:
        words = clean_text(" ".join(text.casefold().split()))
        return self._summarise("run = any(array(select find_runs(%(words)s, %(limit)s)))", newest, words=words)

    def read_summaries(self, run_ids: Collection[str]) -> list[RunSummary]:
        return self._summarise("run = any(%(runs)s)", runs=list(run_ids)) if run_ids else []

    def _summarise(self, condition: str, newest: int = 0, **values: Any) -> list[RunSummary]:
        statement = SQL["summarise"].format(is_running=_IS_RUNNING, condition=condition)
        rows = self._database.fetch_as(self._owner, statement, {"owner": self._owner, "limit": newest or MAX_ROWS, **values})
        return [
            log_format.summarise_run(
                run,
                json.loads(header)["created"],
                size,
                {"query": question, "mode": mode, **_fact_of(first)},
                _fact_of(last),
                is_running=running,
            )
            for run, header, question, mode, running, size, first, last in rows
        ]

    def has_run(self, run_id: str) -> bool:
        return bool(log_format.RUN_ID.fullmatch(run_id) and self._fetch_mine("select 1 from runs where {readable}", run_id))

    def is_running(self, run_id: str) -> bool:
        return self._fetch_mine(f"select {_IS_RUNNING} from runs where {{readable}}", run_id) == [(True,)]  # noqa: S608

    def request_stop(self, run_id: str) -> bool:
        self._ask("update runs set stop_requested = true where {mine} returning run", run_id)
        return self.is_running(run_id)

    def request_cancel(self, run_id: str) -> None:
        self._ask("update runs set cancel_requested = true where {mine} returning run", run_id)

    def is_cancel_requested(self, run_id: str) -> bool:
        return self._fetch_mine("select cancel_requested from runs where {mine}", run_id) == [(True,)]

    def remove(self, run_id: str) -> None:
        if not self._fetch_mine(SQL["remove"], run_id):
            self._ask("select run from runs where {mine}", run_id)
            raise locked_error(run_id)

    def _ask(self, statement: str, run_id: str) -> tuple[Any, ...]:
        rows = self._fetch_mine(statement, run_id)
        if not rows:
            raise log_format.no_such_run(run_id)
        (row,) = rows
        return row

    def _fetch_mine(
        self, statement: str, run_id: str, values: Mapping[str, Any] | None = None, **options: bool
    ) -> list[tuple[Any, ...]]:
        mine = statement.format(mine=_MINE, readable=_READABLE)
        bound_values = {"run": log_format.check_run_id(run_id), "owner": self._owner, **(values or {})}
        return self._database.fetch_as(self._owner, mine, bound_values, **options)


def pick_run(database: Database, *, is_lost: bool = False) -> tuple[str, str] | None:
    """A run for a worker to go on with, and its owner: one whose writer is lost, else one of the person with the fewest in
    progress; with `is_lost`, only the first kind. It blocks. Raises StoreError."""
    # it is reserved for a moment; the claim that its worker makes decides who may write it
    values = {"is_lost": is_lost, "reserved": MAX_RESERVED_S, "lease": database.lease_s}
    return next(((run, str(owner)) for run, owner in database.fetch(SQL["pick"], values)), None)


def prune_expired(database: Database, keep_days: int, max_mb: int) -> int:
    """Mark what is due, delete what was marked a week ago with its pages, and return how many runs went. Raises StoreError."""
    # until then a wrong setting or a clock that jumped can be put right; kept and open runs stay
    values = {"days": keep_days, "bytes": max_mb * 1_000_000, "notice": DELETION_NOTICE_DAYS}
    with database.transaction(wait_s=MAX_STATEMENT_S) as connection:
        (is_first,) = connection.execute("select pg_try_advisory_xact_lock(hashtext('prune_expired'))").fetchone()
        if not is_first:
            return 0  # another worker is at it
        connection.execute(SQL["mark"], values)
        count = len(connection.execute(SQL["remove_runs"]).fetchall())
        connection.execute(SQL["remove_pages"])
        return count


def describe_waiting_run(owner: str, question: str, mode: str, request: dict[str, Any], clock: Clock) -> dict[str, str]:
    """The row of a new run for the workers, for SUBMIT_RUN."""
    run_id = log_format.new_long_id()
    texts = {"question": clean_text(question), "words": clean_text(question.casefold()), "request": json.dumps(request)}
    header = log_format.encode_header(run_id, clock.now()).decode("ascii")
    return {"run": run_id, "owner": owner, "header": header, "mode": mode, **texts}


def _fact_of(line: str | None) -> dict[str, Any]:
    fact: dict[str, Any] = log_format.try_unseal((line or "").encode("ascii")).get("fact", {})
    return fact
