"""How many cells of PDF tables and sheets come out under their head and beside their label.

    python -m evals.table_cells

Twelve tables of each kind are made by `table_documents`, so what every cell says is known. No model takes part: this is what
the stored text says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from evals.table_documents import PDF_TABLES, SHEET_TABLES, table_pdf, table_sheet
from evals.tables import render_table
from nexi.extract import to_text

GOAL = 0.75


def parse_tables(text: str) -> list[list[list[str]]]:
    """The tables of a Markdown text as rows of cells, without the line under the head."""
    tables: list[list[list[str]]] = []
    open_table = False
    for line in text.splitlines():
        if not line.startswith("|"):
            open_table = False
            continue
        if not open_table:
            tables.append([])
            open_table = True
        cells = [cell.strip() for cell in line.strip().strip("|").replace("\\|", "\0").split("|")]
        if set("".join(cells)) - set("-: ") or not any(cells):
            tables[-1].append([cell.replace("\0", "|") for cell in cells])
    return tables


def count_right_cells(text: str, cells: Sequence[tuple[str, str, str]]) -> int:
    """How many cells stand in the row of their label and in the column of their head."""
    seen = {
        (row[0], head, cell)
        for table in parse_tables(text)
        for row in table[1:]
        for head, cell in zip(table[0], row, strict=False)
    }
    return sum(cell in seen for cell in cells)


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(arguments)
    rows, is_enough = list[list[object]](), True
    for kind, tables in (("PDF", PDF_TABLES), ("sheet", SHEET_TABLES)):
        total = right = 0
        for table in tables:
            cells = table.cells()
            data, name = (table_pdf(table), "table.pdf") if kind == "PDF" else table_sheet(table)
            text = to_text(data, name=name).text
            correct = count_right_cells(text, cells)
            rows.append([kind, table.name, f"{correct}/{len(cells)}"])
            total, right = total + len(cells), right + correct
        rows.append([kind, "all", f"{right}/{total}"])
        is_enough = is_enough and right >= GOAL * total
    print(render_table(["kind", "table", "cells right"], rows))
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
