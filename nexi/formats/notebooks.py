"""Jupyter notebooks to Markdown: text cells as they are, code in fences, and what the code printed.

Above sits `extract`; below, the standard library's JSON reader, `markup` for tables and `writer`. No code is run; pictures are
left out.
"""

from __future__ import annotations

import json
from typing import Any

from nexi.extract import Extracted, charset, markup, one_line
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import broken_error, too_large_error
from nexi.structured.json_reader import as_mapping

MAX_JSON_PARTS = 200_000
MAX_OUTPUT_CHARS = 20_000  # of one cell


def read_ipynb(data: bytes, max_chars: int) -> Extracted:
    """The cells in their order. Raises FetchError."""
    if data.count(b"{") + data.count(b"[") > MAX_JSON_PARTS:
        raise too_large_error(f"it has more than {MAX_JSON_PARTS:,} parts")
    try:
        notebook = json.loads(charset.decode_body(data))
    except (ValueError, RecursionError) as error:
        raise broken_error(f"it is no JSON ({error})"[:200]) from error
    if not isinstance(notebook, dict) or not (isinstance(notebook.get("cells"), list) or notebook.get("worksheets")):
        raise broken_error("it has no cells")
    about = as_mapping(notebook.get("metadata"))
    name = as_mapping(about.get("language_info")).get("name") or as_mapping(about.get("kernelspec")).get("language") or "python"
    language = "".join(char for char in str(name).lower() if char.isalnum() or char in "+#-")[:20]
    with MarkdownWriter(max_chars) as writer:
        # The cells of the format of today, or those of version 3, which had sheets.
        for sheet in notebook["worksheets"] if isinstance(notebook.get("worksheets"), list) else [notebook]:
            cells = as_mapping(sheet).get("cells")
            for cell in cells if isinstance(cells, list) else []:
                if isinstance(cell, dict):
                    _write_cell(cell, language, writer)
    return writer.build_extracted({"title": one_line(str(about.get("title") or ""))})


def _write_cell(cell: dict[str, Any], language: str, writer: MarkdownWriter) -> None:
    source = _join_lines(cell.get("source", cell.get("input", "")))
    match cell.get("cell_type"):
        case "code":
            writer.add_code(source, language)
            outputs = cell.get("outputs")
            for output in outputs if isinstance(outputs, list) else []:
                result = as_mapping(output)
                forms = as_mapping(result.get("data")) or result
                html, markdown = _join_lines(forms.get("text/html", "")), forms.get("text/markdown", "")
                if "<table" in html:
                    writer.add_block(markup.read_whole(html).text)
                elif markdown:
                    writer.add_block(_join_lines(markdown))
                else:
                    text = _join_lines(forms.get("text/plain", result.get("text", ""))) or _join_lines(result.get("evalue", ""))
                    writer.truncated = writer.truncated or len(text) > MAX_OUTPUT_CHARS
                    writer.add_code(text[:MAX_OUTPUT_CHARS])
        case "heading":
            writer.add_heading(int(cell["level"]) if isinstance(cell.get("level"), int) else 1, source)
        case _:
            writer.add_block(source)


def _join_lines(value: object) -> str:
    """A text, which a notebook may keep as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""
