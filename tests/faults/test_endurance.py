"""The saved table of the long trials says what was counted, and no more."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

from tests.faults.endurance import GOALS, HEAD, TABLE, describe, load_tallies
from tests.faults.processes import home


def test_the_saved_table_says_what_was_counted() -> None:
    rows = [f"| {GOALS[name]} | {describe(t)} | {len(t.violations)} |" for name, t in sorted(load_tallies().items())]
    assert TABLE.read_text("utf-8").splitlines() == [*HEAD.splitlines(), *rows]


def test_a_request_that_a_killed_process_left_in_the_queue_is_counted(tmp_path: Path) -> None:
    """A busy machine sees it late; counted after the resume, it would look like a call that was repeated."""
    with home(tmp_path) as at:
        address = urlsplit(at.rig.hosts["model"])
        listener = at.rig.at["model"]._listener
        assert listener is not None
        is_busy, body = threading.Event(), b'{"model": "scripted", "messages": [{"role": "user", "content": "Hello?"}]}'
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"

        def keep_busy() -> None:
            is_busy.set()
            threading.Event().wait(0.3)

        listener.get_loop().call_soon_threadsafe(keep_busy)
        is_busy.wait()
        with socket.create_connection((address.hostname, address.port)) as killed:
            killed.sendall(head.encode() + body)
        assert at.asked == 1
