"""Reading a document in a process of its own: its parser may hang, crash or swallow memory without taking us along.

The process gets the bytes and an environment without keys, has bounds on its memory and its time, and does not outlive the
call: a deadline or a cancellation kills it and what it started. Documents from the web are read one at a time, so that a
request for many costs no more memory than one for the worst of them; a page's time does not run while it waits for its turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Hashable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import msgspec

import nexi
from nexi.config import reader_environment
from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.formats import find_format
from nexi.formats.worker import LACK_OF_MEMORY
from nexi.tasks import FairPlaces, pause_timeout

PIECE = 65_536
MAX_WORKERS = {"web": 1, "file": 2}  # at once, by where documents come from
# The nexi that runs is found before another that is installed, and after Python's own library.
_FIND_NEXI = (
    "import sys; places = [n for n, path in enumerate(sys.path) if path.endswith('-packages')] or [len(sys.path)];"
    " sys.path.insert(places[0], sys.argv.pop()); "
)
WORKER_PROGRAM = f"{_FIND_NEXI}from nexi.formats.worker import main; main()"
CONFINEMENT_PROGRAM = f"{_FIND_NEXI}from nexi.formats.confinement import confine_process; print(*confine_process())"
_HOME = str(Path(nexi.__file__).resolve().parent.parent)
_workers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, FairPlaces]] = WeakKeyDictionary()


async def read_apart(
    data: bytes,
    kind: str,
    max_chars: int,
    *,
    origin: Literal["web", "file"],
    languages: str = "",
    whose: Hashable = "",
    timer: asyncio.Timeout | None = None,
    program: str = WORKER_PROGRAM,
) -> Extracted:
    """Text and metadata of a document; `kind` is its media type. Raises FetchError."""
    # `languages` are those of its pictures; people take turns by `whose` it is; `timer` stands while others are read.
    free = _workers.setdefault(asyncio.get_running_loop(), {})
    worker = free.setdefault(origin, FairPlaces(MAX_WORKERS[origin]))
    with pause_timeout(timer) if timer else nullcontext():
        await worker.acquire(whose)
    try:
        answer = await _run_worker(data, [kind, str(len(data)), str(max_chars), origin, languages], program)
    finally:
        worker.release()
    if "error" in answer:
        form = find_format(kind)
        message = answer["error"]["message"].replace("the document", f"the {form.name}" if form else "the document", 1)
        raise FetchError(**{**answer["error"], "message": message})
    return msgspec.convert(answer["read"], Extracted)


async def _run_worker(data: bytes, arguments: list[str], program: str) -> dict[str, Any]:
    process = await _start_python(program, *arguments)
    assert process.stdin is not None  # noqa: S101 - they are pipes
    assert process.stdout is not None  # noqa: S101
    try:
        with suppress(BrokenPipeError, ConnectionResetError):  # it ended before it had read everything; its code says why
            for start in range(0, len(data), PIECE):
                process.stdin.write(data[start : start + PIECE])
                await process.stdin.drain()
        process.stdin.close()
        output = await process.stdout.read()
        code = await process.wait()
    finally:
        await end_process(process)
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        if code in (-6, -5, -4):  # native code that gets no memory aborts; so does one that finds itself confused
            return {"error": LACK_OF_MEMORY}
        cause, fix = f"its reader ended with code {code}", "look for another version of it"
        return {"error": {"message": "the document is broken", "reason": "error", "cause": cause, "fix": fix}}
    return answer


async def find_protections() -> frozenset[str]:
    """What this system takes from a process that reads a document: "network", "files"."""
    process = await _start_python(CONFINEMENT_PROGRAM)
    try:
        output, _ = await process.communicate()
    finally:
        await end_process(process)
    return frozenset(output.decode("ascii", "replace").split())


async def _start_python(program: str, *arguments: str) -> Process:
    """Start a program of ours in a session of its own, so that what it starts can be ended with it."""
    # -P keeps the working directory, which may hold anything, out of what can be imported.
    command = (sys.executable, "-P", "-c", program, *arguments, _HOME)
    return await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=reader_environment(), start_new_session=True
    )


async def end_process(process: Process) -> None:
    """End a process of its own session with everything that it started."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        await asyncio.shield(process.wait())
