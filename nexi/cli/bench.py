"""`nexi bench`: asks a file of questions and scores the answers."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from nexi import app, bench
from nexi.cli.exits import EXIT_CANCELLED
from nexi.cli.flags import COUNT, FILE, HELP, MORE_THAN_ZERO, json_option
from nexi.cli.runner import run_with_nexi
from nexi.config import Config, load_config
from nexi.files import translate_os_errors
from nexi.output import clean_line, is_tty, print_json, print_note, print_warning, write

MAX_BAD_ROWS_SHOWN = 10
PIPED_PROGRESS_EVERY = 10


@click.command("bench", context_settings=HELP)
@click.argument("file", type=FILE)
@click.option("-m", "--model", help="Model to use; `extractive` is built in.")
@click.option("-e", "--effort", type=click.Choice(["s", "m", "l"]), help="Effort: quick, balanced or thorough.")
@click.option("--limit", type=COUNT, metavar="N", help="Ask only N of the questions.")
@click.option("--seed", type=int, default=0, metavar="N", help="Seed of the sample: the same seed picks the same questions.")
@click.option(
    "--concurrency", type=click.IntRange(1, 32), default=2, metavar="N", help="Ask N questions in parallel; 2 by default."
)
@click.option("--max-cost", type=MORE_THAN_ZERO, metavar="USD", help="Maximum cost of all questions in USD.")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the results to FILE.")
@click.option("--plot", "picture", type=FILE, metavar="FILE", help="Write the SVG plot to FILE.")
@json_option
def _bench_command(file: Path, **options: Any) -> None:
    """Ask the questions in FILE and score the answers.

    FILE is JSON lines, JSON, CSV or TSV with a question and its answer in each row (SimpleQA, FRAMES and the like). Results
    are saved next to it as they arrive; run the same command again to continue after a stop.
    """
    flags = _BenchFlags(**options)
    question_file = bench.read_questions(file)
    for problem in question_file.bad[:MAX_BAD_ROWS_SHOWN]:
        print_warning(f"{file.name}, {problem}; skipped")
    if (more := len(question_file.bad) - MAX_BAD_ROWS_SHOWN) > 0:
        print_warning(f"{more} more rows of {file.name} were skipped")
    questions = list(question_file.questions)
    if flags.limit and flags.limit < len(questions):
        order = list(range(len(questions)))
        random.Random(flags.seed).shuffle(order)  # noqa: S311 - a draw that can be repeated
        # in file order; a smaller sample with the same seed is part of a larger one
        questions = [questions[i] for i in sorted(order[: flags.limit])]
    config = load_config()
    config = config.override(model=flags.model or config.model, max_cost=flags.max_cost or config.max_cost)
    model = config.endpoint("answer").model
    file_name = "".join(c if c.isalnum() or c in ".-" else "-" for c in model)
    path = flags.output or file.with_name(f"{file.name.partition('.')[0]}-{file_name}.results.jsonl")
    results = bench.Results.open(path, {"model": model, "effort": flags.effort or config.default_effort})
    if results.damaged:
        print_warning(f"{results.damaged} damaged lines of {results.path} were skipped")
    left = sum(q.id not in results.rows or not results.rows[q.id].is_done for q in questions)
    print_note(f"{left} of {len(questions)} questions to ask; writing results to {results.path}", None, "dim")
    stop_reason = _ask_questions(config, questions, results, flags)
    _report_results(file, questions, results, flags)
    if stop_reason:
        print_note(f"{stop_reason}. To continue, run the same command again", None, "yellow")
        raise SystemExit(EXIT_CANCELLED if stop_reason == "Stopped" else 1)


class _BenchFlags(Struct, frozen=True):
    """The flags of `nexi bench`, named like click's parameters."""

    model: str | None
    effort: str | None
    limit: int | None
    seed: int
    concurrency: int
    max_cost: float | None
    output: Path | None
    picture: Path | None
    as_json: bool


def _ask_questions(config: Config, questions: Sequence[bench.BenchQuestion], results: bench.Results, flags: _BenchFlags) -> str:
    """Ask the questions, without adding to the history; return why it ended early, or an empty string."""
    numbers = count(1)

    def show_answer(question: bench.BenchQuestion, row: bench.BenchRow) -> None:
        if next(numbers) % PIPED_PROGRESS_EVERY and not is_tty(sys.stderr):
            return
        rows = results.rows
        verdicts = [bench.score_answer(rows[q.id].answer, q.answers).correct for q in questions if q.id in rows]
        mark = "failed" if row.error else ("right" if bench.score_answer(row.answer, question.answers).correct else "wrong")
        money = f", ${results.cost:.4f}" + (f" of ${flags.max_cost:g}" if flags.max_cost else "")
        place = f"[{len(verdicts)}/{len(questions)}] {mark}, {row.seconds:.1f} s"
        share = f"{100 * sum(verdicts) / len(verdicts):.0f} % right so far{money}"
        print_note(f"{place}; {share}: {clean_line(question.text)[:70]}", None, "dim")

    async def ask(nexi: app.Nexi) -> bool:
        template = app.RunRequest("", effort=flags.effort or "", door="bench", keeps_history=False)
        return await bench.ask_questions(
            nexi, questions, results, template, workers=flags.concurrency, max_cost=flags.max_cost, tell=show_answer
        )

    try:
        is_spent = run_with_nexi(ask, config)
    except KeyboardInterrupt:
        return "Stopped"
    return f"Reached the cost limit of ${flags.max_cost:g}" if is_spent else ""


def _report_results(file: Path, questions: Sequence[bench.BenchQuestion], results: bench.Results, flags: _BenchFlags) -> None:
    rows = [(q, results.rows[q.id]) for q in questions if q.id in results.rows]
    if not rows:
        return
    figures = bench.group_figures(questions, results.rows)
    picture = flags.picture or results.path.with_suffix(".svg")
    times = [(row.seconds, bench.score_answer(row.answer, question.answers).correct) for question, row in rows]
    title = f"{file.name}: {len(times)} questions, {results.about['model']}, effort {results.about['effort']}"
    with translate_os_errors("Could not write the plot", picture):
        picture.write_text(bench.render_plot(title, figures, times), encoding="utf-8")
    if flags.as_json:
        about = {"schema": "nexi-bench-report-1", "file": str(file), **results.about}
        print_json({**about, "results": str(results.path), "plot": str(picture), "figures": msgspec.to_builtins(figures)})
    else:
        write(f"\n{bench.render_table(figures)}")
        print_note(f"Results: {results.path}. Plot: {picture}", None, "dim")
    errors = Counter(row.error for _, row in rows if row.error)
    for message, times_seen in errors.most_common(1):
        cause = f"most common error ({times_seen}): {clean_line(message)[:300]}"
        print_warning(f"{errors.total()} questions have no answer; {cause}")
