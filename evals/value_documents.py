"""Sets of documents with five columns each and what a careful reader would put into every cell.

Above is `evals.value_table`. The last set was not looked at while the finders were written, the others were. Values are named
in other words than the columns, beside values of the same kind that are something else, and some are not stated at all. A cell
lists what its value must contain; an empty one is not stated.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Document:
    """One document as Markdown, the ending that says its format, and its cells in the order of the columns."""

    name: str
    text: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentSet:
    name: str
    columns: str
    documents: tuple[Document, ...]


def load_sets() -> list[DocumentSet]:
    """The sets of `value_documents.jsonl`, the one that was kept aside last."""
    rows = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]
    return [
        DocumentSet(name, own[0]["columns"], tuple(Document(r["name"], r["text"], tuple(r["cells"])) for r in own))
        for name in dict.fromkeys(row["set"] for row in rows)
        if (own := [row for row in rows if row["set"] == name])
    ]


def write_documents(documents: DocumentSet, folder: Path) -> None:
    """The documents of a set as files of their formats."""
    for document in documents.documents:
        suffix = document.name.rpartition(".")[2]
        (folder / document.name).write_bytes(_WRITERS.get(suffix, _as_text)(document.text))


def _as_text(text: str) -> bytes:
    return text.encode()


def _as_html(text: str) -> bytes:
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(text)
    return f"<!doctype html><html><body><article>{body}</article></body></html>".encode()


def _as_docx(text: str) -> bytes:
    from docx import Document as Docx

    document, out = Docx(), io.BytesIO()
    for line in filter(None, text.splitlines()):
        if line.startswith("#"):
            document.add_heading(line.lstrip("# "), level=line.count("#", 0, 3))
        elif line.startswith("- "):
            document.add_paragraph(line[2:], style="List Bullet")
        else:
            document.add_paragraph(line)
    document.save(out)
    return out.getvalue()


def _as_xlsx(text: str) -> bytes:
    from openpyxl import Workbook

    book, out = Workbook(), io.BytesIO()
    for line in text.splitlines():
        if "---" not in line:
            book.active.append([cell.strip() for cell in line.strip("|").split("|")])
    book.save(out)
    return out.getvalue()


def _as_pdf(text: str) -> bytes:
    import textwrap

    from evals.table_documents import LEFT, LINE, PAGE, show_text, write_pdf

    lines = [line for paragraph in text.split("\n\n") for line in (*textwrap.wrap(paragraph, 88), "")]
    return write_pdf(["\n".join(show_text(line, LEFT, PAGE[1] - 60 - LINE * n) for n, line in enumerate(lines) if line)])


_WRITERS = {"html": _as_html, "docx": _as_docx, "xlsx": _as_xlsx, "pdf": _as_pdf}
