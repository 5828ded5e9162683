"""Describes the events of a run: the status line, the lines of `-v`, and counts."""

from __future__ import annotations

import json

from nexi import events
from nexi.output.proof import site_of
from nexi.text.controls import clean_line
from nexi.urls import hit_key

PURPOSE_STATUS = {
    "answer": "Thinking",
    "extract": "Reading closely",
    "compact": "Summarising",
    "judge": "Judging",
    "correct": "Correcting",
}
MAX_ARGUMENT_CHARS = 300


class RunTally:
    def __init__(self) -> None:
        self.status = "Starting"
        self.searches = self.pages = self.tokens = 0
        self._fetched_ahead: set[str] = set()  # not read yet

    def count_event(self, event: events.Event) -> None:
        self.status = clean_line(status_of(event)) or self.status
        match event:
            case events.SearchFinished():
                self.searches += 1
            case events.PageFetched(ahead=True):
                self._fetched_ahead.add(hit_key(event.final_url or event.url))
            case events.PageFetched():
                self.pages += 1
            case events.SourceNumbered(source=source) if hit_key(source.url) in self._fetched_ahead:
                self._fetched_ahead.discard(hit_key(source.url))
                self.pages += 1
            case events.ModelReplied():
                self.tokens += event.usage.total

    def status_line(self, seconds: float) -> str:
        counts = ((self.searches, "searches"), (self.pages, "pages"), (self.tokens, "tokens"))
        parts = [f"{count:,} {_pluralise(count, noun)}" for count, noun in counts if count]
        return " · ".join([self.status, *parts, f"{seconds:.0f} s"])


def _pluralise(count: int, plural: str) -> str:
    return plural if count != 1 else {"searches": "search"}.get(plural, plural[:-1])


def status_of(event: events.Event) -> str:
    """The current activity after an event; "" if it did not change."""
    match event:
        case events.ModelAsked(purpose=purpose):
            return PURPOSE_STATUS.get(purpose, "")
        case events.ToolStarted(name="web_search"):
            return "Searching " + ", ".join(f'"{query}"' for query in _string_arguments(event.arguments, "queries"))
        case events.ToolStarted(name="local_search"):
            return "Searching the knowledge base"
        case events.ToolStarted(name="web_get"):
            return "Reading " + ", ".join(dict.fromkeys(map(site_of, _string_arguments(event.arguments, "urls"))))
        case events.ToolStarted(name=name) if name != "final_answer":
            return f"Calling {name[:60]}"
        case events.SearchDelayed(backend=backend, seconds=seconds):
            return f"Waiting {seconds:.0f} s for {backend}" if seconds >= 1 else ""
        case events.SearchFinished(query=query, reason=reason) if reason:
            return f'Could not search "{query}"'
        case events.SearchFinished(query=query, hits=hits):
            return f'Found {len(hits)} {_pluralise(len(hits), "results")} for "{query}"'
        case events.PageFetched(ahead=False) | events.PageFailed(ahead=False):
            return f"{'Read' if isinstance(event, events.PageFetched) else 'Could not read'} {site_of(event.url)}"
        case events.TextDelta():
            return "Writing"
        case events.StatusDelta(text=text):
            return text
        case _:
            return ""


def _string_arguments(arguments: str, name: str) -> list[str]:
    """A list of strings in the arguments of a tool call, if the model wrote one."""
    try:
        items = json.loads(arguments)[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return [item for item in items if isinstance(item, str)] if isinstance(items, list) else []


def progress_of(event: events.Event) -> str:
    """A line for an event where nothing can be redrawn; "" for none."""
    match event:
        case events.ModelAsked(purpose="answer"):
            return "Thinking"
        case events.ToolStarted(name=name) if name not in ("web_search", "web_get", "final_answer"):
            return status_of(event)
        case events.SearchDelayed(backend=backend, seconds=seconds, code=code) if seconds >= 1:
            return f"Retrying {backend} in {seconds:.0f} s ({code.replace('_', ' ')})"
        case events.SearchFinished(query=query, reason=reason) if reason:  # it is said once, with the answer or instead of one
            return f'Could not search "{query[:60]}"'
        case events.SearchFinished(query=query, hits=hits, backend=backend):
            results = f"{len(hits)} {_pluralise(len(hits), 'results')}" + (f" from {backend}" if backend else "")
            return f'Searched "{query[:60]}": {results}'
        case events.SourceNumbered(source=source):  # a page that was only prefetched is not read yet
            return f"Read {source.title or source.url[:100]} ({site_of(source.url)})"
        case _:
            return ""


def detail_of(event: events.Event) -> tuple[str, str]:
    """A line for `-v` with its style; ("", "") for none."""
    match event:
        case events.ModelAsked():
            return f"-> {event.model} ({event.purpose}), call {event.call}, about {event.prompt_tokens} tokens", "cyan"
        case events.ModelReplied():
            calls = ", ".join(call.name for call in event.tool_calls) or "text"
            usage = f"{event.usage.input_tokens}+{event.usage.output_tokens} tokens"
            return f"<- {calls}, {usage}, {event.seconds:.2f} s", "cyan"
        case events.ModelFailed():
            return f"<- failed: {event.message}", "red"
        case events.ToolStarted():
            return f"   {event.name} {event.arguments[:MAX_ARGUMENT_CHARS]}", "dim"
        case events.ToolFinished():
            outcome = "ok" if event.ok else "failed"
            return f"   {event.name} {outcome}, {len(event.text)} characters, {event.seconds:.2f} s", "dim"
        case events.SearchDelayed():
            return f"   Retrying {event.backend} in {event.seconds:g} s ({event.code})", "dim"
        case events.PageFailed():
            return f"   Could not read {event.url[:100]}: {event.message}", "dim"
        case events.SourceNumbered(source=source):
            return f"   [{source.number}] is {source.url[:100]}", "dim"
        case events.SourcesRenumbered(sources=sources):
            return "   In the answer, " + ", ".join(f"[{s.number}] is {s.url[:100]}" for s in sources), "dim"
        case events.ContextCompacted():
            return f"   Compacted the conversation from {event.tokens_before} to {event.tokens_after} tokens", "dim"
        case events.SearchFinished(query=query, reason=reason) if reason:
            return f'   Could not search "{query[:60]}": {reason[:200]}', "dim"
        case _ if text := progress_of(event):
            return f"   {text}", "dim"
        case _:
            return "", ""
