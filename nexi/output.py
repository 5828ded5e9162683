"""What a person or a script sees: data on stdout, everything else on stderr.

The seeds' print functions stand here over one `Screen`, which turns the events of a run into text. Rich is imported only
when there is a terminal to draw on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from nexi.app import RunResult
from nexi.citations import format_citations_section
from nexi.errors import NexiError
from nexi.events import Event, ModelAsked, ModelFailed, ModelReplied, ToolFinished, ToolStarted, Warned
from nexi.search import progress_text

ANSWER_SCHEMA = "nexi-answer-1"
_plain_mode: ContextVar[bool] = ContextVar("nexi_plain_mode", default=False)


def is_tty() -> bool:
    """Whether stdout is a terminal."""
    return bool(getattr(sys.stdout, "isatty", lambda: False)())


def set_plain_mode(plain: bool) -> None:
    """No colours and no emoji from here on, in this context."""
    _plain_mode.set(plain)


def _is_plain(plain: bool | None) -> bool:
    return _plain_mode.get() if plain is None else plain


def print_answer(
    answer: str,
    plain: bool | None = None,
    url_citations: Mapping[str, int] | None = None,
    url_to_title: Mapping[str, str] | None = None,
) -> None:
    """The answer on stdout, with its sources under `Sources:`."""
    numbers = {number: url for url, number in (url_citations or {}).items()}
    sources = format_citations_section(numbers, url_to_title=dict(url_to_title or {}), plain=True)
    if _is_plain(plain) or not is_tty():
        write(f"{answer}\n" + (f"\n{sources}\n" if sources else ""))
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.text import Text

    console = Console()
    console.print(Markdown(answer, hyperlinks=False))
    if sources:
        console.print(Text(f"\n{sources}", style="dim"))


def print_search_start(query: str, plain: bool | None = None) -> None:
    _note(f"Searching: {query}", plain, "cyan")


def print_result_summary(
    iterations: int, duration_s: float, tokens: int, urls: Sequence[str] = (), plain: bool | None = None
) -> None:
    """One line on what the answer took."""
    _note(f"{iterations} iterations, {duration_s:.1f} s, {tokens} tokens, {len(urls)} pages read", plain, "dim")


def print_success(message: str, plain: bool | None = None) -> None:
    _note(message, plain, "green")


def print_warning(message: str, plain: bool | None = None) -> None:
    _note(f"Warning: {message}", plain, "yellow")


def print_error(message: str, plain: bool | None = None) -> None:
    _note(f"Error: {message}", plain, "red")


def create_progress_callback(verbose: bool = False, plain: bool | None = None) -> Callable[[str, int, int], None]:
    """A callback for `run_search` that tells its progress on stderr."""

    def callback(message: str, iteration: int, max_iter: int) -> None:
        _note(f"[{iteration}/{max_iter}] {message}" if verbose else message, plain, "dim")

    return callback


def print_failure(error: NexiError, *, as_json: bool = False) -> None:
    """What happened, why, and what to do; one JSON object on stdout when the caller asked for JSON."""
    if as_json:
        write(json.dumps({"error": str(error), "code": error.code, "fix": error.fix}, ensure_ascii=False) + "\n")
        return
    print_error(str(error))
    if error.fix:
        _note(f"  Fix: {error.fix}", None, "dim")


def answer_json(result: RunResult, question: str, model: str) -> dict[str, Any]:
    """The versioned object that `--json` prints."""
    end = result.finished
    return {
        "schema": ANSWER_SCHEMA,
        "id": result.id,
        "question": question,
        "answer": result.answer.text,
        "sources": [{"n": s.number, "url": s.url, "title": s.title} for s in result.answer.sources],
        "read": [s.url for s in result.session.book.sources],
        "stop": end.stop.value,
        "warnings": list(end.warnings),
        "model": model,
        "iterations": end.iterations,
        "model_calls": end.model_calls,
        "pages": end.pages,
        "seconds": end.seconds,
        "tokens": {"input": end.usage.input_tokens, "output": end.usage.output_tokens, "estimated": end.usage.estimated},
        "cost": end.usage.cost,
    }


class Screen:
    """Shows a run as it goes, on stderr."""

    def __init__(self, *, verbose: bool = False, quiet: bool = False) -> None:
        self._verbose = verbose
        self._quiet = quiet
        self._iteration = 0

    def show(self, event: Event) -> None:
        if isinstance(event, ModelAsked) and event.purpose == "answer":
            self._iteration += 1
            self._count()
        if isinstance(event, Warned):
            self._break_line()
            print_warning(event.message)
        elif self._verbose:
            self._tell(event)
        elif not self._counts() and not self._quiet and (text := progress_text(event)):
            _note(text, None, "dim")

    def end(self) -> None:
        self._break_line()

    def _counts(self) -> bool:
        """Off a terminal progress is `[1][2][3]`, which a log can bear."""
        return not self._quiet and not self._verbose and not sys.stderr.isatty()

    def _count(self) -> None:
        if self._counts():
            write(f"[{self._iteration}]", sys.stderr)

    def _break_line(self) -> None:
        if self._counts() and self._iteration:
            write("\n", sys.stderr)

    def _tell(self, event: Event) -> None:
        match event:
            case ModelAsked():
                _note(
                    f"-> {event.model} ({event.purpose}), call {event.call}, about {event.prompt_tokens} tokens", None, "cyan"
                )
            case ModelReplied():
                calls = ", ".join(c.name for c in event.tool_calls) or "text"
                usage = f"{event.usage.input_tokens}+{event.usage.output_tokens} tokens"
                _note(f"<- {calls}, {usage}, {event.seconds:.2f} s", None, "cyan")
            case ModelFailed():
                _note(f"<- failed: {event.message}", None, "red")
            case ToolStarted():
                _note(f"   {event.name} {event.arguments[:300]}", None, "dim")
            case ToolFinished():
                _note(
                    f"   {event.name} {'ok' if event.ok else 'failed'}, {len(event.text)} characters, {event.seconds:.2f} s",
                    None,
                    "dim",
                )
            case _ if text := progress_text(event):
                _note(f"   {text}", None, "dim")


def write(text: str, stream: Any = None) -> None:
    """Write text whatever the stream's encoding can bear; a reader that went away ends the program quietly."""
    stream = stream or sys.stdout
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


def _note(message: str, plain: bool | None, style: str) -> None:
    if _is_plain(plain) or not sys.stderr.isatty():
        write(message + "\n", sys.stderr)
        return
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True, highlight=False).print(Text(message, style=style))
