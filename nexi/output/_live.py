"""A display at the bottom of a terminal that is redrawn several times a second."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

REDRAWS_PER_S = 8
ROWS_BELOW = 3  # the blank line above, the status line, and the cursor line


class LiveDisplay(ABC):
    """Redraws itself in place; permanent output is written above it, inside `pause_drawing`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._body, self._is_apart = "", False

    def start(self) -> None:
        if self._live is None:
            from rich.live import Live

            self._live = Live(
                self,
                console=self._console,
                transient=True,
                refresh_per_second=REDRAWS_PER_S,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start(refresh=True)

    def end(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    @contextmanager
    def pause_drawing(self) -> Iterator[None]:
        """Remove the display while permanent output is written."""
        was_there = self._live is not None
        self.end()
        yield
        if was_there:
            self.start()

    def show_tail(self, text: str, *, apart: bool = False) -> None:
        """Show the unfinished end of the answer in Markdown; `apart` puts a blank line above it."""
        self._body, self._is_apart = text, apart

    def draw_tail(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        from nexi.output._markdown import render_markdown

        if not self._body.strip():
            return
        if self._is_apart:
            yield Segment.line()
        for line in render_markdown(self._body).lines(console, options)[-max(1, console.size.height - ROWS_BELOW) :]:
            yield from line
            yield Segment.line()

    @abstractmethod
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the display."""
