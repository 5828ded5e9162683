"""Markdown tables of the evals: floats with one digit, unless a cell is text already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def render_row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(f'{cell:.1f}' if isinstance(cell, float) else str(cell) for cell in cells)} |"


def render_head(heads: Sequence[str]) -> str:
    return f"{render_row(heads)}\n|{'---|' * len(heads)}"


def render_table(heads: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    return "\n".join((render_head(heads), *map(render_row, rows)))
