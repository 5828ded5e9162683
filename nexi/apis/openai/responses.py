"""Passes as OpenAI's Responses API: `POST /v1/responses`, whole or streamed, and the paths of a response that was given.

Every search and every page that was read is a `web_search_call` item, the progress of research is a `reasoning` item, and the
answer is a message whose `[n]` have `url_citation` annotations. `previous_response_id` names an earlier response, whose
conversation and sources go on. A response ends with its request, unless it was asked for in the background. One that is given
again is made by the same steps from the log of its run, which holds the body its client sent. Below are `shapes` and `hosting`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from nexi.apis.openai import shapes
from nexi.apis.openai.chat_tasks import reply_without_search
from nexi.apis.openai.completions import wait_while_connected
from nexi.app import Nexi, Session, check_run_id, error_of
from nexi.app.hosting import DOOR, FeedItem, HostedRun, Mark, RunHost
from nexi.app.request import request_of_run
from nexi.errors import NexiError
from nexi.events import Event, Fact, ModelAsked, RunFailed, RunFinished, RunStarted, SearchFinished, SourceNumbered
from nexi.types import Source, StopReason, Usage
from nexi.web.contract import Contract, Named
from nexi.web.payload import (
    EventStream,
    bad_request,
    build_refusal,
    json_reply,
    parse_body,
    parse_number,
    problem_of,
    read_json,
    send_frames,
)
from nexi.web.runs import cancel_run, delete_run, follow_log

__all__ = ["CONTRACT"]

CONTRACT = Contract("OpenAI", error=shapes.ERROR, path={"id": ("The id of a response, or of a run.", {"type": "string"})})
PREFIX = "resp_"
NO_RUN = "none"  # in the id of a response that no run gave and that followed none
LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed")
ECHOED: Mapping[str, Any] = {  # what a response repeats of its body, and what it says where that has nothing
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
}
RESPONSE: dict[str, Any] = {"type": "object", "required": ["id", "object", "status", "model", "output", "usage"]}
MAX_ITEMS = 100
USUAL_ITEMS = 20
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
SEARCH_TOOLS = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")


class InputItem(Struct, frozen=True):
    """A message, or another item of an earlier response."""

    type: str | None = None
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: shapes.MessageContent = None


class TextForm(Struct, frozen=True):
    """The form of the text."""

    format: dict[str, Any] | None = None


class ResponseBody(Struct, frozen=True, kw_only=True):
    """What a response is asked for with."""

    model: shapes.ModelName
    input: Annotated[str, Meta(min_length=1)] | Annotated[tuple[InputItem, ...], Meta(min_length=1, max_length=2000)]
    instructions: Annotated[str, Meta(max_length=100_000)] | None = None
    previous_response_id: Annotated[str, Meta(max_length=100)] | None = None
    max_output_tokens: shapes.OutputTokens = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None
    conversation: str | dict[str, Any] | None = None
    text: TextForm | None = None
    tools: shapes.ClientTools = None
    tool_choice: shapes.ToolChoice = None
    include: tuple[str, ...] | None = None
    metadata: dict[str, Any] | None = None
    sources: shapes.ListsSources = None


class ResponseRequest(shapes.ModelRequest, frozen=True, kw_only=True):
    """A response as a client asks for it; `echoed` are the fields that a response repeats."""

    streams: bool
    is_background: bool
    includes_sources: bool
    turns: tuple[tuple[str, str], ...]  # roles and texts, as they were sent
    echoed: Mapping[str, Any]


@CONTRACT.serve("POST /v1/responses", "Answer, as the Responses API does.", body=ResponseBody, ok=RESPONSE, streams=True)
async def create_response(request: Request) -> Response:
    host: RunHost = request.app.state.host
    question = parse_response_request(await read_json(request))
    created = int(host.nexi.clock.now().timestamp())
    if not question.is_background and (reply := await reply_without_search(host.nexi, question)):
        # the id leads to the conversation before it
        output = ResponseOutput(f"{question.run.continues or NO_RUN}_{uuid.uuid4().hex[:12]}", question, created)
        frames = [*output.begin(), *output.finish(reply.text, (), StopReason.PLAIN_ANSWER, reply.usage)]
        return EventStream(send_frames(frames)) if question.streams else json_reply(output.final)
    question.require_writer(host.nexi)
    if question.is_background:
        run = await host.submit(question.run)
        output = ResponseOutput(run.id, question, created)
        if question.streams:
            return EventStream(format_frames(host.nexi, follow_log(host.nexi.runs(), run.id, Mark(), host), output, question))
        return json_reply(output.body("queued"))
    hosted = await host.start(question.run, None if question.run.continues else question.session)
    if question.streams:
        return EventStream(_stream_events(host.nexi, hosted, question, created))
    result = await wait_while_connected(request, hosted)
    output = ResponseOutput(result.id, question, created)
    last_frames = await _finish_output(host.nexi, output, result.finished, question)
    for fact in result.facts:
        list(output.observe(fact))  # for the items; nobody reads the events
    list(last_frames)
    return json_reply(output.final)


def parse_response_request(raw: Mapping[str, Any]) -> ResponseRequest:
    """The run and the conversation that a body stands for. Raises Refused."""
    body = parse_body(raw, ResponseBody)
    if body.conversation:
        raise bad_request("conversation is not supported", fix="use previous_response_id", parameter="conversation")
    turns = _parse_input(body.input)
    instructions = "\n\n".join(part for part in (body.instructions or "", shapes.join_instructions(turns)) if part.strip())
    talk = [turn for turn in turns if turn[0] in ("user", "assistant")]
    filters = [tool.filters for tool in body.tools or () if tool.type in SEARCH_TOOLS and tool.filters]
    sites = [site for one in filters for site in one.allowed_domains or ()]
    question, most = talk[-1][1] if talk else "", body.max_output_tokens
    run = shapes.build_run(body.model, question, instructions=instructions, max_output_tokens=most, sites=sites)
    if not talk or talk[-1][0] != "user":
        raise bad_request("the last message must be the user's", parameter="input")
    function, parameters = shapes.parse_forced_function(body.tools, body.tool_choice)
    schema = parameters if function else shapes.parse_schema(body.text.format if body.text else None, "text.format")
    is_background, is_stored = bool(body.background), body.store is not False
    if is_background:
        _check_background(len(talk), schema is not None, is_stored)
    run = replace(
        run,
        continues=_parse_previous(body.previous_response_id),
        door=DOOR if is_background else run.door,  # a server that starts again goes on with it
        client_body=raw,
        keeps_history=is_stored,
        keeps_log=is_stored,
    )
    return ResponseRequest(
        body.model,
        run,
        Session(shapes.earlier_messages(talk[:-1])),
        schema,
        bool(body.sources),
        function=function,
        ignores_tools=not function and bool(shapes.list_functions(body.tools)),
        max_tokens=body.max_output_tokens,
        streams=bool(body.stream),
        is_background=is_background,
        includes_sources="web_search_call.action.sources" in (body.include or ()),
        turns=tuple(turns),
        echoed={name: value if raw.get(name) is None else raw[name] for name, value in ECHOED.items()},
    )


def _check_background(turns: int, has_schema: bool, is_stored: bool) -> None:
    """Refuse what a response without a waiting client cannot have: all it leaves is the log of its run. Raises Refused."""
    if not is_stored:
        raise bad_request("a response in the background is stored", fix="leave store out", parameter="store")
    if has_schema:
        fix = "ask in the foreground, or leave the format out"
        raise bad_request("a response in the background is text", fix=fix, parameter="background")
    if turns > 1:
        fix = "name the response before it with previous_response_id"
        raise bad_request("a response in the background takes one message", fix=fix, parameter="input")


def _parse_input(items: str | Sequence[InputItem]) -> list[tuple[str, str]]:
    """Roles and texts. Items that are not messages, such as earlier searches of ours, say nothing to the next answer."""
    if isinstance(items, str):
        return [("user", items)]
    messages = [item for item in items if (item.type or "message") == "message"]
    return [(item.role, shapes.content_to_text(item.content, "input")) for item in messages if item.role]


def _parse_previous(name: str | None) -> str:
    run_id = (name or "").removeprefix(PREFIX).partition("_")[0]
    if not name or run_id == NO_RUN:
        return ""
    try:
        return check_run_id(run_id)
    except NexiError as error:
        message = f"there is no response {name[:100]!r}"
        raise build_refusal(404, "previous_response_not_found", message, parameter="previous_response_id") from error


class ResponseOutput:
    """The items of one response, and the events that announce them, from the events of its run."""

    def __init__(self, run_id: str, question: ResponseRequest, created: int, *, after: int = -1) -> None:
        """Of the events, those up to the number `after` are empty: the reader has them. The last is never."""
        self._run_id, self._asked, self._created, self._after = run_id, question, created, after
        self._text, self._sequence, self._has_begun = shapes.AnswerText(question), 0, False
        self._items: list[dict[str, Any]] = []
        self._opened: set[str] = set()
        self._reasoning: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self.final: dict[str, Any] = {}

    def body(self, status: str, usage: Usage | None = None, **more: Any) -> dict[str, Any]:
        """The response as a whole, as far as it has come."""
        return {
            "id": f"{PREFIX}{self._run_id}",
            "object": "response",
            "created_at": self._created,
            "status": status,
            "background": self._asked.is_background,
            "error": None,
            "incomplete_details": None,
            "model": self._asked.model,
            "output": self._items,
            "reasoning": {"effort": None, "summary": None},
            "usage": usage
            and {
                "input_tokens": usage.input_tokens,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": usage.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.total,
            },
            **self._asked.echoed,
            **more,
        }

    def event(self, kind: str, **fields: Any) -> bytes:
        data = {"type": kind, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        is_seen = data["sequence_number"] <= self._after and kind not in LAST_EVENTS
        return b"" if is_seen else shapes.format_event(data, kind)

    def begin(self) -> Iterator[bytes]:
        yield self.event("response.created", response=self.body("in_progress"))
        yield self.event("response.in_progress", response=self.body("in_progress"))

    def observe(self, event: Event) -> Iterator[bytes]:
        """The events that follow from one of the run's."""
        yield from self._show_text(self._text.feed(event))
        match event:
            case ModelAsked():
                self._has_begun = True
            case SearchFinished(query=query, hits=hits):
                action: dict[str, Any] = {"type": "search", "query": query, "queries": [query]}
                if self._asked.includes_sources:
                    action["sources"] = [{"type": "url", "url": hit.url} for hit in hits]
                yield from self._add_search(action)
            case SourceNumbered(source=source) if self._has_begun and source.url not in self._opened:
                self._opened.add(source.url)
                yield from self._add_search({"type": "open_page", "url": source.url})
            case _:
                pass
        if self._asked.run.mode == "research" and (line := shapes.progress_line(event)):
            yield from self._add_reasoning(line)

    def _add_search(self, action: Mapping[str, Any]) -> Iterator[bytes]:
        index, item_id = len(self._items), self._new_id("ws")
        item = {"id": item_id, "type": "web_search_call", "status": "completed", "action": dict(action)}
        self._items.append(item)
        yield self.event("response.output_item.added", output_index=index, item={**item, "status": "in_progress"})
        for step in ("in_progress", "searching", "completed"):
            yield self.event(f"response.web_search_call.{step}", output_index=index, item_id=item_id)
        yield self.event("response.output_item.done", output_index=index, item=item)

    def _add_reasoning(self, line: str) -> Iterator[bytes]:
        """A line of the summary; all lines are in one item, which is closed when the answer begins."""
        if self._message:
            return
        if not self._reasoning:
            self._reasoning = {"id": self._new_id("rs"), "type": "reasoning", "summary": [{"type": "summary_text", "text": ""}]}
            self._items.append(self._reasoning)
            item, part = {**self._reasoning, "summary": []}, {"type": "summary_text", "text": ""}
            yield self.event("response.output_item.added", output_index=len(self._items) - 1, item=item)
            yield self.event("response.reasoning_summary_part.added", **self._place_of(self._reasoning), part=part)
        self._reasoning["summary"][0]["text"] += f"{line}\n"
        yield self.event("response.reasoning_summary_text.delta", **self._place_of(self._reasoning), delta=f"{line}\n")

    def _close_reasoning(self) -> Iterator[bytes]:
        if self._reasoning:
            part, place = self._reasoning["summary"][0], self._place_of(self._reasoning)
            yield self.event("response.reasoning_summary_text.done", **place, text=part["text"])
            yield self.event("response.reasoning_summary_part.done", **place, part=part)
            yield self.event("response.output_item.done", output_index=place["output_index"], item=self._reasoning)

    def _show_text(self, text: str) -> Iterator[bytes]:
        if text:
            yield from self._open_message()
            yield self.event("response.output_text.delta", **self._place_of(self._message), delta=text, logprobs=[])

    def _open_message(self) -> Iterator[bytes]:
        if not self._message:
            yield from self._close_reasoning()
            self._message = {
                "id": self._new_id("msg"),
                "type": "message",
                "status": "in_progress",
                "role": "assistant",
                "content": [],
            }
            self._items.append(self._message)
            place = self._place_of(self._message)
            yield self.event("response.output_item.added", output_index=place["output_index"], item=dict(self._message))
            yield self.event("response.content_part.added", **place, part=_text_part("", []))

    def finish(
        self, text: str, sources: Sequence[Source], stop: StopReason, usage: Usage, end: RunFinished | None = None
    ) -> Iterator[bytes]:
        """The end of the message and of the response. `text` is the whole answer, of which a part may have been sent."""
        if self._asked.function:
            yield from self._add_call(text)
        else:
            yield from self._open_message()
            yield from self._show_text(self._text.finish(text))
            marks = [{"type": "url_citation", **mark} for mark in self._text.cite(sources)]
            yield from self._show_text(self._text.limit.feed(self._text.close(sources)))
            shown = self._text.limit.shown
            place, part = self._place_of(self._message), _text_part(shown, marks)
            for number, mark in enumerate(marks):
                yield self.event("response.output_text.annotation.added", **place, annotation_index=number, annotation=mark)
            yield self.event("response.output_text.done", **place, text=shown, logprobs=[])
            yield self.event("response.content_part.done", **place, part=part)
            self._message.update(status="completed", content=[part])
            yield self.event("response.output_item.done", output_index=place["output_index"], item=self._message)
        is_cut = stop is StopReason.CONTEXT_LIMIT or self._text.limit.is_cut
        more: dict[str, Any] = {"incomplete_details": {"reason": "max_output_tokens"}} if is_cut else {}
        if end:
            more["nexi"] = shapes.nexi_field(end, self._asked)
        status = "incomplete" if is_cut else "completed"
        self.final = self.body(status, usage, **more)
        yield self.event(f"response.{status}", response=self.final)

    def _add_call(self, arguments: str) -> Iterator[bytes]:
        """The forced function with the answer as its arguments, in the place of a message."""
        yield from self._close_reasoning()
        head = {"type": "function_call", "call_id": self._new_id("call"), "name": self._asked.function}
        item = {"id": self._new_id("fc"), **head, "arguments": arguments, "status": "completed"}
        self._items.append(item)
        index = len(self._items) - 1
        place = {"item_id": item["id"], "output_index": index}
        opened = {**item, "arguments": "", "status": "in_progress"}
        yield self.event("response.output_item.added", output_index=index, item=opened)
        yield self.event("response.function_call_arguments.delta", **place, delta=arguments)
        yield self.event("response.function_call_arguments.done", **place, name=self._asked.function, arguments=arguments)
        yield self.event("response.output_item.done", output_index=index, item=item)

    def fail(self, error: Mapping[str, Any]) -> bytes:
        detail = {"code": error.get("code") or "server_error", "message": error.get("message") or ""}
        self.final = self.body("failed", error=detail)
        return self.event("response.failed", response=self.final)

    def _new_id(self, kind: str) -> str:
        """The id of the next item: the same one whenever the response is given again."""
        return f"{kind}_{self._run_id}_{len(self._items)}"

    def _place_of(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The place of the one part that the message and the reasoning have."""
        part = "summary_index" if item is self._reasoning else "content_index"
        index = next((index for index, other in enumerate(self._items) if other is item), 0)
        return {"item_id": item["id"], "output_index": index, part: 0}


def _text_part(text: str, annotations: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


async def _stream_events(nexi: Nexi, hosted: HostedRun, question: ResponseRequest, created: int) -> AsyncGenerator[bytes, None]:
    output = ResponseOutput(hosted.id, question, created)
    try:
        async for frame in format_frames(nexi, hosted.feed.follow(beat_s=shapes.BEAT_S), output, question):
            yield frame
    finally:
        await hosted.cancel()


async def format_frames(
    nexi: Nexi, items: AsyncIterator[FeedItem | None], output: ResponseOutput, question: ResponseRequest
) -> AsyncGenerator[bytes, None]:
    """The events of a response from those of its run, which are sent as they come."""
    for frame in output.begin():
        yield frame
    async for item in items:
        match item.event if item else None:
            case None:
                yield shapes.format_comment("working")
            case RunFinished() as end:
                try:
                    last_frames = await _finish_output(nexi, output, end, question)
                except NexiError as error:
                    yield output.fail(shapes.openai_error(problem_of(error))["error"])
                    continue
                for frame in last_frames:
                    yield frame
            case RunFailed() as end:
                yield output.fail(shapes.openai_error(problem_of(error_of(end)))["error"])
            case event:
                for frame in output.observe(event):
                    yield frame


async def _finish_output(nexi: Nexi, output: ResponseOutput, end: RunFinished, question: ResponseRequest) -> Iterator[bytes]:
    """The last events, made as they are read. Raises NexiError where the JSON of the answer could not be written."""
    reply = await question.finish_text(nexi, end.answer, end)
    sources = end.sources if question.schema is None else ()
    return output.finish(reply.text, sources, end.stop, end.usage + reply.usage, end)


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
                output.fail(shapes.openai_error(problem_of(error_of(end)))["error"])
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
    model = next((name for name, known in shapes.MODELS.items() if known == (start.mode, start.effort)), "nexi-deep")
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
