"""Copies to the clipboard: with an escape sequence on a terminal, else with a clipboard program."""

from __future__ import annotations

import sys

PROGRAMS = (("wl-copy",), ("xclip", "-selection", "clipboard"), ("pbcopy",), ("clip",))
MAX_ESCAPED_BYTES = 74_000  # terminals drop longer sequences
PROGRAM_TIMEOUT_S = 5


def copy_text(text: str) -> bool:
    """Copy text to the clipboard; False if that is not possible."""
    import shutil
    import subprocess
    from base64 import b64encode

    from nexi.config import is_dumb_terminal
    from nexi.output import is_tty
    from nexi.output.streams import write_raw

    data = text.encode("utf-8", "replace")
    terminal = next((stream for stream in (sys.stdout, sys.stderr) if is_tty(stream)), None)
    if terminal is not None and not is_dumb_terminal() and len(data) <= MAX_ESCAPED_BYTES:
        # OSC 52 sets the clipboard of a terminal, also over SSH
        write_raw(f"\x1b]52;c;{b64encode(data).decode('ascii')}\x07", terminal)
        return True
    for name, *arguments in PROGRAMS:
        program = shutil.which(name)
        if program is None:
            continue
        try:
            process = subprocess.run(  # noqa: S603 - a fixed list of programs, found on the user's PATH
                [program, *arguments],
                input=data,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=PROGRAM_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        if process.returncode == 0:
            return True
    return False
