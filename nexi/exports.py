"""Exports of a finished run, the same bytes at every door. Nothing is fetched.

`nexi.web.page.export` makes the texts. An installed Chromium without a network prints HTML as a PDF, and pandoc makes a Word
file of Markdown; what they work on lies in a folder of its own that goes with the process, whatever ends it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.errors import NexiError
from nexi.text.controls import clean_text

if TYPE_CHECKING:
    from nexi.app import ReadLog, RunResult
    from nexi.checking.recheck import Verification
    from nexi.ports import PageStore, RunStore
    from nexi.web.page.view import AnsweredRun

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


async def export_run(runs: RunStore, pages: PageStore, run_id: str, form: str, numbers: Collection[int] = ()) -> bytes:
    """A finished run in one of EXPORT_FORMATS; `numbers` are the sources that references are wanted of. Raises NexiError."""
    if form not in EXPORT_FORMATS:
        fix = f"use one of {', '.join(EXPORT_FORMATS)}"
        raise NexiError(f"{form!r} is no format of an export", fix=fix, code="bad_request")
    return await export_log(await asyncio.to_thread(runs.open_log, run_id), pages, run_id, form, numbers)


async def export_log(log: ReadLog, pages: PageStore, run_id: str, form: str, numbers: Collection[int] = ()) -> bytes:
    """The same of a log that was read already. Raises NexiError, also for a number that names no source."""
    from nexi.web.page.export import Exported, export_html, title_document
    from nexi.web.page.timeline import timeline_of
    from nexi.web.page.view import answered_of

    run, today = answered_of(run_id, log), log.header.created[:10]
    if numbers and EXPORT_FORMATS[form].lists_sources:
        cited_numbers = [source.number for source in run.end.sources]
        if unknown := [number for number in numbers if number not in cited_numbers]:
            message = f"the answer has no source [{unknown[0]}]"
            cause = f"it cites {', '.join(f'[{n}]' for n in cited_numbers)}" if cited_numbers else "it cites none"
            raise NexiError(message, cause=cause, fix="name some of these", code="bad_request")
        sources = tuple(source for source in run.end.sources if source.number in numbers)
        run = replace(run, end=replace(run.end, sources=sources))
    if form not in ("html", "pdf"):
        document = await asyncio.to_thread(_text_of, run, "md" if form == "docx" else form, today)
        if form == "docx":
            return await convert_to_docx(clean_text(title_document(document, run, today)))
        return _encode_utf8(document)
    texts = {s.number: text for s in run.end.sources if (text := await pages.get(s.digest))}
    timeline = timeline_of(log.facts, log.moments, log.header.created) if log.moments else []
    page = await asyncio.to_thread(export_html, Exported(run, log.header.created, timeline, texts, opened=form == "pdf"))
    return await print_to_pdf(page) if form == "pdf" else _encode_utf8(page)


def export_verification(verification: Verification, target: str, *, strict: bool = False) -> str:
    """A text that was checked as one HTML page: its figures, the text with marks, its sources and the evidence."""
    from nexi.web.page.export import export_check

    return clean_text(export_check(verification, target, strict=strict))


def markdown_document(result: RunResult, today: str) -> str:
    """An answer or a report that has just ended, as `md` exports it."""
    from nexi.web.page.view import AnsweredRun

    return clean_text(_text_of(AnsweredRun(result.id, result.started, result.finished, result.facts), "md", today))


def _text_of(run: AnsweredRun, form: str, today: str) -> str:
    from nexi.answers.bibliography import FORMS
    from nexi.app import result_of
    from nexi.app.report import front_matter_of, report_text
    from nexi.output import answer_json
    from nexi.web.page.export import markdown_of, tame_document
    from nexi.web.page.view import is_web

    if EXPORT_FORMATS[form].lists_sources:
        if not run.end.sources:
            cause = "the answer cites no source"
            raise NexiError("there are no references", cause=cause, fix="export md", code="no_references")
        # an address that is neither of the web nor of a file is left out
        sources = [s if is_web(s.url) or s.url.startswith("file:") else replace(s, url="") for s in run.end.sources]
        return FORMS[form](sources, today)
    result = result_of(run.id, run.facts)
    if form == "json":  # of an agentic search, its own object
        return result.answer.text if result.started.mode == "agentic" else json.dumps(answer_json(result), ensure_ascii=True)
    if run.started.mode == "research":
        return tame_document(report_text(result, today, has_links=True)[0])
    return markdown_of(run, front_matter_of(result, today))


def _encode_utf8(text: str) -> bytes:
    """UTF-8 without characters that a terminal would execute, whatever a page or a model had written."""
    return clean_text(text).encode("utf-8", "replace")


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
