"""Printing: an HTML document as a PDF by an installed Chromium without a network, and Markdown as a Word file by pandoc.

Above, `exports`. The document lies in a folder of its own that goes with the process, whatever ends it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from nexi.errors import NexiError

PRINT_S = 60.0
# Without its sandbox, in which pandoc 2.17 of Debian 12 does not find its own data files, pandoc would open the images that a
# text names, from the disk or the network. They are all that it opens for a Word file, so their captions take their place.
DATA_FILE_MISSING = "status 97"
NO_IMAGES = "function Image(image) return image.caption end"
_SWITCHES = """
--headless --disable-gpu --no-first-run --no-default-browser-check --disable-extensions --disable-background-networking
--disable-sync --disable-dev-shm-usage --no-pdf-header-footer --generate-pdf-document-outline
"""
SWITCHES = (*_SWITCHES.split(), "--host-resolver-rules=MAP * ~NOTFOUND")


async def print_to_pdf(document: str, *, patience_s: float = PRINT_S) -> bytes:
    """The HTML as a PDF. Raises NexiError where no Chromium is installed, or where it does not print."""
    from nexi.app import installed_browser

    browser = installed_browser()
    if not browser:
        cause, fix = "Chromium is not installed", "install it (Debian: apt install chromium), or export html and print that"
        raise NexiError("no PDF can be made here", cause=cause, fix=fix, code="no_browser")
    with tempfile.TemporaryDirectory(prefix="nexi-pdf-", ignore_cleanup_errors=True) as folder:
        page, out = Path(folder) / "page.html", Path(folder) / "page.pdf"
        page.write_text(document, "utf-8", errors="replace")
        switches = [*SWITCHES, *(["--no-sandbox"] if os.geteuid() == 0 else [])]  # as root Chromium starts without it only
        command = [browser, *switches, f"--user-data-dir={folder}/profile", f"--print-to-pdf={out}", page.as_uri()]
        complaint = await _run_program("Chromium", command, folder, patience_s)
        body = out.read_bytes() if out.is_file() else b""
    if not body.startswith(b"%PDF-"):
        raise NexiError("the PDF was not made", cause=complaint, fix="export html and print that", code="not_printed")
    return body


async def convert_to_docx(markdown: str, *, patience_s: float = PRINT_S) -> bytes:
    """Markdown without front matter as a Word file. Raises NexiError where pandoc is not installed, or where it fails."""
    pandoc = shutil.which("pandoc")
    if not pandoc:
        fix = "install it (Debian: apt install pandoc; macOS: brew install pandoc), or export html and open that in Word"
        raise NexiError("no Word file can be made here", cause="pandoc is not installed", fix=fix, code="no_pandoc")
    with tempfile.TemporaryDirectory(prefix="nexi-docx-", ignore_cleanup_errors=True) as folder:
        page, out, without_images = (Path(folder) / name for name in ("page.md", "page.docx", "images.lua"))
        page.write_text(markdown, "utf-8", errors="replace")
        without_images.write_text(NO_IMAGES, "utf-8")
        command = [pandoc, "--from=commonmark+pipe_tables", "--to=docx", f"--output={out}", str(page)]
        complaint = await _run_program("pandoc", [*command, "--sandbox"], folder, patience_s)
        if complaint.endswith(DATA_FILE_MISSING):
            limits = (f"--lua-filter={without_images}", "--resource-path=")
            complaint = await _run_program("pandoc", [*command, *limits], folder, patience_s)
        body = out.read_bytes() if out.is_file() else b""
    if not body.startswith(b"PK"):
        raise NexiError("the Word file was not made", cause=complaint, fix="update pandoc, or export html", code="not_printed")
    return body


async def _run_program(name: str, command: list[str], folder: str, patience_s: float) -> str:
    """Run it to its end, or end it; and why there may be no result."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PATH": os.defpath, "HOME": folder, "LANG": "C.UTF-8"},  # nothing of our own, which has keys
            start_new_session=True,  # a group that can be ended together
        )
    except OSError as error:
        return error.strerror or str(error)
    try:
        async with asyncio.timeout(patience_s):
            status = await process.wait()
    except TimeoutError:
        return f"{name} took more than {patience_s:g} s"
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # Chromium is several processes: all of the group go
            await process.wait()
    return f"{name} ended with status {status}"
