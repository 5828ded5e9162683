"""Turns errors and signals into messages and exit codes: the one place where the command line catches."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Self

import click

from nexi import app
from nexi.cli.flags import JSON_ERRORS
from nexi.errors import NexiError
from nexi.output import print_failure

EXIT_FAILURE, EXIT_USAGE, EXIT_NOT_VERIFIED, EXIT_NOT_ANSWERED, EXIT_CONTRADICTED = 1, 2, 5, 6, 7
EXIT_CANCELLED, EXIT_TERMINATED = 130, 143


def exit_unless_answered(result: app.RunResult) -> None:
    """Exit with a code of its own where the pages do not answer the question."""
    if result.answer.answered == "no":
        raise SystemExit(EXIT_NOT_ANSWERED)


@contextmanager
def report_errors(*, as_json: bool | None = None) -> Iterator[None]:
    """Print an error and exit with its code; as JSON if the command that runs has --json, unless that is said here."""
    try:
        yield
    except NexiError as error:
        print_failure(error, as_json=click.get_current_context().meta.get(JSON_ERRORS, False) if as_json is None else as_json)
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(EXIT_CANCELLED) from None
    except BrokenPipeError:
        # exit without Python's complaint about flushing to a closed pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None


class Interrupts:
    """Handles Ctrl-C and SIGTERM during runs: the first Ctrl-C asks for an answer, a second one and SIGTERM cancel."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.code = 0
        self._as_json = as_json

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not self.code:
            return
        if isinstance(error, NexiError):
            print_failure(error, as_json=self._as_json)
        raise SystemExit(self.code) from None

    @contextmanager
    def stop_on_signal(self, stop: Callable[[], None]) -> Iterator[None]:
        """Route signals to the run of the calling task; outside the main thread leave them alone."""
        import asyncio

        task = asyncio.current_task()
        self.code = 0  # earlier signals belong to earlier runs

        def interrupt() -> None:
            if not self.code:
                self.code = EXIT_CANCELLED
                return stop()
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)  # a third Ctrl-C is an ordinary one
            return cancel(EXIT_CANCELLED)

        def cancel(code: int) -> None:
            self.code = code
            if task:
                task.cancel()

        with handle_signal(signal.SIGINT, interrupt), handle_signal(signal.SIGTERM, partial(cancel, EXIT_TERMINATED)):
            yield


@contextmanager
def handle_signal(number: int, act: Callable[[], object]) -> Iterator[None]:
    """Call `act` on a signal inside the block, instead of its usual handler."""
    import asyncio

    loop, before = asyncio.get_running_loop(), signal.getsignal(number)
    try:
        loop.add_signal_handler(number, act)
    except (NotImplementedError, RuntimeError, ValueError):  # another system, or not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(number)
        signal.signal(number, before)
