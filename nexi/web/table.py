"""`POST /v1/table`: values of documents by columns, each with its quote.

It hands the body to `Nexi.table` and returns what `nexi table` prints. Files of the server cannot be named: `documents` takes
web addresses and the addresses of stored files.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.app import RunLimits, TableRequest
from nexi.web.exports import SHOWN
from nexi.web.payload import build_operation, read_json, told_reply, with_error_shape
from nexi.web.problems import own_shape
from nexi.web.schemas import ERROR, LIMITS

__all__ = ["routes"]

TAG = "nexi"
MOST_DOCUMENTS = 100
FORMS = {
    "md": "text/markdown",
    "csv": "text/csv",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
TABLE_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["columns", "documents"],
    "additionalProperties": False,
    "properties": {
        "columns": {
            "type": "array",
            "minItems": 1,
            "maxItems": 40,
            "items": {"type": "string", "maxLength": 300},
            "description": "Names (launch date) or whole questions.",
        },
        "documents": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_DOCUMENTS,
            "items": {"type": "string", "maxLength": 8_000},
            "description": "Web addresses, or the addresses of stored files.",
        },
        "only_local": {"type": "boolean", "description": "Send nothing to another machine."},
        **LIMITS,
        "format": {"type": "string", "enum": ["json", *FORMS], "description": "json unless another is named."},
    },
}


def routes() -> list[Route]:
    return [Route("/v1/table", _table, methods=["POST"])]


@with_error_shape(own_shape)
async def _table(request: Request) -> Response:
    from nexi.output.value_table import render_table, table_json

    body = await read_json(request, TABLE_REQUEST)
    limits = RunLimits(**{name: body[name] for name in LIMITS if name in body})
    asked = TableRequest(tuple(body["columns"]), tuple(body["documents"]), bool(body.get("only_local")), limits=limits)
    table = await request.app.state.nexi.table(asked)
    form = body.get("format", "json")
    if form == "json":
        return told_reply(await asyncio.to_thread(table_json, table))
    return Response(await asyncio.to_thread(render_table, table, form), media_type=FORMS[form], headers=SHOWN)


def openapi() -> dict[str, Any]:
    """The path of this module."""
    ok = {"type": "object", "required": ["schema", "columns", "rows"], "properties": {"schema": {"const": "nexi-table-1"}}}
    summary = "Extract values from documents into a table, each with its quote."
    operation = build_operation(summary, TAG, body=TABLE_REQUEST, ok=ok, error=ERROR, operationId="table")
    return {"/v1/table": {"post": operation}}
