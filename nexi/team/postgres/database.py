"""Database: the connections of one process, the leases of the runs it writes, and notices of new facts.

Above are the stores of this package; below is psycopg, which is loaded here alone. One thread renews leases and sends notices,
a second one listens while somebody follows a run. Times are the database's, so clocks of machines may differ.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, TypeVar

from nexi.errors import ConfigError, StoreError
from nexi.install import install_command
from nexi.net.causes import plain_cause
from nexi.net.limits import WaitingLine
from nexi.notices import Notice
from nexi.team import limits

__all__ = ["MAX_ROWS", "UNLIMITED", "Database", "clean_text", "read_statements"]

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Values = Mapping[str, Any] | None
WATCH_EVERY_S = 0.25
CHECK_LISTENER_S = 10.0
TCP_LIMITS = {  # a peer that has gone silent is given up within seconds, not after the two hours of the kernel
    "connect_timeout": int(limits.MAX_POOL_WAIT_S),
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": int(limits.MAX_REPLY_S * 1_000),
}
MAX_ROWS = 1 << 62  # for a limit that is none
MIGRATION_LOCK = 0x6E657869
CHANNEL = "nexi_facts"
_NOTICE_EVERY_S = 0.05  # notices take a lock of the whole cluster, so they are sent together and outside the appends
_RENEWALS_PER_LEASE = 4
UNLIMITED = "set local statement_timeout = 0"  # for a transaction that may take long
_ATTEMPT = re.compile(r"^connection (?:is bad|failed): ")
_NO_ADDRESS = re.compile(r"failed to resolve host '([^']+)'")
_CONNECTION_FAILED = re.compile(r'server (?:at|on socket) "(?P<host>[^"]+)"(?:.*?, port (?P<port>\d+))? failed: (?P<cause>.*)')
_NO_SERVER = re.compile(r"Connection refused|No such file or directory")
ROLE = "nexi_person"  # of statements that belong to one person; see migrations/005_owners.sql


class HeldRun(Protocol):
    """A run that this process writes, as the lease needs it."""

    run_id: str
    epoch: int

    def on_renewed(self, *, stop: bool, cancel: bool, is_over_quota: bool) -> None: ...

    def on_taken(self) -> None: ...


class Database:
    """The database of a team server. `open` brings its schema up to date; `close` gives every lease back."""

    def __init__(
        self,
        url: str,
        *,
        lease_s: float = limits.DEFAULT_LEASE_S,
        max_connections: int = limits.MAX_CONNECTIONS,
        patience_s: float = 10.0,
        statement_s: float = limits.MAX_STATEMENT_S,
        wait_s: float = limits.MAX_REPLY_S,
        retry_s: float = limits.MAX_RETRY_S,
    ) -> None:
        """`retry_s` is how long a statement is tried again that does not say so itself."""
        self._driver, self._pool_module = _load_driver()
        self._sql = read_statements(__file__)
        self.url, self.lease_s, self._patience_s, self._statement_s = url, lease_s, patience_s, statement_s
        self.holder = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        self.threads = ThreadPoolExecutor(max_connections, thread_name_prefix="nexi-postgres")
        from nexi.team.postgres.commits import Committer  # which is written in terms of this class

        self.committer = Committer(self)
        self._pool: Any = None
        self._wait_s, self._retry_s = wait_s, retry_s
        self._is_silent = self.is_probed = False  # nobody gets a reply; one request finds out whether it is still so
        self._replied = 0.0
        self._waits: dict[object, tuple[float, Any]] = {}  # statements under way: when to give up, and their connections
        self._started: dict[str, threading.Thread] = {}
        self._closed = threading.Event()
        self._max_connections = max_connections
        self._held: dict[str, HeldRun] = {}
        self._renewed = 0.0
        self._notices: set[str] = set()
        self._waiters: dict[str, set[Callable[[], None]]] = {}
        self.lines: dict[str, WaitingLine] = {}  # of everybody in this process who waits for the pace of a host
        self._guard = threading.Lock()
        self._closing = threading.Event()

    def open(self) -> Database:
        """Connect and migrate. Raises ConfigError when the database cannot be used."""
        options = {"autocommit": True, "application_name": "nexi", **TCP_LIMITS}
        sizes = {"min_size": 1, "max_size": self._max_connections, "timeout": limits.MAX_POOL_WAIT_S}

        def limit_statements(connection: Any) -> None:
            connection.execute("select set_config('statement_timeout', %s, false)", (f"{self._statement_s * 1000:.0f}",))

        self._pool = self._pool_module.ConnectionPool(self.url, kwargs=options, configure=limit_statements, open=False, **sizes)
        logger = logging.getLogger("psycopg.pool")
        before = logger.level
        try:
            logger.setLevel(logging.ERROR)  # the pool logs a line for each attempt; the error at the end has the cause
            try:
                self._pool.open(wait=True, timeout=self._patience_s)
            finally:
                logger.setLevel(before)
            with self._pool.connection() as connection:
                _migrate(connection)
        except (ConfigError, self._driver.Error, self._pool_module.PoolTimeout) as error:
            self._pool.close()
            if isinstance(error, ConfigError):
                raise
            cause = _first_line(error)
            if isinstance(error, self._pool_module.PoolTimeout):
                # a pool only says that it has waited, so one connection is tried by itself
                try:
                    self._driver.connect(self.url, **TCP_LIMITS).close()
                except self._driver.Error as failure:
                    cause = find_connection_cause(_first_line(failure))
            fix = "check NEXI_DATABASE_URL and that Postgres runs"
            raise ConfigError("the database cannot be used", cause=cause, fix=fix) from error
        return self

    def close(self) -> None:
        self.committer.close()
        self._closing.set()
        for name in self._started.keys() - {"waits"}:
            self._started[name].join()
        self.threads.shutdown()
        if self._pool:
            self._pool.close()
        self._closed.set()  # last: the statements above may hang as well

    def is_current(self) -> bool:
        """Whether it answers and has the schema of this nexi: not before an upgrade is through, nor after a newer one."""
        steps = {step for (step,) in self.fetch("select step from schema_steps", patience_s=1.0)}
        return steps == {number for number, _ in list_migrations()}

    def keeps_leases(self) -> bool:
        """Whether the runs that this process writes are still its own, as far as the last renewal says."""
        with self._guard:
            return not self._held or time.monotonic() - self._renewed < self.lease_s

    # statements

    @contextmanager
    def transaction(self, owner: str | None = None, *, wait_s: float | None = None) -> Iterator[_Transaction]:
        """Several statements, with an owner as in `fetch_as`. Each gets its reply in time, which `wait_s` is for those that
        take long, or the connection is ended. Raises StoreError."""
        try:
            with (
                self._pool.connection() as connection,
                self._limit_wait(connection, wait_s or self._wait_s) as extend,
                connection.transaction(),
            ):
                if owner is not None:
                    connection.execute(self._sql["become_person"], (ROLE, owner))
                yield _Transaction(connection, extend)
                extend()
        except (self._driver.Error, self._pool_module.PoolTimeout) as error:
            raise self._store_error(error) from error

    def fetch(
        self, statement: str, values: Values = None, *, patience_s: float | None = None, wait_s: float | None = None
    ) -> Rows:
        """The rows of one statement, a transaction by itself; tried again while the database restarts. `wait_s` is for one that
        reads a great deal. Raises StoreError."""
        return self._try(lambda connection: connection.execute(statement, values), patience_s, wait_s)

    def fetch_as(
        self, owner: str, statement: str, values: Values = None, *, is_alone: bool = False, patience_s: float | None = None
    ) -> Rows:
        """The rows of one statement that sees and changes what belongs to one person, whatever it names. With `is_alone` no
        other such statement of hers runs meanwhile, anywhere. Raises StoreError."""

        def ask(connection: Any) -> Any:
            with connection.pipeline(), connection.transaction():  # all of it is one round trip
                connection.execute(self._sql["become_person"], (ROLE, owner))
                if is_alone:
                    connection.execute(self._sql["be_alone"], (owner,))
                return connection.execute(statement, values)

        return self._try(ask, patience_s)

    @contextmanager
    def _connect(self, left_s: float, wait_s: float | None) -> Iterator[Any]:
        """A connection for one statement, which gets its reply in time or is ended."""
        deadline = time.monotonic() + left_s
        with self._pool.connection(timeout=min(limits.MAX_POOL_WAIT_S, left_s)) as connection:
            limit_s = wait_s or min(self._wait_s, max(limits.MIN_REPLY_S, deadline - time.monotonic()))
            with self._limit_wait(connection, limit_s):
                yield connection

    def _try(self, ask: Callable[[Any], Any], patience_s: float | None, wait_s: float | None = None) -> Rows:
        """Ask again until there is a reply or the patience is over; `ask` gets a connection and gives its cursor."""
        patience_s = self._retry_s if patience_s is None else patience_s
        pause, began = 0.05, time.monotonic()
        deadline = began + patience_s
        with self._wait_for_one(is_needed=patience_s <= limits.MAX_REQUEST_S):
            while True:
                try:
                    with self._connect(max(0.0, deadline - time.monotonic()) + limits.MIN_REPLY_S, wait_s) as connection:
                        cursor = ask(connection)
                        rows: Rows = cursor.fetchall() if cursor.description else []
                except (self._driver.OperationalError, self._driver.InterfaceError, self._pool_module.PoolTimeout) as error:
                    is_full = isinstance(error, self._driver.errors.DiskFull)  # which takes longer than anybody waits
                    if is_full or time.monotonic() > deadline or self._closing.is_set():
                        self._is_silent = self._is_unreachable(error) and self._replied < began
                        raise self._store_error(error) from error
                except self._driver.Error as error:
                    raise self._store_error(error) from error
                else:
                    self._is_silent, self._replied = False, time.monotonic()
                    return rows
                time.sleep(pause)
                pause = min(1.0, pause * 2)  # a database that starts is not held up by those who wait

    @contextmanager
    def _wait_for_one(self, *, is_needed: bool) -> Iterator[None]:
        """While the database is silent, one request at a time finds out whether it still is; the others are refused at once,
        or they would wait for each other in the few threads that there are. Raises StoreError."""
        with self._guard:
            is_probe = is_needed and self._is_silent
            if is_probe and self.is_probed:
                raise _away_error()
            self.is_probed = self.is_probed or is_probe
        try:
            yield
        finally:
            if is_probe:
                self.is_probed = False

    def _store_error(self, error: Exception) -> StoreError:
        code = "duplicate" if isinstance(error, self._driver.errors.UniqueViolation) else "database"
        if self._is_unreachable(error):
            return _away_error()
        fix = "try again; the operator's log says more"
        return StoreError("The database refused", cause=_first_line(error), fix=fix, code=code)

    def _is_unreachable(self, error: Exception) -> bool:
        """Whether there is no connection; what Postgres itself refuses has a state."""
        lost = (self._pool_module.PoolTimeout, self._driver.OperationalError, self._driver.InterfaceError)
        shutting_down = (self._driver.errors.AdminShutdown, self._driver.errors.CannotConnectNow)
        return isinstance(error, shutting_down) or (isinstance(error, lost) and not getattr(error, "sqlstate", None))

    @contextmanager
    def _limit_wait(self, connection: Any, seconds: float) -> Iterator[Callable[[], None]]:
        """End the connection when a statement on it gets no reply in time; its caller then sees an OperationalError. The block
        is given what begins the time anew."""
        key = object()

        def extend() -> None:
            with self._guard:
                self._waits[key] = (time.monotonic() + seconds, connection)

        extend()
        with self._guard:
            self._start_thread("waits", self._watch_waits)
        try:
            yield extend
        finally:
            with self._guard:
                del self._waits[key]

    def _watch_waits(self) -> None:
        """The server's own limit is of no use on a connection that is dead, nor does the driver have one."""
        while not self._closed.wait(WATCH_EVERY_S):
            with self._guard:  # so that a connection is not given to somebody else meanwhile
                for deadline, connection in self._waits.values():
                    if deadline >= time.monotonic():
                        continue
                    with suppress(OSError, self._driver.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
                        line.shutdown(socket.SHUT_RDWR)  # unlike closing it, this wakes the thread that waits

    async def in_thread(self, work: Callable[..., T], *values: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.threads, work, *values)

    # leases

    def hold(self, run: HeldRun) -> None:
        """Renew the lease of a run until it is released."""
        with self._guard:
            if not self._held:
                self._renewed = time.monotonic()
            self._held[run.run_id] = run
            self._start_thread("leases", self._keep_leases)

    def release(self, run: HeldRun) -> None:
        with self._guard:
            if self._held.get(run.run_id) is run:
                del self._held[run.run_id]

    def announce(self, run_id: str) -> None:
        """Tell followers on every server, soon, that a run has new facts."""
        with self._guard:
            self._notices.add(run_id)
            self._start_thread("leases", self._keep_leases)

    def _start_thread(self, name: str, work: Callable[[], None]) -> None:
        """Start a thread of this process unless it is there. The caller has the guard."""
        if name not in self._started:
            self._started[name] = threading.Thread(target=work, name=f"nexi-{name}", daemon=True)
            self._started[name].start()

    def _keep_leases(self) -> None:
        while not self._closing.wait(_NOTICE_EVERY_S):
            with suppress(self._driver.Error, self._pool_module.PoolTimeout):  # the next turn tries again
                with self._guard:
                    notices, self._notices = self._notices, set()
                if notices:
                    with self._pool.connection(timeout=1.0) as connection, self._limit_wait(connection, self.lease_s):
                        connection.execute("select pg_notify(%s, p) from unnest(%s::text[]) p", (CHANNEL, list(notices)))
                if time.monotonic() - self._renewed >= self.lease_s / _RENEWALS_PER_LEASE:
                    self._renew_leases()
                    self._renewed = time.monotonic()

    def _renew_leases(self) -> None:
        with self._guard:
            leases = dict(self._held)
        if not leases:
            return
        with self._pool.connection(timeout=1.0) as connection, self._limit_wait(connection, self.lease_s):
            rows = connection.execute(self._sql["renew"], (list(leases), self.holder, self.lease_s)).fetchall()
        mine = {run: wishes for run, epoch, *wishes in rows if leases[run].epoch == epoch}
        for run_id, run in leases.items():
            if run_id in mine:
                stop, cancel, is_over_quota = mine[run_id]
                run.on_renewed(stop=stop, cancel=cancel, is_over_quota=is_over_quota)
            else:
                run.on_taken()

    # notices

    async def wait_for_notice(self, run_id: str, timeout_s: float) -> None:
        """Return at the next notice about a run, or when the time is over."""
        loop, notice = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop may have ended meanwhile
                loop.call_soon_threadsafe(notice.set)

        with self._guard:
            self._waiters.setdefault(run_id, set()).add(wake)
            self._start_thread("notices", self._listen)
        try:
            async with asyncio.timeout(timeout_s):
                await notice.wait()
        except TimeoutError:
            return
        finally:
            with self._guard:
                waiters = self._waiters[run_id]
                waiters.discard(wake)
                if not waiters:
                    del self._waiters[run_id]

    def _listen(self) -> None:
        while not self._closing.is_set():
            try:
                options = {"autocommit": True, "application_name": "nexi notices", **TCP_LIMITS}
                with self._driver.connect(self.url, **options) as connection:
                    last_check = -CHECK_LISTENER_S
                    while not self._closing.is_set():
                        if time.monotonic() - last_check > CHECK_LISTENER_S:  # a listener says nothing, so it would not notice
                            with self._limit_wait(connection, self._wait_s):
                                connection.execute(f"listen {CHANNEL}")
                            last_check = time.monotonic()
                        for notice in connection.notifies(timeout=0.5):
                            self.wake_waiters(notice.payload)
            except self._driver.Error:
                self._closing.wait(0.5)  # followers look by themselves meanwhile

    def wake_waiters(self, run_id: str) -> None:
        """End the waits of this process for a notice about a run."""
        with self._guard:
            waiters = tuple(self._waiters.get(run_id, ()))
        for wake in waiters:
            wake()


class _Transaction:
    """The connection of a transaction, as far as its statements need it."""

    def __init__(self, connection: Any, extend: Callable[[], None]) -> None:
        self._connection, self._extend = connection, extend

    def execute(self, statement: str, values: Any = None) -> Any:
        self._extend()
        return self._connection.execute(statement, values)

    def execute_many(self, statement: str, rows: Sequence[Any]) -> None:
        self._extend()
        self._connection.cursor().executemany(statement, rows)


def _load_driver() -> tuple[Any, Any]:
    try:
        import psycopg
        import psycopg_pool
    except ImportError as error:
        fix = f"install it: {install_command('cluster')}"
        raise ConfigError("a team server needs a library that is not installed", cause=str(error), fix=fix) from error
    return psycopg, psycopg_pool


def list_migrations() -> list[tuple[int, str]]:
    """The steps of the schema with their numbers, in order."""
    files = (f for f in resources.files("nexi.team.postgres").joinpath("migrations").iterdir() if f.name.endswith(".sql"))
    return sorted((int(f.name.partition("_")[0]), f.read_text("utf-8")) for f in files)


def _migrate(connection: Any) -> None:
    """Bring the schema forward, one process at a time. Raises ConfigError where it is newer than this nexi."""
    steps, sql = list_migrations(), read_statements(__file__)
    with connection.transaction():
        connection.execute(UNLIMITED)
        connection.execute("select pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        connection.execute(sql["add_steps"])
        past_steps = {step for (step,) in connection.execute("select step from schema_steps").fetchall()}
        if newer := sorted(past_steps - {number for number, _ in steps}):
            cause = f"its schema has step {newer[-1]}, and this nexi knows {steps[-1][0]}"
            fix = "upgrade this nexi; the schema only goes forward"
            raise ConfigError("the database was made by a newer nexi", cause=cause, fix=fix, code="newer_database")
        for number, text in steps:
            if number not in past_steps:
                connection.execute(text)
                connection.execute("insert into schema_steps (step) values (%s)", (number,))
        connection.execute(sql["add_vectors"])
        connection.execute(sql["add_trigrams"])
        _prepare_role(connection, sql)


def _prepare_role(connection: Any, sql: Mapping[str, str]) -> None:
    """Let statements of one person use the tables that have policies. A dump has the policies, but neither role nor grants."""
    (login, is_there) = connection.execute(sql["find_login"], (ROLE,)).fetchone()
    if not is_there:
        try:
            with connection.transaction():
                connection.execute(f"create role {ROLE} nologin")
                connection.execute(f'grant {ROLE} to "{login}"')
        except _load_driver()[0].errors.InsufficientPrivilege as error:
            raise ConfigError(
                f"the database has no role {ROLE}",
                cause=f"{login} may not create roles",
                fix=f'let an administrator of Postgres run: create role {ROLE}; grant {ROLE} to "{login}"',
            ) from error
    for (table,) in connection.execute(sql["find_tables"], (ROLE,)).fetchall():
        connection.execute(f'grant select, insert, update, delete on "{table}" to {ROLE}')


def read_statements(module: str) -> dict[str, str]:
    """The statements in the file beside a module, each after a line `-- name: NAME`."""
    parts = Path(module).with_suffix(".sql").read_text(encoding="utf-8").split("-- name: ")[1:]
    return {name: statement for name, _, statement in (part.partition("\n") for part in parts)}


def find_connection_cause(words: str) -> str:
    """Why there is no connection, in the driver's words without what it puts before them."""
    if host_match := _NO_ADDRESS.search(words):
        return f"the host {host_match[1]} has no address"
    failure = _CONNECTION_FAILED.search(words)
    if not failure:
        return plain_cause(_ATTEMPT.sub("", words))
    host, port, cause = failure.group("host", "port", "cause")
    if _NO_SERVER.search(cause):
        return f"nothing answers at {host}:{port}" if port else f"nothing answers at the socket {host}"
    return cause.removeprefix("FATAL:").strip()


def _away_error() -> StoreError:
    return StoreError(
        Notice("database.away", "The database of this server cannot be reached"),
        cause=Notice("database.silent", "Postgres does not answer"),
        fix=Notice("fix.database", "Try again soon; if it stays, an administrator must start Postgres."),
        code="database",
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def clean_text(text: str) -> str:
    """A text as a column takes it: no NUL, no half of a surrogate pair."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
