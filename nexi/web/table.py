"""`POST /v1/table`: values of documents by columns, each with its quote.

It hands the body to `Nexi.table` and returns what `nexi table` prints. Files of the server cannot be named: `documents` takes
web addresses and the addresses of stored files.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from nexi.app import TableRequest
from nexi.web.contract import Contract
from nexi.web.exports import SHOWN
from nexi.web.payload import read_body, told_reply
from nexi.web.schemas import Address, LimitedWork, OnlyLocal

CONTRACT = Contract("nexi")
SUMMARY = "Extract values from documents into a table, each with its quote."
OUTCOME = {"type": "object", "required": ["schema", "columns", "rows"], "properties": {"schema": {"const": "nexi-table-1"}}}
MAX_DOCUMENTS = 100
FORMS = {"md": "text/markdown", "csv": "text/csv", "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}


class TableBody(LimitedWork, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Documents, and what to look for in each."""

    columns: Annotated[
        tuple[Annotated[str, Meta(max_length=300)], ...],
        Meta(min_length=1, max_length=40, description="Names (launch date) or whole questions."),
    ]
    documents: Annotated[
        tuple[Address, ...],
        Meta(min_length=1, max_length=MAX_DOCUMENTS, description="Web addresses, or the addresses of stored files."),
    ]
    only_local: OnlyLocal = False
    format: Annotated[Literal["json", "md", "csv", "xlsx"], Meta(description="json unless another is named.")] = "json"


@CONTRACT.serve("POST /v1/table", SUMMARY, body=TableBody, ok=OUTCOME, operationId="table")
async def _table(request: Request) -> Response:
    from nexi.output.value_table import render_table, table_json

    body = await read_body(request, TableBody)
    table_request = TableRequest(body.columns, body.documents, body.only_local, limits=body.limits)
    table = await request.app.state.nexi.table(table_request)
    if body.format == "json":
        return told_reply(await asyncio.to_thread(table_json, table))
    return Response(await asyncio.to_thread(render_table, table, body.format), media_type=FORMS[body.format], headers=SHOWN)
