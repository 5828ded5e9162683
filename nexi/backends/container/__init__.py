"""One SearXNG container for all processes of this machine that share a NEXI_HOME: started when needed, gone with its last user.

Everything but the backend at the end blocks and runs in a thread where a loop is around. A start writes down what it intends
before it does it, so that a crash at any moment leaves something the next one can clean up; the lock is held from the first
look to the last word, so that two who start at once make one container.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import http.client
import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.backends.container.engine import ContainerEngine, Patience, Runner, Time, choose_engine, image_reference
from nexi.errors import BackendError, ConfigError, NexiError
from nexi.files import PRIVATE_FILE, make_private_directory, replace_file, take_lock, translate_os_errors
from nexi.ports import SearchBackend
from nexi.types import Hit, Query

__all__ = ["ContainerBackend", "ContainerStatus", "Lifecycle", "Options"]

POLL_S = 0.25
LOOK_EVERY = 4  # health polls between two looks at whether the container still runs
OLD_ONE_S = 15.0  # how long a container that already runs may take to answer
CLEAN_UP_S = 30.0
LEAVE_S = 10.0
PROBE_S = 2.0

SCHEMA = "nexi-searxng-1"
FILE = "searxng-singleton.json"
LOCK = "searxng-singleton.lock"
LOCK_POLL_S = 0.1
UNKNOWN = "unknown"
GONE = ""

DEFAULT = "default-settings.yml"
READABLE_INSIDE = 0o644  # the container's user is another one; the folder around it is private
MAX_SETTINGS_BYTES = 1_000_000
_MARK = re.compile(r"\{\{\s*(\w+)\s*\}\}")

START_S = 60.0  # a search waits no longer; `nexi searxng start` has the time for a large download
FAILED_FOR_S = 60.0
LOST = "refused"


class Options(Struct, frozen=True):
    """What is started, and where it is written down."""

    state_dir: Path
    own_settings: Path
    image: str = "searxng/searxng"
    tag: str = "latest"
    port: int = 0
    proxies: tuple[str, ...] = ()
    engine_keys: Mapping[str, str] = {}

    @property
    def container(self) -> str:
        """The same name for everyone with this NEXI_HOME, and another one for others on the machine."""
        return f"nexi-searxng-{hashlib.sha256(str(self.state_dir).encode()).hexdigest()[:8]}"

    @property
    def mounted_file(self) -> Path:
        return self.state_dir / "searxng" / "settings.yml"


class ContainerStatus(Struct, frozen=True):
    """How it is: `users` are the PIDs of living processes that registered."""

    running: bool
    healthy: bool = False
    url: str = ""
    container: str = ""
    image: str = ""
    command: str = ""
    users: tuple[int, ...] = ()
    kept: bool = False


class User(Struct, frozen=True):
    """A process by its PID and the moment it began, since a PID alone is soon another process's; it may hold several seats."""

    pid: int
    started: str
    seat: str


class State(Struct, frozen=True, tag=SCHEMA, tag_field="schema"):
    """A container that runs or is about to; port 0 means that its start is not over."""

    command: str
    container: str
    image: str
    settings: str
    port: int = 0
    users: tuple[User, ...] = ()
    kept: bool = False

    def with_user(self, user: User) -> State:
        return replace(self, users=(*self.without_seat(user.seat).users, user))

    def without_seat(self, seat: str) -> State:
        return replace(self, users=tuple(u for u in self.users if u.seat != seat))


def decode_state(data: bytes) -> State | None:
    """The state in a file; what cannot be read is no state, and its container is found again by its name."""
    try:
        return msgspec.json.decode(data, type=State)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


class StateFile:
    """The file under NEXI_HOME/state. Everything but `path` is used while the lock is held."""

    def __init__(self, folder: Path, began: Callable[[int], str]) -> None:
        self.path, self._lock = folder / FILE, folder / LOCK
        self._began = began

    @contextmanager
    def hold_lock(self, patience: Patience) -> Iterator[None]:
        """Hold the lock. Raises BackendError when another process holds it for too long."""
        with translate_os_errors("the state of SearXNG cannot be used", self._lock):
            make_private_directory(self._lock.parent)
            fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), PRIVATE_FILE)
        try:
            while not take_lock(fd):
                if patience.seconds_left() <= 0:
                    cause = f"it was not done within {patience.seconds:g} s"
                    fix = "try again in a moment; `nexi searxng status` says how it is"
                    message = "SearXNG is being started or stopped by another process"
                    raise BackendError(message, code="start_busy", cause=cause, fix=fix)
                patience.pause(LOCK_POLL_S)
            yield
        finally:
            os.close(fd)

    def read(self) -> State | None:
        """The state without users that are gone."""
        with translate_os_errors("the state of SearXNG cannot be read", self.path):
            try:
                state = decode_state(self.path.read_bytes())
            except FileNotFoundError:
                return None
        return replace(state, users=tuple(u for u in state.users if self._began(u.pid) == u.started)) if state else None

    def write(self, state: State) -> None:
        with translate_os_errors("the state of SearXNG was not written", self.path):
            replace_file(self.path, msgspec.json.format(msgspec.json.encode(state)) + b"\n")

    def forget(self) -> None:
        with translate_os_errors("the state of SearXNG was not removed", self.path):
            self.path.unlink(missing_ok=True)


def process_began(pid: int) -> str:
    """When a process began, in words that no later process of that PID has; GONE where there is none."""
    if Path("/proc/self/stat").exists():
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return GONE
        # A zombie is gone; field 22 of the whole line has the ticks since boot.
        return GONE if fields[0] == "Z" else f"{boot}:{fields[19]}"
    words = ["ps", "-o", "lstart=", "-p", str(pid)]
    if sys.platform == "win32":
        words = ["powershell", "-NoProfile", "-Command", f"(Get-Process -Id {pid}).StartTime.Ticks"]
    try:
        process = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)  # noqa: S603 - words of ours
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    return " ".join(process.stdout.split())


class SettingsDraft(Struct, frozen=True):
    """Settings without their secret, which is a new one at each start."""

    text: str
    proxies: tuple[str, ...] = ()
    engine_keys: Mapping[str, str] = {}

    @property
    def digest(self) -> str:
        """What a container was started with, to tell whether it is still what is wanted."""
        return hashlib.sha256(self.fill_in("").encode()).hexdigest()[:16]

    def fill_in(self, secret: str) -> str:
        # Each engine that has a key, turned on. SearXNG leaves out what `keep_only` does not name before it reads them, so each
        # names its module too, which has the engine's name.
        engines = [
            json.dumps({"name": name, "engine": name, "api_key": key, "inactive": False, "disabled": False})
            for name, key in sorted(self.engine_keys.items())
        ]
        # YAML takes JSON for a value, so what is filled in needs no library.
        values = {
            "secret_key": json.dumps(secret),
            "proxies": json.dumps({"all://": list(self.proxies)} if self.proxies else {}),
            "engine_keys": "\n  ".join(f"- {engine}" for engine in engines),
        }

        def fill(mark: re.Match[str]) -> str:
            line = self.text[self.text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
            is_comment = line.lstrip().startswith("#")
            return mark[0] if is_comment else values.get(mark[1], mark[0])

        return _MARK.sub(fill, self.text)


def draft_settings(own: Path, proxies: tuple[str, ...], engine_keys: Mapping[str, str]) -> SettingsDraft:
    """The user's own version where there is one, else the default. Raises ConfigError."""
    try:
        text = (own if own.is_file() else Path(__file__).with_name(DEFAULT)).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{own} cannot be read", cause=cause, fix="make it UTF-8 text that you may read") from error
    if len(text) > MAX_SETTINGS_BYTES:
        raise ConfigError(f"{own} is too large", cause=f"it has more than {MAX_SETTINGS_BYTES:,} characters", fix="shorten it")
    return SettingsDraft(text, proxies, engine_keys)


def is_healthy(port: int) -> bool:
    """Whether SearXNG answers there, asked directly and never through a proxy."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_S)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class Lifecycle:
    """The container as one user sees it: join it, leave it; or keep it running, stop it, look at it."""

    def __init__(
        self,
        options: Options,
        *,
        runner: Runner | None = None,
        healthy: Callable[[int], bool] = is_healthy,
        clock: Time | None = None,
        began: Callable[[int], str] = process_began,
        pid: int | None = None,
    ) -> None:
        self.options = options
        self._runner, self._healthy, self._clock = runner or Runner(), healthy, clock or Time()
        self._file = StateFile(options.state_dir, began)
        self.state_path = self._file.path
        pid = pid or os.getpid()
        self._me = User(pid, began(pid), secrets.token_hex(4))

    def patience(self, seconds: float) -> Patience:
        return Patience(seconds, self._clock)

    def join(self, patience: Patience) -> str:
        """The URL of the container, started if need be, which lives at least until this user leaves. Raises NexiError."""
        with self._file.hold_lock(patience):
            state = self._ensure_running(self._file.read(), patience).with_user(self._me)
            self._file.write(state)
        return f"http://127.0.0.1:{state.port}"

    def keep(self, patience: Patience) -> ContainerStatus:
        """Have it run until it is stopped, used or not. Raises NexiError."""
        with self._file.hold_lock(patience):
            state = replace(self._ensure_running(self._file.read(), patience), kept=True).without_seat(self._me.seat)
            self._file.write(state)
        return _build_status(state, healthy=True)

    def leave(self) -> None:
        """Give up the seat; the last one stops the container. What fails now is cleaned up by the next user's sweep."""
        try:
            with self._file.hold_lock(self.patience(LEAVE_S)):
                state = self._file.read()
                self._save_or_stop(state and state.without_seat(self._me.seat), self.patience(CLEAN_UP_S))
        except NexiError:
            return

    def stop(self, patience: Patience, *, force: bool = False) -> ContainerStatus:
        """Keep it no longer. It ends now, or with the last process that uses it unless `force` is given. Raises NexiError."""
        with self._file.hold_lock(patience):
            state = self._file.read()
            return self._save_or_stop(state and replace(state, kept=False, users=() if force else state.users), patience)

    def status(self, patience: Patience) -> ContainerStatus:
        """How it is, after users that are gone were swept. Raises NexiError."""
        if not self.state_path.exists():
            return ContainerStatus(running=False)  # looking makes no folder
        with self._file.hold_lock(patience):
            return self._save_or_stop(self._file.read(), patience)

    # under the lock

    def _save_or_stop(self, state: State | None, patience: Patience) -> ContainerStatus:
        """Write the state down, or end a container that is no longer wanted."""
        if state is None:
            return ContainerStatus(running=False)
        engine = ContainerEngine(state.command, self._runner)
        if state.kept or state.users:
            self._file.write(state)
            if not engine.is_running(state.container, patience):
                return replace(_build_status(state, healthy=False), running=False, url="")
            return _build_status(state, healthy=bool(state.port) and self._healthy(state.port))
        result = engine.remove(state.container, patience)
        # The state is forgotten only when the container is gone, or was never there.
        if result.code and engine.is_running(state.container, patience):
            self._file.write(state)
            cause, fix = f"{engine.command} rm: {result.last_output}", f"run `{engine.command} rm -f {state.container}`"
            raise BackendError("the SearXNG container could not be stopped", code="container_failed", cause=cause, fix=fix)
        self._file.forget()
        return ContainerStatus(running=False)

    def _ensure_running(self, state: State | None, patience: Patience) -> State:
        """A state whose container answers: the one that runs, or a new one."""
        draft = draft_settings(self.options.own_settings, self.options.proxies, self.options.engine_keys)
        image = image_reference(self.options.image, self.options.tag)
        # a container with other settings is replaced as soon as it is unused
        if state and state.port and ((state.image, state.settings) == (image, draft.digest) or state.users):
            engine = ContainerEngine(state.command, self._runner)
            is_running = self._runner.has_command(state.command) and engine.is_running(state.container, patience)
            if is_running and self._comes_up(engine, state, patience.at_most(OLD_ONE_S)):
                return state
        engine = choose_engine(self._runner, patience, preferred=state.command if state else "")
        if not engine.has_image(image, patience):
            engine.pull(image, patience)
        path = self.options.mounted_file
        with translate_os_errors("the settings of SearXNG were not written", path):
            make_private_directory(path.parent)
            replace_file(path, draft.fill_in(secrets.token_hex(32)).encode())
            path.chmod(READABLE_INSIDE)
        users, kept = (state.users, state.kept) if state else ((), False)
        fresh = State(engine.command, self.options.container, image, draft.digest, users=users, kept=kept)
        return self._start_container(engine, fresh, patience)

    def _start_container(self, engine: ContainerEngine, state: State, patience: Patience) -> State:
        self._file.write(state.with_user(self._me))
        try:
            engine.remove(state.container, patience)
            engine.run(state.container, state.image, self.options.port, self.options.mounted_file, patience)
            state = replace(state, port=engine.port(state.container, patience))
            if not state.port or not self._comes_up(engine, state, patience):
                aside = self.patience(CLEAN_UP_S)
                cause = f"http://127.0.0.1:{state.port}/healthz did not answer within {patience.seconds:g} s"
                if not engine.is_running(state.container, aside):
                    cause = "its container ended"
                elif not state.port:
                    cause = "it has no port"
                logs = " | ".join(line.strip() for line in engine.logs(state.container, aside).splitlines() if line.strip())
                raise BackendError(
                    "SearXNG was started and does not answer",
                    code="not_healthy",
                    cause=f"{cause}; its log ends with: {logs[-1000:] or 'nothing'}",
                    fix="fix what its log names (often your own settings), or run `nexi searxng start`, which waits longer",
                )
        except NexiError:
            engine.remove(state.container, self.patience(CLEAN_UP_S))
            self._file.forget()
            raise
        return state

    def _comes_up(self, engine: ContainerEngine, state: State, patience: Patience) -> bool:
        """Whether it answers before patience ends; a container that died is not waited for."""
        polls = 0
        while not self._healthy(state.port):
            polls += 1
            if patience.seconds_left() <= 0 or (polls % LOOK_EVERY == 0 and not engine.is_running(state.container, patience)):
                return False
            patience.pause(POLL_S)
        return True


def _build_status(state: State, *, healthy: bool) -> ContainerStatus:
    users = tuple(dict.fromkeys(u.pid for u in state.users))
    url = f"http://127.0.0.1:{state.port}" if state.port else ""
    return ContainerStatus(True, healthy, url, state.container, state.image, state.command, users, state.kept)


class ContainerBackend:
    """The SearchBackend port over a container, started at the first search; `connect` makes the backend of a URL.

    A start that fails is a failure of this backend like any other, so that the chain goes on; it is not tried again at once.
    """

    name = "searxng"

    def __init__(
        self, lifecycle: Lifecycle, connect: Callable[[str], SearchBackend], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._lifecycle, self._connect, self._monotonic = lifecycle, connect, monotonic
        self._starting = asyncio.Lock()
        self._backend: SearchBackend | None = None
        self._failure: tuple[BackendError, float] | None = None
        self._may_have_joined = False

    async def search(self, query: Query) -> list[Hit]:
        async with self._starting:
            if self._backend is None:
                if self._failure and self._monotonic() < self._failure[1]:
                    raise _as_backend_error(self._failure[0])
                if not self._may_have_joined:
                    self._may_have_joined = True
                    atexit.register(self._lifecycle.leave)
                patience = self._lifecycle.patience(START_S)
                try:
                    url = await asyncio.to_thread(self._lifecycle.join, patience)
                except asyncio.CancelledError:
                    patience.give_up()
                    raise
                except NexiError as error:
                    failure = _as_backend_error(error)
                    self._failure = (failure, self._monotonic() + FAILED_FOR_S)
                    raise failure from error
                self._backend = self._connect(url)
            backend = self._backend
        try:
            return await backend.search(query)
        except BackendError as error:
            if error.code == LOST:
                self._backend = None  # the next search looks for the container again
            raise

    async def aclose(self) -> None:
        if self._may_have_joined:
            await asyncio.to_thread(self._lifecycle.leave)
            atexit.unregister(self._lifecycle.leave)


def _as_backend_error(error: NexiError) -> BackendError:
    return BackendError(error.message, code=error.code, cause=error.cause, fix=error.fix)
