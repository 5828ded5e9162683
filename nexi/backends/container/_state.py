"""Who uses the container: a small file that all processes of the machine share, and the lock around it.

A user is a process by its PID and the moment it began, since a PID alone is soon another process's; one process may hold
several seats.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.backends.container._patience import Patience
from nexi.errors import BackendError
from nexi.files import PRIVATE_FILE, make_private_directory, replace_file, take_lock, translate_os_errors

__all__ = ["State", "StateFile", "User", "process_began"]

SCHEMA = "nexi-searxng-1"
FILE = "searxng-singleton.json"
LOCK = "searxng-singleton.lock"
POLL_S = 0.1
UNKNOWN = "unknown"
GONE = ""


class User(Struct, frozen=True):
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
                patience.pause(POLL_S)
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
