"""Plots a benchmark as SVG: how many answers are right, and how long they took. It works on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from nexi.bench.report import Figures

WIDTH, BAR, GAP, LEFT, RIGHT = 760, 22, 12, 230, 90
_BINS = 12
_HEIGHT = 120
_STYLE = Path(__file__).with_name("plot.css").read_text(encoding="utf-8").strip()


def render_plot(title: str, groups: Sequence[Figures], times: Sequence[tuple[float, bool]]) -> str:
    """Render bars with 95 % intervals for each group, and a histogram of seconds for right and wrong answers."""
    parts = [f'<text class="head" x="16" y="26">{escape(_shorten_line(title, 90))}</text>']
    top, room = 50, WIDTH - LEFT - RIGHT
    for group in groups:
        bars = [("right", "correct", group.correct)]
        bars += [("proof", "sentences found", group.sentences)] if group.checked else []
        for kind, label, value in bars:
            end, low, high = (round(LEFT + room * percent / 100, 1) for percent in (value.percent, value.low, value.high))
            middle, name = top + BAR / 2, escape(f"{_shorten_line(group.name, 12)}: {label}")
            parts.append(
                f'<text x="{LEFT - 10}" y="{middle + 4}" text-anchor="end">{name}</text>'
                f'<rect class="rail" x="{LEFT}" y="{top}" width="{room}" height="{BAR}"/>'
                f'<rect class="{kind}" x="{LEFT}" y="{top}" width="{round(end - LEFT, 1)}" height="{BAR}"/>'
                f'<line class="line" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>'
                f'<text x="{WIDTH - RIGHT + 10}" y="{middle + 4}">{value.percent:.1f} %</text>'
            )
            top += BAR + GAP
    picture, height = _render_histogram(top + 24, times)
    parts += picture
    total = top + 24 + height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}" role="img">\n'
        f"<title>{escape(_shorten_line(title, 200))}</title>\n<style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _render_histogram(top: int, times: Sequence[tuple[float, bool]]) -> tuple[list[str], int]:
    """A histogram of the seconds, in equal steps up to the slowest."""
    if not times:
        return [], 10
    longest = max(seconds for seconds, _ in times) or 1.0
    bins = [[0, 0] for _ in range(_BINS)]
    for seconds, right in times:
        bins[min(_BINS - 1, int(_BINS * seconds / longest))][0 if right else 1] += 1
    most, step = max(map(sum, bins)), (WIDTH - 2 * 16) / _BINS
    parts = [f'<text class="small" x="16" y="{top}">seconds for an answer (green: correct)</text>']
    floor = top + 12 + _HEIGHT
    for index, counts in enumerate(bins):
        y = float(floor)
        for count, kind in zip(counts, ("right", "wrong"), strict=True):
            tall = round(_HEIGHT * count / most, 1)
            y = round(y - tall, 1)
            if count:
                x = round(16 + index * step, 1)
                parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{round(step - 3, 1)}" height="{tall}"/>')
    ends = ((16, "start", 0.0), (WIDTH - 16, "end", longest))
    parts += [f'<text class="small" x="{x}" y="{floor + 16}" text-anchor="{a}">{s:.1f} s</text>' for x, a, s in ends]
    return parts, _HEIGHT + 46


def _shorten_line(text: str, most: int) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most else line[: most - 1] + "…"
