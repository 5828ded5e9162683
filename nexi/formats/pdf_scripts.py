"""Raised and lowered figures of a PDF, which are known only by their size and place: 10²³ must not become 1023.

Above sits `pdf`; below, `notation` says how they are written. Only figures that could be an exponent, an index or the mark of a
note are looked at: up to two digits behind a letter, a bracket or a ten.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain

from nexi.extract import notation

__all__ = ["Box", "mark_scripts"]

Box = tuple[float, float, float, float]  # left, bottom, right, top

MAX_FIGURES = 5_000  # of a page that are looked at
MAX_SIZE = 0.85  # of a script, as a share of what stands before it
MIN_SHIFT = 0.2  # of its middle, up or down, as a share of the height of what stands before it
MAX_GAP = 0.4  # between the two, likewise

_FIGURE = re.compile(r"(?P<base>(?<![\d.,])10|[^\W\d_]|\))(?: |\r\n)?(?P<script>[−–-]?\d{1,2})(?!\d)(?P<after>\r\n ?(?=\S))?")


def mark_scripts(text: str, box_of: Callable[[int], Box]) -> tuple[str, Callable[[int], Box]]:
    """The text of a page with its raised and lowered figures as `10^23` and `H₂O`, and where its characters stand now."""
    parts: list[str] = []
    places: list[range] = []
    at = 0
    for figure in _FIGURE.finditer(text):
        if len(parts) > MAX_FIGURES:
            break
        base, script = box_of(figure.end("base") - 1), box_of(figure.end("script") - 1)
        height, size = base[3] - base[1], script[3] - script[1]
        shift = (script[1] + script[3] - base[1] - base[3]) / 2
        is_beside = 0 <= script[2] - base[2] <= MAX_GAP * height + size * len(figure["script"])
        if not 0 < size <= MAX_SIZE * height or abs(shift) < MIN_SHIFT * height or abs(shift) > height or not is_beside:
            continue
        end = figure.end("base")
        write = notation.write_raised if shift > 0 else notation.write_lowered
        mark = write("".join((*parts[-4:], text[at:end]))[-notation.MAX_BEFORE :], figure["script"])
        parts += (text[at:end], mark)
        places += (range(at, end), *[range(figure.end("script") - 1, figure.end("script"))] * len(mark))
        at = figure.end("script")
        if figure["after"] and _goes_on(base, box_of(figure.end("after"))):  # a line that the script has broken
            parts.append(" " if figure["after"][-1] == " " else "")
            places += [range(figure.end("after") - 1, figure.end("after"))] * len(parts[-1])
            at = figure.end("after")
    if not parts:
        return text, box_of
    stands_at = list(chain(*places, range(at, len(text))))
    return "".join((*parts, text[at:])), lambda place: box_of(stands_at[place])


def _goes_on(base: Box, following: Box) -> bool:
    return following[0] > base[2] and abs(following[1] - base[1]) < MIN_SHIFT * (base[3] - base[1])
