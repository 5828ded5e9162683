"""One run at the terminal: the config and the request that the flags stand for, and a screen that follows the run.

Keys typed while a run goes on would land in the status region: they are hidden and wait for the next prompt. Ctrl-C and its
like stay signals, and the terminal state is restored on fatal ones.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nexi import app, output
from nexi.app.folders import with_project
from nexi.cli.templates import system_prompt_of
from nexi.config import EXTRACTIVE, Config, load_config
from nexi.errors import ConfigError, StoppedError
from nexi.events import Event
from nexi.output import is_tty, print_note, print_warning, set_plain_mode, takes_colors, write

if TYPE_CHECKING:
    from nexi.app.request import RunMode
    from nexi.app.research_state import ResearchState
    from nexi.cli.exits import Interrupts
    from nexi.cli.flags import AskFlags, OutputFlags

T = TypeVar("T")
MAX_STDIN_BYTES = 4_000_000
MAX_PIPED_CHARS = 50_000
PIPE_PAUSE_S = 2.0
LOCAL_MODES = 3  # the place of the flags with ECHO among the attributes of a terminal
SHOW_CURSOR = b"\x1b[?25h"
FORWARDED_SIGNALS = ("SIGHUP", "SIGQUIT", "SIGTSTP")  # without another handler during a search


def run_with_nexi(work: Callable[[app.Nexi], Coroutine[Any, Any, T]], config: Config | None = None) -> T:
    """Open nexi with this config, or the user's own, do the work and close it."""
    import asyncio  # not above: `nexi spaces --help` and its like need no event loop

    async def run() -> T:
        async with app.Nexi(config or load_config()) as nexi:
            return await work(nexi)

    return asyncio.run(run())


def read_question(typed: str) -> str | None:
    """The question as it was typed, with what a pipe adds to it, or all of stdin; None at a terminal without one."""
    if not typed and is_tty(sys.stdin):
        return None
    try:
        text = _read_piped_text() if typed else sys.stdin.buffer.read(MAX_STDIN_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, AttributeError):  # closed, or no real file
        return typed
    if not typed or not text:
        return typed or text
    excerpt = text[:MAX_PIPED_CHARS]
    whole = f"the first {len(excerpt):,} of {len(text):,}" if len(text) > len(excerpt) else f"{len(excerpt):,}"
    write(f"Added {whole} characters from stdin to the question\n", sys.stderr)
    return f"{typed}\n\n{excerpt}"


def _read_piped_text() -> str:
    """Read what waits in a pipe on stdin, and what follows within PIPE_PAUSE_S."""
    # an open, empty pipe, or anything but a pipe, was not meant for nexi
    import select

    data, wait_s, fd = b"", 0.0, sys.stdin.fileno()
    if os.name == "nt" or not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return ""
    while len(data) < MAX_STDIN_BYTES and select.select([fd], [], [], wait_s)[0]:
        piece = os.read(fd, 65536)
        if not piece:
            break
        data += piece
        wait_s = PIPE_PAUSE_S
    return data.decode("utf-8", "replace").strip()


def load_terminal_config(flags: OutputFlags) -> Config:
    """Load the config for the current folder, print its notes, and set plain mode for what is written from now on."""
    set_plain_mode(flags.plain)
    config = with_project(load_config())
    set_plain_mode(flags.plain or not config.color)
    for note in config.notes:
        print_warning(note)
    return config.override(stream=False) if flags.no_stream else config


def run_request(flags: AskFlags, question: str, mode: RunMode = "search") -> app.RunRequest:
    if flags.local and flags.web:
        raise ConfigError("--local and --web contradict each other", fix="leave one of them out")
    return app.RunRequest(
        question,
        mode=mode,
        effort=flags.effort,
        limits=app.RunLimits(**flags.limits._asdict()),
        query=flags.filters.query(),
        model=flags.model,
        scope="local" if flags.local else "web" if flags.web else "both",
        system_prompt=system_prompt_of(flags),
        attachments=flags.files,
        continues=app.LAST_RUN if flags.go_on else "",
        depth=flags.depth,
        length=flags.length,
        strict=True if flags.strict else None,
        space=flags.space,
        door="cli",
    )


def open_screen(flags: OutputFlags, *, stream: bool = True, research: ResearchState | None = None) -> output.Screen:
    """The screen of a run; that of research has a panel of its researchers, and always a summary."""
    streams = stream and not flags.no_stream
    return output.Screen(verbose=flags.verbose, quiet=flags.as_json, stream=streams, usage=flags.usage, research=research)


async def follow_run(
    opening: app.RunOpening,
    screen: output.Screen,
    interrupts: Interrupts,
    on_event: Callable[[app.Run, Event, KeyEcho], Awaitable[None]] | None = None,
) -> app.RunResult:
    """Show a run until it ends or a signal ends it; `on_event` may prompt the user after an event."""
    import asyncio

    async def show(event: Event) -> None:
        screen.show(event)
        if on_event:
            await on_event(run, event, keys)

    async with opening as run:
        with interrupts.stop_on_signal(run.stop), hide_keys() as keys:
            try:
                await run.drive(show)
            except asyncio.CancelledError:
                if run.request.keeps_log:
                    print_note(f"Stopped. Continue it with: nexi resume {run.id}")
                raise
            finally:
                screen.end()
        try:
            return run.result()
        except StoppedError as error:
            note = f"Continue it with: nexi resume {run.id}" if run.request.keeps_log else ""
            raise StoppedError(error.message, fix=note) from error


def warn_without_model(config: Config, model: str = "") -> None:
    """Print a hint if no model is configured, unless the built-in one was asked for."""
    config = config.override(model=model) if model else config
    if config.endpoint("answer").is_extractive and config.model != EXTRACTIVE:
        print_note("No model is configured: the built-in extractive model answers with passages. Add one: nexi config setup")


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
