"""`POST /v1/verify`: a text checked sentence by sentence, or the citations of a report audited.

It hands the body to `Nexi.verify` and returns what `nexi verify` prints. Files of the server cannot be named: `against` takes
addresses alone, and the guard of fetching holds for each of them.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from nexi.app import Target, VerifyRequest
from nexi.exports import export_verification
from nexi.output.proof import verification_json, verification_markdown
from nexi.urls import is_web_url
from nexi.web.contract import Contract
from nexi.web.exports import SHOWN
from nexi.web.payload import read_body, told_reply
from nexi.web.problems import bad_request
from nexi.web.schemas import Address, LimitedWork, OnlyLocal

MAX_PAGES = 30
FORMS = {"md": "text/markdown", "html": "text/html"}
CONTRACT = Contract("nexi")
SUMMARY = "Check a text sentence by sentence, or audit the citations of a report."
OUTCOME = {
    "type": "object",
    "required": ["schema", "target", "ok", "contradicted", "counts", "judge", "gap", "sources"],
    "properties": {"schema": {"enum": ["nexi-verification-1", "nexi-audit-1"]}},
}


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


def parse_request(body: VerifyBody) -> VerifyRequest:
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


@CONTRACT.serve("POST /v1/verify", SUMMARY, body=VerifyBody, ok=OUTCOME, operationId="verify")
async def _verify(request: Request) -> Response:
    body = await read_body(request, VerifyBody)
    verify_request = parse_request(body)
    verification = await request.app.state.nexi.verify(verify_request)
    name = verify_request.target.id or verify_request.target.url or "the text"
    if body.format == "json":
        return told_reply(await asyncio.to_thread(verification_json, verification, name, strict=body.strict))
    render = export_verification if body.format == "html" else verification_markdown
    text = await asyncio.to_thread(render, verification, name, strict=body.strict)
    return Response(text, media_type=FORMS[body.format], headers=SHOWN)
