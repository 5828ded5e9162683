"""What comes on stdin: a question, or a text that a question is about. Never waits for somebody who may not write."""

from __future__ import annotations

import os
import stat
import sys

MOST_BYTES = 4_000_000
MOST_PIPED_CHARS = 50_000
PATIENCE_S = 2.0


def read_question() -> str:
    """All of stdin, as the question; a closed one says nothing."""
    try:
        return sys.stdin.buffer.read(MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, AttributeError):
        return ""


def with_piped_text(question: str) -> str:
    """The question with what is piped in under it: `cat notes.txt | nexi "summarise this"`."""
    text = piped_text()
    if not text:
        return question
    from nexi.output import write

    kept = text[:MOST_PIPED_CHARS]
    cut = f", of {len(text):,}: the rest was left out" if len(text) > len(kept) else ""
    write(f"{len(kept):,} characters from stdin stand under the question{cut}\n", sys.stderr)
    return f"{question}\n\n{kept}"


def piped_text() -> str:
    """What waits in a pipe on stdin. A pipe that is open and empty is somebody else's, and so is everything but a pipe."""
    try:
        fd = sys.stdin.fileno()
        if os.name == "nt" or not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return ""
        return _drained(fd).decode("utf-8", "replace").strip()
    except (OSError, ValueError, AttributeError):  # closed, or no real file
        return ""


def _drained(fd: int) -> bytes:
    """What is there at once, and what follows it without a long pause."""
    import select

    data, patience = b"", 0.0
    while len(data) < MOST_BYTES and select.select([fd], [], [], patience)[0]:
        piece = os.read(fd, 65536)
        if not piece:
            break
        data += piece
        patience = PATIENCE_S
    return data
