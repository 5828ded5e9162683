"""EPUB and DOCX documents, written by hand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="urn:r" xmlns:mc="urn:mc"'
OPF = """<package xmlns:dc="urn:dc"><metadata><dc:title>A Book</dc:title><dc:creator>A. Writer</dc:creator>
<dc:language>en</dc:language><dc:date>2026-01-02</dc:date></metadata><manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="b" href="text/two%20.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="text/one.xhtml" media-type="application/xhtml+xml"/>
<item id="p" href="cover.png" media-type="image/png"/></manifest>
<spine><itemref idref="nav"/><itemref idref="p"/><itemref idref="a"/><itemref idref="b"/></spine></package>"""
CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()


def epub(**more: str | bytes) -> bytes:
    """A book of two chapters and a table of contents; `more` are parts by the end of their names."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OEBPS/content.opf", OPF)
        archive.writestr("OEBPS/nav.xhtml", "<nav><a href='text/one.xhtml'>Contents</a></nav>")
        archive.writestr("OEBPS/text/one.xhtml", "<h1>One</h1><p>The first&nbsp;chapter.</p><script>no()</script>")
        archive.writestr("OEBPS/text/two .xhtml", "<h1>Two</h1><ul><li>x</li></ul>")
        for name, text in more.items():
            archive.writestr(f"META-INF/{name}.xml", text)
    return stream.getvalue()


def docx(body: str, **more: str | bytes) -> bytes:
    """A document of this body; `more` are parts of the folder `word`."""
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": '<Relationships><Relationship Id="r1" Target="https://x.test/?a=1&amp;b=2" '
        'TargetMode="External"/></Relationships>',
        "word/numbering.xml": f'<w:numbering {W}><w:abstractNum w:abstractNumId="7"><w:lvl><w:numFmt w:val="decimal"/></w:lvl>'
        '</w:abstractNum><w:abstractNum w:abstractNumId="8"><w:lvl><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>'
        "</w:numbering>",
        "docProps/core.xml": '<cp xmlns:dc="urn:dc"><dc:title>A Paper</dc:title><dc:creator>B. Writer</dc:creator></cp>',
    }
    return zipped(parts | {f"word/{name}.xml": text for name, text in more.items()})


def paragraph(text: str, style: str = "", number: str = "", level: int = 0) -> str:
    about = f'<w:pStyle w:val="{style}"/>' if style else ""
    if number:
        about += f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return f"<w:p><w:pPr>{about}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def table(rows: list[list[str]]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"
