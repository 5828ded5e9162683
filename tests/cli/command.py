"""The whole command in this process: what it printed, and its exit code."""

from __future__ import annotations

import io
import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PAGES = [
    {
        "url": "http://moon.test/facts",
        "title": "Moon facts",
        "html": '<html lang="en"><head><title>Moon facts</title><meta name="author" content="Selene">'
        '<meta name="description" content="Facts about the Moon."></head><body><main><h1>Moon</h1>'
        "<p>The Moon is 384,400 km from Earth on average. It has almost no air and many craters.</p>"
        '<p>See also <a href="http://mars.test/facts">Mars</a>.</p></main></body></html>',
    },
    {
        "url": "http://mars.test/facts",
        "title": "Mars facts",
        "html": "<html><head><title>Mars facts</title></head><body><main><h1>Mars</h1>"
        "<p>Mars has two small moons that are called Phobos and Deimos.</p></main></body></html>",
    },
]
QUESTION = "How far is the Moon from Earth on average?"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class Terminal(io.StringIO):
    """A stdin that somebody sits at."""

    def isatty(self) -> bool:
        return True


class Command:
    """`nexi` with a home of its own, over a loopback web."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *args: str, stdin: Any = None) -> Outcome:
        from nexi.cli import main

        self._monkeypatch.setattr(sys, "stdin", stdin or io.TextIOWrapper(io.BytesIO()))
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        said = self._capsys.readouterr()
        return Outcome(int(ended.value.code or 0), said.out, said.err)

    def keep(self, *lines: bytes) -> None:
        """Write the history as it may be found."""
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "history.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))


@contextmanager
def pipe(data: bytes, *, left_open: bool = False) -> Iterator[Any]:
    """A stdin that is a pipe with this in it."""
    reading, writing = os.pipe()
    writer = threading.Thread(target=_fill, args=(writing, data, left_open))
    writer.start()
    if data or not left_open:
        select.select([reading], [], [], 10)  # something is there, or its end
    try:
        with os.fdopen(reading, encoding="utf-8") as file:
            yield file
    finally:
        writer.join(10)
        if left_open:
            os.close(writing)


def _fill(fd: int, data: bytes, left_open: bool) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BrokenPipeError:
        pass
    finally:
        if not left_open:
            os.close(fd)
