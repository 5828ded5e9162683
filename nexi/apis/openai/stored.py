"""Responses that were given before, or are under way: retrieve, follow, cancel and delete one, and list what it was asked.

A response is made from the log of its run, which holds the body its client sent, by the same steps as when it was first given.
Above is `responses`, which gives new ones; below are `runs` and the run log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.apis.openai.responses import PREFIX, RESPONSE, ResponseOutput, ResponseRequest, format_frames, parse_response_request
from nexi.apis.openai.shapes import ERROR, MODELS, openai_error
from nexi.app import check_run_id, error_of
from nexi.app.hosting import Mark, RunHost
from nexi.app.request import request_of_run
from nexi.errors import NexiError
from nexi.events import Fact, RunFailed, RunFinished, RunStarted
from nexi.types import StopReason
from nexi.web.contract import Contract, Named
from nexi.web.payload import json_reply, parse_number
from nexi.web.problems import bad_request, build_refusal, problem_of
from nexi.web.runs import cancel_run, delete_run, follow_log
from nexi.web.streams import EventStream

MAX_ITEMS = 100
USUAL_ITEMS = 20
CONTRACT = Contract("OpenAI", error=ERROR, path={"id": ("The id of a response, or of a run.", {"type": "string"})})
DELETION = {"type": "object", "required": ["id", "object", "deleted"]}
INPUT_PAGE = {"type": "object", "required": ["object", "data", "first_id", "last_id", "has_more"]}
FOLLOWING: Named = {
    "stream": ("Whether its events are sent, as they come.", {"type": "boolean"}),
    "starting_after": ("The number of the last event that the reader has.", {"type": "integer", "minimum": 0}),
}
PAGING: Named = {
    "limit": ("How many.", {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS}),
    "order": ("Which end comes first.", {"enum": ["asc", "desc"]}),
    "after": ("The id of the item before the first.", {"type": "string"}),
}


class _StoredResponse(Struct, frozen=True):
    """A response as its log has it so far."""

    run_id: str
    asked: ResponseRequest
    created: int
    facts: Sequence[Fact]
    is_running: bool

    def build(self) -> dict[str, Any]:
        """The whole object, with the status that its run has now."""
        output = ResponseOutput(self.run_id, self.asked, self.created)
        for fact in self.facts:
            list(output.observe(fact))  # for the items; nobody reads the events
        match self.facts[-1] if self.facts else None:
            case RunFinished() as end:
                self.require_text()
                list(output.finish(end.answer, end.sources, end.stop, end.usage, end))
                return output.final
            case RunFailed(stop=StopReason.CANCELLED):
                return output.body("cancelled")
            case RunFailed() as end:
                output.fail(openai_error(problem_of(error_of(end)))["error"])
                return output.final
            case last:
                return output.body(("in_progress" if last else "queued") if self.is_running else "incomplete")

    def require_text(self) -> None:
        """Refuse where what the client got was JSON, written after the run. Raises Refused."""
        if self.asked.schema is not None:
            fix = "keep the reply when it comes, or ask without a format"
            raise build_refusal(409, "not_kept", "the JSON of this response was given once and is not kept", fix=fix)


async def _find_response(request: Request) -> _StoredResponse:
    """Raises Refused where there is none of this id."""
    response_id = request.path_params["id"]
    try:
        return await asyncio.to_thread(_read_response, request.app.state.host, check_run_id(response_id.removeprefix(PREFIX)))
    except NexiError as error:
        if error.code not in ("bad_run_id", "no_such_run"):
            raise
        raise build_refusal(404, "not_found", f"there is no response {response_id[:100]!r}", parameter="id") from error


def _read_response(host: RunHost, run_id: str) -> _StoredResponse:
    runs = host.nexi.runs()
    is_running = bool(host.get_active(run_id)) or host.will_resume(run_id) or runs.is_running(run_id)  # before its log is read
    log = runs.open_log(run_id)
    facts = log.bare_facts
    start = next((fact for fact in facts if isinstance(fact, RunStarted)), None)
    if start is None:
        summaries = runs.read_summaries([run_id])
        start = RunStarted(summaries[0].query if summaries else "", "m", "", summaries[0].mode if summaries else "search")
    # The model that a run stands for which was asked for at another door; one that waits may have no question yet.
    model = next((name for name, known in MODELS.items() if known == (start.mode, start.effort)), "nexi-deep")
    body = request_of_run(start).client_body or {"model": model, "input": start.query or " "}
    created = int(datetime.fromisoformat(log.header.created).timestamp())
    return _StoredResponse(run_id, parse_response_request(body), created, facts, is_running and not log.has_ended)


@CONTRACT.serve(
    "GET /v1/responses/{id}", "A response that was given, or is in progress.", ok=RESPONSE, streams=True, query=FOLLOWING
)
async def _show_response(request: Request) -> Response:
    """The response, or with `stream` its events from the first, or from the one after `starting_after`."""
    host: RunHost = request.app.state.host
    response = await _find_response(request)
    if request.query_params.get("stream") != "true":
        return json_reply(response.build())
    response.require_text()
    after = request.query_params.get("starting_after", "")
    if after and not (after.isascii() and after.isdigit() and len(after) < 10):
        raise bad_request("starting_after must be the sequence_number of an event", parameter="starting_after")
    output = ResponseOutput(response.run_id, response.asked, response.created, after=int(after or -1))
    items = follow_log(host.nexi.runs(), response.run_id, Mark(), host)
    return EventStream(format_frames(host.nexi, items, output, response.asked))


@CONTRACT.serve("DELETE /v1/responses/{id}", "Forget a response and its run.", ok=DELETION)
async def _delete_response(request: Request) -> Response:
    """Forget a response and its run; one that is under way is cancelled first."""
    run_id = (await _find_response(request)).run_id
    await delete_run(request.app.state.host, run_id)
    return json_reply({"id": f"{PREFIX}{run_id}", "object": "response", "deleted": True})


@CONTRACT.serve("POST /v1/responses/{id}/cancel", "End a response in the background.", ok=RESPONSE)
async def _cancel_response(request: Request) -> Response:
    """End a response in the background; one that has ended stays as it is."""
    response = await _find_response(request)
    if not response.asked.is_background:
        raise bad_request("only a response in the background can be cancelled", fix="close the connection", parameter="id")
    if response.is_running:
        await cancel_run(request.app.state.host, response.run_id)
        response = await _find_response(request)
    return json_reply({**response.build(), **({"status": "cancelled"} if response.is_running else {})})


@CONTRACT.serve("GET /v1/responses/{id}/input_items", "What a response was asked with.", ok=INPUT_PAGE, query=PAGING)
async def _list_input(request: Request) -> Response:
    """The messages that a response was asked with, the last one first unless `order` is asc."""
    response = await _find_response(request)
    wish = request.query_params
    order, after = wish.get("order") or "desc", wish.get("after", "")
    limit = parse_number(request, "limit", USUAL_ITEMS, most=MAX_ITEMS)
    if order not in ("asc", "desc"):
        raise bad_request("order must be asc or desc", parameter="order")
    items = []
    for number, (role, text) in enumerate(response.asked.turns):
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        content = [part if role == "assistant" else {"type": "input_text", "text": text}]
        head = {"id": f"msg_{response.run_id}_in_{number}", "type": "message", "role": role}
        items.append({**head, "status": "completed", "content": content})
    items = items if order == "asc" else items[::-1]
    ids = [item["id"] for item in items]
    if after and after not in ids:
        raise bad_request("after must be the id of an input item", parameter="after")
    start = ids.index(after) + 1 if after else 0
    page = items[start : start + limit]
    edges = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    return json_reply({"object": "list", "data": page, **edges, "has_more": start + len(page) < len(items)})
