"""Exports of a finished run, the same bytes at every door. Nothing is fetched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
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


async def export_run(runs: RunStore, pages: PageStore, run_id: str, form: str, numbers: Collection[int] = ()) -> bytes:
    """A finished run in one of EXPORT_FORMATS; `numbers` are the sources that references are wanted of. Raises NexiError."""
    if form not in EXPORT_FORMATS:
        fix = f"use one of {', '.join(EXPORT_FORMATS)}"
        raise NexiError(f"{form!r} is no format of an export", fix=fix, code="bad_request")
    return await export_log(await asyncio.to_thread(runs.open_log, run_id), pages, run_id, form, numbers)


async def export_log(log: ReadLog, pages: PageStore, run_id: str, form: str, numbers: Collection[int] = ()) -> bytes:
    """The same of a log that was read already. Raises NexiError, also for a number that names no source."""
    from nexi.web.page.export import Exported, export_html
    from nexi.web.page.markdown import title_document
    from nexi.web.page.printing import convert_to_docx, print_to_pdf
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
    from nexi.web.page.markdown import markdown_of, tame_document
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
