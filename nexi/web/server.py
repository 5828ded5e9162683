"""Server: the socket, the processes, the signals and the log behind `nexi serve`.

It listens on this machine unless it has a token. On SIGTERM it takes no new connection, gives runs and requests some time,
leaves the runs that are not done open in their logs, and ends. Every logger of the process, the web server's too, ends as one
JSON object a line on stderr, with no key in it whatever was logged. What the paths do is not known here.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import gc
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import h11
import uvicorn
from msgspec import Struct
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from nexi.apis import settings_of
from nexi.app.hosting import MAX_RUNS
from nexi.app.owner_token import OwnerToken
from nexi.config import Config
from nexi.errors import ConfigError
from nexi.net.addresses import MIN_TOKEN_CHARS, is_loopback_host
from nexi.net.causes import plain_cause
from nexi.web.guard import CROWDED, MAX_HEAD_BYTES, GuardRules

__all__ = ["HEAD_BYTES", "MAX_CONNECTIONS", "ServerOptions", "serve"]

log = logging.getLogger("nexi.web")
HEAD_BYTES = MAX_HEAD_BYTES  # of a head that has not ended; the guard counts whole ones
KEEP_ALIVE_S = 15
MAX_CONNECTIONS = 1024
CROWDED_HEAD_TIMEOUT_S = 2.0
GC_THRESHOLDS = (700, 10, 10)  # the command line collects less often, for a quick start
MAX_GATHERED = 32_768
_RECORD_FIELDS = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
_AMBIGUOUS_LINE = re.compile(rb"(?<!\r)\n|\n[ \t]")


class ServerOptions(Struct, frozen=True):
    """How to serve; it travels to the workers whole."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    workers: int = 1
    most_runs: int = MAX_RUNS
    per_minute: float = 600.0
    drain_s: float = 10.0
    log_level: str = "info"
    searcher_config: str = ""  # the file of the Search API, where it is not the one in nexi's folder

    def __repr__(self) -> str:
        return f"Options(host={self.host!r}, port={self.port}, workers={self.workers})"


def serve(config: Config, options: ServerOptions, *, on_listening: Callable[[str], None] = lambda _: None) -> None:
    """Serve until a signal ends it.

    Raises ConfigError when it may not or cannot listen, or has a file or a database that it cannot use, and StoreError where
    the owner's token cannot be kept."""
    require_token(config, options)
    settings_of(config.root, _settings_file(options))  # a file that cannot be used is refused now, not at the first search
    if config.database_url:
        from nexi.team import open_database

        # Opened once, so that no address is announced at which nothing will answer; each process opens its own later.
        open_database(config).close()
    listener = bind_socket(options)
    web = uvicorn_config(config, options)
    gc.set_threshold(*GC_THRESHOLDS)
    host, port = listener.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    if not (options.token or config.token or config.database_url):  # the link is the owner's key
        address += f"/?token={OwnerToken(config.state_dir).ensure()}"
    on_listening(address)
    if options.workers > 1:
        _Workers(web, [listener]).run()
    else:
        configure_logging(options.log_level, secrets_of(config, options))
        Server(web).run([listener])
    listener.close()


def require_token(config: Config, options: ServerOptions) -> None:
    """Beyond this machine only with a token that cannot be guessed, or for people who each have their own."""
    token = options.token or config.token
    if is_loopback_host(options.host) or config.database_url or len(token) >= MIN_TOKEN_CHARS:
        return
    message, cause = "without a token", "anybody who reaches this address could use it"
    fix = "set NEXI_TOKEN to a long random text, or leave --host out"
    if token:
        message = f"with a token of {len(token)} characters"
        cause = f"a token shorter than {MIN_TOKEN_CHARS} characters can be guessed"
        fix = "set NEXI_TOKEN to a longer random text, for example: openssl rand -hex 24"
    raise ConfigError(f"nexi does not listen on {options.host} {message}", cause=cause, fix=fix)


def bind_socket(options: ServerOptions) -> socket.socket:
    """A listening socket. Raises ConfigError."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, so that asyncio turns off Nagle's delay
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host.strip("[]"), options.port))
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        is_taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        cause = "something else listens there" if is_taken else plain_cause(str(error))
        fix = "use another --port, or stop what listens there; 0 chooses a free one"
        raise ConfigError(f"nexi cannot listen on {options.host}:{options.port}", cause=cause, fix=fix) from error
    listener.set_inheritable(True)  # by the processes of several
    return listener


def uvicorn_config(config: Config, options: ServerOptions) -> uvicorn.Config:
    app = functools.partial(build_app, config, options)
    return strict_config(app, factory=True, workers=options.workers, drain_s=options.drain_s)


def strict_config(app: Any, *, drain_s: float, **options: Any) -> uvicorn.Config:
    """How every HTTP server of nexi reads requests: one framing, limits on slow clients, no header of a proxy trusted."""
    return uvicorn.Config(
        app,
        **{"lifespan": "on", **options},
        http=SlowClientTimeoutProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # any client could send them
        server_header=False,  # which tells nobody the version
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(drain_s)),
        h11_max_incomplete_event_size=HEAD_BYTES,
    )


def build_app(config: Config, options: ServerOptions) -> Starlette:
    """The app of one process."""
    from nexi.web import create_app

    if options.workers > 1:
        configure_logging(options.log_level, secrets_of(config, options))
    rules = GuardRules(
        options.host,
        options.token or config.token,
        tuple(name.lower() for name in config.serve_hosts),
        per_minute=options.per_minute,
        burst=max(20.0, options.per_minute / 5),
    )
    if config.database_url:
        from nexi.team import Team, create_team_app, open_database

        database = open_database(config, for_requests=True)
        app = create_team_app(Team(config, database), rules=rules, most_runs=options.most_runs)
    else:
        app = create_app(config, rules=rules, most_runs=options.most_runs, edits_settings=options.workers == 1)
    app.state.drain_s = options.drain_s
    app.state.searcher_config = _settings_file(options)
    return app


def _settings_file(options: ServerOptions) -> Path | None:
    return Path(options.searcher_config).expanduser() if options.searcher_config else None


def secrets_of(config: Config, options: ServerOptions) -> tuple[str, ...]:
    from nexi.app.components import secrets_of as keys_of

    return (*keys_of(config), options.token, config.token, OwnerToken(config.state_dir).read())


class _JsonLines(logging.Formatter):
    """A record as a JSON object; what the record was given beside its message become fields. Secrets are struck out."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = sorted({s for s in secrets if s}, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "t": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _RECORD_FIELDS},
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        line = json.dumps(fields, ensure_ascii=False, default=str)
        for secret in self._secrets:
            line = line.replace(json.dumps(secret, ensure_ascii=False)[1:-1], "***").replace(secret, "***")
        return line.encode("utf-8", "backslashreplace").decode("utf-8")  # half of a character breaks no line


def configure_logging(level: str, secrets: Iterable[str], stream: TextIO | None = None) -> None:
    """Send every log of this process to stderr in this form."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLines(secrets))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("nexi").setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, getattr(logging, level.upper())))


class Server(uvicorn.Server):
    """Drains runs between the last connection that is taken and the end of those that are open."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A hangup drains like SIGTERM, unless it is ignored, as under nohup."""
        hangup = getattr(signal, "SIGHUP", None)
        with super().capture_signals():
            is_main = threading.current_thread() is threading.main_thread()
            if hangup is None or not is_main or signal.getsignal(hangup) is signal.SIG_IGN:
                yield
                return
            before = signal.signal(hangup, self.handle_exit)
            try:
                yield
            finally:
                signal.signal(hangup, before)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        log.info("draining", extra={"pid": os.getpid()})
        for server in self.servers:
            server.close()
        app: Any = self.config.loaded_app
        guests = getattr(app.state, "guests", None)
        await asyncio.gather(*(part.drain(app.state.drain_s) for part in (app.state.host, guests) if part))
        await super().shutdown(sockets)


class _CoalescingTransport:
    """A transport that sends what is written in one turn of the loop together: a head and its body need one call."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size > MAX_GATHERED:
            self._flush()  # the transport must see what is much, to say that it is too much

    def _flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class SlowClientTimeoutProtocol(H11Protocol):
    """HTTP/1.1 with limits on the time until the head of a request is there, until a client reads on, and on the connections
    of one client. What comes beyond those is marked in the scope, so that the guard can refuse it in the shape of its path."""

    head_timeout_s = 20.0
    max_connections = MAX_CONNECTIONS
    max_client_connections = 512  # from one address, which may be a proxy before this server
    max_client_half_open = 64  # with more of them, one address has less time for each head
    stall_timeout_s = 60.0  # a client that reads nothing for so long is not coming back
    _head: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(_CoalescingTransport(transport, self.loop))  # type: ignore[arg-type]
        host = self.client[0] if self.client else ""
        every: list[Any] = list(self.connections)
        same = [other for other in every if other.client and other.client[0] == host]
        if is_crowded := len(every) > self.max_connections or len(same) > self.max_client_connections:
            self.app_state = {**self.app_state, CROWDED: True}
        if is_crowded or sum(other._head is not None for other in same) >= self.max_client_half_open:
            self.head_timeout_s = min(self.head_timeout_s, CROWDED_HEAD_TIMEOUT_S)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def handle_events(self) -> None:
        """h11 takes a bare LF for the end of a line and joins folded ones; what stands before it may read both otherwise."""
        if self.conn.their_state is h11.IDLE and _AMBIGUOUS_LINE.search(self.conn.trailing_data[0].partition(b"\r\n\r\n")[0]):
            self.send_400_response("A line of the request's head ends without CR or is folded.")
        else:
            super().handle_events()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_of(self._head)
        self._end_of(self._stall)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(self.stall_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._end_of(self._stall)
        super().resume_writing()

    def _watch_head(self) -> None:
        """A connection that was opened, or sent a part of a head, owes the rest; one that rests after a reply owes nothing."""
        if not self._owes_a_head():
            self._end_of(self._head)
            self._head = None
        elif self._head is None:
            self._head = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _owes_a_head(self) -> bool:
        last: Any = self.cycle  # the base class says it is always there, and sets it with the first request
        return last is None or last.response_complete

    def _give_up(self) -> None:
        if self._owes_a_head():
            self.transport.close()

    @staticmethod
    def _end_of(timer: asyncio.TimerHandle | None) -> None:
        if timer:
            timer.cancel()


class _ServerProcess(Process):
    @functools.cached_property
    def server(self) -> uvicorn.Server:
        return Server(self.config)


class _Workers(Multiprocess):
    """Several processes on one socket; the lock of each run log decides between them."""

    def init_processes(self) -> None:
        for _ in range(self.processes_num):
            process = _ServerProcess(self.config, self.sockets)
            process.start()
            self.processes.append(process)
