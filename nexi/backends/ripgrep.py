"""Searches the code in one folder of this machine with ripgrep, or with grep where that is not installed.

It is asked only when the user names it and a folder. Hits have addresses like `file:///src/main.py#L12`, relative to the
folder, so that no path of the machine reaches a model; nothing fetches them, and a backend that is `local` is the only one
whose file addresses the searcher keeps. The query is an argument and never a shell's word, and links are not followed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from nexi.errors import BackendError
from nexi.types import Hit, Query

__all__ = ["Ripgrep"]


NAME = "ripgrep"
MAX_OUTPUT = 2_000_000
MAX_FILE = "1M"
PER_FILE = 5
MOST_WORDS = 8
LINE_CHARS = 300


class Match(Struct, frozen=True):
    """One line of one file; `path` is relative to the folder."""

    path: str
    line: int
    text: str


def rg_command(program: str, texts: Sequence[str]) -> list[str]:
    """What ripgrep is told: literal texts, no config of the user's, no links, few lines of each file."""
    options = ["--json", "--no-config", "--no-follow", "--fixed-strings", "--ignore-case", "--sort", "path"]
    limits = ["--max-count", str(PER_FILE), "--max-filesize", MAX_FILE, "--max-columns", "2000"]
    return [program, *options, *limits, *(f"--regexp={text}" for text in texts), "--", "."]


def grep_command(program: str, texts: Sequence[str]) -> list[str]:
    """The same of grep; `-r` does not follow links, and binary files are left out."""
    ignored = [f"--exclude-dir={name}" for name in (".git", "node_modules", ".venv")]
    return [program, "-rnIiF", "-Z", f"-m{PER_FILE}", *ignored, *(f"--regexp={text}" for text in texts), "--", "."]


def rg_matches(output: bytes) -> list[Match]:
    return [match for line in output.splitlines() if (match := _rg_match(line))]


def _rg_match(line: bytes) -> Match | None:
    try:
        message: Any = json.loads(line)
        data = message["data"]
        if message["type"] != "match":
            return None
        return Match(
            _relative_path(data["path"]["text"]), int(data["line_number"]), str(data["lines"]["text"]).strip()[:LINE_CHARS]
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None  # a name or a line that is no text comes as bytes, and the last line may be cut


def grep_matches(output: bytes) -> list[Match]:
    return [match for line in output.splitlines() if (match := _grep_match(line))]


def _grep_match(line: bytes) -> Match | None:
    path, zero, rest = line.partition(b"\0")
    number, colon, text = rest.partition(b":")
    if not zero or not colon or not number.isdigit():
        return None
    return Match(
        _relative_path(path.decode("utf-8", "replace")), int(number), text.decode("utf-8", "replace").strip()[:LINE_CHARS]
    )


def _relative_path(path: str) -> str:
    return str(PurePosixPath(path.replace(os.sep, "/")))


def words_of(text: str) -> list[str]:
    """The words worth looking for one by one where the whole text is nowhere."""
    words = dict.fromkeys(re.findall(r"[\w.-]{3,}", text))
    return sorted(words, key=len, reverse=True)[:MOST_WORDS]


def to_hits(matches: Sequence[Match], count: int, texts: Sequence[str] = ()) -> list[Hit]:
    """One hit a file, with its lines; files with more of the texts, then with more lines, first."""
    files: dict[str, list[Match]] = {}
    for match in matches:
        files.setdefault(match.path, []).append(match)

    def worth(lines: Sequence[Match]) -> tuple[int, int]:
        whole = "\n".join(m.text for m in lines).lower()
        return sum(text.lower() in whole for text in texts), len(lines)

    best = sorted(files.values(), key=worth, reverse=True)[:count]
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
        self._check_root(program)
        if not text or "\0" in text:
            return []
        hits = await self._find_hits(program, [text], query.count)
        words = words_of(text)
        return hits if hits or not words else await self._find_hits(program, words, query.count)

    async def _find_hits(self, program: str, texts: Sequence[str], count: int) -> list[Hit]:
        if Path(program).stem == "rg":
            return to_hits(rg_matches(await self._run_command(rg_command(program, texts))), count, texts)
        return to_hits(grep_matches(await self._run_command(grep_command(program, texts))), count, texts)

    def _check_root(self, program: str) -> None:
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

    async def _run_command(self, command: Sequence[str]) -> bytes:
        """The output, cut at a size; the process is ended when it is late, too loud, or its caller is gone."""
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self._root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                output = await _read_output(process)
                if len(output) < MAX_OUTPUT and await process.wait() > 1 and not output:
                    raise _search_error(f"{Path(command[0]).name} ended with {process.returncode}")
                return output
        except TimeoutError as error:
            raise BackendError(
                "the search of local code took too long",
                code="timeout",
                cause=f"more than {self._timeout_s:g} s",
                fix="set grep_root to a smaller folder, or raise search_timeout",
            ) from error
        finally:
            await _end_process(process)


async def _read_output(process: asyncio.subprocess.Process) -> bytes:
    output = bytearray()
    while process.stdout and len(output) < MAX_OUTPUT and (chunk := await process.stdout.read(65_536)):
        output += chunk
    return bytes(output[:MAX_OUTPUT])


async def _end_process(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _search_error(cause: str) -> BackendError:
    return BackendError(
        "local code cannot be searched", code="search_failed", cause=cause, fix="check that grep_root is readable"
    )
