"""Writes to stdout and stderr, and decides whether a stream takes colours.

All output passes through `write`, which removes control sequences, handles encodings, and notices a closed pipe.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

from nexi.errors import StoreError
from nexi.text.controls import clean_text

if TYPE_CHECKING:
    from rich.console import Console

MIN_COLUMNS = 10
_INDENT = re.compile(r"\s*(?:(?:[-*•·✓✗○!?+]|\d{1,3}[.)]|\[\d{1,3}\]) +)?")
_PIECE = re.compile(r"\n|[^\S\n]+|\S+")
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


def takes_colors(stream: Any, plain: bool | None = None) -> bool:
    """Whether a terminal gets more than plain text, which `plain` may decide."""
    if plain is None and is_tty(stream):
        from nexi.config import wants_color

        plain = _plain_mode.get() or not wants_color()
    return is_tty(stream) and not plain


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
        text = _wrap_text(text, columns)
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
        cause, fix = error.strerror or str(error), "nexi --prev shows the latest answer"
        raise StoreError("could not write the output", cause=cause, fix=fix) from error


def print_styled(line: str, style: str, name: str = "stdout", plain: bool | None = None) -> None:
    """Write a line to `stdout` or `stderr`, with a style of rich if the terminal allows it."""
    stream = getattr(sys, name)
    if not takes_colors(stream, plain):
        return write(f"{line}\n", stream)
    from rich.text import Text

    return open_console(name).print(Text(_wrap_text(clean_text(line), columns_of(stream)), style=style), soft_wrap=True)


class _StreamProxy:
    """A file object for rich, `stdout` or `stderr` as it is at the time, that writes through `write_raw`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(sys, self._name), name)

    def write(self, text: str) -> int:
        write_raw(text, getattr(sys, self._name))
        return len(text)

    def flush(self) -> None:
        """Every write is flushed."""


def open_console(name: str) -> Console:
    from rich.console import Console
    from rich.theme import Theme

    theme = Theme({"markdown.code": "bold cyan"})  # rich puts code on black, which light terminals are not
    wire: Any = _StreamProxy(name)
    return Console(file=wire, highlight=False, markup=False, emoji=False, theme=theme)


def _wrap_text(text: str, columns: int) -> str:
    """Wrap every line at words; continued lines are indented like the text of their first line."""
    wrapper = WordWrapper(columns)
    return wrapper.feed(text) + wrapper.finish()


class WordWrapper:
    """Wraps text that arrives in parts; holds back the last word until it is complete.

    A terminal would break it in the middle of a word. A word that is longer than a line stays whole, so that a URL can be
    opened and copied. Code and tables keep their lines.
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns if columns >= MIN_COLUMNS else 0
        self._word = self._blanks = self._line = ""
        self._column = self._indent = 0
        self._in_code = False

    def feed(self, text: str) -> str:
        """Add text; return what can be written now."""
        if not self._columns:
            return text
        out: list[str] = []
        for piece in _PIECE.findall(text):
            if not piece.isspace():
                self._word += piece
                continue
            out.append(self._place_word())
            if piece != "\n":
                self._blanks += piece
                continue
            if self._line.lstrip().startswith(("```", "~~~")):
                self._in_code = not self._in_code
            out.append(self._blanks if self._column + len(self._blanks) <= self._columns else "")
            out.append("\n")
            self._line = self._blanks = ""
            self._column = self._indent = 0
        return "".join(out)

    def finish(self) -> str:
        rest = self._place_word() + self._blanks
        self._blanks = ""
        return rest

    def _place_word(self) -> str:
        if not self._word:
            return ""
        word, blanks = self._word, self._blanks
        self._word = self._blanks = ""
        is_first = not self._line.strip()
        self._line += blanks + word
        keeps_line = self._in_code or self._line.lstrip().startswith(("|", "```", "~~~"))
        width = sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in word)
        if is_first or keeps_line or self._column + len(blanks) + width <= self._columns:
            self._column += len(blanks) + width
            return blanks + word
        if not self._indent:
            indent = _INDENT.match(self._line)
            self._indent = indent.end() if indent and indent.end() <= self._columns // 3 else 0
        self._column = self._indent + width
        return "\n" + " " * self._indent + word
