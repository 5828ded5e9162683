"""Errors and signals become messages and exit codes: the one place where this door catches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, Self

from nexi.errors import NexiError

EXIT_FAILURE, EXIT_USAGE, EXIT_CANCELLED, EXIT_TERMINATED = 1, 2, 130, 143


class report_errors:  # noqa: N801 - read as a statement: with failing_politely()
    """Turns errors into message and exit code: the one place where a door catches."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._as_json = as_json

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NexiError):
            from nexi.output import print_failure

            print_failure(error, as_json=self._as_json)
            raise SystemExit(error.exit_code) from None
        if isinstance(error, KeyboardInterrupt):
            raise SystemExit(EXIT_CANCELLED) from None
        if isinstance(error, BrokenPipeError):
            _leave_quietly()


class Interrupts:
    """Ctrl-C and SIGTERM while runs go on. The first Ctrl-C asks for the answer from what was read; a second one cancels,
    and so does SIGTERM. Used as a block around it all, it tells the shell; `code` is 0 while no signal came."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.code = 0
        self._as_json = as_json

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not self.code:
            return
        if isinstance(error, NexiError):
            from nexi.output import print_failure

            print_failure(error, as_json=self._as_json)
        raise SystemExit(self.code) from None

    @contextmanager
    def stop_on_signal(self, stop: Callable[[], None]) -> Iterator[None]:
        """Let signals reach the run of the calling task; elsewhere than in a main thread they stay as they were."""
        import asyncio
        import signal

        loop, task, before = asyncio.get_running_loop(), asyncio.current_task(), signal.getsignal(signal.SIGINT)
        self.code = 0  # what came before had its answer

        def interrupt() -> None:
            if not self.code:
                self.code = EXIT_CANCELLED
                return stop()
            loop.remove_signal_handler(signal.SIGINT)  # a third Ctrl-C is an ordinary one
            return cancel(EXIT_CANCELLED)

        def cancel(code: int) -> None:
            self.code = code
            if task:
                task.cancel()

        try:
            loop.add_signal_handler(signal.SIGINT, interrupt)
            loop.add_signal_handler(signal.SIGTERM, cancel, EXIT_TERMINATED)
        except (NotImplementedError, RuntimeError, ValueError):
            yield
            return
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)


def _leave_quietly() -> NoReturn:
    """The reader of our output went away; Python must not complain while it flushes."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0) from None
