"""What the contracts of OpenAI share: models, errors, conversations, citations, usage, and text in JSON.

Above are `completions`, `responses` and `chat_tasks`; below is the app.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any

from msgspec import Meta, Struct

from nexi import events
from nexi.answers.answered import list_readings
from nexi.answers.citations import format_citations_section, strip_sources_section
from nexi.answers.streaming import find_rest, make_safe
from nexi.app import Nexi, RunLimits, RunRequest, Session
from nexi.app.hosting import HostedRun
from nexi.app.request import RunMode
from nexi.config import EXTRACTIVE
from nexi.errors import NexiError
from nexi.token_counter import count_tokens
from nexi.types import Message, Query, Reply, Source, Usage
from nexi.web.fences import FenceRenamer, rename_fences
from nexi.web.payload import Problem, bad_request, build_refusal, problem_of

BEAT_S = 10.0
CREATED = 1767225600
LOCAL = "nexi-local"
MODELS: Mapping[str, tuple[RunMode, str]] = {
    "nexi-s": ("search", "s"),
    "nexi-m": ("search", "m"),
    "nexi-l": ("search", "l"),
    "nexi-deep": ("research", ""),
    LOCAL: ("search", "m"),
}
TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
CLIENTS_WITHOUT_ANNOTATIONS = ("openai/", "asyncopenai/", "litellm/")  # their programs print the text and nothing else
MAX_JSON_TOKENS = 4000
MIN_REPLY_TOKENS = 1024  # with fewer a model cannot call a tool; the text of the answer is cut at the limit of the client
ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "object", "required": ["message", "type"]}},
}
REPLACED_MODEL_CODES = ("babble", "replaced", "model_failed", "api_error", "extractive")  # of warnings, the clearest first
NOTE = "\n\n> Note: "
_CITATION = re.compile(r"\[([0-9]{1,6})\]")
_NOTE_AT_END = re.compile(rf"{re.escape(NOTE)}[^\n]*\s*\Z")
_WORD_WITH_SPACE = re.compile(r"\s*\S+|\s+")
_TEXT_PARTS = ("text", "input_text", "output_text")


def openai_error(problem: Problem) -> dict[str, Any]:
    """OpenAI's own error object."""
    kind = TYPES.get(problem.status, "server_error" if problem.status >= 500 else "invalid_request_error")
    return {"error": {"message": problem.advice, "type": kind, "param": problem.parameter or None, "code": problem.code}}


def problem_of_run(hosted: HostedRun) -> Problem:
    """Why a run ended without an answer."""
    try:
        hosted.run.result()
    except NexiError as error:
        return problem_of(error)
    return Problem(500, "internal", "the run ended without an answer")


def unknown_model(name: str, models: Sequence[str] = tuple(MODELS)) -> Exception:
    message = f"there is no model {name[:100]!r}"
    return build_refusal(404, "model_not_found", message, fix=f"use one of {', '.join(models)}", parameter="model")


ModelName = Annotated[str, Meta(min_length=1, max_length=200)]
OutputTokens = Annotated[int, Meta(ge=1, le=1_000_000)] | None
OneChoice = Annotated[int, Meta(ge=1, le=1)] | None
ListsSources = Annotated[
    bool | None,
    Meta(description="Whether the text ends with its list of sources. By default for clients that show no annotations."),
]


class ContentPart(Struct, frozen=True):
    """A part of a message."""

    type: str = ""
    text: str = ""


MessageContent = str | tuple[ContentPart, ...] | None


class ClientFunction(Struct, frozen=True):
    """A function of the client, or its name."""

    name: str = ""
    parameters: dict[str, Any] | None = None


class ToolFilters(Struct, frozen=True):
    """What a search tool is restricted to."""

    allowed_domains: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=253)], ...], Meta(max_length=100)] | None = (
        None
    )


class ClientTool(ClientFunction, frozen=True):
    """A tool or the choice of one: the function is nested as in chats, or flat as in the Responses API."""

    type: str = ""
    function: ClientFunction | None = None
    filters: ToolFilters | None = None


ClientTools = Annotated[tuple[ClientTool, ...], Meta(max_length=200)] | None
ToolChoice = str | ClientTool | None


class ModelRequest(Struct, frozen=True):
    """One question to one of the models: its run, the conversation before it, and the form of the reply."""

    model: str
    run: RunRequest
    session: Session
    schema: Mapping[str, Any] | None = None
    lists_sources: bool = False
    searches: bool = True
    function: str = ""  # that the client forces; the answer becomes its arguments
    ignores_tools: bool = False
    max_tokens: int | None = None  # of the text

    def require_writer(self, nexi: Nexi) -> None:
        """Refuse JSON where no model can write it. Raises Refused."""
        if self.schema is not None and (self.run.is_local or nexi.plain_model() is None):
            fix = "leave the format out, or set up a model" if not self.run.is_local else "leave the format out"
            raise bad_request("answers in JSON need a model", fix=fix, parameter="response_format")

    async def finish_text(self, nexi: Nexi, text: str, after: events.RunFinished) -> Reply:
        """The text of an answer in the form that was asked for, and what that cost beside the answer. Raises NexiError."""
        model = nexi.plain_model() if self.schema is not None else None
        if model is None or self.schema is None:
            return Reply(text)
        most = self.max_tokens or MAX_JSON_TOKENS
        return await model.write_json(self.run.question, text, self.schema, max_tokens=most, after=after)


def build_run(
    model: str, question: str, *, instructions: str = "", max_output_tokens: int | None = None, sites: Sequence[str] = ()
) -> RunRequest:
    """The run that a model stands for. Raises Refused."""
    if model not in MODELS:
        raise unknown_model(model)
    mode, effort = MODELS[model]
    return RunRequest(
        question,
        mode=mode,
        effort=effort,
        limits=RunLimits(max_output_tokens=max(max_output_tokens, MIN_REPLY_TOKENS) if max_output_tokens else None),
        query=Query("", sites=tuple(sites)),
        scope="local" if model == LOCAL else "both",
        system_prompt=instructions,
        door="openai",
    )


def earlier_messages(turns: Sequence[tuple[str, str]]) -> list[Message]:
    """What was said before. Numbers in earlier answers name sources this run does not have, so they are left out."""
    talk = [(role, text) for role, text in turns if role in ("user", "assistant") and text.strip()]
    return [
        Message("user", text)
        if role == "user"
        else Message("assistant", _CITATION.sub("", _NOTE_AT_END.sub("", strip_sources_section(text))))
        for role, text in talk
    ]


def join_instructions(turns: Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(text for role, text in turns if role in ("system", "developer") and text.strip())


def content_to_text(content: MessageContent, parameter: str = "messages") -> str:
    """The text of a message in one string or in parts. Raises Refused for a part that is not text."""
    if content is None or isinstance(content, str):
        return content or ""
    if any(part.type not in _TEXT_PARTS for part in content):
        raise bad_request("only text can be asked", fix="leave other parts out", parameter=parameter)
    return "\n".join(part.text for part in content)


def parse_schema(form: Mapping[str, Any] | None, parameter: str = "response_format") -> Mapping[str, Any] | None:
    """The JSON schema a reply must fit; None for plain text. Raises Refused."""
    kind = (form or {}).get("type") or "text"
    if form is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    holder = form.get("json_schema") if isinstance(form.get("json_schema"), Mapping) else form
    schema = holder.get("schema") if holder else None
    if kind != "json_schema" or not isinstance(schema, Mapping):
        raise bad_request("the format must be text, json_object, or json_schema with a schema", parameter=parameter)
    return schema


def parse_forced_function(tools: ClientTools, choice: ToolChoice) -> tuple[str, Mapping[str, Any] | None]:
    """The name and the schema of the one function that a client forces: the way of many libraries to ask for JSON.

    The models call no other tools of a client, which would wait for a call in vain. Raises Refused.
    """
    functions, name = list_functions(tools), ""
    kind = choice.type if isinstance(choice, ClientTool) else choice
    if kind == "required" and len(functions) == 1:
        name = next(iter(functions))
    elif isinstance(choice, ClientTool) and kind == "function":
        name = (choice.function or choice).name
    elif kind != "required" and not (isinstance(choice, ClientTool) and kind in ("custom", "allowed_tools")):
        return "", None
    if name not in functions:
        fix = "force one function that is in tools, or leave tool_choice out; for JSON, ask with response_format"
        raise bad_request("these models call no tools of the client", fix=fix, parameter="tool_choice")
    return name, functions[name]


def list_functions(tools: ClientTools) -> dict[str, Mapping[str, Any]]:
    """The schemas of the functions among the tools, by name."""
    functions = [tool.function or tool for tool in tools or () if tool.type == "function"]
    return {f.name: {"type": "object"} if f.parameters is None else f.parameters for f in functions if f.name}


def citations_in(text: str, sources: Sequence[Source]) -> list[dict[str, Any]]:
    """One for each `[n]` in the text; `text[start_index:end_index]` is that mark."""
    by_number = {source.number: source for source in sources}
    return [
        {"url": source.url, "title": source.title or source.url, "start_index": match.start(), "end_index": match.end()}
        for match in _CITATION.finditer(text)
        if (source := by_number.get(int(match[1])))
    ]


def citation_urls(sources: Sequence[Source]) -> list[str]:
    """URLs such that `[n]` is the n-th; a number that is not cited has an empty place."""
    by_number = {source.number: source.url for source in sources}
    return [by_number.get(number, "") for number in range(1, max(by_number, default=0) + 1)]


class TextLimit:
    """Lets the first tokens of a text through, up to the end of a word. What comes after is counted as cut."""

    def __init__(self, max_tokens: int | None) -> None:
        self._left, self.shown, self.is_cut = max_tokens, "", False

    def feed(self, text: str) -> str:
        """What may be shown of the next part of the text."""
        if self._left is not None and text:
            if self.is_cut:
                return ""
            if (count := count_tokens(text)) <= self._left:
                self._left -= count
            else:
                self.is_cut = True
                words = _WORD_WITH_SPACE.findall(text)
                sums = accumulate(map(count_tokens, words))
                text = "".join(word for word, total in zip(words, sums, strict=True) if total <= self._left)
        self.shown += text
        return text


class ReplacedModelNote:
    """The note under an answer that the built-in model gave in place of the configured one; from the events of its run."""

    def __init__(self, facts: Iterable[events.Event] = ()) -> None:
        self._is_built_in = False
        self._messages: dict[str, str] = {}
        for fact in facts:
            self.observe(fact)

    def observe(self, event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            self._is_built_in = event.model == EXTRACTIVE
        elif isinstance(event, events.Warned) and event.code in REPLACED_MODEL_CODES and not event.agent:
            self._messages[event.code] = event.message

    @property
    def text(self) -> str:
        """The note with the lines before it; "" where the configured model answered."""
        code = next((code for code in REPLACED_MODEL_CODES if code in self._messages), "")
        if self._is_built_in or not code:
            return ""
        message = one_line(self._messages[code].rstrip("."))
        if code in ("model_failed", "extractive"):
            cause = f" ({message})" if code == "model_failed" else ""
            message = f"the built-in model assembled this from passages, without the configured model{cause}"
        return f"{NOTE}{message}."


class AnswerText:
    """The text of one answer on its way to a client, from the events of its run: fences renamed, cut at the client's limit.

    A streamed answer and a whole one go the same way, so that both are the same text. JSON is left as it is.
    """

    def __init__(self, question: ModelRequest, facts: Iterable[events.Event] = ()) -> None:
        self._question, self._is_json = question, question.schema is not None
        self.limit = TextLimit(None if self._is_json else question.max_tokens)  # a part of JSON is no use
        self._fences, self._note, self._received = FenceRenamer(), ReplacedModelNote(facts), ""

    def feed(self, event: events.Event) -> str:
        """What may be shown after the next event of the run."""
        self._note.observe(event)
        if self._is_json or not isinstance(event, events.TextDelta):
            return ""
        self._received += event.text
        return self.limit.feed(self._fences.feed(event.text))

    def finish(self, text: str) -> str:
        """What is left to be shown of the whole text."""
        rest = find_rest(self._received, text)
        return self.limit.feed(rest if self._is_json else self._fences.feed(rest) + self._fences.finish())

    def close(self, sources: Sequence[Source]) -> str:
        """What follows the text: a note, and its sources for clients that show none by themselves."""
        if self._is_json or self.limit.is_cut:
            return ""
        if not self._question.lists_sources or not sources:
            return self._note.text
        urls, titles = {s.number: s.url for s in sources}, {s.url: s.title for s in sources}
        return f"{self._note.text}\n\n{format_citations_section(urls, url_to_title=titles)}"

    def cite(self, sources: Sequence[Source]) -> list[dict[str, Any]]:
        """A citation for each `[n]` that was shown."""
        return [] if self._is_json else citations_in(self.limit.shown, sources)


def nexi_field(end: events.RunFinished, question: ModelRequest) -> dict[str, Any]:
    """What the contract has no field for: the warnings of the run, and whether the pages answer the question."""
    not_called = "the tools of the client were not called: these models search and read by themselves"
    warnings = [*end.warnings, *((not_called,) if question.ignores_tools else ())]
    readings = list_readings(end.answer, end.answered)
    return {"warnings": warnings, "answered": end.answered, **({"readings": readings} if readings else {})}


def usage_of(usage: Usage) -> dict[str, Any]:
    return {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": usage.total}


def progress_line(event: events.Event) -> str:
    """What a reader of a long run sees of an event; "" for most. Models and pages wrote parts of it: it is made safe."""
    url = event.url if isinstance(event, events.PageFetched) else ""
    match event:
        case events.StatusDelta(text=text):
            line = text
        case events.AgendaSet(tasks=tasks):
            line = "Plan: " + "; ".join(tasks)
        case events.ResearcherStarted(researcher=name, task=task):
            line = f"Researcher {name}: {task}"
        case events.SearchFinished(query=query):
            line = f"Searched: {query}"
        case events.PageFetched(ahead=False, title=title):
            line = f"Read: {title or url}"
        case events.RoundEvaluated(decision="delegate", tasks=tasks):
            line = "Following up on: " + "; ".join(tasks)
        case _:
            return ""
    return rename_fences(make_safe(" ".join(line.split()), lambda address: 0 if address == url else None)).strip()


def format_event(data: Mapping[str, Any], name: str = "") -> bytes:
    """A server-sent event: JSON in ASCII, so that no text can break the frame."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode("ascii")


def format_comment(text: str) -> bytes:
    return f": {one_line(text)}\n\n".encode()


def one_line(text: str) -> str:
    return re.sub(r"[\r\n]+", " ", text)[:200]
