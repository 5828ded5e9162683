"""Dates of pages and of files: how many are what a reader would call the date of the text.

    python -m evals.dates [--show] [--save]

Pages are the annotated ones of `../shared/data/extraction` that have a date; a date counts when the day is right. Files are
written here: each format with the dates that programs leave in it, with those of a template beside, and without any, which
must stay without. Office files, RTF and mailboxes are dated by their last change. Ends with exit code 1 below the floors.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
from odf import meta, opendocument, text

from evals.extraction import corpus
from nexi.formats import extract, to_text
from tests.formats.archives import OPF, epub, zipped
from tests.formats.binary_workbooks import a_binary_workbook, a_summary, an_excel_97_workbook
from tests.formats.compound_files import a_word_97_document, an_outlook_message
from tests.formats.documents import pdf

TABLE = Path(__file__).with_name("dates.md")
FLOORS = {"pages": 88.0, "files": 95.0}  # per cent
SENTENCE = "The harbour of Ewell is 12 metres deep at low tide."
TEMPLATE = datetime(2013, 12, 23, tzinfo=UTC)
DAYS = tuple(date(2019, 1, 31) + timedelta(days=417 * n) for n in range(4))
OPENING = datetime(1601, 1, 1, tzinfo=UTC)

File = tuple[str, bytes, str]  # its name, what it holds, the day it should have


def list_files() -> Iterator[File]:
    """Every format with each of the days, and each without one."""
    for day in DAYS:
        moment, iso = datetime(day.year, day.month, day.day, 9, 30, tzinfo=UTC), day.isoformat()
        written = f"{day:%B} {day.day}, {day.year}"
        yield from ((name, data, iso) for name, data in _office_files(moment))
        yield "a.rtf", _rtf(rf"\creatim\yr2013\mo12\dy23}}{{\revtim\yr{day.year}\mo{day.month}\dy{day.day}\hr9"), iso
        yield "b.rtf", _rtf(rf"\creatim\yr{day.year}\mo{day.month}\dy{day.day}\hr9\min30"), iso
        yield "a.pdf", pdf([SENTENCE], f"/CreationDate (D:{moment:%Y%m%d%H%M%S}Z)"), iso
        yield "b.pdf", pdf([SENTENCE], f"/ModDate (D:{moment:%Y%m%d})"), iso
        yield "a.epub", _epub(iso), iso
        yield "a.eml", _message(moment).as_bytes(), iso
        yield "a.mbox", _mailbox(TEMPLATE, moment, TEMPLATE + timedelta(days=30)), iso
        yield "a.html", _page(f'<meta property="article:published_time" content="{iso}T09:30:00Z">'), iso
        yield "b.html", _page("", f"<p>Updated {written}</p>"), iso
        yield "c.html", _page("", f'<time datetime="{iso}">{day:%d.%m.}</time>'), iso
        yield "a.md", f"---\ntitle: Ewell\ndate: {iso}\n---\n\n{SENTENCE}\n".encode(), iso
        yield "b.md", f'+++\ntitle = "Ewell"\ndate = {iso}T09:30:00Z\n+++\n\n{SENTENCE}\n'.encode(), iso
        yield "c.md", f'---\nlayout: post\nDate: "{written}"\n---\n\n{SENTENCE}\n'.encode(), iso
        yield "a.rst", f"Ewell\n=====\n\n:Author: A. Leaf\n:Date: {iso}\n\n{SENTENCE}\n".encode(), iso
        yield "a.org", f"#+TITLE: Ewell\n#+DATE: <{iso} Tue>\n\n{SENTENCE}\n".encode(), iso
        yield "a.tex", _latex(written), iso
    sent = (OPENING + timedelta(microseconds=13_500_000_000_000_000)).date().isoformat()
    yield "a.msg", an_outlook_message("Ewell", SENTENCE, "map.pdf"), sent
    yield "b.tex", _latex(r"\today"), ""
    yield "c.pdf", pdf([SENTENCE]), ""
    yield "a.txt", f"{SENTENCE} It was dug on 3 May 1978.\n".encode(), ""
    yield "a.csv", b"Harbour,Dug on\nEwell,1978-05-03\n", ""
    yield "d.md", f"# Ewell\n\n{SENTENCE} It was dug on 1978-05-03.\n".encode(), ""
    yield "a.xls", an_excel_97_workbook("Ewell", [["Dug on"], ["1978-05-03"]]), ""
    yield "a.doc", a_word_97_document(SENTENCE), ""


def _office_files(moment: datetime) -> Iterator[tuple[str, bytes]]:
    ticks = int((moment - OPENING).total_seconds()) * 10**7
    old = int((TEMPLATE - OPENING).total_seconds()) * 10**7
    letter: Any = docx.Document()
    letter.add_paragraph(SENTENCE)
    deck: Any = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = SENTENCE
    for name, document in (("a.docx", letter), ("a.pptx", deck)):
        document.core_properties.created, document.core_properties.modified = TEMPLATE, moment
        yield name, _save(document)
    book = openpyxl.Workbook()
    book.worksheets[0].append(["Harbour", SENTENCE])
    book.properties.created = TEMPLATE.replace(tzinfo=None)
    properties = f"<dcterms:modified>{moment.isoformat()}</dcterms:modified>"
    yield "a.xlsx", _replace_part(_save(book), "docProps/core.xml", properties)
    yield (
        "b.docx",
        _replace_part(_save(letter), "docProps/core.xml", f"<dcterms:created>{moment.isoformat()}</dcterms:created>"),
    )
    yield "a.xlsb", _replace_part(a_binary_workbook("Ewell", [[SENTENCE]]), "docProps/core.xml", properties)
    yield "b.xls", an_excel_97_workbook("Ewell", [[SENTENCE]], summary=a_summary(created=old, modified=ticks))
    yield "c.xls", an_excel_97_workbook("Ewell", [[SENTENCE]], summary=a_summary(created=ticks))
    for kind, name in ((meta.CreationDate, "a.odt"), (None, "b.odt")):
        document = opendocument.OpenDocumentText()
        document.text.addElement(text.P(text=SENTENCE))
        stamp = kind(text=moment.isoformat()) if kind else meta.CreationDate(text=TEMPLATE.isoformat())
        document.meta.addElement(stamp)
        if not kind:
            from odf.dc import Date

            document.meta.addElement(Date(text=moment.isoformat()))
        yield name, _save(document)


def _save(document: Any) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def _replace_part(data: bytes, name: str, body: str) -> bytes:
    import zipfile

    archive = zipfile.ZipFile(io.BytesIO(data))
    parts: dict[str, str | bytes] = {other: archive.read(other) for other in archive.namelist() if other != name}
    return zipped({**parts, name: f'<cp xmlns:dcterms="urn:dcterms">{body}</cp>'})


def _rtf(stamps: str) -> bytes:
    return rf"{{\rtf1\ansi{{\info{{\title Ewell}}{{{stamps}}}}} {SENTENCE}\par}}".encode()


def _epub(day: str) -> bytes:
    import zipfile

    archive = zipfile.ZipFile(io.BytesIO(epub()))
    parts: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
    return zipped({**parts, "OEBPS/content.opf": OPF.replace("2026-01-02", day)})


def _message(moment: datetime) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["Date"] = "Ewell", "leaf@garden.example", moment
    message.set_content(SENTENCE)
    return message


def _mailbox(*moments: datetime) -> bytes:
    return b"".join(b"From leaf@garden.example Tue Jan  1\n" + _message(moment).as_bytes() + b"\n" for moment in moments)


def _page(head: str, line: str = "") -> bytes:
    body = f"<main><h1>Ewell</h1>{line}<p>{SENTENCE} It was dug in May and has two piers for the boats of the town.</p></main>"
    return f'<html lang="en"><head><title>Ewell</title>{head}</head><body>{body}</body></html>'.encode()


def _latex(day: str) -> bytes:
    head = f"\\documentclass{{article}}\\title{{Ewell}}\\date{{{day}}}"
    return f"{head}\n\\begin{{document}}\n{SENTENCE}\n\\end{{document}}\n".encode()


def date_of_page(page: corpus.Page) -> str:
    return extract(page.html, "text/html", page.url).published[:10]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print what is wrong")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    results: dict[str, list[bool]] = defaultdict(list)
    for name, data, day in list_files():
        dated = to_text(data, name=name).published[:10]
        results[f"files: {name.rpartition('.')[2]}"].append(dated == day)
        if options.show and dated != day:
            print(f"{name}: {dated or 'none'}, should be {day or 'none'}")
    files = [is_right for group in results.values() for is_right in group]
    rows = {"files": files}
    if (corpus.DATA / corpus.ANNOTATED).exists():
        pages = [page for page in corpus.annotated(corpus.DATA) if page.published]
        rows["pages"] = [date_of_page(page) == page.published for page in pages]
    else:
        print("the annotated pages are not there: only files are measured")
    table = ["| what | right | of | % | floor |", "|---|---|---|---|---|"]
    for name, group in {**rows, **results}.items():
        share = 100 * sum(group) / len(group)
        table.append(f"| {name} | {sum(group)} | {len(group)} | {share:.1f} | {FLOORS.get(name, '')} |")
    print(*table, sep="\n")
    if options.save:
        TABLE.write_text("# Dates\n\n`python -m evals.dates --save`\n\n" + "\n".join(table) + "\n", encoding="utf-8")
    return int(any(100 * sum(group) < FLOORS[name] * len(group) for name, group in rows.items()))


if __name__ == "__main__":
    sys.exit(main())
