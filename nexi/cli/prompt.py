"""Reads input: with a line editor on a capable terminal, else line by line.

Both return the next input, "" for a cleared line, or raise EOFError when the user leaves. Neither blocks a signal: Ctrl-C
clears the line, SIGTERM cancels the calling task.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from nexi.cli.exits import handle_signal
from nexi.files import lines_from_end, make_private_directory, replace_file
from nexi.output import write

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output as EditorOutput


PROMPT = "nexi> "
MAX_HISTORY_LINES = 1000
MAX_INPUT_CHARS = 20_000


def open_prompt(words: Sequence[str], history: Path, *, plain: bool, status: Callable[[], str]) -> _EditingPrompt | _LinePrompt:
    """Open a line editor with a status bar if the terminal allows it, else read plain lines."""
    can_edit = not plain and sys.stdin.isatty() and sys.stderr.isatty()
    return _EditingPrompt(words, history, status) if can_edit else _LinePrompt()


class _EditingPrompt:
    """prompt_toolkit, drawing on stderr, so that stdout has answers only; falls back to plain lines if it fails."""

    def __init__(self, words: Sequence[str], history: Path, status: Callable[[], str]) -> None:
        self._words, self._history, self._status = words, history, status
        self._session: PromptSession[str] | None = None
        self._plain: _LinePrompt | None = None

    async def read(self) -> str:
        if self._plain:
            return await self._plain.read()
        try:
            self._session = self._session or _create_session(self._words, self._history, self._status)
            with _cancel_on_sigterm():
                return await self._session.prompt_async(set_exception_handler=False)
        except EOFError:
            raise
        except Exception:  # noqa: BLE001 - the edge of a library that meets every terminal there is
            self._plain = _LinePrompt()
            return await self._plain.read()


def _create_session(words: Sequence[str], history: Path, status: Callable[[], str]) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import History
    from prompt_toolkit.shortcuts import CompleteStyle
    from prompt_toolkit.styles import Style

    class InputHistory(History):
        """Earlier input, in a private file; works without one if the disk refuses."""

        def load_history_strings(self) -> Iterable[str]:
            return _read_inputs(history)

        def store_string(self, string: str) -> None:
            _save_input(history, string)

    return PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=lambda width, line, is_wrapped: "" if is_wrapped else "... ".rjust(width),
        key_bindings=_key_bindings(),
        history=InputHistory(),
        completer=WordCompleter(list(words), sentence=True),
        complete_style=CompleteStyle.READLINE_LIKE,
        complete_while_typing=False,
        bottom_toolbar=status,
        style=Style([("bottom-toolbar", "noreverse dim")]),  # dim text suits light and dark backgrounds
        output=_create_output(),
    )


def _create_output() -> EditorOutput:
    """The output of the line editor, which does not query the cursor: a late reply would look typed."""
    from prompt_toolkit.output import create_output

    if sys.platform == "win32":
        return create_output(stdout=sys.stderr)
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.output.vt100 import Vt100_Output

    def size() -> Size:
        columns, rows = os.get_terminal_size(sys.stderr.fileno())
        return Size(rows or 24, columns or 80)

    class Output(Vt100_Output):
        def get_rows_below_cursor_position(self) -> int:
            return 1  # the line editor shows a status bar only if it knows of a row below

    return Output(sys.stderr, size, enable_cpr=False)


def _key_bindings() -> KeyBindings:
    """Enter sends, Alt-Enter inserts a line break, Ctrl-C clears; line breaks in pasted text do not send."""
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _break(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _clear(event: KeyPressEvent) -> None:
        event.current_buffer.reset()

    return keys


def _read_inputs(path: Path) -> Iterator[str]:
    """Yield earlier inputs, latest first; skip damaged lines."""
    with suppress(OSError):
        for line in islice(lines_from_end(path), MAX_HISTORY_LINES + 1):
            try:
                text = json.loads(line)
            except ValueError:
                continue
            if isinstance(text, str) and text:
                yield text


def _save_input(path: Path, text: str) -> None:
    """Add an input to the file, which keeps the latest, one JSON string per line."""
    latest = [text[:MAX_INPUT_CHARS], *_read_inputs(path)][:MAX_HISTORY_LINES]
    with suppress(OSError):
        make_private_directory(path.parent)
        replace_file(path, "".join(json.dumps(item) + "\n" for item in reversed(latest)).encode())


class _LinePrompt:
    def __init__(self) -> None:
        self._waiting = bytearray()
        self._ended = False

    async def read(self) -> str:
        write(PROMPT, sys.stderr)
        with _cancel_on_sigterm():
            try:
                while b"\n" not in self._waiting and not self._ended:
                    piece = await _next_bytes()
                    self._ended = not piece
                    self._waiting += piece
            except _ClearedError:
                write("\n", sys.stderr)
                return ""
        if not self._waiting:
            raise EOFError
        line, _, rest = bytes(self._waiting).partition(b"\n")
        self._waiting[:] = rest
        return line.decode("utf-8", "replace")


class _ClearedError(Exception):
    """Ctrl-C at the prompt."""


async def _next_bytes() -> bytes:
    """Read the next bytes of stdin; b"" at its end."""
    loop, fd = asyncio.get_running_loop(), sys.stdin.fileno()
    ready: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None = None) -> None:
        if not ready.done():
            ready.set_exception(error) if error else ready.set_result(None)

    try:
        loop.add_reader(fd, settle)
    except (NotImplementedError, OSError):  # this loop cannot watch this kind of file
        line: str = await asyncio.to_thread(sys.stdin.readline)
        return line.encode("utf-8", "replace")
    try:
        with handle_signal(signal.SIGINT, lambda: settle(_ClearedError())):
            await ready
    finally:
        loop.remove_reader(fd)
    return os.read(fd, 65536)


@contextmanager
def _cancel_on_sigterm() -> Iterator[None]:
    """Cancel the calling task on SIGTERM, so that the terminal is restored."""
    task = asyncio.current_task()
    with handle_signal(signal.SIGTERM, task.cancel if task else lambda: None):
        yield
