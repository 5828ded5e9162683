"""Passes as Tavily: `POST /tavily/research` starts research and gives its id, `GET /tavily/research/ID` its report.

The id is that of a run, so `/v1/runs/ID` knows it too; it goes on when the client leaves. With `stream` the report is sent as
it is written, and ends with its request. Below are `hosting`, the run log, and the shapes of `tavily`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.answers.streaming import find_rest
from nexi.apis.openai.shapes import BEAT_S, format_comment, format_event, problem_of_run, progress_line
from nexi.apis.tavily.search import ERROR, monotonic, tavily_error
from nexi.app import RunRequest, check_run_id
from nexi.app.hosting import DOOR, HostedRun, RunHost
from nexi.events import RunFailed, RunFinished, TextDelta, find_end
from nexi.structured.schema_check import object_schema
from nexi.types import Source
from nexi.web.contract import Contract
from nexi.web.payload import json_reply, read_body
from nexi.web.problems import bad_request
from nexi.web.schemas import ID
from nexi.web.streams import EventStream

DEPTHS: Mapping[str, int] = {"mini": 1, "auto": 0, "pro": 3}
CONTRACT = Contract("Tavily", error=ERROR, path={"id": ("The id of the research.", ID["id"][1])})
_TEXT = {"type": "string"}
STARTED = object_schema(dict.fromkeys(("request_id", "created_at", "status", "input", "model"), _TEXT))
REPORT = object_schema(dict.fromkeys(("request_id", "created_at", "status"), _TEXT))
UNDER_WAY = {"202": {"description": "Not ended yet.", "content": {"application/json": {"schema": REPORT}}}}


class _TavilyResearch(Struct, frozen=True):
    """Research as Tavily's clients ask for it."""

    input: Annotated[str, Meta(min_length=1, max_length=100_000)]
    model: Literal["mini", "auto", "pro"] | None = "auto"
    stream: bool | None = None
    output_schema: dict[str, Any] | None = None
    citation_format: Literal["numbered", "mla", "apa", "chicago"] | None = "numbered"


@CONTRACT.serve("POST /tavily/research", "Research as Tavily does.", body=_TavilyResearch, ok=STARTED, streams=True)
async def _start_research(request: Request) -> Response:
    host: RunHost = request.app.state.host
    body = await read_body(request, _TavilyResearch)
    if body.output_schema:
        fix = "leave it out, and put the report into your schema; or ask nexi-deep at /v1/responses with text.format"
        raise bad_request("output_schema is not supported", fix=fix, parameter="output_schema")
    model, started = body.model or "auto", monotonic(request)
    door = "tavily" if body.stream else DOOR  # what is streamed ends with its request, the rest is resumed after a restart
    question = RunRequest(body.input, mode="research", depth=DEPTHS[model], door=door)
    if body.stream:
        return EventStream(_stream_report(await host.start(question), model, int(host.nexi.clock.now().timestamp())))
    run = await host.submit(question)
    seconds = round(monotonic(request) - started, 2)
    head = {"request_id": run.id, "created_at": run.created, "status": "pending"}
    return json_reply({**head, "input": body.input, "model": model, "response_time": seconds})


@CONTRACT.serve("GET /tavily/research/{id}", "The report as Tavily gives it.", ok=REPORT, responses=UNDER_WAY)
async def _show_research(request: Request) -> Response:
    host: RunHost = request.app.state.host
    run_id = check_run_id(request.path_params["id"])
    snapshot = await host.snapshot_of(run_id)
    head: dict[str, Any] = {"request_id": run_id, "created_at": snapshot.created}
    match find_end(snapshot.facts):
        case RunFinished(answer=answer, sources=sources, seconds=seconds):
            report = {"content": answer, "sources": _source_list(sources), "response_time": seconds}
            return json_reply({**head, "status": "completed", **report})
        case RunFailed(message=message, cause=cause, seconds=seconds):
            why = f"{message}: {cause}" if cause else message
            return json_reply({**head, "status": "failed", "error": why, "response_time": seconds})
        case _:
            return json_reply({**head, "status": "in_progress"}, 202)


def _source_list(sources: Sequence[Source]) -> list[dict[str, Any]]:
    return [{"title": s.title or s.url, "url": s.url, "favicon": None, "citation": f"[{s.number}]"} for s in sources]


async def _stream_report(hosted: HostedRun, model: str, created: int) -> AsyncGenerator[bytes, None]:
    head = {"id": hosted.id, "object": "chat.completion.chunk", "model": model, "created": created}

    def chunk(**delta: Any) -> bytes:
        return format_event({**head, "choices": [{"delta": {"role": "assistant", **delta}}]})

    streamed_text = ""
    try:
        async for item in hosted.feed.follow(beat_s=BEAT_S):
            match item.event if item else None:
                case None:
                    yield format_comment("working")
                case TextDelta(text=text):
                    streamed_text += text
                    yield chunk(content=text)
                case RunFinished(answer=answer, sources=sources):
                    yield chunk(content=find_rest(streamed_text, answer))
                    yield chunk(sources=_source_list(sources))
                case RunFailed():
                    yield format_event(tavily_error(problem_of_run(hosted)), "error")
                case event if event is not None and (line := progress_line(event)):
                    yield format_comment(line)
                case _:
                    pass
        yield b"event: done\n\n"
    finally:
        await hosted.cancel()
