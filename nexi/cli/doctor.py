"""`nexi doctor`: one line for each check, ok or a problem with its cause and fix; `--repair` says what was saved and lost."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nexi import app
from nexi.app.history import open_runs
from nexi.cli.exits import EXIT_FAILURE
from nexi.cli.flags import flag, json_option
from nexi.cli.knowledge import open_progress
from nexi.cli.runner import run_with_nexi
from nexi.config import load_config
from nexi.errors import NexiError
from nexi.output import clean_line, print_json, write

if TYPE_CHECKING:
    from nexi.doctor import Check

MAX_NAMED_LOSSES = 20


@click.command("doctor")
@flag("--repair", help="First repair a damaged knowledge base and damaged run logs.")
@flag("--judge", "tests_judge", help="First test the model that judges sentences, in one request.")
@flag("--services", "calls_services", help="Call every open service once instead, and say which answer.")
@json_option
def _doctor_command(as_json: bool, repair: bool, tests_judge: bool, calls_services: bool) -> None:
    """Check the setup and suggest fixes.

    Sends one small request to the configured model and to each search service. Exits with 1 if a search cannot work.
    """
    from nexi.app.pair_models import grade_judge
    from nexi.doctor import examine_services, examine_setup

    if calls_services:
        checks = asyncio.run(examine_services()).checks
        if as_json:
            return print_json({"schema": "nexi-services-1", "checks": [check.as_json() for check in checks]})
        return write(f"{_render_checks(checks)}\n{sum(check.ok for check in checks)} of {len(checks)} open services answer.\n")
    if repair:
        write(asyncio.run(_repair_store(quiet=as_json)), sys.stderr)
        write(_repair_logs(), sys.stderr)
    if tests_judge:
        config = load_config()
        if config.endpoint("judge").is_extractive:
            raise NexiError("there is no judge to test", cause="no model is configured", fix="nexi config setup")
        # the grade is saved, and the report then names it
        run_with_nexi(lambda nexi: grade_judge(config, nexi.gate().open_llm("judge", "probe"), nexi.clock), config)
    report = asyncio.run(examine_setup())
    if as_json:
        print_json(report.as_json())
    else:
        problems = sum(not check.ok for check in report.checks)
        verdict = "Searches will work" if report.ok else "Searches will not work yet"
        more = f"; {problems} problem{'s' * (problems != 1)} found" if report.ok and problems else ""
        write(f"{_render_checks(report.checks)}\n{verdict}{more}.\n")
    if not report.ok:
        raise SystemExit(EXIT_FAILURE)
    return None


def _repair_logs() -> str:
    """Repair every damaged log and say, for each, what was saved and what is lost."""
    from nexi.app.stored_runs import repair_logs

    repairs, errors = repair_logs(open_runs(load_config()))
    lines = []
    for repair in repairs:
        facts = f"{repair.facts} fact{'s' * (repair.facts != 1)} saved"
        numbers = f": {', '.join(map(str, repair.lost[:10]))}{' ...' * (len(repair.lost) > 10)}" if repair.lost else ""
        place = f"The damaged log is {repair.kept_aside}."
        lines.append(f"Run {repair.run}: {facts}, {len(repair.lost)} lost{numbers}. {place}\n")
    lines += [f"Run {run_id} was not repaired: {error.message} ({error.cause}).\n" for run_id, error in errors.items()]
    return "".join(lines) or "The run logs are intact: nothing was changed.\n"


def _render_checks(checks: Sequence[Check]) -> str:
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        lines.append(f"{'ok' if check.ok else 'problem':<7}  {check.name:<{width}}  {clean_line(check.message)}")
        more = [f"{label}: {clean_line(text)}" for label, text in (("cause", check.cause), ("fix", check.fix)) if text]
        lines += [" " * (width + 11) + line for line in more]
    return "".join(f"{line}\n" for line in lines)


async def _repair_store(*, quiet: bool = False) -> str:
    """Repair the knowledge base; say what was saved and, as far as is known, what is gone. Raises StoreError."""
    from nexi.app.intake import Step
    from nexi.app.stored_runs import list_indexed_pages

    async with app.Nexi(load_config()) as nexi:
        knowledge = nexi.knowledge()
        if not knowledge.may_hold_something():
            return "There is no knowledge base to repair.\n"
        await knowledge.check_journal()
        store = await knowledge.open_store()
        with open_progress(quiet=quiet) as progress:
            repair = await store.repair(
                lambda count, total: progress.show_step(Step(f"{count:,} of {total:,} sources", "saved", count, total))
            )
        if not repair.kept_aside:
            return "The knowledge base is intact: nothing was changed.\n"
        # what stored runs have put into the knowledge base and is not in it
        urls = await asyncio.to_thread(list_indexed_pages, open_runs(nexi.config))
        missing_pages = [url for url in urls if await store.source(url) is None]
    lines = [f"Saved {repair.sources:,} sources with {repair.chunks:,} passages."]
    if repair.lost_count or repair.lost_chunks:
        lost = f"{repair.lost_count:,} sources, {repair.lost_chunks:,} passages of others"
        lines += [f"Lost by the file's own account: {lost}.", *_list_names(repair.lost_sources)]
    if missing_pages:
        lines.append(f"Not in it although a run has stored them (lost, or removed by you): {len(missing_pages):,} pages.")
        lines += [*_list_names(missing_pages), "`nexi index URL` reads a page again."]
    if len(lines) == 1:
        lines.append("No lost source is known; a damaged file may have held more than it can tell.")
    lines.append("`nexi index FOLDER` adds the files of a folder that are missing.")
    return "\n".join((*lines, f"The damaged file is {repair.kept_aside}.")) + "\n"


def _list_names(names: Sequence[str]) -> list[str]:
    more = [f"  and {len(names) - MAX_NAMED_LOSSES:,} more"] if len(names) > MAX_NAMED_LOSSES else []
    return [f"  {clean_line(name)}" for name in names[:MAX_NAMED_LOSSES]] + more
