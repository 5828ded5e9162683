"""One run at the terminal: the config and the request that the flags stand for, and a screen that follows the run."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from nexi import app, output
from nexi.app.folders import with_project
from nexi.cli.keys import KeyEcho, hide_keys
from nexi.cli.templates import system_prompt_of
from nexi.config import EXTRACTIVE, Config, load_config
from nexi.errors import ConfigError, StoppedError
from nexi.events import Event
from nexi.output import is_tty, print_note, print_warning, set_plain_mode, write

if TYPE_CHECKING:
    from nexi.app.request import RunMode
    from nexi.app.research_state import ResearchState
    from nexi.cli.exits import Interrupts
    from nexi.cli.flags import AskFlags, OutputFlags

T = TypeVar("T")
MAX_STDIN_BYTES = 4_000_000
MAX_PIPED_CHARS = 50_000
PIPE_PAUSE_S = 2.0


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


def answer_screen(flags: OutputFlags, *, stream: bool = True) -> output.Screen:
    return output.Screen(verbose=flags.verbose, quiet=flags.as_json, stream=stream and not flags.no_stream, usage=flags.usage)


def research_screen(flags: OutputFlags, state: ResearchState) -> output.Screen:
    """The screen of a research run: a panel of its researchers, and always a summary."""
    from nexi.output.panel import panel_for

    panel = panel_for(flags.verbose, flags.as_json, state, time.monotonic)
    return output.Screen(verbose=flags.verbose, quiet=flags.as_json, stream=not flags.no_stream, usage=True, progress=panel)


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
