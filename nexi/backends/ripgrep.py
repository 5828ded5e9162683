"""Searches the code in one folder of this machine with ripgrep, else with git, else with grep.

What git ignores is left out, except by plain grep. Hits have addresses like `file:///src/main.py#L12`, relative to the
folder, so that no path of the machine reaches a model; `fetchers.code` reads them. The query is never a shell's word.
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
from nexi.files import expand_home
from nexi.types import Hit, Query

__all__ = ["Ripgrep"]

NAME = "ripgrep"
MAX_OUTPUT = 2_000_000
MAX_FILE = "1M"
PER_FILE = 5
MAX_WORDS = 8
LINE_CHARS = 300


class Match(Struct, frozen=True):
    """One line of one file; `path` is relative to the folder."""

    path: str
    line: int
    text: str


def rg_command(program: str, texts: Sequence[str], *, as_pattern: bool = False) -> list[str]:
    """What ripgrep is told: literal texts or one pattern, no config of the user's, no links, few lines of each file."""
    options = ["--json", "--no-config", "--no-follow", "--ignore-case", "--sort", "path"]
    options += [] if as_pattern else ["--fixed-strings"]
    limits = ["--max-count", str(PER_FILE), "--max-filesize", MAX_FILE, "--max-columns", "2000"]
    return [program, *options, *limits, *(f"--regexp={text}" for text in texts), "--", "."]


def git_command(program: str, texts: Sequence[str], *, as_pattern: bool = False) -> list[str]:
    """The same of git, which leaves out what it ignores; hidden files are left out as by ripgrep, and no program is run."""
    quiet = ["--no-pager", "-c", "core.fsmonitor=false", "-c", "grep.recurseSubmodules=false"]
    options = ["grep", "--untracked", "--no-color", "--no-textconv", "-nIi", "-z", "-E" if as_pattern else "-F"]
    patterns = [word for text in texts for word in ("-e", _to_posix(text) if as_pattern else text)]
    return [program, *quiet, *options, *patterns, "--", ".", ":(exclude,glob)**/.*", ":(exclude,glob)**/.*/**"]


def grep_command(program: str, texts: Sequence[str], *, as_pattern: bool = False) -> list[str]:
    """The same of grep; `-r` does not follow links, and binary files are left out."""
    exclusions = ["--exclude=.?*", "--exclude-dir=.?*", "--exclude-dir=node_modules"]
    patterns = [f"--regexp={_to_posix(text) if as_pattern else text}" for text in texts]
    return [program, "-rnIi", "-E" if as_pattern else "-F", "-Z", f"-m{PER_FILE}", *exclusions, *patterns, "--", "."]


def _to_posix(pattern: str) -> str:
    """A pattern in the words of extended POSIX, which knows no digits, no lazy repeats and no groups that do not count."""
    return re.sub(r"([*+?}])\?", r"\1", pattern.replace(r"\d", "[0-9]").replace(r"\D", "[^0-9]").replace("(?:", "("))


def is_pattern(text: str) -> bool:
    """Whether a text is more than its letters as a regular expression, and a valid one."""
    if not re.search(r"[\\^$.|?*+()\[{]", text):
        return False
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def rg_matches(output: bytes) -> list[Match]:
    matches = []
    for line in output.splitlines():
        try:
            message: Any = json.loads(line)
            data = message["data"]
            if message["type"] == "match":
                text = str(data["lines"]["text"]).strip()[:LINE_CHARS]
                matches.append(Match(_relative_path(data["path"]["text"]), int(data["line_number"]), text))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # a name or a line that is no text comes as bytes, and the last line may be cut
    return matches


def grep_matches(output: bytes) -> list[Match]:
    matches = []
    for line in output.splitlines():
        path, zero, rest = line.partition(b"\0")
        # git ends the number with a zero too
        number, colon, text = rest.partition(b"\0" if re.match(rb"\d+\0", rest) else b":")
        if zero and colon and number.isdigit():
            name, words = path.decode("utf-8", "replace"), text.decode("utf-8", "replace")
            matches.append(Match(_relative_path(name), int(number), words.strip()[:LINE_CHARS]))
    return matches


def _relative_path(path: str) -> str:
    return str(PurePosixPath(path.replace(os.sep, "/")))


def words_of(text: str) -> list[str]:
    """The words worth looking for one by one where the whole text is nowhere."""
    return sorted(dict.fromkeys(re.findall(r"[\w.-]{3,}", text)), key=len, reverse=True)[:MAX_WORDS]


def to_hits(matches: Sequence[Match], count: int, texts: Sequence[str] = ()) -> list[Hit]:
    """One hit a file, with its lines; files with more of the texts, then with more lines, first."""
    files: dict[str, list[Match]] = {}
    for match in matches:
        files.setdefault(match.path, []).append(match)

    def worth(lines: Sequence[Match]) -> tuple[int, int]:
        whole = "\n".join(m.text for m in lines).lower()
        return sum(text.lower() in whole for text in texts), len(lines)

    hits = []
    for first, *others in sorted(files.values(), key=worth, reverse=True)[:count]:
        snippet = "\n".join(f"{m.line}: {m.text}" for m in (first, *others[: PER_FILE - 1]))
        hits.append(Hit(f"file:///{quote(first.path)}#L{first.line}", first.path, snippet, backend=NAME))
    return hits


class Ripgrep:
    """The SearchBackend port over one folder."""

    name = NAME
    local = True
    filters = frozenset[str]()

    def __init__(self, root: str, *, timeout_s: float = 10.0, program: str = "") -> None:
        self._root = expand_home(root)
        self._timeout_s, self._program = timeout_s, program

    async def search(self, query: Query) -> list[Hit]:
        """Files with the pattern, else with the text as it is written, else with its words."""
        text = " ".join(query.text.split())
        program = self._program or await asyncio.to_thread(self._choose_program)
        message = "local code cannot be searched"
        if not program:
            cause = "neither rg nor grep is on the PATH"
            raise BackendError(message, code="not_installed", cause=cause, fix="install ripgrep")
        if not self._root.is_dir():
            cause, fix = "the folder of grep_root does not exist", "set grep_root to the folder of your code"
            raise BackendError(message, code="wrong_root", cause=cause, fix=fix)
        if not text or "\0" in text:
            return []
        hits: list[Hit] = []
        if is_pattern(text):
            try:
                hits = await self._find_hits(program, [text], query.count, as_pattern=True)
            except BackendError as error:
                if error.code != "search_failed":  # a pattern that this program cannot read may still be a text
                    raise
        hits = hits or await self._find_hits(program, [text], query.count)
        words = words_of(text)
        return hits if hits or not words else await self._find_hits(program, words, query.count)

    async def _find_hits(self, program: str, texts: Sequence[str], count: int, *, as_pattern: bool = False) -> list[Hit]:
        build, parse = _PROGRAMS.get(Path(program).stem, (grep_command, grep_matches))
        output = await self._run_command(build(program, texts, as_pattern=as_pattern))
        return to_hits(parse(output), count, () if as_pattern else texts)

    def _choose_program(self) -> str:
        """The path of ripgrep, of git inside a work tree, or of grep; "" where none is installed."""
        root = self._root.absolute()
        git = shutil.which("git") if any((folder / ".git").exists() for folder in (root, *root.parents)) else None
        return shutil.which("rg") or git or shutil.which("grep") or ""

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
                output = bytearray()
                while process.stdout and len(output) < MAX_OUTPUT and (chunk := await process.stdout.read(65_536)):
                    output += chunk
                if len(output) < MAX_OUTPUT and await process.wait() > 1 and not output:
                    cause = f"{Path(command[0]).name} ended with {process.returncode}"
                    fix = "check that grep_root is readable"
                    raise BackendError("local code cannot be searched", code="search_failed", cause=cause, fix=fix)
                return bytes(output[:MAX_OUTPUT])
        except TimeoutError as error:
            cause, fix = f"more than {self._timeout_s:g} s", "set grep_root to a smaller folder, or raise search_timeout"
            raise BackendError("the search of local code took too long", code="timeout", cause=cause, fix=fix) from error
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


_PROGRAMS = {"rg": (rg_command, rg_matches), "git": (git_command, grep_matches)}
