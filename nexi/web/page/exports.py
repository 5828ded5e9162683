"""Exports of a run in every form, for the page and for `nexi export` alike."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from nexi.bibliography import FORMS as REFERENCES
from nexi.errors import NexiError
from nexi.events import RunFinished, RunStarted
from nexi.runlog import ReadLog, RunDirectory
from nexi.web.page.export import export_html
from nexi.web.page.timeline import timeline_of
from nexi.web.page.view import Answered

if TYPE_CHECKING:
    from nexi.ports import PageStore

TYPES = {
    "md": "text/markdown",
    "html": "text/html",
    "json": "application/json",
    "ris": "application/x-research-info-systems",
    "bibtex": "application/x-bibtex",
    "csl": "application/vnd.citationstyles.csl+json",
    "pdf": "application/pdf",
}
SUFFIXES = {"bibtex": "bib", "csl": "csl.json"}
PRINT_S = 60.0


def suffix_of(form: str) -> str:
    return SUFFIXES.get(form, form)


async def exported(runs: RunDirectory, pages: PageStore, run_id: str, form: str) -> bytes:
    """A finished run in one of the forms of TYPES. Raises NexiError."""
    log = await asyncio.to_thread(runs.open_log, run_id)
    answered = answered_of(run_id, log)
    if form in REFERENCES:
        return REFERENCES[form](answered.end.sources, log.header.created[:10]).encode()
    if form in ("md", "json"):
        from nexi.web.statuses import rendered, result_of

        return rendered(result_of(run_id, answered.facts), form, log.header.created[:10]).encode()
    texts = {s.number: text for s in answered.end.sources if (text := await pages.get(s.digest))}
    made = export_html(answered, timeline_of(log.facts, log.moments, log.header.created), texts)
    return await _printed(made) if form == "pdf" else made.encode()


def answered_of(run_id: str, log: ReadLog) -> Answered:
    facts = [fact for _, fact in log.facts]
    if not facts or not isinstance(facts[0], RunStarted) or not isinstance(facts[-1], RunFinished):
        raise NexiError(
            f"run {run_id} has no answer yet", cause="it has not ended with one", fix=f"nexi resume {run_id}", code="not_ended"
        )
    return Answered(run_id, facts[0], facts[-1], tuple(facts))


async def _printed(made: str) -> bytes:
    """The HTML as a PDF, by an installed Chromium. Raises NexiError where there is none."""
    from nexi.fetchers.browser import installed_browser

    browser = installed_browser()
    if not browser:
        raise NexiError(
            "no PDF can be made here",
            cause="Chromium is not installed",
            fix="install it (Debian: apt install chromium), or export html and print that",
            code="no_browser",
        )
    with tempfile.TemporaryDirectory(prefix="nexi-pdf-") as folder:
        page, out = Path(folder) / "page.html", Path(folder) / "page.pdf"
        page.write_text(made, "utf-8")
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to root
        process = await asyncio.create_subprocess_exec(
            browser,
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            f"--user-data-dir={folder}/profile",
            *sandbox,
            "--no-pdf-header-footer",
            f"--print-to-pdf={out}",
            page.as_uri(),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(PRINT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        if not out.is_file():
            raise NexiError("the PDF was not made", cause="Chromium did not print it", fix="export html", code="not_printed")
        return out.read_bytes()
