"""The program that reads one document in a process of its own.

Above sits `fetchers.apart`, which starts it, sends the bytes and kills it at a deadline; below, `extract`. Parsers of formats
that strangers fill may hang, crash, take all the memory they get or be taken over, so this process has little to lose: no keys,
no network, no files of the user.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

from msgspec.structs import asdict

from nexi.errors import FetchError
from nexi.formats import PDF, ZIP, extract, ocr
from nexi.formats._containers import too_large_error
from nexi.formats.confinement import confine_process, die_with_parent
from nexi.formats.registry import find_format

MAX_CPU_S = 30
ROOM_BYTES = 36_000_000  # address space for more than the document, beyond what the program has taken at the start
RECOGNITION_BYTES = 400_000_000  # more of it, which only the program that recognises words in pictures may take


def _describe_problem(error: FetchError) -> dict[str, str]:
    return {"message": error.message, "reason": error.reason, "cause": error.cause, "fix": error.fix}


LACK_OF_MEMORY = _describe_problem(too_large_error("it needs more memory than a page may take"))


def main() -> None:
    """Read a document on standard input; write JSON on standard output: {"read": …} or {"error": …}."""
    # Arguments: media type, bytes, most characters, origin ("web" or "file"), languages of pictures.
    die_with_parent()
    kind, size, max_chars, origin, languages = sys.argv[1:6]
    lack_of_memory = json.dumps({"error": LACK_OF_MEMORY}).encode("ascii")  # when it lacks, nothing can be made
    recognition = ocr.Recognition(languages, ocr.MAX_DOCUMENT_S[origin])
    # Loaded before the limit, so that the limit is what a document may take.
    if document_format := find_format(kind):
        import_module(f"nexi.formats.{document_format.reader.partition('.')[0]}")
    if kind in (PDF, ZIP):  # an archive may hold any document
        import_module("pypdfium2")
    if kind != PDF:
        import_module("nexi.extract.markup").read_whole("<p>x</p>")
    _limit_resources(ROOM_BYTES + int(size))
    confine_process(ocr.recognition_files())
    try:
        extracted = extract(sys.stdin.buffer.read(), kind, "", max_chars=int(max_chars), recognition=recognition)
        answer = json.dumps({"read": asdict(extracted)}).encode("ascii")
    except FetchError as error:
        answer = json.dumps({"error": _describe_problem(error)}).encode("ascii")
    except MemoryError:
        answer = lack_of_memory
    sys.stdout.buffer.write(answer)  # bytes: they are written as they are, without memory for a copy


def _limit_resources(room: int) -> None:
    """Bound the CPU time and the memory of this process: what it has taken already, and `room` bytes more."""
    try:
        import resource
        from pathlib import Path

        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])  # of the whole address space
        most = pages * resource.getpagesize() + room
        resource.setrlimit(resource.RLIMIT_AS, (most, most + RECOGNITION_BYTES))
    except (ImportError, OSError, ValueError):
        return  # a system without such limits; the deadline still holds
