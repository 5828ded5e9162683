"""Documents of every format, each written by a library of its format."""

from __future__ import annotations

import csv
import io
import mailbox
import tempfile
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import docx
import nbformat
import openpyxl
import pptx
from odf import draw, meta, opendocument, style, table, text
from odf.namespaces import PRESENTATIONNS
from pptx.util import Inches
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter


def saved(document: Any) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def a_word_document() -> bytes:
    document = docx.Document()
    document.core_properties.title = "Tea"
    document.add_heading("Making tea", 1)
    for line in ("Kettle", "Leaves"):
        document.add_paragraph(line, style="List Bullet")
    document.add_paragraph("Green ones", style="List Bullet 2")
    for line in ("Boil", "Pour"):
        document.add_paragraph(line, style="List Number")
    document.add_paragraph("Drink it.")
    cells = document.add_table(rows=2, cols=2).rows
    for row, texts in zip(cells, (("Leaf", "Minutes"), ("Sencha", "2")), strict=True):
        for cell, value in zip(row.cells, texts, strict=True):
            cell.text = value
    return saved(document)


def a_workbook() -> bytes:
    workbook = openpyxl.Workbook()
    workbook.properties.title, workbook.properties.creator = "Harvest", "A. Leaf"
    sheet = workbook.active
    assert sheet is not None
    sheet.title = "Yields"
    sheet.append(["Field", "Picked on", "Share", "Kilograms", "Sold"])
    sheet.append(["North | upper", datetime(2026, 5, 4), 0.125, 1234.5, True])
    sheet.append(["South", datetime(2026, 5, 6, 7, 30), 0.5, 0.1 + 0.2, False])
    for row in (2, 3):
        sheet.cell(row, 3).number_format = "0.0%"
    sheet["B7"], sheet["C7"] = "Total", "=SUM(D2:D3)"
    workbook.create_sheet("Empty")
    workbook.create_sheet("Notes").append(["One line"])
    return saved(workbook)


def a_presentation() -> bytes:
    deck = pptx.Presentation()
    deck.core_properties.title = "Tea for all"
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Why tea"
    body = slide.placeholders[1].text_frame
    body.text = "It is warm"
    inner = body.add_paragraph()
    inner.text, inner.level = "Even in winter", 1
    slide.notes_slide.notes_text_frame.text = "Smile here."
    second = deck.slides.add_slide(deck.slide_layouts[6])
    second.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "A loose remark"
    grid = second.shapes.add_table(2, 2, 0, 0, Inches(2), Inches(1)).table
    for (row, column), value in {(0, 0): "Leaf", (0, 1): "Minutes", (1, 0): "Sencha", (1, 1): "2"}.items():
        grid.cell(row, column).text = value
    return saved(deck)


def open_text() -> bytes:
    document = opendocument.OpenDocumentText()
    document.meta.addElement(meta.InitialCreator(text="A. Leaf"))
    numbered = text.ListStyle(name="Numbers")
    numbered.addElement(text.ListLevelStyleNumber(level=1, numformat="1", stylename="x"))
    document.automaticstyles.addElement(numbered)
    document.text.addElement(text.H(outlinelevel=2, text="Water"))
    paragraph = text.P(text="Boil ")
    paragraph.addElement(text.A(href="https://tea.test/", text="it"))
    paragraph.addElement(text.S(c=2))
    paragraph.addText("well.")
    document.text.addElement(paragraph)
    for name, lines in (("Bullets", ("Cup", "Pot")), ("Numbers", ("First", "Second"))):
        items = text.List(stylename=name)
        for line in lines:
            item = text.ListItem()
            item.addElement(text.P(text=line))
            items.addElement(item)
        document.text.addElement(items)
    return saved(document)


def open_sheet() -> bytes:
    document = opendocument.OpenDocumentSpreadsheet()
    sheet = table.Table(name="Yields")
    for values in (("Field", "Kilograms"), ("North", 12.5), ("South", 3)):
        row = table.TableRow()
        for value in values:
            kind = "string" if isinstance(value, str) else "float"
            cell = table.TableCell(valuetype=kind, **({} if kind == "string" else {"value": value}))
            if kind == "string":
                cell.addElement(text.P(text=value))
            row.addElement(cell)
        row.addElement(table.TableCell(numbercolumnsrepeated=16_000))
        sheet.addElement(row)
    empty = table.TableRow(numberrowsrepeated=1_000_000)
    empty.addElement(table.TableCell(numbercolumnsrepeated=16_000))
    sheet.addElement(empty)
    document.spreadsheet.addElement(sheet)
    return saved(document)


def open_slides() -> bytes:
    deck = opendocument.OpenDocumentPresentation()
    layout = style.PageLayout(name="P")
    deck.automaticstyles.addElement(layout)
    master = style.MasterPage(name="M", pagelayoutname=layout)
    deck.masterstyles.addElement(master)
    for title, line in (("Why tea", "It is warm."), ("", "No title here.")):
        page = draw.Page(masterpagename=master)
        for kind, words in (("title", title), ("outline", line)):
            if words:
                frame = draw.Frame(width="1cm", height="1cm")
                frame.setAttrNS(PRESENTATIONNS, "class", kind)
                box = draw.TextBox()
                box.addElement(text.P(text=words))
                frame.addElement(box)
                page.addElement(frame)
        deck.presentation.addElement(page)
    return saved(deck)


def a_csv_table() -> bytes:
    stream = io.StringIO()
    rows = csv.writer(stream, delimiter=";")
    rows.writerows([("Field", "Kilograms, dry"), ("North | upper", "12,5"), ("South\nlower", "3")])
    return stream.getvalue().encode()


def a_message() -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Tee für alle", "A. Leaf <leaf@tea.test>", "all@tea.test"
    message["Date"] = datetime(2026, 5, 4, 7, 30, tzinfo=UTC)
    message.set_content("Der Tee ist um fünf Uhr fertig.\n", cte="base64")
    message.add_alternative("<p>Der Tee ist <b>um fünf Uhr</b> fertig.</p>", subtype="html")
    message.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="menu.pdf")
    return message


def a_mailbox() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        box = mailbox.mbox(f"{folder}/box")
        box.add(a_message())
        second = EmailMessage()
        second["Subject"], second["From"] = "Re: Tea", "B. Cup <cup@tea.test>"
        second.set_content("From now on I come at six.\n")
        box.add(second)
        box.close()
        return Path(f"{folder}/box").read_bytes()


def a_saved_page() -> bytes:
    page = EmailMessage()
    page["From"], page["Subject"], page["Snapshot-Content-Location"] = "<Saved by Blink>", "Tea", "https://tea.test/a"
    page.set_content("<title>Tea</title><main><h1>Tea</h1><p>It is warm. <a href='b'>More</a></p></main>", subtype="html")
    page.add_related(b"\x89PNG", maintype="image", subtype="png")
    return page.as_bytes()


def a_notebook() -> bytes:
    code = nbformat.v4.new_code_cell("print(6 * 7)")
    table = "<table><tr><th>a</th></tr><tr><td>1</td></tr></table>"
    code.outputs = [
        nbformat.v4.new_output("stream", text="42\n"),
        nbformat.v4.new_output("execute_result", {"text/plain": "a\n1", "text/html": table}),
        nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo="}),
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Numbers\n\nThe answer."), code])
    return nbformat.writes(notebook).encode()


def a_web_archive(*, gzip: bool = True) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the library leaves its copies of the bodies open
        return _write_archive(gzip=gzip)


def _write_archive(*, gzip: bool) -> bytes:
    stream = io.BytesIO()
    archive = WARCWriter(stream, gzip=gzip)
    html = b"<html><head><title>Tea</title></head><body><main><p>Tea is warm, and wet as well.</p></main></body></html>"
    for address, kind, body in (("a", "text/html; charset=utf-8", html), ("b.png", "image/png", b"\x89PNG")):
        headers = StatusAndHeaders("200 OK", [("Content-Type", kind)], protocol="HTTP/1.1")
        archive.write_record(
            archive.create_warc_record(
                f"https://tea.test/{address}", "response", payload=io.BytesIO(body), http_headers=headers
            )
        )
    return stream.getvalue()


RTF = r"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss Arial;}{\f1\fcharset204 Arial Cyr;}}
{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}}{\info{\title On tea}{\author A. Leaf}}
{\*\generator Some Program;}{\header Not this}
\pard\plain\s1\outlinelevel0 Making tea\par
\pard\plain Caf\'e9 \u8364?5 {\b warm}\line and wet. {\f1\'d7\'e0\'e9}\par
{\pict\pngblip 89504e47}
\pard{\listtext\'95\tab}Kettle\par
\pard{\listtext 1.\tab}Boil\par
\trowd\pard\intbl Leaf\cell Minutes\cell\row
\trowd\pard\intbl Sencha\cell 2\cell\row
\pard{\field{\*\fldinst HYPERLINK "https://tea.test"}{\fldrslt A link}}\par}"""
SRT = """1
00:00:01,000 --> 00:00:03,000
<i>Tea is warm</i>

2
00:00:03,100 --> 00:00:05,000
and wet.

3
00:01:10,000 --> 00:01:12,000
Drink it.
"""
VTT = """WEBVTT

NOTE not shown

intro
00:01.000 --> 00:03.000 align:start
<v Ann>Tea is warm.
"""
LATEX = r"""\documentclass{article} % not shown
\title{On \emph{tea}} \author{A. Leaf \and B. Cup}
\begin{document}
\maketitle
\section{Making it}
Caf\'e \& bar cost 5\% more, $a_1 < b$. See \href{https://tea.test/}{the \textbf{site}}.\footnote{Old.}

\begin{enumerate} \item Boil \begin{itemize} \item gently \end{itemize} \item Pour \end{enumerate}
\begin{tabular}{lr} \hline Leaf & Minutes \\ \hline Sencha & 2 \\ \end{tabular}
\begin{verbatim}
x = {1}
\end{verbatim}
\input{/etc/passwd}
\end{document}"""

# By what its name ends with: a document, and a piece of its text.
SAMPLES: dict[str, tuple[Callable[[], bytes], str]] = {
    "docx": (a_word_document, "1. Boil\n2. Pour"),
    "xlsx": (a_workbook, "| South | 2026-05-06 07:30 | 50% | 0.3 | FALSE |"),
    "pptx": (a_presentation, "## Slide 1: Why tea"),
    "odt": (open_text, "1. First\n2. Second"),
    "ods": (open_sheet, "| North | 12.5 |"),
    "odp": (open_slides, "## Slide 1: Why tea"),
    "csv": (a_csv_table, "| North \\| upper | 12,5 |\n| South lower | 3 |"),
    "tsv": (lambda: b"Field\tKilograms\nNorth\t12\n", "| North | 12 |"),
    "eml": (lambda: a_message().as_bytes(), "Der Tee ist um fünf Uhr fertig."),
    "mbox": (a_mailbox, "## Re: Tea"),
    "mhtml": (a_saved_page, "It is warm. [More](https://tea.test/b)"),
    "ipynb": (a_notebook, "```python\nprint(6 * 7)\n```"),
    "rtf": (RTF.encode, "# Making tea"),
    "srt": (SRT.encode, "[00:00:01] Tea is warm and wet."),
    "vtt": (VTT.encode, "[00:00:01] Ann: Tea is warm."),
    "tex": (LATEX.encode, "## Making it"),
    "warc": (a_web_archive, "Tea is warm, and wet as well."),
}
