"""Documents: `POST /v1/verify` checks a text sentence by sentence or audits the citations of a report, `POST /v1/table` takes
values out of documents by columns, each with its quote.

It hands the bodies to `Nexi` and returns what `nexi verify` and `nexi table` print. Files of the server cannot be named:
`against` takes addresses alone, `documents` also those of stored files, and the guard of fetching holds for each of them.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.app import RunLimits, TableRequest, Target, VerifyRequest
from nexi.exports import export_verification
from nexi.output.proof import verification_json, verification_markdown
from nexi.urls import is_web_url
from nexi.web.contract import Contract
from nexi.web.payload import bad_request, read_body, told_reply
from nexi.web.runs import SHOWN, Address, Dollars, Seconds, Tokens

MAX_PAGES = 30
MAX_DOCUMENTS = 100
FORMS = {
    "md": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
CONTRACT = Contract("nexi")
CHECK = "Check a text sentence by sentence, or audit the citations of a report."
CHECKED = {
    "type": "object",
    "required": ["schema", "target", "ok", "contradicted", "counts", "judge", "gap", "sources"],
    "properties": {"schema": {"enum": ["nexi-verification-1", "nexi-audit-1"]}},
}
EXTRACT = "Extract values from documents into a table, each with its quote."
TABLE = {"type": "object", "required": ["schema", "columns", "rows"], "properties": {"schema": {"const": "nexi-table-1"}}}
OnlyLocal = Annotated[bool, Meta(description="Send nothing to another machine.")]


class LimitedWork(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Work that is no run, a check or a table, and what it may use."""

    time_target: Annotated[Seconds | None, Meta(description="Stop after so many seconds.")] = None
    max_tokens: Tokens | None = None
    max_cost: Dollars | None = None

    @property
    def limits(self) -> RunLimits:
        return RunLimits(time_target=self.time_target, max_tokens=self.max_tokens, max_cost=self.max_cost)


class VerifyBody(LimitedWork, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A text to check, or a report or run whose citations are checked."""

    text: Annotated[str, Meta(max_length=2_000_000, description="Markdown, HTML or plain text, with citations or not.")] = ""
    url: Annotated[Address, Meta(description="Or the address of a report.")] = ""
    run_id: Annotated[str, Meta(max_length=100, description="Or the id of a past run.")] = ""
    against: Annotated[tuple[Address, ...], Meta(max_length=MAX_PAGES, description="Pages to check a text against.")] = ()
    web: Annotated[bool, Meta(description="Search the web for what cites nothing.")] = False
    audit: Annotated[bool, Meta(description="Follow the links; give precision and recall of the citations.")] = False
    refetch: Annotated[bool, Meta(description="Fetch the cited pages again and say which changed.")] = False
    only_local: OnlyLocal = False
    strict: Annotated[bool, Meta(description="Fail also for sentences that cite nothing.")] = False
    format: Annotated[Literal["json", "md", "html"], Meta(description="json unless another is named.")] = "json"


def parse_verify_request(body: VerifyBody) -> VerifyRequest:
    """The request that a body stands for. Raises Refused."""
    target = Target(body.text, body.run_id.strip(), body.url)
    if sum(map(bool, (target.text.strip(), target.id, target.url))) != 1:
        raise bad_request("name one thing to verify", fix="give text, url or run_id, and only one of them")
    named_pages = (*body.against, target.url) if target.url else body.against
    if (file := next((page for page in named_pages if not is_web_url(page)), None)) is not None:
        raise bad_request(f"{file[:200]!r} is not the address of a web page", fix="name pages with http:// or https://")
    if body.audit and (body.against or body.web or body.only_local):
        raise bad_request("an audit checks citations against the pages they name", fix="leave against, web and only_local out")
    return VerifyRequest(target, body.against, body.web, body.audit, body.refetch, body.only_local, body.limits)


@CONTRACT.serve("POST /v1/verify", CHECK, body=VerifyBody, ok=CHECKED, operationId="verify")
async def _verify(request: Request) -> Response:
    body = await read_body(request, VerifyBody)
    verify_request = parse_verify_request(body)
    verification = await request.app.state.nexi.verify(verify_request)
    name = verify_request.target.id or verify_request.target.url or "the text"
    if body.format == "json":
        return told_reply(await asyncio.to_thread(verification_json, verification, name, strict=body.strict))
    render = export_verification if body.format == "html" else verification_markdown
    text = await asyncio.to_thread(render, verification, name, strict=body.strict)
    return Response(text, media_type=FORMS[body.format], headers=SHOWN)


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


@CONTRACT.serve("POST /v1/table", EXTRACT, body=TableBody, ok=TABLE, operationId="table")
async def _table(request: Request) -> Response:
    from nexi.output.value_table import render_table, table_json

    body = await read_body(request, TableBody)
    table_request = TableRequest(body.columns, body.documents, body.only_local, limits=body.limits)
    table = await request.app.state.nexi.table(table_request)
    if body.format == "json":
        return told_reply(await asyncio.to_thread(table_json, table))
    return Response(await asyncio.to_thread(render_table, table, body.format), media_type=FORMS[body.format], headers=SHOWN)
