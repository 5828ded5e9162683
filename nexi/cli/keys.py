"""Hides keys typed while a search runs, which would land in the status region. They wait for the next prompt.

Ctrl-C and its like stay signals, and the terminal state is restored on fatal ones.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from nexi.output import takes_colors

LOCAL_MODES = 3  # the place of the flags with ECHO among the attributes of a terminal
SHOW_CURSOR = b"\x1b[?25h"
FORWARDED_SIGNALS = ("SIGHUP", "SIGQUIT", "SIGTSTP")  # without another handler during a search


class KeyEcho:
    """Whether typed keys are shown while a run goes on: here always, on a terminal only while the user is prompted."""

    @contextmanager
    def show_keys(self) -> Iterator[None]:
        yield


@contextmanager
def hide_keys() -> Iterator[KeyEcho]:
    """Show no keys inside the block; does nothing without a terminal or outside the main thread."""
    fd = _terminal_fd()
    if fd is None:
        yield KeyEcho()
        return
    with _TerminalEcho(fd) as echo:
        yield echo


def _terminal_fd() -> int | None:
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return None
    for stream in (sys.stderr, sys.stdout):
        with suppress(OSError, ValueError):
            if stream is not None and os.isatty(stream.fileno()):
                return stream.fileno()
    return None


class _TerminalEcho(KeyEcho):
    """Turns the echo of one terminal off inside the block."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._disable_echo()
        for number in (getattr(signal, name) for name in FORWARDED_SIGNALS if self._before):
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, self._forward_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._restore_echo()

    @contextmanager
    def show_keys(self) -> Iterator[None]:
        self._restore_echo()
        try:
            yield
        finally:
            self._disable_echo()

    def _disable_echo(self) -> None:
        """Turn echo off, unless in the background: the system would stop the job for changing its terminal."""
        import termios

        with suppress(OSError, termios.error):
            if self._is_foreground():
                attributes = termios.tcgetattr(self._fd)
                self._before = self._before or [*attributes]
                attributes[LOCAL_MODES] &= ~termios.ECHO
                termios.tcsetattr(self._fd, termios.TCSANOW, attributes)

    def _restore_echo(self) -> None:
        if self._before is None:
            return
        import termios

        with suppress(OSError, termios.error):  # the terminal may be gone
            if self._is_foreground():
                termios.tcsetattr(self._fd, termios.TCSANOW, self._before)

    def _is_foreground(self) -> bool:
        return os.tcgetpgrp(self._fd) == os.getpgrp()

    def _forward_signal(self, number: int, _: object) -> None:
        """Restore the terminal, then let the signal act; after SIGTSTP the search continues here."""
        self._restore_echo()
        with suppress(OSError):  # the terminal may be gone
            if takes_colors(sys.stderr) and self._is_foreground():
                os.write(self._fd, SHOW_CURSOR)  # the status line hid it and cannot show it again
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._forward_signal)
        self._disable_echo()
