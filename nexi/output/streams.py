"""The two streams: what may be written on them, and how.

Everything nexi says passes through `write`, so nothing here is harmful to a terminal, nothing breaks an encoding, and a reader
who went away is noticed once. Whether a stream takes colours is decided here and nowhere else.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from nexi.errors import StoreError
from nexi.output.controls import clean_text

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
    write_raw(clean_text(text), sys.stdout if stream is None else stream)


def write_raw(text: str, stream: Any) -> None:
    """Write what is known to be harmless. Raises StoreError for data that could not be written; what is no data may be lost."""
    if stream is None:  # closed before we began
        return
    try:
        _write_encoded(text, stream)
    except OSError as error:
        _redirect_to_null(stream)
        if stream is sys.stderr:
            return
        if isinstance(error, BrokenPipeError):
            raise
        raise StoreError(
            "the output could not be written", cause=error.strerror or str(error), fix="nexi --prev shows the latest answer"
        ) from error


def _write_encoded(text: str, stream: Any) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


def _redirect_to_null(stream: Any) -> None:
    """Let Python flush at its end what could not be written, without complaint."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _StreamProxy:
    """A stream as rich wants it: through `write_raw`."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _stream(self) -> Any:
        return getattr(sys, self._name)

    @property
    def encoding(self) -> str:
        return str(getattr(self._stream, "encoding", "") or "utf-8")

    def write(self, text: str) -> int:
        write_raw(text, self._stream)
        return len(text)

    def flush(self) -> None:
        """Every write is flushed."""

    def isatty(self) -> bool:
        return is_tty(self._stream)

    def fileno(self) -> int:
        return int(self._stream.fileno())


def open_console(name: str) -> Console:
    """A console on `stdout` or `stderr`. It makes no links and reads no markup out of text."""
    from rich.console import Console
    from rich.theme import Theme

    theme = Theme({"markdown.code": "bold cyan"})  # rich puts code on black, which light terminals are not
    wire: Any = _StreamProxy(name)
    return Console(file=wire, highlight=False, markup=False, emoji=False, theme=theme)
