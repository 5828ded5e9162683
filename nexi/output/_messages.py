"""Print functions for messages and answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nexi.errors import NexiError, StoppedError
from nexi.output.streams import open_console, print_styled, takes_colors, write, write_raw
from nexi.text.controls import clean_line, escape_json

if TYPE_CHECKING:
    from nexi.app import RunResult
    from nexi.types import Source


def print_answer(
    answer: str,
    plain: bool | None = None,
    url_citations: Mapping[str, int] | None = None,
    url_to_title: Mapping[str, str] | None = None,
) -> None:
    """Print the answer to stdout, with its sources under `Sources:`."""
    from nexi.types import Source

    titles = url_to_title or {}
    if takes_colors(sys.stdout, plain):
        from nexi.output._markdown import render_markdown

        open_console("stdout").print(render_markdown(answer))
    else:
        write(f"{answer}\n")
    print_sources([Source(n, url, titles.get(url, "")) for url, n in (url_citations or {}).items()], plain)


def print_sources(
    sources: Iterable[Source], plain: bool | None = None, support: Mapping[int, tuple[int, int]] | None = None
) -> None:
    """Print the sources to stdout: number, title, site and URL; with colours also what each supports."""
    from nexi.answers.citations import format_citations_section

    sources = sorted(sources, key=lambda source: source.number)
    if not sources:
        return None
    if not takes_colors(sys.stdout, plain):
        numbers = {source.number: clean_line(source.url) for source in sources}
        titles = {clean_line(source.url): clean_line(source.title) for source in sources}
        return write(f"\n{format_citations_section(numbers, url_to_title=titles)}\n")
    from nexi.output._markdown import source_lines

    screen = open_console("stdout")
    for line in source_lines(sources, support or {}):
        screen.print(line, crop=False)  # a long URL stays whole
    return None


def print_search_start(query: str, plain: bool | None = None) -> None:
    print_note(f"Searching: {query}", plain, "cyan")


def print_result_summary(
    iterations: int,
    duration_s: float,
    tokens: int,
    urls: Sequence[str] = (),
    plain: bool | None = None,
    *,
    cost: str = "",
    figures: str = "",
    calls: int = 0,
) -> None:
    """Print one line on time, work and cost; research counts model calls instead of iterations."""
    work = _count_noun(iterations, "iteration") if iterations or not calls else _count_noun(calls, "model call")
    parts = (f"{duration_s:.1f} s", work, f"{_count_noun(len(urls), 'page')} read")
    print_note(", ".join(filter(None, (*parts, _count_noun(tokens, "token"), cost, figures))), plain, "dim")


def cost_text(cost: float | None) -> str:
    if cost is None:
        return "cost unknown"
    return f"${cost:.4f}" if cost >= 0.0001 else ("under $0.0001" if cost > 0 else "free")


def _count_noun(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def print_success(message: str, plain: bool | None = None) -> None:
    print_note(message, plain, "green")


def print_warning(message: str, plain: bool | None = None) -> None:
    print_note(f"Warning: {message}", plain, "yellow")


def print_error(message: str, plain: bool | None = None) -> None:
    print_note(f"Error: {message}", plain, "red")


def create_progress_callback(verbose: bool = False, plain: bool | None = None) -> Callable[[str, int, int], None]:
    def callback(message: str, iteration: int, max_iter: int) -> None:
        print_note(f"[{iteration}/{max_iter}] {message}" if verbose else message, plain, "dim")

    return callback


def print_failure(error: NexiError, *, as_json: bool = False) -> None:
    """Print an error with its cause and fix, as a JSON object on stdout with `as_json`."""
    if as_json:
        return print_json({"error": str(error), "code": error.code, "fix": error.fix})
    if isinstance(error, StoppedError):  # the user's own wish is no error
        return print_note(f"{error}. {error.fix}".strip())
    print_error(str(error))
    if error.fix:
        print_note(f"  Fix: {error.fix}", None, "dim")
    return None


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one line of JSON to stdout; control characters are escaped, not removed."""
    write_raw(escape_json(json.dumps(value, ensure_ascii=False)) + "\n", sys.stdout)


def answer_json(result: RunResult, question: str = "") -> dict[str, Any]:
    """The versioned object that `--json` prints; the question as it was typed, else as the run's log has it."""
    from nexi.answers.answered import list_readings
    from nexi.answers.papers import group_works
    from nexi.output.proof import conflict_json, review_json, source_json

    end, works = result.finished, group_works(result.answer.sources)
    readings = list_readings(result.answer.text, result.answer.answered)
    return {
        "schema": "nexi-answer-1",
        "id": result.id,
        "question": question or result.started.query,
        "answer": result.answer.text,
        "answered": result.answer.answered,
        **({"readings": readings} if readings else {}),
        "sources": [source_json(source, works[source.number]) for source in result.answer.sources],
        "conflicts": [conflict_json(conflict) for conflict in result.answer.conflicts],
        "read": result.read_urls,
        "stop": end.stop.value,
        "warnings": list(end.warnings),
        "model": result.started.model,
        "iterations": end.iterations,
        "model_calls": end.model_calls,
        "pages": end.pages,
        "seconds": end.seconds,
        "tokens": {"input": end.usage.input_tokens, "output": end.usage.output_tokens, "estimated": end.usage.estimated},
        "cost": end.usage.cost,
        "proof": review_json(result.answer.review) if result.answer.review else None,
    }


def print_note(message: str, plain: bool | None = None, style: str = "") -> None:
    """Print a line to stderr, coloured if the terminal allows it."""
    print_styled(message, style, "stderr", plain)
