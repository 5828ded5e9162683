"""The region at the bottom of a terminal that comes and goes: the end of what is being written, and the status line.

Imported only where there is a terminal to draw on. Everything in it is drawn anew several times a second; what shall stay is
written above it, while it is away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from nexi.output.markdown import rendered

FRAMES, PLAIN_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
PER_SECOND = 8
ROOM_BELOW = 3  # the blank line above, the status line, and the line the cursor rests on


class Region:
    """Shows `body`, which is Markdown, and under it what `status` says."""

    def __init__(self, console: Console, status: Callable[[], str], clock: Callable[[], float]) -> None:
        self.body, self.apart = "", False
        self._console, self._status, self._clock = console, status, clock
        self._live: Live | None = None

    def start(self) -> None:
        if self._live is None:
            self._live = Live(
                self,
                console=self._console,
                transient=True,
                refresh_per_second=PER_SECOND,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start(refresh=True)

    def stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Out of the way while something is written that stays."""
        was_there = self._live is not None
        self.stop()
        yield
        if was_there:
            self.start()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.body.strip():
            if self.apart:
                yield Segment.line()
            for line in rendered(self.body).lines(console, options)[-max(1, console.size.height - ROOM_BELOW) :]:
                yield from line
                yield Segment.line()
        frames = FRAMES if console.encoding.startswith("utf") else PLAIN_FRAMES
        frame = frames[int(self._clock() * PER_SECOND) % len(frames)]
        yield Text(f"{frame} {self._status()}", style="dim", no_wrap=True, overflow="ellipsis", end="")
