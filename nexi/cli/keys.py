"""Keys typed while a search runs are not shown: they would land in the status region. They wait for the next prompt.

Above sits whoever follows a run; below is termios, which only some systems have. What is drawn, and what the keys mean,
is not known here: Ctrl-C and its like stay signals, and whoever ends the process by one finds the terminal as it was.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

LOCAL_MODES = 3  # the place of the flags with ECHO among the attributes of a terminal
SHOW_CURSOR = b"\x1b[?25h"
PASSED_ON = ("SIGHUP", "SIGQUIT", "SIGTSTP")  # those that nobody else hears during a search


class Keys:
    """What is typed while a run goes on: not shown, except where somebody is asked something."""

    @contextmanager
    def seen(self) -> Iterator[None]:
        """Show keys inside the block."""
        yield


@contextmanager
def unseen() -> Iterator[Keys]:
    """Show no keys inside the block; without a terminal, or in a thread that hears no signals, nothing happens."""
    fd = _terminal()
    if fd is None:
        yield Keys()
        return
    with _Echo(fd) as echo:
        yield echo


def _terminal() -> int | None:
    """The terminal that something is drawn on."""
    import threading

    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return None
    for stream in (sys.stderr, sys.stdout):
        try:
            if stream is not None and os.isatty(stream.fileno()):
                return stream.fileno()
        except (OSError, ValueError):
            continue
    return None


class _Echo(Keys):
    """The echo of one terminal, off inside the block."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._hide()
        if self._before:
            self._listen()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._show()

    @contextmanager
    def seen(self) -> Iterator[None]:
        self._show()
        try:
            yield
        finally:
            self._hide()

    def _hide(self) -> None:
        """A job in the background has no say over its terminal: it would be stopped for trying."""
        import termios

        try:
            if not self._is_in_front():
                return
            attributes = termios.tcgetattr(self._fd)
            self._before = self._before or [*attributes]
            attributes[LOCAL_MODES] &= ~termios.ECHO
            termios.tcsetattr(self._fd, termios.TCSANOW, attributes)
        except (OSError, termios.error):
            return

    def _show(self) -> None:
        if self._before is None:
            return
        import termios

        try:
            if self._is_in_front():
                termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
        except (OSError, termios.error):
            return  # the terminal is gone

    def _bring_back_the_cursor(self) -> None:
        """A status line that is redrawn hides it, and has no chance to show it again."""
        from nexi.output import takes_colors

        try:
            if takes_colors(sys.stderr) and self._is_in_front():
                os.write(self._fd, SHOW_CURSOR)
        except OSError:
            return  # the terminal is gone

    def _is_in_front(self) -> bool:
        return os.tcgetpgrp(self._fd) == os.getpgrp()

    def _listen(self) -> None:
        for number in (getattr(signal, name) for name in PASSED_ON):
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, self._pass_on)

    def _pass_on(self, number: int, _: object) -> None:
        """Let the signal do what it does, with the terminal as it was; after a stop the search goes on here."""
        self._show()
        self._bring_back_the_cursor()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._pass_on)
        self._hide()
