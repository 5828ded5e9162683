"""A container engine in memory: what docker and podman answer, as they were seen to answer it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nexi.backends.container.engine import TOOK_TOO_LONG, CommandResult, Patience, Runner, Time

IMAGE = "docker.io/searxng/searxng:latest"


class FakeTime(Time):
    """Waiting moves it on at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def wait(self, given_up: threading.Event, seconds: float) -> None:
        self.now += max(seconds, 0.001)


@dataclass
class Container:
    words: tuple[str, ...]
    port: int
    running: bool = True


@dataclass
class FakeEngine(Runner):
    """Runner and engine in one; a test changes its fields to make it fail."""

    commands: tuple[str, ...] = ("docker",)
    down: dict[str, str] = field(default_factory=dict)
    images: set[str] = field(default_factory=lambda: {IMAGE})
    pull_fails: str = ""
    run_fails: list[str] = field(default_factory=list)
    dies: bool = False
    healthy: bool = True
    log: str = ""
    containers: dict[str, Container] = field(default_factory=dict)
    said: list[tuple[str, ...]] = field(default_factory=list)
    next_port: int = 40001

    def has_command(self, command: str) -> bool:
        return command in self.commands

    def run(self, words: Sequence[str], patience: Patience) -> CommandResult:
        command, *rest = words
        self.said.append(tuple(words))
        if patience.seconds_left() <= 0:
            return CommandResult(TOOK_TOO_LONG, err="too late")
        if command in self.down:
            return CommandResult(1, err=self.down[command])
        verb = "inspect" if rest[0] == "container" else rest[0]
        answer: CommandResult = getattr(self, f"_{verb}")(rest)
        return answer

    def answers(self, port: int) -> bool:
        return self.healthy and any(c.running and c.port == port for c in self.containers.values())

    @property
    def runs(self) -> int:
        return sum(1 for words in self.said if words[1] == "run")

    def _version(self, words: list[str]) -> CommandResult:
        return CommandResult(0, "27.0\n")

    def _image(self, words: list[str]) -> CommandResult:
        return CommandResult(0, "sha256:1\n") if words[-1] in self.images else CommandResult(1, err="Error: No such image")

    def _pull(self, words: list[str]) -> CommandResult:
        if self.pull_fails:
            return CommandResult(1, err=self.pull_fails)
        self.images.add(words[-1])
        return CommandResult(0)

    def _run(self, words: list[str]) -> CommandResult:
        name = words[words.index("--name") + 1]
        if self.run_fails:
            return CommandResult(125, err=self.run_fails.pop(0))
        if name in self.containers:
            return CommandResult(125, err=f'Error: the container name "{name}" is already in use')
        asked = words[words.index("--publish") + 1].split(":")[1]
        port = int(asked) if asked else self.next_port
        self.next_port += 1
        self.containers[name] = Container(tuple(words), port, running=not self.dies)
        return CommandResult(0, "4f1c\n")

    def _inspect(self, words: list[str]) -> CommandResult:
        found = self.containers.get(words[-1])
        return CommandResult(0, f"{str(found.running).lower()}\n") if found else CommandResult(1, err="no such container")

    def _port(self, words: list[str]) -> CommandResult:
        found = self.containers.get(words[1])
        return CommandResult(0, f"127.0.0.1:{found.port}\n") if found and found.running else CommandResult(1, err="not running")

    def _logs(self, words: list[str]) -> CommandResult:
        return CommandResult(0, self.log)

    def _kill(self, words: list[str]) -> CommandResult:
        found = self.containers.get(words[-1])
        if found:
            found.running = False
        return CommandResult(0 if found else 1)

    def _rm(self, words: list[str]) -> CommandResult:
        return CommandResult(0) if self.containers.pop(words[-1], None) else CommandResult(1, err="no such container")

    def mounted(self) -> str:
        """The settings that the one container sees."""
        (only,) = self.containers.values()
        return Path(only.words[only.words.index("--volume") + 1].partition(":")[0]).read_text(encoding="utf-8")
