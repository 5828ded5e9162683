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
from pathlib import Path

from nexi.errors import FetchError
from nexi.extract.confinement import die_with_parent
from nexi.extract.words import Extracted

__all__ = ["can_recognise", "read_picture", "recognise_text", "recognition_deadline", "recognition_files"]

MAX_PAGE_S = 15.0
MAX_DOCUMENT_S = 15.0  # of a document from the web, whose reader waits
MAX_FILE_S = 900.0  # of a file of the user's
_PATIENCE = "NEXI_OCR_SECONDS"  # how the worker is told which of the two
PROGRAM = "tesseract"
_LANGUAGES = re.compile(r"[A-Za-z][A-Za-z_]{1,20}(?:\+[A-Za-z][A-Za-z_]{1,20}){0,9}")


def can_recognise() -> bool:
    """Whether the program is installed."""
    return shutil.which(PROGRAM) is not None


def recognition_files() -> tuple[str, ...]:
    """What the program needs to read beside the files of the system: itself, its libraries and its languages."""
    program = shutil.which(PROGRAM)
    folders = [Path(program).parent, Path(program).resolve().parent.parent] if program else []
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - one that cannot be known is no error here
    known = [str(folder) for folder in folders if not home.is_relative_to(folder)]
    return (*known, *filter(None, [os.environ.get("TESSDATA_PREFIX", "")]))


def read_picture(data: bytes, max_chars: int) -> Extracted:
    """The words in a picture. Raises FetchError."""
    text = recognise_text(data, time.monotonic() + MAX_PAGE_S)
    if not text:
        raise FetchError("the picture has no text", reason="content_type", cause="no words were recognised in it")
    return Extracted(text=text[:max_chars], truncated=len(text) > max_chars)


def allow_time_of_file() -> None:
    """Let this process recognise for as long as a file of the user's may take."""
    os.environ[_PATIENCE] = str(MAX_FILE_S)


def recognition_deadline() -> float:
    """When a document must be done."""
    return time.monotonic() + float(os.environ.get(_PATIENCE) or MAX_DOCUMENT_S)


def _language_arguments() -> list[str]:
    """The languages that the user named, as "deu+eng"; else the program's own choice."""
    named = os.environ.get("NEXI_OCR_LANGUAGES", "").replace(",", "+").replace(" ", "")
    return ["-l", named] if _LANGUAGES.fullmatch(named) else []


def _prepare_recognition() -> None:
    """End with the worker, and use the memory that the worker may not take itself."""
    die_with_parent()
    try:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ImportError, OSError, ValueError):
        return  # a system without such limits


def recognise_text(picture: bytes, deadline: float) -> str:
    """What the program reads in a picture; "" where it reads nothing or takes too long."""
    program, setter = shutil.which(PROGRAM), shutil.which("env")
    if program is None:
        return ""
    one_thread = [setter, "-u", _PATIENCE, "OMP_THREAD_LIMIT=1"] if setter else []
    try:
        done = subprocess.run(  # noqa: S603 - a program of the user's, and no words of the document among its arguments
            [*one_thread, program, "stdin", "stdout", "--psm", "3", *_language_arguments()],
            input=picture,
            capture_output=True,
            check=False,
            timeout=max(deadline - time.monotonic(), 0.1),
            preexec_fn=_prepare_recognition,  # the worker has one thread
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").replace("\f", "").strip()
