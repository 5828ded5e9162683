"""moving_picture - docs/run.svg: two real commands in a real terminal, as an SVG that moves.

`nexi "..."` and `nexi evidence 1` run in a pseudo-terminal against nexi's own handbook on loopback, with the built-in model;
what they print and when is what the picture shows. Only the typing of the commands is drawn. A row of the terminal is stored
once for each text it holds, with the times at which it is seen; a reader who wants no motion sees the last frame.

  python -m rig.moving_picture [docs/run.svg]
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from msgspec import Struct
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from nexi.cli.demo import QUESTIONS, serve_handbook
from rig.terminal import Picture, terminal

COLUMNS, ROWS = 92, 25
CHAR_W, LINE_H, SIDE, TOP = 8.4, 18.0, 14, 40
KEY_S, MIN_FRAME_S, READ_S, END_S = 0.05, 0.08, 3.5, 6.0
FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
INK, PAPER, DIM = "#c5c8c6", "#15181c", 0.6
_HYPERLINK = re.compile(r"\x1b\]8;[^\x1b\x07]*(?:\x1b\\|\x07|\Z)")


class Frame(Struct, frozen=True):
    """The rows of the terminal, as escape sequences, and how long they are seen."""

    rows: tuple[str, ...]
    seconds: float


def record(commands: Mapping[str, list[str]], env: Mapping[str, str]) -> list[Frame]:
    """Every frame of the commands, one after the other on one screen."""
    frames: list[Frame] = []
    above: list[str] = []
    for shown, arguments in commands.items():
        typed = f"\x1b[1;32m$\x1b[0m {shown}"
        frames += [_frame([*above, typed[: -left or None]], KEY_S * 3) for left in range(len(shown), 0, -3)]
        above.append(typed)
        frames.append(_frame(above, 0.4))
        played = list(_play(above, arguments, env))
        frames += [*played[:-1], _frame(played[-1].rows, READ_S)]
        above = [*played[-1].rows, ""]
    return [*frames[:-1], Frame(frames[-1].rows, END_S)]


def _play(above: list[str], arguments: list[str], env: Mapping[str, str]) -> Iterator[Frame]:
    """What one command shows, at its own pace."""
    with terminal(arguments, env, columns=COLUMNS, rows=ROWS) as screen:
        screen.ending()
        moments = screen.moments
        for at, (moment, length) in enumerate(moments):
            until = moments[at + 1][0] if at + 1 < len(moments) else moment + MIN_FRAME_S
            rows = Picture(_HYPERLINK.sub("", screen.raw[:length])).styled.rstrip("\n").split("\n")
            if until - moment >= MIN_FRAME_S or at + 1 == len(moments):
                yield _frame([*above, *rows], until - moment)


def _frame(rows: list[str] | tuple[str, ...], seconds: float) -> Frame:
    return Frame(tuple(rows[-ROWS:]), max(seconds, MIN_FRAME_S))


def draw(frames: list[Frame]) -> str:
    """The frames as one SVG."""
    total = sum(frame.seconds for frame in frames)
    seen: dict[tuple[int, str], list[tuple[float, float]]] = {}
    begin = 0.0
    for frame in frames:
        for at, row in enumerate(frame.rows):
            spans = seen.setdefault((at, row), [])
            if spans and abs(spans[-1][1] - begin) < 1e-9:
                spans[-1] = (spans[-1][0], begin + frame.seconds)
            else:
                spans.append((begin, begin + frame.seconds))
        begin += frame.seconds
    rules, drawn = [], []
    for number, ((at, row), spans) in enumerate(seen.items()):
        if not (text := _draw_row(row, TOP + at * LINE_H)):
            continue
        steps = "".join(f"{_percent(a, total)}{{opacity:1}}{_percent(b, total)}{{opacity:0}}" for a, b in spans)
        rules.append(f"@keyframes k{number}{{0%{{opacity:{int(spans[0][0] == 0)}}}{steps}}}")
        rules.append(f".k{number}{{animation-name:k{number}}}")
        is_last = abs(spans[-1][1] - total) < 1e-9
        drawn.append(f'<g class="r k{number}" opacity="{int(is_last)}">{text}</g>')
    width, height = COLUMNS * CHAR_W + 2 * SIDE, TOP + ROWS * LINE_H + SIDE
    style = (
        f"text{{font:14px {FONT};fill:{INK};white-space:pre}}.b{{font-weight:bold}}.d{{opacity:{DIM}}}"
        f"@media(prefers-reduced-motion:no-preference){{.r{{animation:{total:.2f}s step-end infinite}}{''.join(rules)}}}"
    )
    dots = "".join(
        f'<circle cx="{22 + 18 * n}" cy="18" r="5" fill="{c}"/>' for n, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">'
        "<title>A question, its answer with sources, and the evidence behind it, in a terminal</title>"
        f'<style>{style}</style><rect width="{width:g}" height="{height:g}" rx="8" fill="{PAPER}"/>{dots}\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def _percent(moment: float, total: float) -> str:
    return f"{min(moment / total * 100, 100):.3f}%"


def _draw_row(row: str, y: float) -> str:
    """One row as text, each stretch of one style at its own column."""
    console = Console(width=COLUMNS * 2, force_terminal=True, color_system="truecolor")
    parts, column = [], 0
    for text, style, _ in Text.from_ansi(row).render(console):
        if text.strip("\n "):
            style = style or Style.null()
            colour = style.color.get_truecolor(SVG_EXPORT_THEME).hex if style.color and not style.color.is_default else ""
            classes = " ".join(name for name, is_on in (("b", style.bold), ("d", style.dim)) if is_on)
            looks = (f' class="{classes}"' if classes else "") + (f' fill="{colour}" style="fill:{colour}"' if colour else "")
            plain = text.rstrip("\n")
            at, length = SIDE + column * CHAR_W, len(plain) * CHAR_W
            if style.bgcolor and not style.bgcolor.is_default:
                behind = style.bgcolor.get_truecolor(SVG_EXPORT_THEME).hex
                parts.append(f'<rect x="{at:.1f}" y="{y - 13:.1f}" width="{length:.1f}" height="{LINE_H:g}" fill="{behind}"/>')
            parts.append(f'<text x="{at:.1f}" y="{y:.1f}" textLength="{length:.1f}"{looks}>{escape(plain)}</text>')
        column += len(text)
    return "".join(parts)


def main() -> None:
    place = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/run.svg")
    with serve_handbook() as address, tempfile.TemporaryDirectory() as home:
        env = {"NEXI_HOME": home, "SEARXNG_URL": f"http://{address}", "NEXI_ALLOW_PRIVATE": address, "NEXI_MODEL": "extractive"}
        place.write_text(
            draw(record({f'nexi "{QUESTIONS[1]}"': [QUESTIONS[1]], "nexi evidence 1": ["evidence", "1"]}, env)), "utf-8"
        )
    print(place)


if __name__ == "__main__":
    main()
