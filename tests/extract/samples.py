"""Documents of every format, each written by a library of its format."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime
from typing import Any

import docx
import openpyxl
import pptx
from odf import draw, meta, opendocument, style, table, text
from odf.namespaces import PRESENTATIONNS
from pptx.util import Inches


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


# By what its name ends with: a document, and a piece of its text.
SAMPLES: dict[str, tuple[Callable[[], bytes], str]] = {
    "docx": (a_word_document, "1. Boil\n2. Pour"),
    "xlsx": (a_workbook, "| South | 2026-05-06 07:30 | 50% | 0.3 | FALSE |"),
    "pptx": (a_presentation, "## Slide 1: Why tea"),
    "odt": (open_text, "1. First\n2. Second"),
    "ods": (open_sheet, "| North | 12.5 |"),
    "odp": (open_slides, "## Slide 1: Why tea"),
}
