"""Searches the code in one folder of this machine with ripgrep, or with grep where that is not installed.

It is asked only when the user names it and a folder. Hits have addresses like `file:///src/main.py#L12`, relative to the
folder, so that no path of the machine reaches a model; nothing fetches them, and a backend that is `local` is the only one
whose file addresses the searcher keeps. The query is an argument and never a shell's word, and links are not followed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from nexi.errors import BackendError
from nexi.types import Hit, Query
from nexi.values import frozen

NAME = "ripgrep"
MAX_OUTPUT = 2_000_000
MAX_FILE = "1M"
PER_FILE = 5
LINE_CHARS = 300


@frozen
class Match:
    """One line of one file; `path` is relative to the folder."""

    path: str
    line: int
    text: str


def rg_command(program: str, text: str) -> list[str]:
    """What ripgrep is told: literal words, no config of the user's, no links, few lines of each file."""
    options = ["--json", "--no-config", "--no-follow", "--fixed-strings", "--smart-case", "--sort", "path"]
    limits = ["--max-count", str(PER_FILE), "--max-filesize", MAX_FILE, "--max-columns", "2000"]
    return [program, *options, *limits, "--regexp", text, "--", "."]


def grep_command(program: str, text: str) -> list[str]:
    """The same of grep; `-r` does not follow links, and binary files are left out."""
    ignored = [f"--exclude-dir={name}" for name in (".git", "node_modules", ".venv")]
    return [program, "-rnIiF", "-Z", f"-m{PER_FILE}", *ignored, "-e", text, "--", "."]


def rg_matches(output: bytes) -> list[Match]:
    return [match for line in output.splitlines() if (match := _rg_match(line))]


def _rg_match(line: bytes) -> Match | None:
    try:
        message: Any = json.loads(line)
        data = message["data"]
        if message["type"] != "match":
            return None
        return Match(_relative(data["path"]["text"]), int(data["line_number"]), str(data["lines"]["text"]).strip()[:LINE_CHARS])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None  # a name or a line that is no text comes as bytes, and the last line may be cut


def grep_matches(output: bytes) -> list[Match]:
    return [match for line in output.splitlines() if (match := _grep_match(line))]


def _grep_match(line: bytes) -> Match | None:
    path, zero, rest = line.partition(b"\0")
    number, colon, text = rest.partition(b":")
    if not zero or not colon or not number.isdigit():
        return None
    return Match(_relative(path.decode("utf-8", "replace")), int(number), text.decode("utf-8", "replace").strip()[:LINE_CHARS])


def _relative(path: str) -> str:
    return str(PurePosixPath(path.replace(os.sep, "/")))


def to_hits(matches: Sequence[Match], count: int) -> list[Hit]:
    """One hit a file, with its lines; files with more of them first."""
    files: dict[str, list[Match]] = {}
    for match in matches:
        files.setdefault(match.path, []).append(match)
    best = sorted(files.values(), key=lambda lines: -len(lines))[:count]
    return [
        Hit(
            f"file:///{quote(lines[0].path)}#L{lines[0].line}",
            lines[0].path,
            "\n".join(f"{m.line}: {m.text}" for m in lines[:PER_FILE]),
            "",
            NAME,
        )
        for lines in best
    ]


class Ripgrep:
    """The SearchBackend port over one folder."""

    local = True
    filters = frozenset[str]()

    def __init__(self, root: str, *, timeout_s: float = 10.0, program: str = "") -> None:
        self._root = Path(root).expanduser()
        self._timeout_s = timeout_s
        self._program = program

    @property
    def name(self) -> str:
        return NAME

    async def search(self, query: Query) -> list[Hit]:
        text = " ".join(query.text.split())
        program = self._program or shutil.which("rg") or shutil.which("grep") or ""
        self._check(program)
        if not text or "\0" in text:
            return []
        by_rg = Path(program).stem == "rg"
        output = await self._run(rg_command(program, text) if by_rg else grep_command(program, text))
        return to_hits(rg_matches(output) if by_rg else grep_matches(output), query.count)

    def _check(self, program: str) -> None:
        if not program:
            raise BackendError(
                "local code cannot be searched",
                code="not_installed",
                cause="neither rg nor grep is on the PATH",
                fix="install ripgrep",
            )
        if not self._root.is_dir():
            raise BackendError(
                "local code cannot be searched",
                code="wrong_root",
                cause="the folder of grep_root does not exist",
                fix="set grep_root to the folder of your code",
            )

    async def _run(self, command: Sequence[str]) -> bytes:
        """The output, cut at a size; the process is ended when it is late, too loud, or nobody waits any more."""
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self._root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                output = await _read(process)
                if len(output) < MAX_OUTPUT and await process.wait() > 1 and not output:
                    raise _failed(f"{Path(command[0]).name} ended with {process.returncode}")
                return output
        except TimeoutError as error:
            raise BackendError(
                "the search of local code took too long",
                code="timeout",
                cause=f"more than {self._timeout_s:g} s",
                fix="set grep_root to a smaller folder, or raise search_timeout",
            ) from error
        finally:
            await _end(process)


async def _read(process: asyncio.subprocess.Process) -> bytes:
    output = bytearray()
    while process.stdout and len(output) < MAX_OUTPUT and (chunk := await process.stdout.read(65_536)):
        output += chunk
    return bytes(output[:MAX_OUTPUT])


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _failed(cause: str) -> BackendError:
    return BackendError(
        "local code cannot be searched", code="search_failed", cause=cause, fix="check that grep_root is readable"
    )
