"""60 hostile documents of the formats people have: bombs, loops, lies about sizes, macros and external references.

`evals.bodies` serves and measures them. What one of them would reach if it were run or fetched from is `canary`, an address
that records who asks for it.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Mapping

from nexi.formats import type_of_name

M = 1_000_000
Body = tuple[str, bytes, Mapping[str, str]]
canary = ["http://127.0.0.1:9/"]  # set by whoever serves the documents
LAUGHS = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY a{n} '{f'&a{n - 1};' * 10 if n else '&a;' * 10}'>" for n in range(9)
)


def _document(name: str, parts: Mapping[str, str | bytes], *, stored: str = "") -> Body:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        if stored:
            archive.writestr("mimetype", stored, zipfile.ZIP_STORED)
        for part, text in parts.items():
            archive.writestr(part, text)
    return type_of_name(name), stream.getvalue(), {}


def _xlsx(sheet: str | bytes = "", *, strings: str = "", workbook: str = "", **parts: str | bytes) -> Body:
    relation = '<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/></Relationships>'
    known: dict[str, str | bytes] = {
        "xl/workbook.xml": workbook or '<workbook xmlns:r="urn:r"><sheets><sheet name="A" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relation,
        "xl/worksheets/sheet1.xml": sheet or '<s><row><c t="inlineStr"><is><t>Tea</t></is></c></row></s>',
        "xl/sharedStrings.xml": strings,
    }
    return _document("a.xlsx", {**known, **{name.replace("__", "/") + ".xml": text for name, text in parts.items()}})


def _pptx(slide: str, *, count: int = 1, **parts: str) -> Body:
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="r"/>' for n in range(count))
    presentation = f'<p:presentation xmlns:p="urn:p" xmlns:r="urn:r">{ids}</p:presentation>'
    relation = '<Relationships><Relationship Id="r" Target="slides/slide1.xml"/></Relationships>'
    known = {"ppt/presentation.xml": presentation, "ppt/_rels/presentation.xml.rels": relation, "ppt/slides/slide1.xml": slide}
    places = {"rels": "ppt/slides/_rels/slide1.xml.rels"}
    return _document("a.pptx", {**known, **{places[name]: text for name, text in parts.items()}})


def _odf(name: str, content: str, **parts: str) -> Body:
    names = 'xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:draw="d" xmlns:xlink="x"'
    known = {"content.xml": f"<office:document-content {names}>{content}</office:document-content>"}
    return _document(name, {**known, **{f"{part}.xml": text for part, text in parts.items()}}, stored=type_of_name(name))


def _text(name: str, data: str | bytes) -> Body:
    return type_of_name(name), data if isinstance(data, bytes) else data.encode(), {}


def lie_about_sizes(body: Body) -> Body:
    """The sizes in the directory of a ZIP file say that every part is one byte long."""
    kind, data, _ = body
    changed = bytearray(data)
    place = changed.find(b"PK\x01\x02")
    while place >= 0:
        changed[place + 24 : place + 28] = (1).to_bytes(4, "little")
        place = changed.find(b"PK\x01\x02", place + 4)
    return kind, bytes(changed), {}


def _warc(body: bytes, length: str = "", kind: str = "response", http: bytes = b"") -> bytes:
    answer = http or b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    said = length or str(len(answer) + len(body))
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.test/\r\nContent-Type: application/http\r\n"
    return f"{head}Content-Length: {said}\r\n\r\n".encode() + answer + body + b"\r\n\r\n"


def _mail(body: bytes, header: bytes = b"Content-Type: text/plain") -> bytes:
    return b"From: a@b.test\r\nSubject: Tea\r\nMIME-Version: 1.0\r\n" + header + b"\r\n\r\n" + body


def _nested_mail(depth: int) -> bytes:
    opened = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(depth))
    return b"Subject: x\r\nMIME-Version: 1.0\r\n" + opened + b"\r\nTea"


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the start of a compound file
ROW = "<row><c><v>1</v></c></row>"
BODIES: dict[str, Callable[[], Body]] = {
    "zip: ten files of 100 MB": lambda: _document("a.zip", {f"{n}.txt": b" " * 100 * M for n in range(10)}),
    "zip: a zip in a zip in a zip": lambda: _document("a.zip", {"a.zip": _document("a.zip", {"b.zip": b"PK"})[1], "a": "Tea"}),
    "zip: 300 workbooks of 30,000 rows": lambda: _document(
        "a.zip", dict.fromkeys(map("{}.xlsx".format, range(300)), _xlsx("<s>" + ROW * 30_000 + "</s>")[1])
    ),
    "doc: a chain of sectors without an end": lambda: _text("a.doc", OLE + b"\0" * 22 + b"\x09" + b"\0" * 4_000_000),
    "xls: words that are no workbook": lambda: _text("a.xls", OLE + "Workbook".encode("utf-16-le") * 200_000),
    "xlsx: 100 MB in one sheet": lambda: _xlsx(b"<s>" + b" " * 100 * M),
    "xlsx: 1,000,000 rows": lambda: _xlsx("<s>" + ROW * 1_000_000 + "</s>"),
    "xlsx: a cell in the last column of 20,000 rows": lambda: _xlsx(
        '<s>' + '<row><c r="XFD1"><v>1</v></c></row>' * 20_000 + "</s>"
    ),
    "xlsx: a row number of 2,000,000,000": lambda: _xlsx('<s><row r="2000000000"><c><v>1</v></c></row></s>'),
    "xlsx: 900,000 shared strings": lambda: _xlsx(strings="<sst>" + "<si><t>tea</t></si>" * 900_000 + "</sst>"),
    "xlsx: a shared string of 20 MB": lambda: _xlsx(strings="<sst><si><t>" + "t" * 20 * M + "</t></si></sst>"),
    "xlsx: 300,000 sheets": lambda: _xlsx(workbook="<w>" + '<sheet name="a" id="r1"/>' * 250_000 + "</w>"),
    "xlsx: a sheet that is all sheets": lambda: _xlsx(workbook="<w>" + '<sheet name="a" id="r1"/>' * 10_000 + "</w>"),
    "xlsx: entities of entities": lambda: _xlsx(f"{LAUGHS}]><s>&a8;</s>"),
    "xlsx: a file of the system as entity": lambda: _xlsx('<!DOCTYPE s [<!ENTITY e SYSTEM "file:///etc/passwd">]><s>&e;</s>'),
    "xlsx: sizes that are lies": lambda: lie_about_sizes(_xlsx(b"<s>" + b" " * 40 * M)),
    "xlsx: a formula that calls the web": lambda: _xlsx(
        f'<s><row><c><f>WEBSERVICE("{canary[0]}")</f></c><c><v>2</v></c></row></s>'
    ),
    "xlsx: an external link": lambda: _xlsx(
        xl__externalLinks__link1=f'<R><Relationship Id="e" TargetMode="External" Target="{canary[0]}"/></R>'
    ),
    "xlsx: a macro": lambda: _document(
        "a.xlsm", {"xl/workbook.xml": "<w/>", "xl/vbaProject.bin": b"Sub Auto_Open()\nShell \"touch /tmp/nexi-canary\""}
    ),
    "xlsx: dates of the year 99,999,999": lambda: _xlsx(
        '<s><row><c s="1"><v>9e99</v></c><c s="1"><v>-9e99</v></c></row></s>',
        xl__styles='<s><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></s>',
    ),
    "pptx: 700,000 shapes": lambda: _pptx("<s>" + "<sp/>" * 700_000 + "</s>"),
    "pptx: a slide shown 20,000 times": lambda: _pptx("<s><sp><p><r><t>Tea</t></r></p></sp></s>", count=19_000),
    "pptx: a paragraph of 30 MB": lambda: _pptx("<s><sp><p><r><t>" + "x" * 30 * M + "</t></r></p></sp></s>"),
    "pptx: 100,000 rows": lambda: _pptx("<s><graphicFrame>" + "<tr><tc/></tr>" * 100_000 + "</graphicFrame></s>"),
    "pptx: notes that are the slide": lambda: _pptx(
        "<s><sp><p><r><t>Tea</t></r></p></sp></s>",
        rels='<Relationships><Relationship Id="n" Type="x/notesSlide" Target="slide1.xml"/></Relationships>',
    ),
    "pptx: a picture on the web": lambda: _pptx(
        "<s><sp><p><r><t>Tea</t></r></p></sp></s>",
        rels=f'<Relationships><Relationship Id="i" Type="x/image" TargetMode="External" Target="{canary[0]}"/></Relationships>',
    ),
    "pptx: a part outside the archive": lambda: _pptx(
        "<s/>", rels='<Relationships><Relationship Id="n" Type="x/notesSlide" Target="../../../../etc/passwd"/></Relationships>'
    ),
    "pptx: 250 levels of groups": lambda: _pptx("<grpSp>" * 300),
    "pptx: entities of entities": lambda: _pptx(f"{LAUGHS}]><s>&a8;</s>"),
    "odt: 600,000 paragraphs": lambda: _odf("a.odt", "<text:p>x</text:p>" * 600_000),
    "odt: lists 250 deep": lambda: _odf("a.odt", "<text:list><text:list-item>" * 120 + "<text:p>Tea</text:p>"),
    "odt: one paragraph of 30 MB": lambda: _odf("a.odt", f"<text:p>{'x' * 30 * M}</text:p>"),
    "odt: a linked section": lambda: _odf("a.odt", f'<text:section-source xlink:href="{canary[0]}"/><text:p>Tea</text:p>'),
    "odt: a macro": lambda: _odf("a.odt", "<text:p>Tea</text:p>", **{"Basic/Standard/Module1": "Shell(&quot;touch&quot;)"}),
    "odt: entities of entities": lambda: _document("a.odt", {"content.xml": f"{LAUGHS}]><x>&a8;</x>"}),
    "ods: a cell repeated 2,000,000,000 times": lambda: _odf(
        "a.ods", "<office:spreadsheet><table:table><table:table-row><table:table-cell table:number-columns-repeated="
        '"999999999"><text:p>x</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>'
    ),
    "ods: 10,000 rows repeated 999,999,999 times": lambda: _odf(
        "a.ods", "<office:spreadsheet><table:table>" + '<table:table-row table:number-rows-repeated="999999999">'
        "<table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>" * 10_000
        + "</table:table></office:spreadsheet>"
    ),
    "ods: 200 tables inside one another": lambda: _odf("a.ods", "<table:table><table:table-row><table:table-cell>" * 80),
    "odp: 100,000 slides": lambda: _odf("a.odp", "<draw:page/>" * 100_000),
    "odp: a picture on the web": lambda: _odf(
        "a.odp", f'<draw:page><draw:image xlink:href="{canary[0]}"/><text:p>x</text:p></draw:page>'
    ),
    "csv: a row of 900,000 values": lambda: _text("a.csv", "x," * 900_000),
    "csv: 900,000 rows": lambda: _text("a.csv", "a,b\n" * 490_000),
    "csv: a quotation that never ends": lambda: _text("a.csv", 'a,"' + "x\n" * 900_000),
    "csv: a formula that runs a program": lambda: _text("a.csv", "a,b\n=cmd|' /C touch /tmp/nexi-canary'!A0,2\n"),
    "eml: 50,000 parts": lambda: _text(
        "a.eml", _mail(b"--b\r\n\r\nx\r\n" * 50_000, b"Content-Type: multipart/mixed; boundary=b")
    ),
    "eml: 5,000 parts inside one another": lambda: _text("a.eml", _nested_mail(5_000)),
    "eml: a header of 1.9 MB": lambda: _text("a.eml", b"Subject: " + b"=?utf-8?q?a?= " * 130_000 + b"\r\n\r\nTea"),
    "eml: 1,900,000 empty lines": lambda: _text("a.eml", _mail(b"\n" * 1_900_000)),
    "eml: 2 MB of base64": lambda: _text(
        "a.eml", _mail((b"QUFB" * 19 + b"\r\n") * 24_000, b"Content-Transfer-Encoding: base64")
    ),
    "eml: a part on the web": lambda: _text(
        "a.eml", _mail(b"Tea", f'Content-Type: message/external-body; access-type=URL; URL="{canary[0]}"'.encode())
    ),
    "mbox: 60,000 messages": lambda: _text("a.mbox", b"From a@b Mon\nSubject: x\n\nx\n\n" * 60_000),
    "mhtml: a page of 390,000 boxes": lambda: _text("a.mhtml", _mail(b"<div>" * 390_000, b"Content-Type: text/html")),
    "mhtml: a picture on the web": lambda: _text(
        "a.mhtml", _mail(f'<main><p>Tea</p><img src="{canary[0]}"></main>'.encode(), b"Content-Type: text/html")
    ),
    "ipynb: 900,000 lists inside one another": lambda: _text("a.ipynb", '{"nbformat":4,"cells":' + "[" * 900_000),
    "ipynb: 3,000,000 empty cells": lambda: _text("a.ipynb", '{"nbformat":4,"cells":[' + "{}," * 3_000_000 + "{}]}"),
    "ipynb: code that deletes": lambda: _text(
        "a.ipynb", '{"nbformat":4,"cells":[{"cell_type":"code","source":"open(\'/tmp/nexi-canary\',\'w\')"}]}'
    ),
    "rtf: 900,000 groups inside one another": lambda: _text("a.rtf", r"{\rtf1" + "{" * 900_000),
    "rtf: a picture of 2,000,000,000 bytes": lambda: _text("a.rtf", r"{\rtf1{\pict\bin2000000000 x}Tea}"),
    "rtf: an object on the web": lambda: _text("a.rtf", r"{\rtf1{\object\objautlink{\*\objdata 01}}{\field{\*\fldinst PICTURE "
                                               + canary[0] + r"}{\fldrslt Tea}}\par}"),
    "rtf: 600,000 cells": lambda: _text("a.rtf", r"{\rtf1\trowd\intbl" + r"\cell" * 390_000 + r"\row}"),
    "srt: 60,000 cues of one second": lambda: _text("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nx\n\n" * 50_000),
    "tex: 200,000 sections left open": lambda: _text("a.tex", r"\section{" * 200_000),
    "tex: a program and a file": lambda: _text(
        "a.tex", r"\immediate\write18{touch /tmp/nexi-canary}\input{/etc/passwd}\def\a{\a\a}\a Tea"
    ),
    "warc: 200 MB of one record": lambda: _text("a.warc", gzip.compress(_warc(b" " * 200 * M))),
    "warc: lengths that are lies": lambda: _text("a.warc", _warc(b"<p>Tea is warm.</p>", "99999999999") * 3),
}  # fmt: skip
