"""How many cells of a table of values are right, and whether a second run gives the same bytes.

    python -m evals.value_table [--save]

Sets of documents by five columns (`value_documents`), no model. The last set was never looked at while the
finders were changed. Beside it stands the ten-line way: the first line with a word of the column.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evals.tables import render_table
from evals.value_documents import DocumentSet, load_sets, write_documents
from nexi.app import Nexi
from nexi.app.value_table import TableRequest
from nexi.config import Config
from nexi.output.value_table import table_workbook
from nexi.tables.cells import ValueTable

GOAL, FLOOR = 0.85, 0.7  # the floor holds for the set kept aside, which is below the goal
PLACE = Path(__file__).with_name("value_table.md")


def is_right(wanted: str, value: str) -> bool:
    return wanted.casefold() in value.casefold() if wanted else not value


def fill(documents: DocumentSet, folder: Path) -> ValueTable:
    async def go() -> ValueTable:
        async with Nexi(Config(home=folder / "home", model="extractive")) as nexi:
            return await nexi.table(TableRequest((documents.columns,), (str(folder / "files"),), reads_files=True))

    return asyncio.run(go())


def first_line(text: str, column: str) -> str:
    """The ten-line way."""
    words = set(column.casefold().split())
    return next((line for line in text.splitlines() if words & set(line.casefold().split())), "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help="write evals/value_table.md")
    parser.add_argument("--show", action="store_true", help="show the wrong cells of the sets that were looked at")
    options = parser.parse_args(arguments)
    rows, is_enough = list[list[object]](), True
    sets = load_sets()
    for documents in sets:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "files").mkdir()
            write_documents(documents, folder / "files")
            table, again = fill(documents, folder), fill(documents, folder)
        wanted = {document.name: document for document in documents.documents}
        names = [column.text for column in table.columns]
        right = lines = invented = 0
        for row in table.rows:
            for column, cell, expected in zip(names, row.cells, wanted[row.name].cells, strict=True):
                right += is_right(expected, cell.value)
                invented += bool(not expected and cell.value)
                lines += is_right(expected, first_line(wanted[row.name].text, column))
                if options.show and documents is not sets[-1] and not is_right(expected, cell.value):
                    print(f"{row.name}, {column}: {cell.value!r}, wanted {expected!r}, from {cell.quote!r}")
        total = len(names) * len(table.rows)
        same = table_workbook(table) == table_workbook(again)
        words = sum(len(cell.value.split()) for row in table.rows for cell in row.cells) / max(1, total)
        rows.append([documents.name, f"{right}/{total}", f"{lines}/{total}", invented, f"{words:.1f}", "yes" if same else "no"])
        is_enough = is_enough and right >= (FLOOR if documents is sets[-1] else GOAL) * total and same
    told = render_table(["set", "cells right", "ten-line way", "invented", "words a cell", "same bytes twice"], rows)
    print(told)
    if options.save:
        PLACE.write_text(
            f"# Tables of values, no model\n\n`python -m evals.value_table --save`; goal 85 %.\n\n{told}\n", encoding="utf-8"
        )
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
