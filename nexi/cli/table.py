"""`nexi table`: documents by questions, each value with the words it was taken from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nexi.cli.exits import EXIT_NOT_ANSWERED, report_errors

if TYPE_CHECKING:
    from nexi.app import TableRequest
    from nexi.tables.cells import ValueTable

FORMS = ("md", "csv", "xlsx", "json")
MAX_SILENT = 3  # documents without progress


@click.command("table", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("columns")
@click.argument("documents", nargs=-1, required=True, metavar="FILE|FOLDER|URL...")
@click.option("-c", "--column", "more", multiple=True, metavar="TEXT", help="One more column, taken as it is.")
@click.option("--local", is_flag=True, help="Use local files and local models only; no network access.")
@click.option(
    "--time-target", type=click.FloatRange(0, min_open=True), metavar="S", help="Stop asking the model after S seconds."
)
@click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Maximum cost in USD.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Maximum number of tokens in total.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--format", "form", type=click.Choice(FORMS), help="Output format; the ending of FILE by default, else md.")
@click.option("-o", "--output", metavar="FILE", help="Write to a new FILE; - for stdout.")
def table_command(
    columns: str,
    documents: tuple[str, ...],
    more: tuple[str, ...],
    local: bool,
    time_target: float | None,
    max_cost: float | None,
    max_tokens: int | None,
    as_json: bool,
    form: str | None,
    output: str | None,
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

    form = form or ("json" if as_json else _form_of_name(output))
    if form == "xlsx" and not output:
        raise click.UsageError("a workbook needs a name: add -o FILE.xlsx")
    with report_errors(as_json=form == "json"):
        limits = RunLimits(time_target=time_target, max_cost=max_cost, max_tokens=max_tokens)
        table = _fill_table(TableRequest((columns, *more), documents, local, True, limits), quiet=form == "json")
        _deliver(render_table(table, form), output)
        if not any(cell.is_stated for row in table.rows for cell in row.cells):
            raise SystemExit(EXIT_NOT_ANSWERED)


def _form_of_name(output: str | None) -> str:
    suffix = Path(output or "").suffix.lower().removeprefix(".")
    return suffix if suffix in FORMS else "md"


def _fill_table(request: TableRequest, *, quiet: bool) -> ValueTable:
    """Fill the table, with progress on stderr where there are many documents."""
    import asyncio

    from nexi.app import Nexi
    from nexi.cli.knowledge import open_progress
    from nexi.config import load_config

    async def go() -> ValueTable:
        async with Nexi(load_config()) as nexi:
            with open_progress(quiet=quiet) as shown:
                return await nexi.table(request, lambda step: shown.show_step(step) if step.total > MAX_SILENT else None)

    return asyncio.run(go())


def _deliver(body: bytes, output: str | None) -> None:
    from nexi.cli.runs import write_export
    from nexi.output import write

    if output and output != "-":
        return write_export(body, output, "the table")
    return write(body.decode())
