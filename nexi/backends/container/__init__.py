"""One SearXNG container for all processes of this machine that share a NEXI_HOME: started when needed, gone with its last user.

Everything here blocks and runs in a thread where a loop is around. A start writes down what it intends before it does it, so
that a crash at any moment leaves something the next one can clean up; the lock is held from the first look to the last word,
so that two who start at once make one container.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from nexi.backends.container import settings
from nexi.backends.container._patience import Patience, Time
from nexi.backends.container._state import State, StateFile, User, process_began
from nexi.backends.container.engine import ContainerEngine, Runner, choose_engine, image_reference
from nexi.errors import BackendError, NexiError

POLL_S = 0.25
LOOK_EVERY = 4  # health polls between two looks at whether the container still runs
OLD_ONE_S = 15.0  # how long a container that already runs may take to answer
CLEAN_UP_S = 30.0
LEAVE_S = 10.0
PROBE_S = 2.0


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
        draft = settings.draft_settings(self.options.own_settings, self.options.proxies, self.options.engine_keys)
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
        settings.write_settings(draft, self.options.mounted_file)
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
