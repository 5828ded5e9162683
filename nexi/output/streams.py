"""The two streams: what may be written on them, and how.

Everything nexi says passes through `write`, so nothing here is harmful to a terminal, nothing breaks an encoding, and a reader
who went away is noticed once. Whether a stream takes colours is decided here and nowhere else.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from nexi.output.controls import clean

if TYPE_CHECKING:
    from rich.console import Console

_plain_mode: ContextVar[bool] = ContextVar("nexi_plain_mode", default=False)


def is_tty(stream: Any = None) -> bool:
    """Whether a stream is a terminal; stdout unless another is named."""
    stream = sys.stdout if stream is None else stream
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # no stream at all, or a closed one
        return False


def set_plain_mode(plain: bool) -> None:
    """No colours and no emoji from here on, in this context."""
    _plain_mode.set(plain)


def is_plain(plain: bool | None = None) -> bool:
    """Whether nothing but text may be written, even to a terminal."""
    if plain is not None:
        return plain
    from nexi.config import wants_color

    return _plain_mode.get() or not wants_color()


def takes_colors(stream: Any, plain: bool | None = None) -> bool:
    return is_tty(stream) and not is_plain(plain)


def write(text: str, stream: Any = None) -> None:
    """Write text whatever the stream's encoding can bear; a reader that went away ends the program quietly."""
    put(clean(text), sys.stdout if stream is None else stream)


def put(text: str, stream: Any) -> None:
    """Write what is known to be harmless. A stream that was closed before we began takes nothing."""
    if stream is None:
        return
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


class Wire:
    """A stream as rich wants it: through `put`. On stderr a reader who went away does not matter."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _stream(self) -> Any:
        return getattr(sys, self._name)

    @property
    def encoding(self) -> str:
        return str(getattr(self._stream, "encoding", "") or "utf-8")

    def write(self, text: str) -> int:
        try:
            put(text, self._stream)
        except OSError:
            if self._name == "stdout":
                raise
        return len(text)

    def flush(self) -> None:
        """Every write is flushed."""

    def isatty(self) -> bool:
        return is_tty(self._stream)

    def fileno(self) -> int:
        return int(self._stream.fileno())


def console(name: str) -> Console:
    """A console on `stdout` or `stderr`. It makes no links and reads no markup out of text."""
    from rich.console import Console
    from rich.theme import Theme

    theme = Theme({"markdown.code": "bold cyan"})  # rich puts code on black, which light terminals are not
    wire: Any = Wire(name)
    return Console(file=wire, highlight=False, markup=False, emoji=False, theme=theme)
