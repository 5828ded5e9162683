"""Exports of a run in every form, for the page and for `nexi export` alike."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nexi.answers.bibliography import FORMS as REFERENCES
from nexi.app import ReadLog
from nexi.errors import NexiError
from nexi.events import RunFinished, RunStarted
from nexi.text.controls import clean_text
from nexi.web.page.export import Exported, export_html
from nexi.web.page.markdown import markdown_of, tame_document
from nexi.web.page.printing import print_to_pdf
from nexi.web.page.timeline import timeline_of
from nexi.web.page.view import AnsweredRun, is_web

if TYPE_CHECKING:
    from nexi.ports import PageStore, RunStore

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


def suffix_of(form: str) -> str:
    return SUFFIXES.get(form, form)


async def export_run(runs: RunStore, pages: PageStore, run_id: str, form: str) -> bytes:
    """A finished run in one of the forms of TYPES. Raises NexiError."""
    log = await asyncio.to_thread(runs.open_log, run_id)
    answered = answered_of(run_id, log)
    if form in REFERENCES:
        return _encode_utf8(_references_of(answered, form, log.header.created[:10]))
    if form in ("md", "json"):
        return _encode_utf8(await asyncio.to_thread(_text_of, answered, form, log.header.created[:10]))
    texts = {s.number: text for s in answered.end.sources if (text := await pages.get(s.digest))}
    timeline = timeline_of(log.facts, log.moments, log.header.created)
    file = Exported(answered, log.header.created, timeline, texts, opened=form == "pdf")
    made = await asyncio.to_thread(export_html, file)
    return await print_to_pdf(made) if form == "pdf" else _encode_utf8(made)


def _references_of(answered: AnsweredRun, form: str, accessed: str) -> str:
    """The sources as references; an address that is neither of the web nor of a file is left out."""
    if not answered.end.sources:
        raise NexiError("there are no references", cause="the answer cites no source", fix="export md", code="no_references")
    known = [s if is_web(s.url) or s.url.startswith("file:") else replace(s, url="") for s in answered.end.sources]
    return REFERENCES[form](known, accessed)


def _text_of(answered: AnsweredRun, form: str, today: str) -> str:
    """A report as it is saved, an answer with its sources, or either as the object that `--json` prints."""
    from nexi.app.report import front_matter_of
    from nexi.web.statuses import render_result, result_of

    result = result_of(answered.id, answered.facts)
    if form == "md" and answered.started.mode != "research":
        return markdown_of(answered, front_matter_of(result, answered.started, today))
    text = render_result(result, form, today)
    return text if form == "json" else tame_document(text)


def _encode_utf8(text: str) -> bytes:
    """UTF-8 without characters that a terminal would execute, whatever a page or a model had written."""
    return clean_text(text).encode("utf-8", "replace")


def answered_of(run_id: str, log: ReadLog) -> AnsweredRun:
    facts = [fact for _, fact in log.facts]
    if not facts or not isinstance(facts[0], RunStarted) or not isinstance(facts[-1], RunFinished):
        raise NexiError(
            f"run {run_id} has no answer yet", cause="it has not ended with one", fix=f"nexi resume {run_id}", code="not_ended"
        )
    return AnsweredRun(run_id, facts[0], facts[-1], tuple(facts))
