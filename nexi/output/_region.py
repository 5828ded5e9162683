"""The region at the bottom of a terminal: the end of the answer so far, and the status line.

Imported only if there is a terminal to draw on. It is redrawn several times a second; permanent output is written above it
while drawing is paused.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from nexi.output._live import REDRAWS_PER_S, LiveDisplay
from nexi.output._markdown import render_markdown

FRAMES, PLAIN_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
ROWS_BELOW = 3  # the blank line above, the status line, and the cursor line


class StatusRegion(LiveDisplay):
    """Shows the Markdown in `body`, and the status below."""

    def __init__(self, console: Console, status: Callable[[], str], clock: Callable[[], float]) -> None:
        self.body, self.apart = "", False
        super().__init__(console)
        self._status, self._clock = status, clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _draw_tail(self.body, self.apart, console, options)
        frames = FRAMES if console.encoding.startswith("utf") else PLAIN_FRAMES
        frame = frames[int(self._clock() * REDRAWS_PER_S) % len(frames)]
        yield Text(f"{frame} {self._status()}", style="dim", no_wrap=True, overflow="ellipsis", end="")


def _draw_tail(body: str, apart: bool, console: Console, options: ConsoleOptions) -> RenderResult:
    """Draw as much of the end of the answer as fits."""
    if not body.strip():
        return
    if apart:
        yield Segment.line()
    for line in render_markdown(body).lines(console, options)[-max(1, console.size.height - ROWS_BELOW) :]:
        yield from line
        yield Segment.line()
