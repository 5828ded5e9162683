"""Writes to stdout and stderr, and decides whether a stream takes colours.

All output passes through `write`, which removes control sequences, handles encodings, and notices a closed pipe.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from nexi.errors import StoreError
from nexi.output.wrapping import wrap_text
from nexi.text.controls import clean_text

if TYPE_CHECKING:
    from rich.console import Console

_plain_mode: ContextVar[bool] = ContextVar("nexi_plain_mode", default=False)


def is_tty(stream: Any = None) -> bool:
    stream = sys.stdout if stream is None else stream
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # no stream, or a closed one
        return False


def set_plain_mode(plain: bool) -> None:
    """Disable colours and emoji from now on, in this context."""
    _plain_mode.set(plain)


def is_plain(plain: bool | None = None) -> bool:
    """Whether output is plain text even on a terminal."""
    if plain is not None:
        return plain
    from nexi.config import wants_color

    return _plain_mode.get() or not wants_color()


def takes_colors(stream: Any, plain: bool | None = None) -> bool:
    return is_tty(stream) and not is_plain(plain)


def columns_of(stream: Any) -> int:
    """The width of a terminal; 0 for any other stream."""
    if not is_tty(stream):
        return 0
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def write(text: str, stream: Any = None) -> None:
    """Write whole lines, wrapped at words on a terminal, with characters replaced that the encoding lacks."""
    stream = sys.stdout if stream is None else stream
    text = clean_text(text)
    if columns := columns_of(stream):
        text = wrap_text(text, columns)
    write_raw(text, stream)


def write_raw(text: str, stream: Any) -> None:
    """Write harmless text; a closed pipe ends the program quietly, errors on stderr are ignored, others are a StoreError."""
    if stream is None:  # closed before the start
        return
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except OSError as error:
        with suppress(OSError, ValueError):  # Python can flush at exit without errors
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is sys.stderr:
            return
        if isinstance(error, BrokenPipeError):
            raise
        raise StoreError(
            "could not write the output", cause=error.strerror or str(error), fix="nexi --prev shows the latest answer"
        ) from error


def print_styled(line: str, style: str, name: str = "stdout", plain: bool | None = None) -> None:
    """Write a line to `stdout` or `stderr`, with a style of rich if the terminal allows it."""
    stream = getattr(sys, name)
    if not takes_colors(stream, plain):
        return write(f"{line}\n", stream)
    from rich.text import Text

    return open_console(name).print(Text(wrap_text(clean_text(line), columns_of(stream)), style=style), soft_wrap=True)


class _StreamProxy:
    """A file object for rich that writes through `write_raw`."""

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
    from rich.console import Console
    from rich.theme import Theme

    theme = Theme({"markdown.code": "bold cyan"})  # rich puts code on black, which light terminals are not
    wire: Any = _StreamProxy(name)
    return Console(file=wire, highlight=False, markup=False, emoji=False, theme=theme)
