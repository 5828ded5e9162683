"""`POST /v1/verify`: a text checked sentence by sentence, or the citations of a report audited.

It hands the body to `Nexi.verify` and returns what `nexi verify` prints. Files of the server cannot be named: `against` takes
addresses alone, and the guard of fetching holds for each of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.app import RunLimits, Target, VerifyRequest
from nexi.urls import is_web_url
from nexi.web.exports import SHOWN
from nexi.web.payload import build_operation, read_json, told_reply, with_error_shape
from nexi.web.problems import bad_request, own_shape
from nexi.web.schemas import ERROR, LIMITS

if TYPE_CHECKING:
    from nexi.checking.recheck import Verification

__all__ = ["VERIFY_REQUEST", "parse_request", "routes"]

TAG = "nexi"
MOST_PAGES = 30
FORMS = {"md": "text/markdown", "html": "text/html"}
_ADDRESS = {"type": "string", "maxLength": 8_000}
VERIFY_REQUEST: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "text": {
            "type": "string",
            "maxLength": 2_000_000,
            "description": "Markdown, HTML or plain text, with citations or not.",
        },
        "url": {**_ADDRESS, "description": "Or the address of a report."},
        "run_id": {"type": "string", "maxLength": 100, "description": "Or the id of a past run."},
        "against": {
            "type": "array",
            "maxItems": MOST_PAGES,
            "items": _ADDRESS,
            "description": "Pages to check a text against.",
        },
        "web": {"type": "boolean", "description": "Search the web for what cites nothing."},
        "audit": {"type": "boolean", "description": "Follow the links; give precision and recall of the citations."},
        "refetch": {"type": "boolean", "description": "Fetch the cited pages again and say which changed."},
        "only_local": {"type": "boolean", "description": "Send nothing to another machine."},
        "strict": {"type": "boolean", "description": "Fail also for sentences that cite nothing."},
        **LIMITS,
        "format": {"type": "string", "enum": ["json", *FORMS], "description": "json unless another is named."},
    },
}


def routes() -> list[Route]:
    return [Route("/v1/verify", _verify, methods=["POST"])]


def parse_request(body: dict[str, Any]) -> VerifyRequest:
    """The request of a body that fits the schema. Raises Refused."""
    target = Target(body.get("text", ""), body.get("run_id", "").strip(), body.get("url", ""))
    if sum(map(bool, (target.text.strip(), target.id, target.url))) != 1:
        raise bad_request("name one thing to verify", fix="give text, url or run_id, and only one of them")
    if file := next((page for page in (*body.get("against", ()), *filter(None, [target.url])) if not is_web_url(page)), ""):
        raise bad_request(f"{file[:200]!r} is not the address of a web page", fix="name pages with http:// or https://")
    audit = bool(body.get("audit"))
    if audit and (body.get("against") or body.get("web") or body.get("only_local")):
        raise bad_request("an audit checks citations against the pages they name", fix="leave against, web and only_local out")
    return VerifyRequest(
        target,
        tuple(body.get("against", ())),
        bool(body.get("web")),
        audit,
        bool(body.get("refetch")),
        bool(body.get("only_local")),
        RunLimits(**{name: body[name] for name in LIMITS if name in body}),
    )


@with_error_shape(own_shape)
async def _verify(request: Request) -> Response:
    body = await read_json(request, VERIFY_REQUEST)
    asked = parse_request(body)
    found = await request.app.state.nexi.verify(asked)
    name, form, strict = asked.target.id or asked.target.url or "the text", body.get("format", "json"), bool(body.get("strict"))
    made = await asyncio.to_thread(_render, found, name, form, strict)
    return told_reply(made) if form == "json" else Response(made, media_type=FORMS[form], headers=SHOWN)


def _render(found: Verification, name: str, form: str, strict: bool) -> Any:
    from nexi.exports import export_verification
    from nexi.output.verification import verification_json, verification_markdown

    if form == "html":
        return export_verification(found, name, strict=strict)
    return (verification_json if form == "json" else verification_markdown)(found, name, strict=strict)


def openapi() -> dict[str, Any]:
    """The path of this module."""
    names = ("schema", "target", "ok", "contradicted", "counts", "judge", "gap", "sources")
    ok = {
        "type": "object",
        "required": list(names),
        "properties": {"schema": {"enum": ["nexi-verification-1", "nexi-audit-1"]}},
    }
    summary = "Check a text sentence by sentence, or audit the citations of a report."
    operation = build_operation(summary, TAG, body=VERIFY_REQUEST, ok=ok, error=ERROR, operationId="verify")
    return {"/v1/verify": {"post": operation}}
