"""The docker or podman command: the few verbs a container's life needs, and how long a caller waits for them.

Starting a container runs in a thread, which cannot be cancelled. So everything that waits there asks a Patience: it ends with
its time, and at once when the caller gives up. Health is not asked of the engine: podman calls a container without a health
check "starting" for ever.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from nexi.errors import BackendError

__all__ = ["ContainerEngine", "Patience", "Runner", "Time", "choose_engine", "image_reference"]

COMMANDS = ("docker", "podman")
INNER_PORT = 8080
INNER_SETTINGS = "/etc/searxng/settings.yml"
SHORT_S = 30.0  # what only asks the engine something
MAX_OUTPUT = 100_000
LOG_LINES = 20
TOOK_TOO_LONG = 124
SELINUX = Path("/sys/fs/selinux/enforce")
_PORT_TAKEN = ("address already in use", "port is already allocated", "ports are not available")
INSTALL_FIX = "install docker or podman, or set SEARXNG_URL to an instance that runs elsewhere"


class Time:
    """The part of time that is waited for in a thread. Tests have another."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, given_up: threading.Event, seconds: float) -> None:
        given_up.wait(seconds)


class Patience:
    def __init__(self, seconds: float, clock: Time, given_up: threading.Event | None = None) -> None:
        self.seconds, self._clock = seconds, clock
        self._until = clock.monotonic() + seconds
        self._given_up = given_up or threading.Event()

    def seconds_left(self) -> float:
        """Seconds left; none once the caller gave up."""
        return 0.0 if self._given_up.is_set() else max(0.0, self._until - self._clock.monotonic())

    def give_up(self) -> None:
        self._given_up.set()

    def pause(self, seconds: float) -> None:
        """Wait a little, and never beyond the end."""
        self._clock.wait(self._given_up, min(seconds, self.seconds_left()))

    def at_most(self, seconds: float) -> Patience:
        """A shorter one, given up together with this one."""
        return Patience(min(seconds, self.seconds_left()), self._clock, self._given_up)


class CommandResult(Struct, frozen=True):
    code: int
    out: str = ""
    err: str = ""

    @property
    def last_output(self) -> str:
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        return " ".join(lines[-3:])[-500:] or f"exit code {self.code}"


class Runner:
    """Runs commands that are on PATH. One that takes too long is ended, and its code is TOOK_TOO_LONG."""

    def has_command(self, command: str) -> bool:
        return shutil.which(command) is not None

    def run(self, words: Sequence[str], patience: Patience) -> CommandResult:
        # Files, not pipes: what a container leaves behind in the background may keep a pipe open for ever.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                code = _wait_for_exit(words, out, err, patience)
            except OSError as error:
                return CommandResult(127, err=error.strerror or str(error))
            if code == TOOK_TOO_LONG:
                return CommandResult(code, err=f"no end after {patience.seconds:g} s. {_read_tail(err)}")
            return CommandResult(code, _read_tail(out), _read_tail(err))


def _wait_for_exit(words: Sequence[str], out: IO[bytes], err: IO[bytes], patience: Patience) -> int:
    """The exit code. In a session of its own a command does not hear the Ctrl-C that was meant for the search."""
    with subprocess.Popen(  # noqa: S603 - docker or podman with words of ours; no shell is involved
        list(words), stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    ) as process:
        while patience.seconds_left() > 0:
            try:
                return process.wait(min(0.2, patience.seconds_left()))
            except subprocess.TimeoutExpired:
                continue
        process.kill()
    return TOOK_TOO_LONG


def _read_tail(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, 2) - MAX_OUTPUT))
    return file.read().decode("utf-8", "replace")


class ContainerEngine:
    def __init__(self, command: str, runner: Runner) -> None:
        self.command, self._runner = command, runner

    def ask(self, patience: Patience, *words: str) -> CommandResult:
        """Run a command that needs no long time."""
        return self._runner.run((self.command, *words), patience.at_most(SHORT_S))

    def has_image(self, image: str, patience: Patience) -> bool:
        return self.ask(patience, "image", "inspect", "--format", "{{.Id}}", image).code == 0

    def pull(self, image: str, patience: Patience) -> None:
        result = self._runner.run((self.command, "pull", "--quiet", image), patience)
        if result.code:
            cause = f"{self.command} pull: {result.last_output}"
            fix = f"run `{self.command} pull {image}`, or correct searxng_image and SEARXNG_IMAGE_TAG"
            raise BackendError(f"the image {image} could not be fetched", code="image_missing", cause=cause, fix=fix)

    def run(self, name: str, image: str, port: int, settings: Path, patience: Patience) -> None:
        """Start the container, on loopback only. Port 0 lets the engine choose a free one."""
        mode = "ro,z" if SELINUX.exists() else "ro"
        words = (
            *(self.command, "run", "--detach", "--name", name),
            *("--publish", f"127.0.0.1:{port or ''}:{INNER_PORT}"),
            *("--volume", f"{settings}:{INNER_SETTINGS}:{mode}"),
            *("--env", "FORCE_OWNERSHIP=false"),  # a file that is mounted read-only cannot be given away
            image,
        )
        result = self._runner.run(words, patience)
        if result.code and name in result.err and "already in use" in result.err:
            self.remove(name, patience)
            result = self._runner.run(words, patience)
        if not result.code:
            return
        self.remove(name, patience)
        if any(words in result.err.lower() for words in _PORT_TAKEN):
            fix = "set searxng_port to a free port, or to 0 to have one chosen"
            raise BackendError("SearXNG's port is taken", code="port_taken", cause=result.last_output, fix=fix)
        cause, fix = f"{self.command} run: {result.last_output}", f"try `{self.command} run --rm {image}` by hand"
        raise BackendError("the SearXNG container did not start", code="container_failed", cause=cause, fix=fix)

    def is_running(self, name: str, patience: Patience) -> bool:
        result = self.ask(patience, "container", "inspect", "--format", "{{.State.Running}}", name)
        return result.code == 0 and result.out.strip() == "true"

    def port(self, name: str, patience: Patience) -> int:
        """The port on loopback; 0 where none is published."""
        result = self.ask(patience, "port", name, f"{INNER_PORT}/tcp")
        number = result.out.strip().partition("\n")[0].rpartition(":")[2]
        return int(number) if result.code == 0 and number.isdecimal() else 0

    def logs(self, name: str, patience: Patience) -> str:
        result = self.ask(patience, "logs", "--tail", str(LOG_LINES), name)
        return f"{result.out}\n{result.err}".strip() if result.code == 0 else ""

    def remove(self, name: str, patience: Patience) -> CommandResult:
        """End the container and take its nameless volumes with it; that there is none is no trouble."""
        # It has nothing to save, so it is killed: podman's `rm` alone waits ten seconds for a process that hears no signal.
        self.ask(patience, "kill", name)
        return self.ask(patience, "rm", "--force", "--volumes", name)


def choose_engine(runner: Runner, patience: Patience, *, preferred: str = "") -> ContainerEngine:
    """The first engine that answers, the preferred one before the others. Raises BackendError."""
    names = dict.fromkeys((preferred, *COMMANDS))
    engines = [ContainerEngine(name, runner) for name in names if name in COMMANDS and runner.has_command(name)]
    if not engines:
        cause = "neither docker nor podman is installed"
        raise BackendError("SearXNG cannot be started", code="no_engine", cause=cause, fix=INSTALL_FIX)
    problems = []
    for engine in engines:
        result = engine.ask(patience, "version")
        if result.code == 0:
            return engine
        problems.append(f"{engine.command}: {result.last_output}")
    fix = f"start the service of {engines[0].command} and see that you may use it, or set SEARXNG_URL"
    raise BackendError("SearXNG cannot be started", code="engine_down", cause="; ".join(problems), fix=fix)


def image_reference(image: str, tag: str) -> str:
    """The image in full: podman does not guess the registry, and a tag or digest in the name wins."""
    first, slash, _ = image.partition("/")
    has_registry = slash and ("." in first or ":" in first or first == "localhost")
    full = image if has_registry else f"docker.io/{image}" if slash else f"docker.io/library/{image}"
    return full if "@" in full or ":" in full.rpartition("/")[2] else f"{full}:{tag}"
