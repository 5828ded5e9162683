"""Tables as PDF pages and as sheets, made here: each knows what its cells say, so that every one can be looked up.

Above sit `evals.table_cells` and the tests of PDF tables. The PDFs are drawn word by word as programs do it: signs at the edge
of their column, heads over several columns, labels on two lines, a column after the other.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

LINE = 14  # points
SIZE = 9
PAGE = (612, 792)
LEFT = 60
_WIDTHS = {**dict.fromkeys("0123456789$€£_", 0.556), **dict.fromkeys(",.: /|!'ijl;", 0.278), **dict.fromkeys("()-rtf", 0.333)}


@dataclass(frozen=True, slots=True)
class SampleTable:
    """A table as it is meant: `group` holds heads over several columns with their first and last column."""

    name: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    edges: Sequence[int] = ()  # where columns end (figures) or begin (words)
    group: Sequence[tuple[str, int, int]] = ()
    aligned: str = "right"
    by_column: bool = False
    signs_apart: bool = False
    rows_a_page: int = 40
    prose: str = ""

    def cells(self) -> list[tuple[str, str, str]]:
        """Each cell beside the labels with its label and its head."""
        return [(row[0], self.head[n], row[n]) for row in self.rows if any(row[1:]) for n in range(1, len(self.head))]


def _figures(name: str, head: str, rows: str, **others: object) -> SampleTable:
    """A table from text: one line a row, a semicolon between cells."""
    cells = [[cell.strip() for cell in line.split(";")] for line in rows.strip().splitlines()]
    return SampleTable(name, [cell.strip() for cell in head.split(";")], cells, **others)  # type: ignore[arg-type]  # by name


PROSE = (
    "The figures below were prepared under the same rules as in the years before, and no auditor",
    "has looked at those of the last quarter. Sales rose in 2 of 3 regions, by 4 per cent in all,",
    "while the cost of freight, which had doubled in 2021, fell back to what it was before then.",
)

PDF_TABLES = (
    _figures(
        "income statement",
        "; Year Ended December 31, 2017; Year Ended December 31, 2018; Year Ended December 31, 2019",
        """Net product sales; $118,573; $141,915; $160,408
Net service sales; 59,293; 90,972; 120,114
Other income (expense), net; 346; (183); 203
Provision for income taxes; (769); (1,197); (2,374)
Equity-method investment activity, net of tax; (4); 9; (14)
Net income; $3,033; $10,073; $11,588""",
        caption="CONSOLIDATED STATEMENTS OF OPERATIONS (in millions)",
        edges=(360, 440, 520),
        group=(("Year Ended December 31,", 1, 3),),
        signs_apart=True,
    ),
    _figures(
        "balance sheet",
        "; September 1, 2019; September 2, 2018",
        """CURRENT ASSETS; ;
Cash and cash equivalents; $8,384; $6,055
Short-term investments; 1,060; 1,204
Merchandise inventories; 11,395; 11,040
Total current assets; 23,485; 20,289
OTHER ASSETS; ;
Goodwill; ; 865
Deferred leases; 1,025;
TOTAL ASSETS; $45,400; $40,830""",
        caption="Table 2. Balance sheet",
        edges=(400, 520),
        signs_apart=True,
    ),
    _figures(
        "long list over two pages",
        "Station; Opened; Platforms; Riders",
        "\n".join(f"Halt {chr(65 + n // 10)}{n % 10}; {1880 + n}; {2 + n % 5}; {1_000 + 137 * n:,}" for n in range(60)),
        caption="Table 3. Stations",
        edges=(250, 350, 480),
        rows_a_page=40,
    ),
    _figures(
        "tight columns",
        "Year; Q1; Q2; Q3; Q4; Total",
        """2019; 112; 118; 97; 131; 458
2020; 98; 61; 88; 104; 351
2021; 107; 115; 109; 127; 458
2022; 121; 124; 118; 140; 503""",
        edges=(112, 132, 152, 172, 198),
    ),
    _figures(
        "words only",
        "Name; Town; Office; Since",
        """Marta Velling; Quibberton; Treasurer; May
Joris Ambeck; Skelmouth; Secretary; June
Ilse Corlett; Danvers; Chair; March
Pim Northmoor; Ewell; Auditor; April
Ada Plinth; Skelmouth; Archivist; July""",
        caption="Table 5. The committee",
        edges=(200, 320, 430),
        aligned="left",
    ),
    _figures(
        "labels on two lines",
        "Item; 2023; 2024",
        """Purchases of property and equipment, including internal-use software and website development; (1,577); (1,812)
Proceeds from sales of marketable securities and other long-term investments held abroad; 2,497; 3,004
Repayments of debt; (700); (350)
Net change in cash; 220; 842""",
        edges=(420, 520),
    ),
    _figures(
        "two groups of heads",
        "; Three Months Ended June 30, 2023; Three Months Ended June 30, 2024; Six Months Ended June 30, 2023;"
        " Six Months Ended June 30, 2024",
        """Revenue; 4,120; 4,377; 8,015; 8,640
Cost of revenue; 2,010; 2,099; 3,977; 4,166
Operating loss; (77); (12); (205); (31)
Shares outstanding; 901; 905; 901; 905""",
        edges=(280, 350, 440, 510),
        group=(("Three Months Ended June 30,", 1, 2), ("Six Months Ended June 30,", 3, 4)),
    ),
    _figures(
        "drawn column by column",
        "River; Length km; Basin km2; Flow m3/s",
        """Orrin; 212; 3,410; 44
Tavey; 187; 2,950; 39
Lissel; 143; ; 21
Marrow; 98; 1,120; 12
Quill; 77; 804;""",
        edges=(240, 340, 450),
        by_column=True,
    ),
    _figures(
        "minus signs and per cent",
        "Region; Change; Share; Margin",
        """North; -3.5%; 12.0%; 4.1%
South; 7.25%; 31.4%; -0.8%
East; -; 22.9%; 6.0%
West; -11.0%; 33.7%; -2.2%""",
        edges=(250, 350, 450),
    ),
    _figures(
        "between paragraphs",
        "Crop; 2021; 2022; 2023",
        """Barley; 1,204; 1,377; 1,090
Oats; 355; 401;
Rye; ; 88; 92
Wheat; 6,710; 6,532; 7,015""",
        caption="Table 10. Harvest in tonnes",
        edges=(250, 330, 410),
        prose="both",
    ),
    _figures(
        "timetable",
        "Stop; Train 1; Train 3; Train 5; Train 7; Train 9",
        """Ambeck; 06:10; 07:10; 08:40; 11:05; 17:20
Bracken Hill; 06:22; ; 08:52; 11:17; 17:32
Corlett Pier; 06:41; 07:35; 09:11; ; 17:51
Danvers; 06:58; 07:50; 09:28; 11:49; 18:08""",
        edges=(200, 260, 320, 380, 440),
    ),
    _figures(
        "label and value",
        "Property; Value",
        """Mass; 1,240 kg
Length; 4.31 m
Top speed; 182 km
Range; 410 km
Price; $31,900""",
        edges=(300,),
    ),
)


SHEET_TABLES = (
    _figures("plain", "Region; 2023; 2024", "North; 1204; 1377\nSouth; 355; 401\nEast; -88; 92"),
    _figures("title above", "Field; Kilograms; Sold", "Upper; 12.5; 3\nLower; 7; 0", caption="Harvest of the year"),
    _figures(
        "two heads",
        "Region; Units 2023; Units 2024; Price 2023; Price 2024",
        "Northmoor; 51; 64; 7.5; 8\nSkelmouth; 48; 39; 7.25; 8.5",
        group=(("Units", 1, 2), ("Price", 3, 4)),
    ),
    _figures(
        "title and two heads",
        "Branch; H1 2024 Sales; H1 2024 Costs; H2 2024 Sales; H2 2024 Costs",
        "Ambeck; 410; 377; 455; 401\nEwell; 98; ; 112; 90",
        caption="Sales by branch",
        group=(("H1 2024", 1, 2), ("H2 2024", 3, 4)),
    ),
    _figures("empty cells", "Crop; 2021; 2022; 2023", "Barley; 1204; ; 1090\nRye; ; 88;\nOats; 355; 401; 7"),
    _figures("dates", "Name; Joined; Paid until", "Velling; 2024-03-05; 2026-01-31\nCorlett; 2023-11-30; 2025-12-31"),
    _figures("per cent", "Item; Share; Change", "Tea; 12.5%; -3%\nCoffee; 40%; 7.25%"),
    _figures("words", "Name; Town; Office", "Ilse Corlett; Danvers; Chair\nAda Plinth; Ewell; Archivist"),
    _figures("many rows", "Station; Opened; Riders", "\n".join(f"Halt {n}; {1850 + n}; {1_000 + 137 * n}" for n in range(150))),
    _figures("csv", "City; Height; Founded", "Aarde; 12; 1201\nBree; 340; 1450\nCorr; ; 1688"),
    _figures("csv with a title", "Code; Count; Rate", "A-1; 44; 0.5\nB-2; 51; 0.75", caption="Counts by code"),
    _figures("tsv", "Part; Stock; Ordered", "Bolt; 1500; 0\nNut; ; 200\nWasher; 80; 40"),
)


QUESTIONS = {  # of one cell of each table: the question, the label of the row, and the column
    "income statement": ("What was the provision for income taxes in 2018?", "Provision for income taxes", 2),
    "balance sheet": ("How high were the merchandise inventories on September 2, 2018?", "Merchandise inventories", 2),
    "long list over two pages": ("How many riders did Halt E7 have?", "Halt E7", 3),
    "tight columns": ("What was the value for Q3 of 2021?", "2021", 3),
    "words only": ("Which office does Pim Northmoor hold?", "Pim Northmoor", 2),
    "labels on two lines": ("How much debt was repaid in 2024?", "Repayments of debt", 2),
    "two groups of heads": ("What was the operating loss in the six months ended June 30, 2023?", "Operating loss", 3),
    "drawn column by column": ("How large is the basin of the river Tavey?", "Tavey", 2),
    "minus signs and per cent": ("What is the margin of the region West?", "West", 3),
    "between paragraphs": ("How many tonnes of wheat were harvested in 2022?", "Wheat", 2),
    "timetable": ("When does Train 5 stop at Corlett Pier?", "Corlett Pier", 3),
    "label and value": ("What is the top speed?", "Top speed", 1),
    "plain": ("What was the figure of the region South in 2024?", "South", 2),
    "title above": ("How many kilograms did the lower field give?", "Lower", 1),
    "two heads": ("What was the price in Skelmouth in 2024?", "Skelmouth", 4),
    "title and two heads": ("What were the costs of the Ambeck branch in H2 2024?", "Ambeck", 4),
    "empty cells": ("How much rye was there in 2022?", "Rye", 2),
    "dates": ("Until when has Corlett paid?", "Corlett", 2),
    "per cent": ("By how much did coffee change?", "Coffee", 2),
    "words": ("In which town does Ada Plinth live?", "Ada Plinth", 1),
    "many rows": ("When was Halt 117 opened?", "Halt 117", 1),
    "csv": ("When was Bree founded?", "Bree", 2),
    "csv with a title": ("What is the rate of code B-2?", "B-2", 2),
    "tsv": ("How many nuts were ordered?", "Nut", 2),
}


def table_sheet(table: SampleTable) -> tuple[bytes, str]:
    """The table as a file, and its name: a workbook, or text with commas or tabs where the table is called so."""
    rows = [[table.caption]] * bool(table.caption)
    if table.group:
        names = {first: text for text, first, _ in table.group}
        prefix = {n: text for text, first, last in table.group for n in range(first, last + 1)}
        rows.append([names.get(n, "") for n in range(len(table.head))])
        rows.append([head.removeprefix(prefix.get(n, "")).strip() for n, head in enumerate(table.head)])
    else:
        rows.append(list(table.head))
    rows += [list(row) for row in table.rows]
    kind = table.name[:3]
    if kind in ("csv", "tsv"):
        return "\n".join((", " if kind == "csv" else "\t").join(row) for row in rows).encode(), f"table.{kind}"
    return _write_workbook(rows, len(rows) - len(table.rows), table), "table.xlsx"


def _write_workbook(rows: Sequence[Sequence[str]], first: int, table: SampleTable) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    for y, row in enumerate(rows, 1):
        for x, text in enumerate(row, 1):
            if not text:
                continue
            cell = sheet.cell(y, x)
            if text.endswith("%"):
                cell.value, cell.number_format = float(text[:-1]) / 100, "0.00%"
            elif y > first and text.count("-") == 2:
                cell.value = date.fromisoformat(text)
            else:
                cell.value = float(text) if y > first and text.lstrip("-").replace(".", "", 1).isdigit() else text
    for _, one, other in table.group:
        sheet.merge_cells(start_row=first - 1, end_row=first - 1, start_column=one + 1, end_column=other + 1)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _width(text: str) -> float:
    return SIZE * sum(_WIDTHS.get(char, 0.6) for char in text)


def show_text(text: str, x: float, y: float) -> str:
    """The command that draws a text at a place."""
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"BT /F1 {SIZE} Tf {x:.1f} {y:.1f} Td ({escaped}) Tj ET"


def _wrap(text: str, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and _width(f"{lines[-1]} {word}") > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _draw_cell(table: SampleTable, column: int, text: str, y: float) -> list[str]:
    edge = table.edges[column - 1]
    if table.aligned == "left":
        return [show_text(text, edge, y)]
    end = edge - _width(text.rstrip(")%"))  # figures stand under one another, with their brackets outside
    if table.signs_apart and text.startswith("$"):
        return [show_text("$", edge - 45, y), show_text(text[1:], end + _width("$"), y)]
    return [show_text(text, end, y)]


def draw_pages(table: SampleTable) -> list[str]:
    """The drawing commands of each page."""
    pages: list[list[str]] = []
    for first in range(0, len(table.rows), table.rows_a_page):
        page, y = list[str](), 740.0
        if not first:
            for line in PROSE * bool(table.prose):
                page.append(show_text(line, LEFT, y))
                y -= LINE
            if table.caption:
                page.append(show_text(table.caption, LEFT, y))
                y -= 2 * LINE
            for text, one, other in table.group:
                middle = (table.edges[one - 1] + table.edges[other - 1] - 20) / 2
                page.append(show_text(text, middle - _width(text) / 2, y))
                y -= LINE if text == table.group[-1][0] else 0
            group_of = {n: text for text, one, other in table.group for n in range(one, other + 1)}
            for n, head in enumerate(table.head):
                own = head.removeprefix(group_of.get(n, "")).strip()
                page += [show_text(own, LEFT, y)] if not n and own else _draw_cell(table, n, own, y) if n else []
            y -= LINE
        columns: list[list[str]] = [[] for _ in table.head]
        for row in table.rows[first : first + table.rows_a_page]:
            lines = _wrap(row[0], (table.edges[0] - LEFT) * 0.75)
            for line in lines[:-1]:
                columns[0].append(show_text(line, LEFT, y))
                y -= LINE
            columns[0].append(show_text(lines[-1], LEFT, y))
            drawn = [_draw_cell(table, n, row[n], y) for n in range(1, len(row)) if row[n]]
            if table.by_column:
                for n, cell in zip([n for n in range(1, len(row)) if row[n]], drawn, strict=True):
                    columns[n] += cell
            else:
                columns[0] += [command for cell in drawn for command in cell]
            y -= LINE
        page += [command for column in columns for command in column]
        for number, line in enumerate(PROSE * bool(table.prose)):
            page.append(show_text(line, LEFT, y - LINE * (number + 1)))
        pages.append(page)
    return ["\n".join(page) for page in pages]


def write_pdf(streams: Sequence[str]) -> bytes:
    """A document with a page for each stream of drawing commands."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(streams)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for n, stream in enumerate(streams):
        box = f"/MediaBox [0 0 {PAGE[0]} {PAGE[1]}] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} /Contents {5 + 2 * n} 0 R >>")
        objects.append(f"<< /Length {len(stream.encode('cp1252'))} >>\nstream\n{stream}\nendstream")
    body, places = b"%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode("cp1252")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    return (
        body
        + (
            f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}"
            f"trailer << /Root 1 0 R /Size {len(places) + 1} >>\nstartxref\n{len(body)}\n%%EOF"
        ).encode()
    )


def table_pdf(table: SampleTable) -> bytes:
    return write_pdf(draw_pages(table))
