"""The clipboard: by an escape sequence where there is a terminal, else by the program the system has for it."""

from __future__ import annotations

import sys

PROGRAMS = (("wl-copy",), ("xclip", "-selection", "clipboard"), ("pbcopy",), ("clip",))
MAX_ESCAPED_BYTES = 74_000  # terminals drop longer sequences
PROGRAM_TIMEOUT_S = 5


def copy_text(text: str) -> bool:
    """Put a text on the clipboard; False when nothing here can."""
    from nexi.config import is_dumb_terminal
    from nexi.output import is_tty

    data = text.encode("utf-8", "replace")
    terminal = next((stream for stream in (sys.stdout, sys.stderr) if is_tty(stream)), None)
    if terminal is not None and not is_dumb_terminal() and len(data) <= MAX_ESCAPED_BYTES:
        from nexi.output.streams import write_raw

        write_raw(_escape_sequence(data), terminal)
        return True
    return _copy_with_program(data)


def _escape_sequence(data: bytes) -> str:
    """The sequence (OSC 52) that asks a terminal to set its clipboard; it also works over SSH."""
    from base64 import b64encode

    return f"\x1b]52;c;{b64encode(data).decode('ascii')}\x07"


def _copy_with_program(data: bytes) -> bool:
    import shutil
    import subprocess

    for name, *arguments in PROGRAMS:
        program = shutil.which(name)
        if program is None:
            continue
        try:
            done = subprocess.run(  # noqa: S603 - a fixed list of programs, found on the user's PATH
                [program, *arguments],
                input=data,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=PROGRAM_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        if done.returncode == 0:
            return True
    return False
