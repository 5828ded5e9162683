"""How many cells of PDF tables and sheets stand under their head and beside their label, and how many are found when asked for.

    python -m evals.table_cells

Twelve tables of each kind are made by `table_documents`, so what every cell says is known. One cell of each is asked for in
ordinary words. No model takes part: this is what the stored text says, and what the built-in model quotes of it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from evals.table_documents import PDF_TABLES, QUESTIONS, SHEET_TABLES, SampleTable, table_pdf, table_sheet
from evals.tables import render_table
from nexi.extract import Extracted
from nexi.formats import to_text
from nexi.llm.extractive.composition import compose_answer
from nexi.llm.extractive.questions import read_question
from nexi.text.blocks import list_cells, parse_blocks
from nexi.types import PageView

GOAL = 0.75


def parse_tables(text: str) -> list[list[list[str]]]:
    """The tables of a Markdown text as rows of cells, without the line under the head."""
    tables: list[list[list[str]]] = []
    end = -2
    for block in parse_blocks(text):
        if block.kind in ("head", "row"):
            if block.start > end + 1:
                tables.append([])
            tables[-1].append([*list_cells(text[block.start : block.end])])
        end = block.end
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


def find_answer(table: SampleTable, text: str, title: str) -> tuple[str, bool]:
    """What the built-in model says first to the question for one cell, and whether it is that cell and no other of its row."""
    question, label, column = QUESTIONS[table.name]
    answer = compose_answer(read_question(question), [PageView("file:///table", 1, title, text)])
    quoted = answer.lines[0][0] if answer.lines and answer.answered != "no" else ""
    row = next(row for row in table.rows if row[0] == label)
    others = {cell for cell in row[1:] if cell and cell != row[column]}
    return quoted, _says(quoted, row[column]) and not any(_says(quoted, cell) for cell in others)


def _says(text: str, cell: str) -> bool:
    return re.search(rf"(?<![\w.,]){re.escape(cell)}(?!\w|[.,]\d)", text) is not None


def count_answers(tables: Sequence[SampleTable]) -> int:
    """How many of these tables answer their question."""
    documents = zip(tables, map(read_table, tables), strict=True)
    return sum(find_answer(table, document.text, document.title)[1] for table, document in documents)


def read_table(table: SampleTable) -> Extracted:
    data, name = (table_pdf(table), "table.pdf") if table in PDF_TABLES else table_sheet(table)
    return to_text(data, name=name)


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(arguments)
    rows, is_enough = list[list[object]](), True
    for kind, tables in (("PDF", PDF_TABLES), ("sheet", SHEET_TABLES)):
        total = right = answered = 0
        for table in tables:
            cells, document = table.cells(), read_table(table)
            correct = count_right_cells(document.text, cells)
            quoted, is_answered = find_answer(table, document.text, document.title)
            rows.append([kind, table.name, f"{correct}/{len(cells)}", "yes" if is_answered else "no", quoted])
            total, right, answered = total + len(cells), right + correct, answered + is_answered
        rows.append([kind, "all", f"{right}/{total}", f"{answered}/{len(tables)}", ""])
        is_enough = is_enough and right >= GOAL * total and answered >= GOAL * len(tables)
    print(render_table(["kind", "table", "cells right", "answered", "quoted"], rows))
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
