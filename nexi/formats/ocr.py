"""Text of pictures and scanned pages, recognised by tesseract where it is installed.

Above sit `extract` and `pdf`; below, the program `tesseract`, which gets a picture on its standard input and nothing else. It
runs inside the worker's bounds, with one thread and a deadline.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.formats.confinement import die_with_parent

MAX_PAGE_S = 15.0
MAX_DOCUMENT_S = {"web": 15.0, "file": 900.0}  # by where it comes from: somebody waits for a page of the web
PROGRAM = "tesseract"
# What the program calls the languages that documents name by ISO 639-1.
_NAMES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, str])
_TRADITIONAL = re.compile(r"zh-(?:hant|tw|hk|mo)", re.IGNORECASE)


class Recognition(Struct, frozen=True):
    """How a document is recognised: in which languages ("" leaves them to it or the program), and for how long."""

    languages: str = ""
    seconds: float = MAX_DOCUMENT_S["web"]


def can_recognise() -> bool:
    """Whether the program is installed."""
    return shutil.which(PROGRAM) is not None


def recognition_files() -> tuple[str, ...]:
    """What the program needs to read beside the files of the system: itself, its libraries and its languages."""
    program = shutil.which(PROGRAM)
    folders = [Path(program).parent, Path(program).resolve().parent.parent] if program else []
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - one that cannot be known is no error here
    readable = [str(folder) for folder in folders if not home.is_relative_to(folder)]
    return (*readable, *filter(None, [os.environ.get("TESSDATA_PREFIX", "")]))


def read_picture(data: bytes, max_chars: int, recognition: Recognition = Recognition()) -> Extracted:  # noqa: B008 - frozen
    """The words in a picture. Raises FetchError."""
    text = recognise_text(data, time.monotonic() + MAX_PAGE_S, recognition.languages)
    if not text:
        raise FetchError("the picture has no text", reason="content_type", cause="no words were recognised in it")
    return Extracted(text=text[:max_chars], truncated=len(text) > max_chars)


def find_language(code: str) -> str:
    """The installed language of a document that says "de-AT" of itself; "" where there is none."""
    name = "chi_tra" if _TRADITIONAL.match(code) else _NAMES.get(code[:2].lower(), "")
    return name if name and name in _run_program(["--list-langs"], MAX_PAGE_S).split() else ""


def _run_program(arguments: Sequence[str], timeout: float, picture: bytes = b"") -> str:
    """What the program writes, with one thread; "" where it is not installed or takes too long."""
    program, setter = shutil.which(PROGRAM), shutil.which("env")
    if program is None:
        return ""
    try:
        process = subprocess.run(  # noqa: S603 - a program of the user's, and no words of the document among its arguments
            [*([setter, "OMP_THREAD_LIMIT=1"] if setter else []), program, *arguments],
            input=picture,
            capture_output=True,
            check=False,
            timeout=timeout,
            preexec_fn=_prepare_recognition,  # the worker has one thread
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.decode("utf-8", "replace")


def _prepare_recognition() -> None:
    """End with the worker, and use the memory that the worker may not take itself."""
    die_with_parent()
    try:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ImportError, OSError, ValueError):
        return  # a system without such limits


def recognise_text(picture: bytes, deadline: float, languages: str = "") -> str:
    """What the program reads in a picture, in languages such as "deu+eng"; "" for nothing, or where it takes too long."""
    arguments = ["stdin", "stdout", "--psm", "3", *(("-l", languages) if languages else ())]
    return _run_program(arguments, max(deadline - time.monotonic(), 0.1), picture).replace("\f", "").strip()
