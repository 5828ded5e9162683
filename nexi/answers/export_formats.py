"""The formats a finished run can be exported in: the one table that every door reads.

Pure data, and named tuples, which cost the start of a command the least. `nexi.exports` makes the files; doors offer what
stands here and add nothing of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["EXPORT_FORMATS", "REFERENCE_FORMATS"]


class ExportFormat(NamedTuple):
    """A format: its name in commands and addresses, its name for readers, its media type and the end of its file name."""

    name: str
    title: str
    media_type: str
    suffix: str
    is_text: bool = True
    lists_sources: bool = False  # references only: a run without sources has none


_TABLE = (
    ExportFormat("md", "Markdown", "text/markdown", "md"),
    ExportFormat("json", "JSON", "application/json", "json"),
    ExportFormat("html", "HTML", "text/html", "html"),
    ExportFormat("pdf", "PDF", "application/pdf", "pdf", is_text=False),
    ExportFormat(
        "docx", "Word", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx", is_text=False
    ),
    ExportFormat("ris", "RIS", "application/x-research-info-systems", "ris", lists_sources=True),
    ExportFormat("bibtex", "BibTeX", "application/x-bibtex", "bib", lists_sources=True),
    ExportFormat("csl", "CSL", "application/vnd.citationstyles.csl+json", "csl.json", lists_sources=True),
)
EXPORT_FORMATS: Mapping[str, ExportFormat] = {form.name: form for form in _TABLE}
REFERENCE_FORMATS = tuple(form.name for form in _TABLE if form.lists_sources)
