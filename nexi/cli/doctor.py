"""`nexi doctor`: one line for each part, ok or a problem with its cause and the command that mends it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from nexi.cli.exits import EXIT_FAILURE, report_errors

if TYPE_CHECKING:
    from nexi.doctor import Check, DoctorReport


@click.command("doctor")
@click.option("--repair", is_flag=True, help="First save what can be read of a damaged knowledge store.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def doctor_command(as_json: bool, repair: bool) -> None:
    """Say what works, what does not, and how to mend it.

    Asks the configured model and search services once each. Exits with 1 if a search could not work.
    """
    with report_errors(as_json=as_json):
        import asyncio

        from nexi.doctor import examine_setup

        if repair:
            from nexi.cli.knowledge import repair_store
            from nexi.output import write

            write(asyncio.run(repair_store(quiet=as_json)), sys.stderr)
        _print_report(asyncio.run(examine_setup()), as_json=as_json)


def _print_report(report: DoctorReport, *, as_json: bool) -> None:
    from nexi.output import print_json, write

    if as_json:
        print_json(report.as_json())
    else:
        width = max(len(check.name) for check in report.checks)
        write("".join(_check_lines(check, width) for check in report.checks) + _verdict_line(report))
    if not report.ok:
        raise SystemExit(EXIT_FAILURE)


def _check_lines(check: Check, width: int) -> str:
    """One check: what, and under it why and what to do."""
    from nexi.output import clean_line

    head = f"{'ok' if check.ok else 'problem':<7}  {check.name:<{width}}  {clean_line(check.message)}"
    more = [f"{label}: {clean_line(text)}" for label, text in (("cause", check.cause), ("fix", check.fix)) if text]
    return "\n".join([head, *(" " * (width + 11) + line for line in more)]) + "\n"


def _verdict_line(report: DoctorReport) -> str:
    problems = sum(not check.ok for check in report.checks)
    if not report.ok:
        return "\nA search cannot work yet.\n"
    return "\nA search can work.\n" if not problems else f"\nA search can work; {problems} things could be better.\n"
