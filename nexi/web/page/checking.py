"""A text that was checked as its panel shows it, with marks and passages. Above, the page; below, `Nexi.verify`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from nexi.web.contract import Contract
from nexi.web.page.view import answer_html, claim_to_dict, is_web
from nexi.web.payload import read_body, told_reply
from nexi.web.verify import VerifyBody, parse_request

if TYPE_CHECKING:
    from nexi.checking.recheck import SourceState, Verification


CONTRACT = Contract()


@CONTRACT.serve("POST /page/check")
async def _check_text(request: Request) -> Response:
    verification = await request.app.state.nexi.verify(parse_request(await read_body(request, VerifyBody)))
    return told_reply(await asyncio.to_thread(_view_of, verification))


def _view_of(verification: Verification) -> dict[str, Any]:
    """The text as safe HTML, its sentences with their passages, its sources, and the figures."""
    sources = [state.source for state in verification.sources]
    audit = verification.citations
    return {
        "html": answer_html(verification.document.text, verification.proof.claims, sources),
        "claims": [{**claim_to_dict(claim), "index": claim.index} for claim in verification.proof.checked],
        "sources": [_source_to_dict(state) for state in verification.sources],
        "counts": verification.counts,
        "judge": verification.judge,
        "gap": verification.gap,
        "precision": audit and audit.precision,
        "recall": audit and audit.recall,
        "is_bound": bool(audit and audit.is_bound),
    }


def _source_to_dict(state: SourceState) -> dict[str, Any]:
    source = state.source
    link = source.url if is_web(source.url) else ""
    return {"n": source.number, "title": source.title or source.url, "link": link, "state": state.state, "reason": state.reason}
