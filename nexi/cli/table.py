"""`nexi table`: documents by questions, each value with the words it was taken from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nexi.cli.delivery import write_export
from nexi.cli.exits import EXIT_NOT_ANSWERED, report_errors
from nexi.cli.flags import HELP, MORE_THAN_ZERO, cost_options, flag, json_option
from nexi.cli.knowledge import open_progress
from nexi.cli.runner import run_with_nexi
from nexi.output import write

FORMS = ("md", "csv", "xlsx", "json")
MAX_SILENT = 3  # documents without progress


@click.command("table", context_settings=HELP)
@click.argument("columns")
@click.argument("documents", nargs=-1, required=True, metavar="FILE|FOLDER|URL...")
@click.option("-c", "--column", "more", multiple=True, metavar="TEXT", help="One more column, taken as it is.")
@flag("--local", help="Use local files and local models only; no network access.")
@click.option("--time-target", type=MORE_THAN_ZERO, metavar="S", help="Stop asking the model after S seconds.")
@cost_options
@json_option
@click.option("--format", "form", type=click.Choice(FORMS), help="Output format; the ending of FILE by default, else md.")
@click.option("-o", "--output", metavar="FILE", help="Write to a new FILE; - for stdout.")
def _table_command(
    columns: str,
    documents: tuple[str, ...],
    more: tuple[str, ...],
    local: bool,
    as_json: bool,
    form: str | None,
    output: str | None,
    **limits: Any,
) -> None:
    """Extract values from documents into a table: one row for each document, one column for each name or question.

    COLUMNS are names between commas, or questions that end with "?". Each value has the quote, the page and the date of its
    document; what a document does not say is "not stated". The exit code is 6 if nothing was found at all.

    \b
      nexi table "price, launch date, weight" report1.pdf report2.pdf folder/
      nexi table "Who wrote it? How many people took part?" papers/ -o papers.xlsx
    """
    from nexi.app import RunLimits, TableRequest
    from nexi.output.value_table import render_table

    suffix = Path(output or "").suffix.lower().removeprefix(".")
    form = form or ("json" if as_json else suffix if suffix in FORMS else "md")
    if form == "xlsx" and not output:
        raise click.UsageError("a workbook needs a name: add -o FILE.xlsx")
    with report_errors(as_json=form == "json"):
        request = TableRequest((columns, *more), documents, local, True, RunLimits(**limits))
        with open_progress(quiet=form == "json") as progress:
            table = run_with_nexi(
                lambda nexi: nexi.table(request, lambda step: progress.show_step(step) if step.total > MAX_SILENT else None)
            )
        body = render_table(table, form)
        if output and output != "-":
            write_export(body, output, "the table")
        else:
            write(body.decode())
        if not any(cell.is_stated for row in table.rows for cell in row.cells):
            raise SystemExit(EXIT_NOT_ANSWERED)
