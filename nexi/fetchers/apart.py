"""Reading a PDF in a process of its own: a parser of native code may hang, crash or swallow memory without taking us along.

Above sits `http`; below, `nexi.extract.pdf`. The process gets the bytes and nothing else, has a bound on its memory, and
does not outlive the call: a deadline or a cancellation kills it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any

import nexi
from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.extract.pdf import memory_error

PIECE = 65_536
READER_PROGRAM = "import sys; sys.path.append(sys.argv.pop()); from nexi.extract.pdf import main; main()"
_HOME = str(Path(nexi.__file__).resolve().parent.parent)


async def read_pdf(data: bytes, max_chars: int, *, program: str = READER_PROGRAM) -> Extracted:
    """Text and metadata of a PDF. Raises FetchError."""
    # -P keeps the working directory, which may hold anything, out of what can be imported.
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", program, str(max_chars), _HOME, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    try:
        answer = await _exchange_data(process, data)
    finally:
        await _end_process(process)
    if "error" in answer:
        raise FetchError(**answer["error"])
    found = answer["read"]
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    return Extracted(**fields)


async def _exchange_data(process: Process, data: bytes) -> dict[str, Any]:
    assert process.stdin is not None  # noqa: S101 - they are pipes
    assert process.stdout is not None  # noqa: S101
    try:
        for start in range(0, len(data), PIECE):
            process.stdin.write(data[start : start + PIECE])
            await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it ended before it had read everything; how it ended says why
    process.stdin.close()
    output = await process.stdout.read()
    return _parse_output(output, await process.wait())


def _parse_output(output: bytes, code: int) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        # Native code that gets no memory aborts; so does one that finds itself confused.
        return {"error": memory_error() if code in (-6, -5, -4) else _describe_crash(code)}
    return answer


def _describe_crash(code: int) -> dict[str, str]:
    return {
        "message": "the PDF is broken",
        "reason": "error",
        "cause": f"its reader ended with code {code}",
        "fix": "look for another version of it",
    }


async def _end_process(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await asyncio.shield(process.wait())
