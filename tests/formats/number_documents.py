"""Documents full of numbers, in every format that has them: each knows what its lines must say once they are text.

A line is written with `^{23}` for raised and `_{2}` for lowered text, and each format writes these in its own way.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from html import escape
from random import Random

import docx
import openpyxl
import pptx
from odf import opendocument, style, text
from pptx.util import Inches

from evals.table_documents import LEFT, LINE, SampleTable, show_text, table_pdf, write_pdf
from tests.formats import archives
from tests.formats.samples import saved

Run = tuple[str, str]  # text, and "^" or "_" where it is raised or lowered

_RUN = re.compile(r"([\^_])\{([^}]*)\}")
_LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def split_runs(line: str) -> Iterator[Run]:
    at = 0
    for match in _RUN.finditer(line):
        yield line[at : match.start()], ""
        yield match[2], match[1]
        at = match.end()
    yield line[at:], ""


def expected(line: str) -> str:
    """What a line says as text."""
    return "".join(f"^{words}" if kind == "^" else words.translate(_LOW) if kind else words for words, kind in split_runs(line))


def make_lines(seed: int) -> list[str]:
    """Sentences with numbers of every form; no two documents have the same."""
    n = make_numbers(seed)
    big, small = (lambda: f"{n(1_000, 9_999_999):,}"), (lambda: f"{n(0, 98)}.{n(1, 999)}")
    return [
        f"The mass of the sample is {small()}×10^{{{n(11, 30)}}} kg, and its charge {small()}×10^{{−{n(2, 19)}}} C.",
        f"Net income was ({big()}) after ${big()} in the year before, a change of −{small()} %.",
        f"It covers {big()} m^{{2}} and holds {small()} m^{{3}} of H_{{2}}O at {small()} °C.",
        f"Between {n(1800, 1890)}–{n(1891, 1999)} the price rose from £{small()} to €{small()} a tonne.",
        f"Of {big()} votes, {n(1, 8)}/{n(9, 16)} came by post, {n(2, 9)}½ in a hundred were void.",
        f"The ratio was {n(2, 9)}:{n(1, 9)} at {n(10, 23)}:{n(10, 59)} on 2024-0{n(1, 9)}-1{n(0, 9)}.",
        f"Version {n(1, 9)}.{n(0, 30)}.{n(0, 9)} needs {n(2, 9)}*{n(2, 9)}*{n(2, 9)} cells.",
        f"A loss of ({small()}) follows where a<b and c>{n(2, 99)}, with p<0.0{n(1, 9)} and n>{n(10, 99)}.",
        f"Swiss francs are CHF {n(1, 9)}'{n(100, 999)}.{n(10, 99)}, German euros {n(1, 9)}.{n(100, 999)},{n(10, 99)} €.",
        f"It took +{n(1, 9)} or -{n(1, 9)} steps, about {small()}e-{n(2, 9)} s each, ±{small()}.",
    ]


def make_numbers(seed: int) -> Callable[[int, int], int]:
    """Numbers between two others, the same ones for the same seed."""
    return Random(seed).randint  # noqa: S311 - nothing secret


def html(lines: Sequence[str]) -> bytes:
    tags = {"^": "sup", "_": "sub", "": ""}
    paragraphs = (
        "".join(f"<{tags[kind]}>{escape(words)}</{tags[kind]}>" if kind else escape(words) for words, kind in split_runs(line))
        for line in lines
    )
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"<!DOCTYPE html><html><head><meta charset=utf-8></head><body><article>{body}</article></body></html>".encode()


def epub(lines: Sequence[str]) -> bytes:
    stream = io.BytesIO(archives.epub())
    out = io.BytesIO()
    with zipfile.ZipFile(stream) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, html(lines) if name.endswith("one.xhtml") else old.read(name))
    return out.getvalue()


def word(lines: Sequence[str]) -> bytes:
    document = docx.Document()
    for line in lines:
        paragraph = document.add_paragraph()
        for words, kind in split_runs(line):
            run = paragraph.add_run(words)
            if kind:
                setattr(run.font, "superscript" if kind == "^" else "subscript", True)
    return saved(document)


def slides(lines: Sequence[str]) -> bytes:
    deck = pptx.Presentation()
    for line in lines:
        slide = deck.slides.add_slide(deck.slide_layouts[6])
        paragraph = slide.shapes.add_textbox(0, 0, Inches(5), Inches(1)).text_frame.paragraphs[0]
        for words, kind in split_runs(line):
            run = paragraph.add_run()
            run.text = words
            if kind:
                run.font._element.set("baseline", "30000" if kind == "^" else "-25000")
    return saved(deck)


def odt(lines: Sequence[str]) -> bytes:
    document = opendocument.OpenDocumentText()
    for name, place in (("up", "super 58%"), ("down", "sub 58%")):
        own = style.Style(name=name, family="text")
        own.addElement(style.TextProperties(textposition=place))
        document.automaticstyles.addElement(own)
    for line in lines:
        paragraph = text.P()
        for words, kind in split_runs(line):
            if kind:
                paragraph.addElement(text.Span(stylename="up" if kind == "^" else "down", text=words))
            else:
                paragraph.addText(words)
        document.text.addElement(paragraph)
    return saved(document)


def rtf(lines: Sequence[str]) -> bytes:
    marks = {"^": "\\super ", "_": "\\sub "}

    def escaped(words: str) -> str:
        return "".join(char if char.isascii() else f"\\u{ord(char)}?" for char in words)

    def paragraph(line: str) -> str:
        return "".join(f"{{{marks[kind]}{escaped(words)}}}" if kind else escaped(words) for words, kind in split_runs(line))

    return ("{\\rtf1\\ansi\\deff0 " + "\\par\n".join(map(paragraph, lines)) + "\\par}").encode("ascii")


def tex(lines: Sequence[str]) -> bytes:
    def paragraph(line: str) -> str:
        plain = re.sub(r"[%$]", lambda sign: f"\\{sign[0]}", line.replace("<", "$<$").replace(">", "$>$"))
        return _RUN.sub(lambda run: f"\\text{'super' if run[1] == '^' else 'sub'}script{{{run[2]}}}", plain)

    body = "\n\n".join(map(paragraph, (line for line in lines if "<" not in line and "$" not in line)))
    return f"\\documentclass{{article}}\n\\begin{{document}}\n{body}\n\\end{{document}}\n".encode()


def plain(lines: Sequence[str]) -> bytes:
    return "\n\n".join(map(expected, lines)).encode()


def pdf(lines: Sequence[str]) -> bytes:
    """Lines that the fonts of every reader can show; raised digits are small and stand higher."""
    page = []
    for number, line in enumerate(lines):
        shown = line.replace("−", "-").encode("cp1252", "ignore").decode("cp1252")
        x, y = float(LEFT), 740.0 - 2 * LINE * number
        for words, kind in split_runs(shown):
            if words:
                command = show_text(words, x, y + (4 if kind == "^" else -2 if kind else 0))
                page.append(command.replace(" 9 Tf", " 6 Tf") if kind else command)
            x += sum(_width(char) for char in words) * (6 if kind else 9)
    return write_pdf(["\n".join(page)])


def _width(char: str) -> float:
    """Of the letters of Helvetica, as far as they matter for where the next word begins."""
    narrow = {**dict.fromkeys(",.: /|!'ijltf;I", 0.278), **dict.fromkeys("()-r", 0.333), **dict.fromkeys("mMW%", 0.87)}
    return narrow.get(char, 0.722 if char.isupper() else 0.5 if char in "csvxyzk" else 0.556)


SHEET_FORMATS = (
    (1234567.0, "#,##0", "1,234,567"),
    (-1197.0, "#,##0_);(#,##0)", "(1,197)"),
    (-2374.5, "#,##0.00", "-2,374.50"),
    (1204.5, '"$"#,##0.00', "$1,204.50"),
    (0.125, "0.0%", "12.5%"),
    (-0.03, "0%", "-3%"),
    (3500.0, "[$€-407]#,##0.00", "€3,500.00"),
    (7.25, "General", "7.25"),
    (12.0, "0.000", "12.000"),
    (42.0, '0" kg"', "42 kg"),
)


def workbook(seed: int) -> tuple[bytes, list[list[str]]]:
    """A sheet with numbers in the formats of accounts, and what its rows show."""
    n = make_numbers(seed)
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    rows = [["Item", "Shown", "Plain"]]
    sheet.append(rows[0])
    for number, (value, code, shown) in enumerate(SHEET_FORMATS, 2):
        other = n(-9_999, 9_999) / 4
        sheet.append([f"Row {number} of {seed}", value, other])
        sheet.cell(number, 2).number_format = code
        rows.append([f"Row {number} of {seed}", shown, f"{other:.10g}"])
    return saved(book), rows


def delimited(seed: int, delimiter: str) -> tuple[bytes, list[list[str]]]:
    n = make_numbers(seed)
    rows = [["Item", "Amount", "Share", "Note"]]
    rows += [
        [f"Row {row}", f"({n(1_000, 99_999):,})", f"-{n(0, 9)}.{n(10, 99)}%", "" if row % 3 else f"${n(1, 9)}.50"]
        for row in range(12)
    ]
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows(rows)
    return stream.getvalue().encode(), rows


def pdf_table(seed: int) -> tuple[bytes, list[list[str]]]:
    n = make_numbers(seed)
    rows = [
        [f"Entry {letter}", f"{n(1_000, 99_999):,}", f"({n(1_000, 99_999):,})", f"-{n(0, 9)}.{n(10, 99)}%"]
        for letter in "ABCDEFGH"
    ]
    head = ["Item", "2022", "2023", "Change"]
    return table_pdf(SampleTable("", head, rows, edges=(250, 350, 450))), [head, *rows]
