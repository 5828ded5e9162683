"""What is going on in a run, in a few words: the status line, the lines of `-v`, and the count of what was done."""

from __future__ import annotations

import json

from nexi.events import (
    ContextCompacted,
    Event,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    PageFailed,
    PageFetched,
    SearchDelayed,
    SearchFinished,
    SourceNumbered,
    StatusDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from nexi.output.controls import clean_line
from nexi.output.sites import site_of

PURPOSE_STATUS = {
    "answer": "Thinking",
    "extract": "Reading closely",
    "compact": "Summing up",
    "judge": "Judging",
    "correct": "Correcting",
}
MAX_ARGUMENT_CHARS = 300


class RunTally:
    """What a run has done so far."""

    def __init__(self) -> None:
        self.status = "Starting"
        self.searches = self.pages = self.tokens = 0

    def count_event(self, event: Event) -> None:
        self.status = clean_line(status_of(event)) or self.status
        match event:
            case SearchFinished():
                self.searches += 1
            case PageFetched():
                self.pages += 1
            case ModelReplied():
                self.tokens += event.usage.total

    def status_line(self, seconds: float) -> str:
        """The status line: what is going on, and what was done until now."""
        done = ((self.searches, "searches"), (self.pages, "pages"), (self.tokens, "tokens"))
        counts = [f"{count:,} {_pluralise(count, noun)}" for count, noun in done if count]
        return " · ".join([self.status, *counts, f"{seconds:.0f} s"])


def _pluralise(count: int, plural: str) -> str:
    return plural if count != 1 else {"searches": "search"}.get(plural, plural[:-1])


def status_of(event: Event) -> str:
    """What a person waiting may like to know; "" for nothing new."""
    match event:
        case ModelAsked(purpose=purpose):
            return PURPOSE_STATUS[purpose]
        case ToolStarted(name="web_search"):
            return "Searching " + ", ".join(f'"{query}"' for query in _string_arguments(event.arguments, "queries"))
        case ToolStarted(name="local_search"):
            return "Looking into what is known"
        case ToolStarted(name="web_get"):
            return "Reading " + ", ".join(dict.fromkeys(map(site_of, _string_arguments(event.arguments, "urls"))))
        case SearchDelayed(backend=backend, seconds=seconds):
            return f"Waiting {seconds:.0f} s for {backend}" if seconds >= 1 else ""
        case SearchFinished(query=query, hits=hits):
            return f'Found {len(hits)} {_pluralise(len(hits), "results")} for "{query}"'
        case PageFetched(ahead=False) | PageFailed(ahead=False):
            return f"{'Read' if isinstance(event, PageFetched) else 'Could not read'} {site_of(event.url)}"
        case TextDelta():
            return "Writing"
        case StatusDelta(text=text):
            return text
        case _:
            return ""


def _string_arguments(arguments: str, name: str) -> list[str]:
    """A list in the arguments of a tool call, as far as the model wrote one."""
    try:
        found = json.loads(arguments)[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def progress_of(event: Event) -> str:
    """What is worth a line of its own where no line can be redrawn; "" for nothing."""
    match event:
        case ModelAsked(purpose="answer"):
            return "Thinking"
        case SearchDelayed(backend=backend, seconds=seconds, code=code) if seconds >= 1:
            return f"{backend} is asked again in {seconds:.0f} s ({code.replace('_', ' ')})"
        case SearchFinished(query=query, hits=hits, backend=backend):
            found = f"{len(hits)} {_pluralise(len(hits), 'results')}" + (f" from {backend}" if backend else "")
            return f'Searched "{query[:60]}": {found}'
        case PageFetched(url=url, ahead=False):
            return f"Read {url[:100]}"
        case _:
            return ""


def detail_of(event: Event) -> tuple[str, str]:
    """A line of `-v` and its style: every model call, tool call and token count; ("", "") for nothing."""
    match event:
        case ModelAsked():
            return f"-> {event.model} ({event.purpose}), call {event.call}, about {event.prompt_tokens} tokens", "cyan"
        case ModelReplied():
            calls = ", ".join(call.name for call in event.tool_calls) or "text"
            usage = f"{event.usage.input_tokens}+{event.usage.output_tokens} tokens"
            return f"<- {calls}, {usage}, {event.seconds:.2f} s", "cyan"
        case ModelFailed():
            return f"<- failed: {event.message}", "red"
        case ToolStarted():
            return f"   {event.name} {event.arguments[:MAX_ARGUMENT_CHARS]}", "dim"
        case ToolFinished():
            ended = "ok" if event.ok else "failed"
            return f"   {event.name} {ended}, {len(event.text)} characters, {event.seconds:.2f} s", "dim"
        case SearchDelayed():
            return f"   {event.backend} is asked again in {event.seconds:g} s ({event.code})", "dim"
        case PageFailed():
            return f"   Could not read {event.url[:100]}: {event.message}", "dim"
        case SourceNumbered(source=source):
            return f"   [{source.number}] is {source.url[:100]}", "dim"
        case ContextCompacted():
            return f"   Conversation cut from {event.tokens_before} to {event.tokens_after} tokens", "dim"
        case _ if text := progress_of(event):
            return f"   {text}", "dim"
        case _:
            return "", ""
