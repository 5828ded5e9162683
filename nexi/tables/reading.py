"""A row of a table by a model: one request for each document, each quote held against the document's own words.

Above is `app.value_table`; below, the LLM port. A value whose quote does not stand in the document, or whose numbers do not
stand in its quote, is dropped: the cell is then what can be found without a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nexi.errors import LLMError
from nexi.ports import LLM
from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import object_schema
from nexi.tables.cells import Cell, Column, find_quote, place_quote
from nexi.text.chunking import excerpt_text
from nexi.text.plain import strip_markdown
from nexi.types import Message, Page

DOCUMENT_BYTES = 24_000  # of one document that are shown
TOKENS_PER_CELL = 160
MAX_QUOTE_CHARS = 1_000
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


async def ask_row(llm: LLM, prompt: str, page: Page, columns: Sequence[Column], deadline: float | None) -> list[Cell | None]:
    """The cells that a model gives and the document bears out; None where to look otherwise. Raises LLMError and ValueError."""
    names = "\n".join(f"{number}. {column.text}" for number, column in enumerate(columns, 1))
    document = excerpt_text(page.text, " ".join(column.text for column in columns), DOCUMENT_BYTES)
    cell = object_schema({"value": {"type": "string"}, "quote": {"type": "string"}}, is_closed=True)
    cells_schema = {"type": "array", "items": cell, "minItems": len(columns), "maxItems": len(columns)}
    message = f"Columns:\n{names}\n\nDocument: {page.title}\n\n{document}"
    reply = await llm.complete(
        [Message("system", prompt), Message("user", message)],
        max_tokens=200 + TOKENS_PER_CELL * len(columns),
        temperature=0.0,
        deadline=deadline,
        schema=object_schema({"cells": cells_schema}, is_closed=True),
    )
    row = parse_lenient(reply.text)
    cells = row.get("cells") if isinstance(row, dict) else None
    if not isinstance(cells, list):
        raise LLMError("the model gave no row", cause="its reply has no list of cells", code="malformed")
    return [_check_cell(page.text, cells[at] if at < len(cells) else None) for at in range(len(columns))]


def _check_cell(text: str, reply: object) -> Cell | None:
    """A cell as the document bears it out; None where it does not. An empty quote says that nothing is stated."""
    if not isinstance(reply, dict):
        return None
    value, quote = (" ".join(str(reply.get(key, "")).split()) for key in ("value", "quote"))
    if not value and not quote:
        return Cell()
    span = find_quote(text, quote[:MAX_QUOTE_CHARS])
    if not value or span is None or not set(_NUMBER.findall(value)) <= set(_NUMBER.findall(quote)):
        return None
    source = text[slice(*span)]
    return place_quote(text, value, source if "|" in source else strip_markdown(source), span[0])
