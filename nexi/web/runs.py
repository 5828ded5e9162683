"""Runs over HTTP: start a search or research and get an id at once; follow, stop, cancel, fetch and delete it.

A Struct checks a body, documents it and is the value that a route works with, so that the document cannot say anything else.
Events come from the feed of a run that lives here, and from the run log of one that does not, so that a reader who comes back
with the id of the last event it saw misses nothing and gets nothing twice. Below are `hosting`, the run log and `nexi.exports`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, nullcontext
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.app import ReadLog, RunLimits, RunRequest, check_run_id, result_of
from nexi.app.hosting import DOOR, FeedItem, Mark, RunHost, mark_of
from nexi.app.request import AGENTIC_SETTINGS, RunMode, RunScope
from nexi.errors import NexiError
from nexi.events import ModelReplied, PageFetched, RunFailed, RunFinished, SearchFinished
from nexi.exports import export_log
from nexi.ports import RunStore
from nexi.types import Query, StopReason, Usage
from nexi.urls import is_web_url
from nexi.web.contract import Contract, Named
from nexi.web.payload import EventStream, bad_request, build_refusal, json_reply, parse_number, read_body, told_reply

State = Literal["running", "finished", "stopped", "failed", "unfinished", "damaged"]
Focus = Literal["web", "docs", "discussions", "papers", "code", "news", "places", "local"]
STATES: tuple[State, ...] = get_args(State)
FOCUS: tuple[Focus, ...] = get_args(Focus)
MAX_TASKS = 5
MAX_ATTACHMENTS = 20
Site = Annotated[str, Meta(min_length=1, max_length=253)]
Sites = Annotated[tuple[Site, ...], Meta(max_length=50)]
Seconds = Annotated[float, Meta(ge=0.001, le=86400)]
Tokens = Annotated[int, Meta(ge=1)]
Dollars = Annotated[float, Meta(ge=0.000001, le=100_000, description="In US dollars.")]
Share = Annotated[float, Meta(ge=0, le=1, description="Of an agentic search.")]
Address = Annotated[str, Meta(max_length=8_000)]
Tasks = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=2000)], ...], Meta(min_length=1, max_length=MAX_TASKS)]
POLL_S = 1.0  # a store that gives no notice looks more often by itself
BEAT_S = 15.0
LISTED = 50
MAX_LISTED = 1000
# page text is hostile here: a browser that opens one is told to run nothing
SHOWN = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox allow-popups"}
SAVED = {"content-security-policy": "default-src 'none'; sandbox"}
IN_BROWSER = ("md", "json", "html")
EXPORT_STATUSES = {"not_ended": 409, "no_references": 404, "no_browser": 501, "no_pandoc": 501, "not_printed": 500}
RUNS: dict[str, Any] = {
    "type": "object",
    "required": ["runs"],
    "properties": {"runs": {"type": "array", "items": {"type": "object", "required": ["id", "state", "question", "created"]}}},
}
ID: Named = {"id": ("The id of the run.", {"type": "string", "pattern": "^([0-9a-f]{6}|[0-9a-f]{32})$"})}
CONTRACT = Contract("Runs", path=ID)
ACCEPTED = {202: {"type": "object"}}
LAST_SEEN: Named = {
    "last_event_id": (
        "Also as the header Last-Event-ID: the id of the last event that was seen.",
        {"type": "string", "pattern": r"^[0-9]{1,9}(\.[0-9]{1,9})?$"},
    )
}
FORM: Named = {"format": ("Otherwise by the header Accept.", {"enum": list(EXPORT_FORMATS)})}
FILTERS: Named = {
    "limit": ("At most so many.", {"type": "integer", "minimum": 1, "maximum": MAX_LISTED}),
    "state": ("Only runs in this state.", {"enum": list(STATES)}),
    "space": ("Only runs that were asked in this space.", {"type": "string"}),
}


class RunOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """How a question is to be answered; what is left out or null is as the server has it."""

    effort: Literal["s", "m", "l"] | None = None
    max_iterations: Annotated[int, Meta(ge=1, le=1000)] | None = None
    time_target: Annotated[Seconds | None, Meta(description="Answer after about so many seconds.")] = None
    max_output_tokens: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    max_cost: Dollars | None = None
    max_tokens: Annotated[Tokens | None, Meta(description="Of all model calls together.")] = None
    strict: Annotated[bool | None, Meta(description="Leave out sentences that are not found in the pages.")] = None
    system_prompt: Annotated[str, Meta(max_length=100_000, description="Instructions of your own.")] = ""
    depth: Annotated[int, Meta(ge=0, le=3, description="Of research; 0 lets the coordinator choose.")] = 0
    length: Annotated[
        Literal["brief", "standard", "long"] | None, Meta(description="Of a report: about 300, 1,000 or 3,000 words.")
    ] = None
    plan: Annotated[
        bool, Meta(description="Research waits with its plan (the event agenda_proposed) until POST /v1/runs/{id}/plan.")
    ] = False
    model: Annotated[
        str,
        Meta(max_length=200, description="Another model of the configured endpoint, or `extractive`, which calls no service."),
    ] = ""
    focus: Annotated[Focus, Meta(description="Where to look; `local` is the knowledge base only.")] = "web"
    count: Annotated[int, Meta(ge=1, le=100, description="Hits a search asks for.")] = 10
    sites: Annotated[Sites, Meta(description="Search only these.")] = ()
    excluded_sites: Annotated[Sites, Meta(description="Search these not.")] = ()
    time_range: Literal["", "d", "w", "m", "y"] = ""
    language: Annotated[str, Meta(max_length=20)] = ""
    scope: Annotated[
        RunScope, Meta(description="`local` is the knowledge base only, `web` leaves it out; `local` sends nothing elsewhere.")
    ] = "both"
    only_local: Annotated[bool, Meta(description="The same as the scope `local`.")] = False
    attachments: Annotated[
        tuple[Address, ...], Meta(max_length=MAX_ATTACHMENTS, description="Web pages and documents to look into first.")
    ] = ()
    completeness_threshold: Share | None = None
    max_urls_per_iteration: Annotated[int, Meta(ge=1, le=20, description="Of an agentic search.")] | None = None
    url_score_threshold: Share | None = None
    use_search_hints: Annotated[bool, Meta(description="Of an agentic search.")] | None = None


class RunQuestion(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question, and how it is to be answered."""

    question: Annotated[str, Meta(min_length=1, max_length=100_000)]
    mode: RunMode = "search"
    options: RunOptions = RunOptions()
    space: Annotated[str, Meta(max_length=300, description="The space it is asked in: NAME, or NAME@OWNER.")] = ""


class NewRun(RunQuestion, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question to answer now."""

    continues: Annotated[str, Meta(max_length=100, description="The id of a run whose conversation goes on.")] = ""


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of a proposed plan."""

    tasks: Annotated[Tasks | None, Meta(description="The tasks to research instead of the proposed ones.")] = None


class RunStatus(Struct):
    """How a run is doing."""

    schema: str
    id: str
    state: State
    mode: str
    question: str
    created: str
    last_event_id: int
    links: dict[str, str]
    space: str = ""


@CONTRACT.serve("POST /v1/runs", "Start a run, and get its id at once.", {202: RunStatus}, body=NewRun)
async def _start_run(request: Request) -> Response:
    """The run goes on when its client leaves."""
    host: RunHost = request.app.state.host
    body = await read_body(request, NewRun)
    run = await host.submit(parse_run_request(body, continues=body.continues))
    return told_reply(await _find_status(host, run.id), 202, {"location": f"/v1/runs/{run.id}"})


def parse_run_request(body: RunQuestion, *, continues: str = "") -> RunRequest:
    """The request that a body stands for. Raises Refused."""
    options, mode = body.options, body.mode
    if options.plan and mode != "research":
        raise bad_request("only research has a plan", parameter="plan", fix='ask with "mode": "research"')
    if not (model := options.model.strip()).isprintable():
        raise bad_request("model must be a name", parameter="model")
    is_local = options.only_local or options.focus == "local"
    if is_local and options.scope == "web":
        raise bad_request("the scope web leaves the knowledge base out", parameter="scope", fix="leave scope or only_local out")
    if (file := next((address for address in options.attachments if not is_web_url(address)), None)) is not None:
        fix = "name pages with http:// or https://; put files into a space"
        raise bad_request(f"{file[:200]!r} is not the address of a web page", parameter="attachments", fix=fix)
    focus = "" if options.focus in ("web", "local") else options.focus
    query = Query("", options.count, options.sites, options.excluded_sites, options.time_range, options.language, focus)
    time_s, answer_tokens = options.time_target, options.max_output_tokens
    limits = RunLimits(options.max_iterations, time_s, answer_tokens, options.max_cost, options.max_tokens)
    settings = {name: value for name in AGENTIC_SETTINGS if (value := getattr(options, name)) is not None}
    return RunRequest(
        body.question,
        mode=mode,
        effort=options.effort or "",
        limits=limits,
        query=query,
        model=model,
        scope="local" if is_local else options.scope,
        system_prompt=options.system_prompt,
        attachments=options.attachments,
        continues=check_run_id(continues) if continues else "",
        holds_plan=options.plan,
        depth=options.depth,
        length=options.length or "",
        strict=options.strict,
        space=body.space,
        agentic=settings if mode == "agentic" else {},
        door=DOOR,
    )


@CONTRACT.serve("POST /v1/runs/{id}/resume", "Resume it.", {202: RunStatus})
async def _resume_run(request: Request) -> Response:
    """Go on with a run that was cut off or ended early; one that had ended goes on under a new id."""
    host, run_id = _find_run(request)
    run = await host.resume(run_id)
    return told_reply(await _find_status(host, run.id), 202, {"location": f"/v1/runs/{run.id}"})


@CONTRACT.serve("POST /v1/runs/{id}/plan", "Settle its plan.", ACCEPTED, body=Plan)
async def _settle_plan(request: Request) -> Response:
    """Let research that waits with its plan go on, with these tasks where some are given."""
    (host, run_id), plan = _find_run(request), await read_body(request, Plan)
    hosted = host.get_active(run_id)
    if hosted is None or hosted.run.gate is None:
        await asyncio.to_thread(host.nexi.runs().open_log, run_id)  # raises where there is no such run
        fix = f"GET /v1/runs/{run_id} says how it is"
        raise build_refusal(409, "no_plan", f"run {run_id} waits with no plan here", fix=fix)
    agenda = hosted.run.gate.settle(plan.tasks)
    return json_reply({"id": run_id, "tasks": list(agenda.tasks), "by": agenda.by}, 202)


@CONTRACT.serve("GET /v1/runs", "Runs, newest first.", {200: RUNS}, query=FILTERS)
async def _list_runs(request: Request) -> Response:
    host: RunHost = request.app.state.host
    limit = parse_number(request, "limit", LISTED, most=MAX_LISTED)
    wish = request.query_params.get("state", "")
    if wish and wish not in STATES:
        raise bad_request(f"state must be one of {', '.join(STATES)}", parameter="state")
    space = request.query_params.get("space", "")
    is_narrowed = bool(space) or wish in ("stopped", "failed")
    kept_state = "failed" if wish == "stopped" else wish  # what a person stopped is kept as a run without an answer
    runs = await asyncio.to_thread(host.nexi.runs().list_runs, 0 if is_narrowed else limit, state=kept_state)
    if is_narrowed:
        matches = [run for run in runs if space in ("", run.space) and (not wish or run.was_stopped == (wish == "stopped"))]
        runs = matches[:limit]
    entries = []
    for run in runs:
        entry = {"id": run.id, "state": run.shown_state, "mode": run.mode, "question": run.query, "created": run.created}
        entries.append({**entry, **({"space": run.space} if run.space else {}), "links": {"self": f"/v1/runs/{run.id}"}})
    return json_reply({"runs": entries})


@CONTRACT.serve("GET /v1/runs/{id}", "How a run is doing.", {200: RunStatus})
async def _show_status(request: Request) -> Response:
    return told_reply(await _find_status(*_find_run(request)))


async def _find_status(host: RunHost, run_id: str) -> dict[str, Any]:
    """A run as one object: what was asked, how far it is, and how it ended. Raises StoreError."""
    snapshot = await host.snapshot_of(run_id)
    start, facts = snapshot.start_fact, snapshot.facts
    usage = sum((f.usage for f in facts if isinstance(f, ModelReplied)), Usage())
    status: dict[str, Any] = {
        "schema": "nexi-run-1",
        "id": run_id,
        "state": snapshot.state,
        "mode": start.mode if facts else "",
        "question": start.query,
        "effort": start.effort,
        "model": start.model,
        "created": snapshot.created,
        "last_event_id": len(facts),
        "searches": sum(isinstance(f, SearchFinished) for f in facts),
        "pages": sum(isinstance(f, PageFetched) for f in facts),
        "model_calls": sum(isinstance(f, ModelReplied) for f in facts),
        "tokens": {"input": usage.input_tokens, "output": usage.output_tokens},
        "cost": usage.cost,
        "links": {"events": f"/v1/runs/{run_id}/events", "result": f"/v1/runs/{run_id}/result"},
    }
    if space := start.request.get("space"):
        status["space"] = space
    if start.mode == "research":
        state = snapshot.research_state
        researchers = [{"id": r.id, "task": r.task, "phase": r.phase} for r in state.researchers]
        status["progress"] = {"header": state.header, "researchers": researchers}
    last = facts[-1] if facts else None
    if isinstance(last, RunFinished):
        return {**status, "stop": last.stop.value, "seconds": last.seconds, "warnings": list(last.warnings)}
    if isinstance(last, RunFailed):
        error = {"code": last.code, "message": last.message, "cause": last.cause, "fix": last.fix}
        end = {"stop": last.stop.value, "seconds": last.seconds}
        return {**status, **end, **({"code": last.code} if last.stop is StopReason.CANCELLED else {"error": error})}
    if not facts and (summaries := await asyncio.to_thread(host.nexi.runs().read_summaries, [run_id])):
        return {**status, "question": summaries[0].query, "mode": summaries[0].mode}
    return status


def _find_run(request: Request) -> tuple[RunHost, str]:
    """The host of the server, and the id that a path names."""
    return request.app.state.host, check_run_id(request.path_params["id"])


@CONTRACT.serve("GET /v1/runs/{id}/events", "Its events.", {200: ("text/event-stream",), 204: None}, query=LAST_SEEN)
async def _stream_events(request: Request) -> Response:
    """Server-sent events after the last one the reader saw; 204 when there is nothing more to come."""
    host, run_id = _find_run(request)
    mark = mark_of(request.headers.get("last-event-id") or request.query_params.get("last_event_id") or "0")
    if mark is None:
        raise bad_request("Last-Event-ID must be the id of an event of this run", parameter="last-event-id")
    hosted = host.get(run_id)
    if hosted is not None:
        if hosted.feed.has_ended and mark.fact >= hosted.feed.fact_count:
            return Response(status_code=204)
        return EventStream(hosted.feed.frames(mark, beat_s=BEAT_S))
    runs = host.nexi.runs()
    read = await asyncio.to_thread(runs.open_log, run_id)
    is_over = read.has_ended or not (host.will_resume(run_id) or await asyncio.to_thread(runs.is_running, run_id))
    if is_over and mark.fact >= len(read.facts):
        return Response(status_code=204)
    return EventStream(_send_items(follow_log(runs, run_id, mark, host)))


async def follow_log(runs: RunStore, run_id: str, mark: Mark, host: RunHost) -> AsyncGenerator[FeedItem | None, None]:
    """Facts of a run of another process, as its log grows; its deltas are not in the log. A run that this server resumes is
    waited for, and then followed here. None when nothing came for a while."""
    fact_count, loop = mark.fact, asyncio.get_running_loop()
    last_sign = loop.time()
    while True:
        if hosted := host.get(run_id):
            async for item in hosted.feed.follow(Mark(fact_count) if fact_count > mark.fact else mark, beat_s=BEAT_S):
                yield item
            return
        running = host.will_resume(run_id) or await asyncio.to_thread(runs.is_running, run_id)
        read = await asyncio.to_thread(runs.open_log, run_id)
        for number, fact in read.facts[fact_count:]:
            yield FeedItem(Mark(number), fact)
        last_sign = loop.time() if len(read.facts) > fact_count else last_sign
        fact_count = max(fact_count, len(read.facts))
        if read.has_ended or not running or host.draining:
            return
        if loop.time() - last_sign >= BEAT_S:
            last_sign = loop.time()
            yield None
        await runs.wait_for_facts(run_id, fact_count, POLL_S)


async def _send_items(items: AsyncGenerator[FeedItem | None, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(items):
        async for item in items:
            yield item.frame if item else b": still here\n\n"


@CONTRACT.serve(
    "GET /v1/runs/{id}/result", "Its answer.", {200: tuple(form.media_type for form in EXPORT_FORMATS.values())}, query=FORM
)
async def _show_result(request: Request) -> Response:
    """The answer in one of EXPORT_FORMATS, by `format` or by what the client accepts."""
    host, run_id = _find_run(request)
    form, accepted = request.query_params.get("format", ""), request.headers.get("accept", "")
    if form and form not in EXPORT_FORMATS:
        raise bad_request(f"format must be one of {', '.join(EXPORT_FORMATS)}", parameter="format")
    form = form or next((known.name for known in EXPORT_FORMATS.values() if known.media_type in accepted), "json")
    log = None if host.get_active(run_id) else await host.open_log(run_id)
    if log is None or not log.has_ended:
        fix = "follow its events, or stop it"
        raise build_refusal(409, "not_ended", f"run {run_id} has not ended", fix=fix, retry_after=1)
    result_of(run_id, log.bare_facts)  # a run that failed says why
    return await export_response(request, log, run_id, form, as_file=False)


async def export_response(request: Request, log: ReadLog, run_id: str, form: str, *, as_file: bool) -> Response:
    """The run in one of EXPORT_FORMATS; a program beside this one makes a PDF or a Word file, one at a time."""
    state, target = request.app.state, EXPORT_FORMATS[form]
    try:
        async with nullcontext() if target.is_text else state.printing:
            body = await export_log(log, state.nexi.pages(), run_id, form)
    except NexiError as error:
        if error.code not in EXPORT_STATUSES:
            raise
        raise build_refusal(EXPORT_STATUSES[error.code], error.code, str(error), fix=error.fix) from error
    is_saved = as_file or form not in IN_BROWSER
    name = {"content-disposition": f'attachment; filename="nexi-{run_id}.{target.suffix}"'} if is_saved else {}
    return Response(body, media_type=target.media_type, headers={**name, **(SAVED if is_saved else SHOWN)})


@CONTRACT.serve("POST /v1/runs/{id}/stop", "Let it answer now.", ACCEPTED)
async def _stop_run(request: Request) -> Response:
    host, run_id = _find_run(request)
    if not await host.stop(run_id):
        raise build_refusal(409, "not_running", f"run {run_id} is not running", fix=f"GET /v1/runs/{run_id} says how it ended")
    return json_reply({"id": run_id, "stopping": True}, 202)


@CONTRACT.serve("POST /v1/runs/{id}/cancel", "End it without an answer.", {200: RunStatus, **ACCEPTED})
async def _cancel_run(request: Request) -> Response:
    host, run_id = _find_run(request)
    if await cancel_run(host, run_id):
        return told_reply(await _find_status(host, run_id))
    return json_reply({"id": run_id, "cancelling": True}, 202)


async def cancel_run(host: RunHost, run_id: str) -> bool:
    """End a run: True where it has ended with this, False where another process was asked to. Raises Refused or StoreError."""
    if hosted := host.get_active(run_id):
        await hosted.cancel()
        return True
    runs = host.nexi.runs()
    await asyncio.to_thread(runs.open_log, run_id)  # raises where there is no such run
    if not await asyncio.to_thread(runs.is_running, run_id):
        raise build_refusal(409, "not_running", f"run {run_id} is not running", fix=f"GET /v1/runs/{run_id} says how it ended")
    await asyncio.to_thread(runs.request_cancel, run_id)
    return False


@CONTRACT.serve("DELETE /v1/runs/{id}", "Cancel and forget a run.", {204: None})
async def _remove_run(request: Request) -> Response:
    await delete_run(*_find_run(request))
    return Response(status_code=204)


async def delete_run(host: RunHost, run_id: str) -> None:
    """Delete a run; one that is under way here is cancelled first. Raises StoreError."""
    hosted = host.get(run_id)
    if hosted:
        await hosted.cancel()
        host.forget(run_id)
    try:
        await asyncio.to_thread(host.nexi.runs().remove, run_id)
    except NexiError as error:
        if hosted is None or error.code != "no_such_run":  # of a run that kept no log
            raise
