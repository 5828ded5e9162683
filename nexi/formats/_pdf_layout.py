"""How the text of a PDF page reads by where its words stand: raised figures, tables, two columns, and paragraphs. Pure.

Above sits `pdf`, which hands over the text of a page and where its words stand; below, `notation` says how figures are written.
A PDF has no tables, columns or paragraphs, only words at places. A table is a guess, lines of short cells over one another with
free space between the same columns, and what is in doubt stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, pairwise
from statistics import fmean, median

from nexi.extract import notation
from nexi.extract.writer import MAX_REPEATED_HEADER, TABLE_CHARS

Box = tuple[float, float, float, float]  # left, bottom, right, top

MAX_FIGURES = 5_000  # of a page that are looked at
MAX_SCRIPT_SIZE = 0.85  # of what stands before it
MIN_SHIFT = 0.2  # of a script's middle, up or down, as a share of the height of what stands before it
MAX_GAP = 0.4  # between the two, likewise
MIN_COLUMN_LINES = 4  # across both columns, one after the other
MIN_CELL_CHARS = 16  # on average; cells of a table are shorter
MIN_LETTERS = 0.7  # of the characters
MIN_PARAGRAPH_LINES = 3
WIDER = 0.4  # of the height of a line; so much more space than between the lines of a paragraph parts two
MAX_WORDS = 20_000  # of a page; one with more is no page of tables
MAX_LINE_WORDS = 300
MAX_COLUMNS = 40
MIN_ROWS = 3
WIDE_GAP = 0.85  # of the height of a line; a wider gap between words ends a cell
CLOSE_GAP = 0.4  # where the gap lies between two columns
NUMBER_GAP = 0.12  # between two numbers a space is enough
MIN_GUTTER = 0.05  # of the height of a line
MAX_ROW_GAP = 3.5  # heights of a line between the rows of one table
MAX_LONE_LINES = 4  # lines of one cell between two rows: headings, and labels on several lines
STRAY_SHARE = 0.12  # of the rows may have a cell that reaches into the next column
MANY_WORDS = 0.9  # of these cells, and not signs alone
MAX_LOWER_CHARS = 20  # labels that begin with a small letter are lines of prose where they are longer
MANY_NUMBERS = 0.5  # of the cells beside the labels
MAX_NUMBER_CHARS = 18
MAX_LABEL_CHARS = 60
MAX_TEXT_CHARS = 24
PARAGRAPH_CHARS = 70  # a line of one cell with more is no heading of a table
MAX_HEAD_LINES = 5

# Up to two digits behind a letter, a bracket or a ten could be an exponent, an index or the mark of a note.
_FIGURE = re.compile(r"(?P<base>(?<![\d.,])10|[^\W\d_]|\))(?: |\r\n)?(?P<script>[−–-]?\d{1,2})(?!\d)(?P<after>\r\n ?(?=\S))?")
_WORD = re.compile(r"\S+")
_NUMBER = re.compile(
    r"[(\[]?[-−–+~<>≤≥±]?\s?(?:[$€£¥]|US\$|CHF|EUR|USD)?\s?[-−–]?\(?\d(?:[\d.,:'’ \u00a0\u202f]*\d)?"
    r"(?:[eE×x][-\d^]+)?\s?(?:%|‰|°C?|[a-zA-Z]{1,3})?[)\]]?(?:[*†‡]|\([a-z0-9]\)|\[\d\])*"
)
_NO_VALUE = frozenset(("—", "–", "-", "−", "n/a", "N/A", "NA", "n.a.", "nil", "*", "NM", "nm", "..", "…"))
_YEAR = re.compile(r"(?:FY|fiscal)?\s?(?:19|20)\d\d(?:[/–-]\d\d(?:\d\d)?)?[EFAP*]?", re.IGNORECASE)
_BEFORE_NUMBER = frozenset(("$", "€", "£", "¥", "US$", "(", "$("))
_AFTER_NUMBER = frozenset((")", "%", ")%", "%)", "‰"))
_ENUMERATOR = re.compile(r"[•·▪‣◦–—*-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)]|\[\d{1,3}\]")
_GROUP = re.compile(r"\b(?:ended|ending|years?|months|weeks|quarters?|fiscal|as (?:of|at)|december|june)\b|,$", re.IGNORECASE)
_THOUSANDS = re.compile(r"\d{3}[.,\d]*")


@dataclass(frozen=True, slots=True)
class _Cell:
    """Words beside one another; `first` and `last` are where they stand in the text of the page."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    first: int
    last: int

    @property
    def height(self) -> float:
        return self.top - self.bottom

    def join(self, other: _Cell, space: str = " ") -> _Cell:
        right, bottom, top = max(self.right, other.right), min(self.bottom, other.bottom), max(self.top, other.top)
        first, last = min(self.first, other.first), max(self.last, other.last)
        return _Cell(f"{self.text}{space}{other.text}", self.left, right, bottom, top, first, last)


@dataclass(frozen=True, slots=True)
class _Line:
    """The cells of one line from left to right, and the words that they were made of."""

    cells: Sequence[_Cell]
    words: Sequence[_Cell]

    @property
    def bottom(self) -> float:
        return min(cell.bottom for cell in self.cells)

    @property
    def top(self) -> float:
        return max(cell.top for cell in self.cells)

    @property
    def first(self) -> int:
        return min(word.first for word in self.words)

    @property
    def is_row(self) -> bool:
        return len(self.cells) > 1


def mark_scripts(text: str, box_of: Callable[[int], Box]) -> tuple[str, Callable[[int], Box]]:
    """The text of a page with its raised and lowered figures as `10^23` and `H₂O`, and where its characters stand now."""
    # They are known only by their size and place: 10²³ must not become 1023.
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
        if not 0 < size <= MAX_SCRIPT_SIZE * height or abs(shift) < MIN_SHIFT * height or abs(shift) > height or not is_beside:
            continue
        end = figure.end("base")
        write = notation.write_raised if shift > 0 else notation.write_lowered
        mark = write("".join((*parts[-4:], text[at:end])), figure["script"])
        parts += (text[at:end], mark)
        places += (range(at, end), *[range(figure.end("script") - 1, figure.end("script"))] * len(mark))
        at = figure.end("script")
        if not figure["after"]:
            continue
        following = box_of(figure.end("after"))
        if following[0] > base[2] and abs(following[1] - base[1]) < MIN_SHIFT * height:  # a line that the script has broken
            parts.append(" " if figure["after"][-1] == " " else "")
            places += [range(figure.end("after") - 1, figure.end("after"))] * len(parts[-1])
            at = figure.end("after")
    if not parts:
        return text, box_of
    stands_at = list(chain(*places, range(at, len(text))))
    return "".join((*parts, text[at:])), lambda place: box_of(stands_at[place])


@dataclass(frozen=True, slots=True)
class _PlacedTable:
    """The head, which may be empty, and the rows; `lines` are the lines of the page that it takes the place of."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    columns: Sequence[tuple[float, float]]
    lines: Sequence[_Line]

    def write(self) -> str:
        head_row, rule, *rows = (
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
            for cells in (self.head, ["---"] * len(self.head), *self.rows)
        )
        head = f"{head_row}\n{rule}"
        parts, chars = [head], 0
        for row in rows:
            if chars > TABLE_CHARS and any(self.head) and len(parts[0]) <= MAX_REPEATED_HEADER:
                parts.append(f"\n{head}")
                chars = 0
            parts.append(row)
            chars += len(row)
        return "\n".join(parts)


@dataclass(slots=True)
class PageTables:
    """Writes the tables of page after page; a table that goes on from the page before without a head gets its head again."""

    _open: _PlacedTable | None = None  # the last table of the page before, where nothing stands below it

    def write_page(self, text: str, box_of: Callable[[int], Box]) -> str:
        """The text of a page with its tables as Markdown; `box_of` says where a character stands."""
        words = _find_words(text, box_of)
        lines = _split_lines(words)
        tables = _find_tables(lines) or _find_tables(
            _split_lines(sorted(words, key=lambda word: (-round((word.bottom + word.top) / 2 / 3), word.left)))
        )
        above, self._open = self._open, None
        if not tables:
            text_in_order = _order_columns(text, lines)
            return part_paragraphs(text, lines) if text_in_order == text else text_in_order
        first, last = tables[0], tables[-1]
        if above is not None and not any(first.head) and len(above.columns) == len(first.columns):
            # It goes on from the page before where at most a running head stands above it, under the same columns.
            top = max(line.top for line in first.lines)
            is_first = len({round(word.bottom / 4) for word in words if word.bottom > top - 1}) <= 3
            pairs = zip(above.columns, first.columns, strict=True)
            if is_first and all(min(one[1], other[1]) > max(one[0], other[0]) for one, other in pairs):
                tables[0] = replace(first, head=above.head)
        # At most a page number and a note stand below the last table that may go on.
        bottom = min(line.bottom for line in last.lines)
        if len({round(word.bottom / 4) for word in words if word.top < bottom + 1}) <= 3:
            self._open = tables[-1]
        # Each table goes where its first word stood, and its words nowhere else.
        by_table = ((n, word) for n, table in enumerate(tables) for line in table.lines for word in line.words)
        parts, at, numbers = list[str](), 0, set[int]()
        for start, end, number in sorted((word.first, word.last, n) for n, word in by_table):
            parts.append(text[at:start] if text[at:start].strip() else "")
            if number not in numbers:
                parts.append(f"\n\n{tables[number].write()}\n\n")
                numbers.add(number)
            at = max(at, end)
        return "".join([*parts, text[at:]])


def _find_words(text: str, box_of: Callable[[int], Box]) -> list[_Cell]:
    words = []
    for match in _WORD.finditer(text):
        first, last = match.start(), match.end() - 1
        left, bottom, right, top = box_of(first)
        end = box_of(last) if last > first else (left, bottom, right, top)
        if top > bottom and end[2] >= left:
            words.append(_Cell(match[0], left, end[2], min(bottom, end[1]), max(top, end[3]), first, last + 1))
        if len(words) > MAX_WORDS:
            return []
    return words


def _split_lines(words: Iterable[_Cell]) -> list[_Line]:
    """Words that follow one another at the same height."""
    lines: list[list[_Cell]] = []
    for word in words:
        last = lines[-1][-1] if lines else None
        if last is not None and (
            last.bottom < (word.bottom + word.top) / 2 < last.top or word.bottom < (last.bottom + last.top) / 2 < word.top
        ):
            lines[-1].append(word)
        else:
            lines.append([word])
    return [_build_line(sorted(line, key=lambda word: word.left)) for line in lines]


def _build_line(words: list[_Cell]) -> _Line:
    if len(words) > MAX_LINE_WORDS:
        return _Line(words[:1], words)
    tokens: list[_Cell] = []
    for word in words:  # a sign stands by itself at the edge of its column
        if tokens and (
            (tokens[-1].text in _BEFORE_NUMBER and word.text[0] in "0123456789(.—–-")
            or (word.text in _AFTER_NUMBER and tokens[-1].text[-1] in "0123456789)—–")
        ):
            tokens[-1] = tokens[-1].join(word, "")
        else:
            tokens.append(word)
    cells: list[_Cell] = []
    for token in tokens:
        before = cells[-1] if cells else token
        gap, height = token.left - before.right, max(before.height, token.height)
        is_apart = gap > WIDE_GAP * height
        if not is_apart and gap >= NUMBER_GAP * height and _is_value(before.text) and _is_value(token.text):
            # 1 234 567 is one number
            is_apart = not (_THOUSANDS.fullmatch(token.text) and before.text[-1].isdigit() and gap < 0.35 * height)
        if is_apart or not cells:
            cells.append(token)
        else:
            cells[-1] = before.join(token)
    return _Line(cells, tokens)


def _is_value(text: str) -> bool:
    return text in _NO_VALUE or (len(text) <= MAX_NUMBER_CHARS and _NUMBER.fullmatch(text) is not None)


def _is_figure(text: str) -> bool:
    return _is_value(text) and not _YEAR.fullmatch(text)


def _find_tables(lines: list[_Line]) -> list[_PlacedTable]:
    tables, at, free = list[_PlacedTable](), 0, 0
    while at < len(lines):
        end = _find_end(lines, at) if lines[at].is_row else at
        if end - at >= MIN_ROWS and (table := _build_table(lines, at, end, free)) is not None:
            tables.append(table)
            free = end
        at = max(end, at + 1)
    return tables


def _find_end(lines: list[_Line], start: int) -> int:
    """The line after the last row of what may be a table that begins at `start`."""
    end, at = start + 1, start + 1
    while at < len(lines) and at - end <= MAX_LONE_LINES:
        above, row = lines[at - 1], lines[end - 1]
        line = lines[at] = _split_figures(lines[at], row)
        height = max(1.0, line.cells[0].height)
        if not -1.7 * height < above.bottom - line.top < MAX_ROW_GAP * height:
            break
        if line.is_row and line.cells[-1].right > row.cells[1].left:
            end = at + 1
        elif len(line.cells[0].text) > PARAGRAPH_CHARS and line.cells[0].right > row.cells[-1].left:
            break
        at += 1
    if end < len(lines) and not lines[end].is_row:
        row, label = lines[end - 1], lines[end].cells[0]
        is_label = label.text[0].islower() and len(label.text) <= MAX_LABEL_CHARS and label.right < row.cells[-1].left
        if is_label and 0 <= row.bottom - label.top + 0.6 * label.height < label.height:
            end += 1  # it goes on with the label of the row above it
    return end


def _split_figures(line: _Line, row: _Line) -> _Line:
    """The line with its figures apart from a long label, where they stand under the figures of the row above."""
    at = len(line.words)
    while at > 1 and _is_value((word := line.words[at - 1]).text):
        if not any(min(cell.right, word.right) > max(cell.left, word.left) for cell in row.cells[1:]):
            break
        at -= 1
    label = next((cell for cell in line.cells if cell.first <= line.words[at - 1].first < cell.last), None)
    if at == len(line.words) or label is None or line.words[at].first >= label.last:
        return line
    first = reduce(_Cell.join, [word for word in line.words[:at] if word.first >= label.first])
    return _Line([*(cell for cell in line.cells if cell.right < label.left), first, *line.words[at:]], line.words)


def _build_table(lines: list[_Line], start: int, end: int, free: int) -> _PlacedTable | None:
    """A table of these lines and the lines of its head above them, or None where they are none."""
    rows = [line for line in lines[start:end] if line.is_row]
    body = [line for line in rows if any(_is_figure(cell.text) for cell in line.cells[1:])]
    columns = _find_columns(body if len(body) >= max(2, 0.4 * len(rows)) else rows)
    if not 2 <= len(columns) <= MAX_COLUMNS:
        return None
    top = start
    while top > max(free, start - MAX_HEAD_LINES):
        # Lines above that stand over the columns beside the labels are the first of the head.
        line, below = lines[top - 1], lines[top]
        height = line.cells[0].height
        is_near = -0.5 * height < line.bottom - below.top < 1.5 * height
        begins_over, ends_over = line.cells[0].left - columns[0][1], line.cells[-1].right - columns[-1][1]
        if not is_near or begins_over < -0.5 * height or ends_over > 6 * height:
            break
        top -= 1
    table_lines = lines[top:end]
    first = _count_head_lines(table_lines, columns)
    groups: list[list[_Cell]] = []
    for cells in (list(_split_cells(line, columns)) for line in table_lines[: max(first - 1, 0)]):
        # Two lines of one cell each are one text.
        if len(cells) == 1 and groups and len(groups[-1]) == 1 and groups[-1][0].left < cells[0].left < groups[-1][0].right:
            groups[-1] = [groups[-1][0].join(cells[0])]
        else:
            groups.append(cells)
    heads = [_place_groups(cells, columns) for cells in groups]
    for line in table_lines[max(first - 1, 0) : first]:
        # In the last line of a head each column has its own; words may stand close where columns do.
        cells = list(_split_cells(line, columns, NUMBER_GAP))
        is_close = len(columns) - 1 <= len(cells) <= len(columns)
        heads.append(_place_cells(cells if is_close else _split_cells(line, columns), columns))
    head = [" ".join(dict.fromkeys(row[n] for row in heads if row[n])) for n in range(len(columns))]
    body_rows = _join_wrapped(table_lines[first:], columns)
    is_table = _is_table(body_rows, len(columns), bool(first))
    return _PlacedTable(head, body_rows, columns, table_lines) if is_table else None


def _find_columns(rows: Sequence[_Line]) -> list[tuple[float, float]]:
    """What lies between the gutters: strips that hardly any row has a word in."""
    if len(rows) < 2:
        return []
    height = median(cell.height for line in rows for cell in line.cells)
    edges = sorted(edge for line in rows for cell in line.cells for edge in ((cell.left, 1), (cell.right, -1)))
    strays, depth = int(STRAY_SHARE * len(rows)), 0
    columns: list[tuple[float, float]] = []
    for (place, step), (following, _) in pairwise([*edges, (edges[-1][0], 0)]):
        depth += step
        if depth > strays and following > place:
            if columns and place - columns[-1][1] < MIN_GUTTER * height:
                columns[-1] = columns[-1][0], following
            else:
                columns.append((place, following))
    return columns


def _count_head_lines(lines: Sequence[_Line], columns: Sequence[tuple[float, float]]) -> int:
    """Lines before the first row with a figure; of a table of words, the first line and what goes on with it."""
    rows = [_place_cells(line.cells, columns) for line in lines[: MAX_HEAD_LINES + 3]]
    for number, row in enumerate(rows):
        if any(map(_is_figure, row[1:])):
            while number and sum(map(bool, rows[number - 1])) == 1 and rows[number - 1][0]:
                number -= 1  # "Current assets:" is the first row and no head
            return number
        if number and row[0] and any(map(_YEAR.fullmatch, row[1:])) and any(map(_YEAR.fullmatch, rows[number - 1][1:])):
            return number
    above = next((n for n, row in enumerate(rows) if n and row[0] and sum(map(bool, row)) > 1), 1)
    return above if above <= MAX_HEAD_LINES else 1


def _place_cells(cells: Iterable[_Cell], columns: Sequence[tuple[float, float]]) -> list[str]:
    row = [""] * len(columns)
    for cell in cells:
        overlaps = [min(cell.right, right) - max(cell.left, left) for left, right in columns]
        column = 0 if overlaps[0] > 0 else max(range(len(columns)), key=overlaps.__getitem__)
        row[column] = f"{row[column]} {cell.text}".strip()
    return row


def _place_groups(cells: Iterable[_Cell], columns: Sequence[tuple[float, float]]) -> list[str]:
    """A line of the head that is not its last: what stands over several columns belongs to each of them."""
    row = [""] * len(columns)
    for cell in cells:
        numbers = [n for n, (left, right) in enumerate(columns) if min(cell.right, right) > max(cell.left, left)]
        if 0 in numbers or not (len(numbers) > 1 or _GROUP.search(cell.text)):
            row[_place_cells([cell], columns).index(cell.text)] += f" {cell.text}"
            continue
        # The columns that it stands in the middle of.
        middle = (cell.left + cell.right) / 2
        first = numbers[0] if numbers else max(1, len(columns) - 1)
        last = numbers[-1] if numbers else first
        ranges = [(one, other) for one in range(1, first + 1) for other in range(last, len(columns))]
        distances = [abs((columns[one][0] + columns[other][1]) / 2 - middle) for one, other in ranges]
        first, last = ranges[distances.index(min(distances))]
        for n in range(first, last + 1):
            row[n] += f" {cell.text}"
    return [text.strip() for text in row]


def _split_cells(line: _Line, columns: Sequence[tuple[float, float]], gap: float = CLOSE_GAP) -> Iterable[_Cell]:
    """The cells of a line; one that reaches over several columns is cut where its words leave a gutter free."""
    for cell in line.cells:
        gutters = [(left, right) for (_, left), (right, _) in pairwise(columns) if cell.left < left and right < cell.right]
        words = [word for word in line.words if cell.left <= word.left and word.right <= cell.right]
        part = words[0]
        for word in words[1:]:
            is_free = any(part.right <= right and left <= word.left for left, right in gutters)
            if is_free and word.left - part.right > gap * word.height:
                yield part
                part = word
            else:
                part = part.join(word)
        yield part


def _join_wrapped(lines: Sequence[_Line], columns: Sequence[tuple[float, float]]) -> list[list[str]]:
    """The rows of a body; those whose cells take several lines are one row each."""
    rows: list[list[str]] = []
    label: _Line | None = None  # the last line of a label without values, which may go on
    for above, line in zip([None, *lines], lines, strict=False):
        row = _place_cells(_split_cells(line, columns), columns)
        values = [text for text in row[1:] if text]
        goes_on = row[0][:1].islower()
        is_close = above is not None and above.bottom - line.top < 0.4 * line.cells[0].height
        if label is not None and (goes_on or (values and not row[0] and line.top > label.bottom)):
            rows[-1] = [f"{rows[-1][0]} {row[0]}".strip(), *row[1:]]
        elif not values and goes_on and rows:
            rows[-1][0] = f"{rows[-1][0]} {row[0]}".strip()
        elif values and rows and not row[0] and is_close and not any(map(_is_value, values)):
            rows[-1] = [f"{before} {text}".strip() for before, text in zip(rows[-1], row, strict=True)]
        else:
            rows.append(row)
        label = line if not values and not row[0].endswith(":") else None
    return rows


def _is_table(rows: Sequence[Sequence[str]], columns: int, has_head: bool) -> bool:
    """Whether these are short cells, and not lines of prose in columns or a list with its numbers."""
    full = [row for row in rows if sum(map(bool, row)) > 1]
    if len(full) + has_head < MIN_ROWS or len(full) < max(2, 0.4 * len(rows)):
        return False
    labels = [row[0] for row in rows if row[0]]
    values = [text for row in full for text in row[1:] if text]
    if not all(map(_is_word, labels)) or sum(map(_is_word, values)) < MANY_WORDS * len(values):
        return False  # a drawing, or a table that is drawn with characters already
    size = fmean(map(len, labels)) if labels else 0
    if size > MAX_LABEL_CHARS or (columns == 2 and labels and all(map(_ENUMERATOR.fullmatch, labels))):
        return False
    if size > MAX_LOWER_CHARS and sum(label[0].islower() for label in labels) > 0.5 * len(labels):
        return False
    if sum(map(_is_value, values)) >= MANY_NUMBERS * len(values):
        return fmean(map(len, values)) <= MAX_NUMBER_CHARS
    texts = [text for row in full for text in row if text]
    if fmean(map(len, texts)) > MAX_TEXT_CHARS or len(full) < (MIN_ROWS if columns > 2 else MIN_ROWS + 1):
        return False
    return columns > 3 or sum(text[0].islower() for text in texts) <= 0.4 * len(texts)


def _is_word(text: str) -> bool:
    return (text in _NO_VALUE or any(map(str.isalnum, text))) and not text.endswith("|")


def _order_columns(text: str, lines: Sequence[_Line]) -> str:
    """The text of a page with its left column before its right one, wherever lines of prose run across both."""
    parts: list[str] = []
    end = 0
    for run, gutter in _find_runs(lines):
        first, last = min(line.words[0].first for line in run), max(word.last for line in run for word in line.words)
        left, right = ([c.text for line in run for c in line.cells if (c.left > gutter) == side] for side in (False, True))
        parts += [text[end:first], "\n".join(left), "\n\n", "\n".join(right)]
        end = last
    return "".join([*parts, text[end:]])


def _find_runs(lines: Sequence[_Line]) -> Iterator[tuple[list[_Line], float]]:
    """Lines of prose one after the other that leave the same space free, and where it begins."""
    run: list[_Line] = []
    left_end, right_start = 0.0, 0.0  # of the two columns
    for line in lines:
        first, last, count = line.cells[0], line.cells[-1], len(line.cells)
        if run and count == 2:
            sides = max(left_end, first.right), min(right_start, last.left)
        elif run and count == 1 and first.right < right_start:
            sides = max(left_end, first.right), right_start
        elif run and count == 1 and first.left > left_end:
            sides = left_end, min(right_start, first.left)
        else:
            sides = 0.0, 0.0  # it stands across both
        if sides[0] >= sides[1]:
            if _is_prose(run):
                yield run, left_end
            run = []
            if count != 2:
                continue
            sides = first.right, last.left
        run.append(line)
        left_end, right_start = sides
    if _is_prose(run):
        yield run, left_end


def _is_prose(run: Sequence[_Line]) -> bool:
    both = [line.cells for line in run if len(line.cells) == 2]
    if len(both) < MIN_COLUMN_LINES:
        return False
    texts = [[cells[side].text for cells in both] for side in (0, 1)]
    letters = sum(map(str.isalpha, "".join(map("".join, texts)).replace(" ", "")))
    chars = sum(len(cell.replace(" ", "")) for side in texts for cell in side)
    return letters >= MIN_LETTERS * chars and all(fmean(map(len, side)) >= MIN_CELL_CHARS for side in texts)


def part_paragraphs(text: str, lines: Sequence[_Line]) -> str:
    """The text with an empty line wherever two lines have more space between them than the lines of a paragraph have."""
    if len(lines) < MIN_PARAGRAPH_LINES:
        return text
    gaps = [above.bottom - below.top for above, below in pairwise(lines)]
    usual = sorted(gaps)[len(gaps) // 8]  # most lines of a page may be paragraphs of their own
    enough = usual + WIDER * median(line.top - line.bottom for line in lines)
    places = [line.first for line, gap in zip(lines[1:], gaps, strict=True) if gap > enough]
    begins = [n for n in places if n > 0 and text[n - 1] == "\n" and not text[:n].endswith(("\n\n", "\n\r\n"))]
    places = [0, *sorted(begins), len(text)]
    return "\n".join(text[start:end] for start, end in pairwise(places))
