"""A real terminal for the real command: a pseudo-terminal, what is typed into it, what came out, and what it looks like.

`terminal([...], env)` runs `python -m nexi`, or another module that does; `Picture` knows as much of a terminal's behaviour
as nexi and its prompt use.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

DEADLINE_S = 120.0  # for a machine under load
PARTS = re.compile(r"\x1b\[(?P<numbers>[0-9;]*)(?P<letter>[A-Za-z])|\x1b\[\?[0-9]+[hl]|(?P<text>[^\x1b])", re.DOTALL)
ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>()][0-9A-B]?")
CTRL_C, CTRL_D, ALT_ENTER, ENTER, TAB, UP = "\x03", "\x04", "\x1b\r", "\r", "\t", "\x1b[A"


class Terminal:
    """A command under way in a terminal."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.process, self._fd = process, fd
        self.raw = ""
        self.moments: list[tuple[float, int]] = []  # when how much of it had come
        self._seen = 0

    @property
    def text(self) -> str:
        """Everything so far without escape sequences."""
        return ESCAPE.sub("", self.raw).replace("\r\n", "\n").replace("\r", "")

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def expect(self, wanted: str) -> str:
        """Read on until this text has come after what was expected last; gives what came until then."""
        ends = time.monotonic() + DEADLINE_S
        while (at := self.text.find(wanted, self._seen)) < 0:
            assert self._read(ends - time.monotonic()), f"{wanted!r} did not come after:\n{self.text[self._seen :]}"
        before, self._seen = self.text[self._seen : at], at + len(wanted)
        return before

    def ending(self) -> int:
        """Read to the end; the exit code."""
        ends = time.monotonic() + DEADLINE_S
        while self._read(ends - time.monotonic()):
            pass
        return self.process.wait(DEADLINE_S)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def echoes(self) -> bool:
        """Whether the terminal is as a shell wants it."""
        return bool(termios.tcgetattr(self._fd)[3] & termios.ECHO)

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self._fd], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self._fd, 65536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self.raw += piece.decode("utf-8", "replace")
        self.moments.append((time.monotonic(), len(self.raw)))
        return bool(piece)


class Picture:
    """What a terminal shows after all that was written to it: rows of characters, each with its style."""

    def __init__(self, raw: str) -> None:
        self._rows: list[list[tuple[str, str]]] = [[]]
        self._row = self._column = 0
        self._style = ""
        for part in PARTS.finditer(raw):
            if part["letter"]:
                self._obey(part["letter"], part["numbers"])
            elif part["text"]:
                self._show(part["text"])

    @property
    def text(self) -> str:
        """Without styles, and without blanks at the ends of lines."""
        return "\n".join("".join(c for c, _ in row).rstrip() for row in self._rows).strip("\n")

    @property
    def styled(self) -> str:
        """With styles, as escape sequences."""
        return "\n".join("".join(map(_run, groupby(row, key=itemgetter(1)))) for row in self._rows)

    def _show(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._row += 1
            self._rows += [[] for _ in range(self._row + 1 - len(self._rows))]
        else:
            row = self._rows[self._row]
            row += [(" ", "")] * (self._column + 1 - len(row))
            row[self._column] = (character, self._style)
            self._column += 1

    def _obey(self, letter: str, numbers: str) -> None:
        count = int(numbers or 1) if ";" not in numbers else 1
        if letter == "m":
            self._style = "" if numbers in ("", "0") else numbers.removeprefix("0;")
        elif letter == "A":
            self._row = max(0, self._row - count)
        elif letter in "CD":
            self._column = max(0, self._column + (count if letter == "C" else -count))
        elif letter == "K":
            self._rows[self._row] = []
        elif letter == "J":
            del self._rows[self._row][self._column :], self._rows[self._row + 1 :]


def _run(run: tuple[str, Iterable[tuple[str, str]]]) -> str:
    """Neighbours of one style."""
    text = "".join(character for character, _ in run[1])
    return f"\x1b[{run[0]}m{text}\x1b[0m" if run[0] else text


def _as_a_login_does(*, owns_terminal: bool) -> None:
    """The terminal is the child's own, and no signal is ignored because whoever runs us ignores it."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if owns_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def terminal(
    arguments: Sequence[str],
    env: Mapping[str, str],
    *,
    columns: int = 80,
    rows: int = 24,
    separate: Sequence[str] = (),
    module: str = "nexi",
    cwd: str | None = None,
) -> Iterator[Terminal]:
    """`python -m nexi` in a terminal of that size; streams named in `separate` are pipes that nobody reads."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    streams: dict[str, Any] = {name: subprocess.PIPE if name in separate else slave for name in ("stdin", "stdout", "stderr")}
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color", **env},
        cwd=cwd,
        start_new_session=True,
        preexec_fn=lambda: _as_a_login_does(owns_terminal="stdin" not in separate),
        **streams,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
        os.close(master)
