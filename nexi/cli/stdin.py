"""Reads stdin: a question, or text for a question. Never waits for a writer that may not write."""

from __future__ import annotations

import os
import stat
import sys

from nexi.output import write

MAX_BYTES = 4_000_000
MAX_PIPED_CHARS = 50_000
PAUSE_S = 2.0


def read_question() -> str:
    """Read all of stdin as the question; empty if stdin is closed."""
    try:
        return sys.stdin.buffer.read(MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, AttributeError):
        return ""


def append_piped_text(question: str) -> str:
    """Append piped text to the question: `cat notes.txt | nexi "summarise this"`."""
    text = _read_piped_text()
    if not text:
        return question
    excerpt = text[:MAX_PIPED_CHARS]
    whole = f"the first {len(excerpt):,} of {len(text):,}" if len(text) > len(excerpt) else f"{len(excerpt):,}"
    write(f"Added {whole} characters from stdin to the question\n", sys.stderr)
    return f"{question}\n\n{excerpt}"


def _read_piped_text() -> str:
    """Read what waits in a pipe on stdin, and what follows within PAUSE_S.

    An open, empty pipe, or anything but a pipe, was not meant for nexi.
    """
    import select

    data, wait_s = b"", 0.0
    try:
        fd = sys.stdin.fileno()
        if os.name == "nt" or not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return ""
        while len(data) < MAX_BYTES and select.select([fd], [], [], wait_s)[0]:
            piece = os.read(fd, 65536)
            if not piece:
                break
            data += piece
            wait_s = PAUSE_S
        return data.decode("utf-8", "replace").strip()
    except (OSError, ValueError, AttributeError):  # closed, or no real file
        return ""
