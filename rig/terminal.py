"""A real terminal for the real command: a pseudo-terminal, what is typed into it, and what came out."""

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

DEADLINE_S = 30.0
ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>()][0-9A-B]?")
CTRL_C, CTRL_D, ALT_ENTER, ENTER, TAB, UP = "\x03", "\x04", "\x1b\r", "\r", "\t", "\x1b[A"


class Terminal:
    """A command under way in a terminal."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.process, self._fd = process, fd
        self.raw = ""
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
        return bool(piece)


@contextmanager
def terminal(
    arguments: Sequence[str], env: Mapping[str, str], *, columns: int = 80, rows: int = 24, separate: Sequence[str] = ()
) -> Iterator[Terminal]:
    """`python -m nexi` in a terminal of that size; streams named in `separate` are pipes that nobody reads."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    streams = {name: subprocess.PIPE if name in separate else slave for name in ("stdin", "stdout", "stderr")}
    process = subprocess.Popen(
        [sys.executable, "-m", "nexi", *arguments],
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color", **env},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) if "stdin" not in separate else None,
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
