"""Cells of HTML tables that reach over several rows or columns, written so that each row can be read alone.

Above sits `markup`, whose writer of Markdown knows no spans; below, a tree of resiliparse. A label beside several rows stands
in each of them, a value of several columns in each of these, a head of several rows becomes one ("2023 Q1"), and a title in
the first row stands above the table. A table without heads gets empty ones, since Markdown takes its first row for them.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import takewhile

from nexi.extract.layout import Node, Tree

MAX_TABLES = 200  # of a page that are looked at
MAX_ROWS = 2_000
MAX_COLUMNS = 60
MAX_HEAD_ROWS = 4
MAX_COMPARED_ROWS = 12  # that say whether the first one is a head
MAX_LABEL_CHARS = 80  # a longer text is not repeated in each of its rows

_PARTS = frozenset(("thead", "tbody", "tfoot"))

Span = tuple[Node, str, int, int]  # a cell, its text, and how many columns and rows it takes


def open_spans(tree: Tree) -> None:
    """Rewrite the tables of a page that have cells over several rows, heads over several columns, or no heads."""
    for table in list(tree.body.query_selector_all("table"))[:MAX_TABLES]:
        if table.query_selector("table") is not None:
            continue
        rows = [row for part in table.child_nodes for row in (part.child_nodes if part.tag in _PARTS else [part])]
        rows = [row for row in rows if row.tag == "tr"]
        if 1 < len(rows) <= MAX_ROWS and table.query_selector("thead") is None and _begins_with_data(rows):
            head = tree.create_element("tr")
            for _ in _read_row(rows[0]):
                head.append_child(tree.create_element("th"))
            rows[0].parent.insert_before(head, rows[0])
        elif 1 < len(rows) <= MAX_ROWS and table.query_selector("[rowspan], [colspan]") is not None:
            first, second = _read_row(rows[0]), _read_row(rows[1])
            if len(first) == 1 and first[0][2] > 1 and len(second) > 1 and first[0][1]:
                # A first row of one cell over all columns is no head.
                title = tree.create_element("p")
                while (child := first[0][0].first_child) is not None:
                    title.append_child(child)
                table.parent.insert_before(title, table)
                rows.pop(0).decompose()
            _repeat_labels(tree, rows[_join_head(tree, rows) :])


def _begins_with_data(rows: list[Node]) -> bool:
    """Whether the first row is one like the others: labels at the left, or pairs of a label and what it says."""
    first, *others = (_read_row(row) for row in rows[:MAX_COMPARED_ROWS])
    tags = [cell.tag for cell, *_ in first]
    if "td" not in tags or any(columns > 1 for _, _, columns, _ in first):
        return False
    if tags[0] == "th":
        return all(spans and spans[0][0].tag == "th" for spans in others)
    if tags != ["td", "td"] or any(len(spans) != 2 or spans[0][0].tag == "th" for spans in others):
        return False
    has_digit = [any(map(str.isdecimal, spans[1][1])) for spans in (first, *others)]
    return rows[0].query_selector("b, strong") is None and (has_digit[0] or not all(has_digit[1:]))


def _read_row(row: Node) -> list[Span]:
    return [
        (cell, " ".join(cell.text.split()), _parse_span(cell, "colspan"), _parse_span(cell, "rowspan"))
        for cell in row.child_nodes
        if cell.tag in ("td", "th")
    ]


def _parse_span(cell: Node, name: str) -> int:
    value = (cell.getattr(name) or "").strip()
    return min(max(int(value), 1), MAX_COLUMNS) if value.isascii() and value.isdecimal() and len(value) < 6 else 1


def _join_head(tree: Tree, rows: list[Node]) -> int:
    """Make one row of the rows of a head that has spans; how many rows of the table are its head now."""
    first_rows = map(_read_row, rows[:MAX_HEAD_ROWS])
    heads = list(takewhile(lambda spans: {cell.tag for cell, *_ in spans} == {"th"}, first_rows))
    if len(heads) < 2 or len(heads) == len(rows) or not any(columns > 1 or lines > 1 for _, _, columns, lines in heads[0]):
        return min(len(heads), 1)
    names, covered_places = defaultdict[int, list[str]](list), set[tuple[int, int]]()
    for number, spans in enumerate(heads):
        column = 0
        for _, text, columns, lines in spans:
            while (number, column) in covered_places:
                column += 1
            for place in range(column, min(column + columns, MAX_COLUMNS)):
                covered_places.update((below, place) for below in range(number, min(number + lines, len(heads))))
                if text and text not in names[place]:
                    names[place].append(text)
            column += columns
    for cell, *_ in heads[-1]:
        cell.decompose()
    for column in range(max(names, default=-1) + 1):
        _add_cell(tree, rows[len(heads) - 1], "th", " ".join(names[column]))
    for row in rows[: len(heads) - 1]:
        row.decompose()
    return len(heads)


def _add_cell(tree: Tree, row: Node, tag: str, text: str, before: Node = None) -> None:
    """Put a cell of this text before another one, or at the end of its row."""
    cell = tree.create_element(tag)
    cell.append_child(tree.create_text_node(text))
    row.append_child(cell) if before is None else row.insert_before(cell, before)


def _repeat_labels(tree: Tree, rows: list[Node]) -> None:
    """Write a short text that stands beside several rows, or after the label under several heads, into each of them."""
    open_labels: dict[int, tuple[str, str, int]] = {}  # by column: text, tag, rows left
    for row in rows:
        column, following = 0, dict[int, tuple[str, str, int]]()
        for cell, text, columns, lines in [*_read_row(row), (None, "", 1, 1)]:
            while column in open_labels:
                label, tag, count = open_labels[column]
                if count > 1:
                    following[column] = label, tag, count - 1
                _add_cell(tree, row, tag, label, cell)
                column += 1
            if cell is None:
                break
            if lines > 1:
                cell.delattr("rowspan")
                for place in range(column, min(column + columns, MAX_COLUMNS)):
                    is_label = (place == column or column > 0) and len(text) <= MAX_LABEL_CHARS
                    following[place] = text if is_label else "", cell.tag, lines - 1
            if column and columns > 1 and len(text) <= MAX_LABEL_CHARS:
                cell.delattr("colspan")
                for _ in range(columns - 1):  # one value of several columns
                    _add_cell(tree, row, cell.tag, text, cell)
            column += columns
        open_labels = following
