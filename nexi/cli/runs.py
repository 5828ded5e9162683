"""Commands for stored runs: list, resume, replay, stop, export and remove."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from nexi import app
from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.app.history import open_runs
from nexi.cli.completion import complete_run
from nexi.cli.delivery import deliver_report, output_path, print_next_steps, write_answer, write_export
from nexi.cli.exits import Interrupts, exit_unless_answered
from nexi.cli.flags import COUNT, HELP, MORE_THAN_ZERO, flag, json_option, parse_flags, screen_options
from nexi.cli.runner import follow_run, load_terminal_config, open_screen, run_request, run_with_nexi
from nexi.config import load_config
from nexi.events import AgendaSet, RunFinished, find_end
from nexi.files import expand_home, is_existing_file
from nexi.output import answer_json, print_json, print_note, print_success, print_warning, write
from nexi.ports import RunStore
from nexi.text.controls import clean_line

DEFAULT_SHOWN_RUNS = 20
MAX_QUERY_CHARS = 70


@click.group("runs", invoke_without_command=True, context_settings=HELP)
@click.option("-n", "--num", type=COUNT, default=DEFAULT_SHOWN_RUNS, show_default=True, metavar="N", help="Show the last N.")
@json_option
@click.pass_context
def _runs_command(ctx: click.Context, num: int, as_json: bool) -> None:
    """List runs, newest first."""
    if ctx.invoked_subcommand:
        return
    runs = open_runs(load_config())
    _print_runs([runs.check_lines(run) for run in runs.list_runs(num)], as_json)


@_runs_command.command("rm", context_settings=HELP)
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_run)
def _remove_command(ids: tuple[str, ...]) -> None:
    """Delete runs; their pages are deleted with the next cleanup."""
    directory = open_runs(load_config())
    for run_id in ids:
        directory.remove(run_id)
        print_success(f"Deleted run {run_id}.")


@_runs_command.command("keep", context_settings=HELP)
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_run)
@flag("--undo", help="Let cleanups delete them again.")
def _keep_command(ids: tuple[str, ...], undo: bool) -> None:
    """Keep runs and their pages, however old they are."""
    directory = open_runs(load_config())
    for run_id in ids:
        directory.keep(run_id, is_kept=not undo)
        print_success(f"Run {run_id} is {'no longer' if undo else 'now'} exempt from cleanups.")


@_runs_command.command("tidy", context_settings=HELP)
@flag("--dry-run", help="Only list what would be deleted.")
def _tidy_command(dry_run: bool) -> None:
    """Delete runs older than runs_keep_days, and the oldest beyond pages_max_mb, now."""
    config = load_config()
    directory = open_runs(config)
    if dry_run:
        due = set(directory.find_expired(config.runs_keep_days, config.pages_max_mb))
        return _print_runs([run for run in directory.list_runs() if run.id in due], as_json=False)
    report = directory.prune(config.runs_keep_days, config.pages_max_mb)
    return print_success(f"Deleted {len(report.runs)} runs and {report.pages} page texts ({report.bytes_freed / 1e6:.1f} MB).")


@click.command("stop", context_settings=HELP)
@click.argument("run_id", metavar="ID", shell_complete=complete_run)
def _stop_command(run_id: str) -> None:
    """Tell a running run to answer now with what it has read."""
    directory = open_runs(load_config())
    if directory.request_stop(run_id):
        return print_success(f"Told run {run_id} to answer now.")
    has_answer = isinstance(find_end(directory.open_log(run_id).bare_facts), RunFinished)
    next_step = f"to see its answer: nexi --show {run_id}" if has_answer else f"to continue it: nexi resume {run_id}"
    return print_warning(f"run {run_id} is not running; {next_step}")


@click.command("resume", context_settings=HELP)
@click.argument("run_id", metavar="ID", shell_complete=complete_run)
@click.option("-m", "--model", help="Continue with another model.")
@click.option("--max-cost", type=MORE_THAN_ZERO, metavar="USD", help="New cost limit for the whole run.")
@click.option("--max-tokens", type=COUNT, metavar="N", help="New token limit for the whole run.")
@click.option("--time-target", type=MORE_THAN_ZERO, metavar="S", help="New time target for the whole run.")
@screen_options
@json_option
@click.option("-o", "--output", metavar="FILE", help="Write the answer to a new FILE.")
def _resume_command(run_id: str, **options: Any) -> None:
    """Resume a run that was interrupted, stopped, or ended by a limit or a failing provider.

    Model calls, searches and pages in its log are not repeated.
    """
    from nexi.app.research_state import fold

    flags = parse_flags(options)
    with Interrupts(as_json=flags.output.as_json) as interrupts:
        config = load_terminal_config(flags.output)
        output_path(flags.output)  # fail before anything is spent
        log = open_runs(config).open_log(run_id)
        facts = log.bare_facts
        is_research = bool(facts) and getattr(facts[0], "mode", "") == "research"
        state = fold(() if log.has_ended else facts) if is_research else None
        screen = open_screen(flags.output, research=state)
        changes = replace(run_request(flags, ""), door="")  # no server: who resumes by hand has settled its plan
        result = run_with_nexi(lambda nexi: follow_run(nexi.resume(run_id, changes=changes), screen, interrupts), config)
        if result.id != run_id:
            print_note(f"Run {run_id} had ended. Run {result.id} continues it.")
        if any(isinstance(fact, AgendaSet) for fact in result.facts):
            deliver_report(result, flags.output, screen)
        elif path := output_path(flags.output):
            write_answer(path, result, result.started.query, flags.output)
        elif flags.output.as_json:
            print_json(answer_json(result))
        else:
            screen.finish(result)
            print_next_steps(result)
        exit_unless_answered(result)


@click.command("replay", context_settings=HELP)
@click.argument("run", metavar="ID|FILE", shell_complete=complete_run)
@json_option
def _replay_command(run: str, as_json: bool) -> None:
    """Replay a finished run from its log, offline, and compare the answers.

    FILE is a bundle from `nexi export`.
    """
    from nexi.app.stored_runs import read_bundle

    with tempfile.TemporaryDirectory(prefix="nexi-replay-") as folder:
        config, run_id = load_config(), run
        if is_existing_file(Path(run)):  # a bundle, which is unpacked into a temporary home
            config = config.override(home=Path(folder))
            run_id = read_bundle(Path(run), open_runs(config))
        replay = run_with_nexi(lambda nexi: nexi.replay(run_id), config)
        text = replay.result.answer.text
        if as_json:
            print_json({"schema": "nexi-replay-1", "run": run_id, "same": replay.is_same, "answer": text})
        else:
            write(f"{text}\n")
            if replay.is_same:
                print_success(f"Run {run_id}: same answer, byte for byte.")
            else:
                print_warning(f"run {run_id} gave a different answer; to see the original: nexi --show {run_id}")
        if not replay.is_same:
            raise SystemExit(1)


@click.command("export", context_settings=HELP)
@click.argument("run_id", metavar="ID", shell_complete=complete_run)
@flag("--bundle", help="Export the whole run with its pages, without keys, for replay elsewhere.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(EXPORT_FORMATS)),
    help="Format of the answer: html includes evidence and timeline; pdf needs Chromium, docx pandoc.",
)
@click.option("--sources", metavar="N,N", help="References of these sources only, for ris, bibtex and csl.")
@click.option(
    "-o", "--output", metavar="FILE", help="File to write; by default a new file in the current folder; - for stdout."
)
def _export_command(run_id: str, bundle: bool, form: str | None, sources: str | None, output: str | None) -> None:
    """Export the answer of a run, or with --bundle the whole run."""
    import asyncio

    from nexi.app.components import secrets_of
    from nexi.app.stored_runs import write_bundle

    if bundle == bool(form):
        raise click.UsageError("choose what to export: --format or --bundle")
    if sources and not (form and EXPORT_FORMATS[form].lists_sources):
        raise click.UsageError("--sources is for references: --format ris, bibtex or csl")
    numbers = [part.strip(" []") for part in (sources or "").split(",") if part.strip()]
    if wrong := next((part for part in numbers if not (part.isascii() and part.isdigit() and len(part) <= 6)), ""):
        raise click.UsageError(f"--sources takes numbers like 1,3, not {wrong[:40]!r}")
    if form:
        return asyncio.run(export_answer(open_runs(load_config()), run_id, form, output, [int(part) for part in numbers]))
    path = expand_home(output or f"nexi-run-{run_id}.tar.gz")
    pages = write_bundle(open_runs(load_config()), run_id, path, secrets_of(load_config()))
    return print_success(f"Saved the run and its {pages} texts to {path}.")


async def export_answer(runs: RunStore, run_id: str, form: str, output: str | None, numbers: Collection[int] = ()) -> None:
    """Write the answer of a run to stdout or a new file, by default in the current folder. Raises NexiError."""
    from nexi.exports import export_run

    body = await export_run(runs, runs.pages, run_id, form, numbers)
    write_export(body, output or f"nexi-{run_id}.{EXPORT_FORMATS[form].suffix}")


def _print_runs(runs: list[app.RunSummary], as_json: bool) -> None:
    if as_json:
        rows = [
            {"id": r.id, "created": r.created, "state": r.shown_state, "mode": r.mode, "query": r.query, "bytes": r.size}
            for r in runs
        ]
        return print_json({"schema": "nexi-runs-1", "runs": rows})
    if not runs:
        return write("No runs.\n", sys.stderr)
    for run in runs:
        query = clean_line(run.query)[:MAX_QUERY_CHARS]
        write(f"{run.id}  {run.created[:16].replace('T', ' ')}  {run.shown_state:<10}  {run.mode:<8}  {query}\n")
    return None
