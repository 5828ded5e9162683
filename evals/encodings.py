"""Pages and files in the charsets of four scripts, with signs that the standards leave out and programs write all the same.

    python -m evals.encodings [--save]

Each page is read with its charset in the header, in the page, and nowhere, and its sentence alone as a text file and as a
table of two lines, where a few bytes are all the evidence there is. Ends with exit code 1 when one is misread.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from evals.tables import render_table
from nexi.formats import extract, to_text

TABLE = Path(__file__).with_name("encodings.md")


class LegacyPage(NamedTuple):
    label: str  # the charset as pages declare it
    codec: str  # what their bytes are
    sentence: str
    field: str  # a name for the cell of a small table


PAGES = (
    LegacyPage("Shift_JIS", "cp932", "髙橋さんは①東京の㈱山﨑商店で働いています。", "髙橋淳"),
    LegacyPage("x-sjis", "cp932", "価格は№5の部品で㌔あたり百円です。", "㈱山﨑"),
    LegacyPage("windows-31j", "cp932", "ﾃｽﾄ用の会議室Ⅲは三階にあります。", "会議室Ⅲ"),
    LegacyPage("EUC-KR", "cp949", "똠방각하와 펲시콜라를 파는 가게입니다.", "똠방각하"),
    LegacyPage("ks_c_5601-1987", "cp949", "회의는 ①번 방에서 열리고 뷁이라는 글자를 쓴다.", "홍길동"),
    LegacyPage("korean", "cp949", "아햏햏은 한국의 인터넷에서 쓰인 말이다.", "아햏햏"),
    LegacyPage("gb2312", "gb18030", "朱镕基先生在北京的会议上发表了讲话。", "朱镕基"),
    LegacyPage("GBK", "gb18030", "這個詞在臺灣寫作囧，价格是€5。", "张三"),
    LegacyPage("gb18030", "gb18030", "㐂和䶮是人名用字，刘䶮住在广州市。", "刘䶮在广州"),
    LegacyPage("windows-1251", "cp1251", "Дом № 5 — „Кремль“ стоит на улице…", "Счёт № 12"),
    LegacyPage("cp1251", "cp1251", "Ещё один объём: 5 € за «ящик» яблок.", "Ещё объём"),
    LegacyPage("x-cp1251", "cp1251", "Київ — столиця України, її є за що любити.", "Україна"),
)


def html_of(page: LegacyPage, *, declared: bool) -> bytes:
    head = f'<meta charset="{page.label}">' if declared else ""
    text = f"<html><head>{head}<title>{page.field}</title></head><body><main><p>{page.sentence}</p></main></body></html>"
    return text.encode(page.codec)


def table_of(page: LegacyPage) -> bytes:
    return f"name,n\r\n{page.field},35\r\n".encode(page.codec)


WAYS: dict[str, Callable[[LegacyPage], bool]] = {
    "header": lambda page: page.sentence in extract(html_of(page, declared=False), f"text/html; charset={page.label}", "").text,
    "meta tag": lambda page: page.sentence in extract(html_of(page, declared=True), "text/html", "").text,
    "undeclared": lambda page: page.sentence in extract(html_of(page, declared=False), "text/html", "").text,
    "text file": lambda page: page.sentence in to_text(page.sentence.encode(page.codec), name="a.txt").text,
    "small table": lambda page: page.field in to_text(table_of(page), name="a.csv").text,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    results = [[is_read(page) for is_read in WAYS.values()] for page in PAGES]
    rows = [
        [page.label, page.sentence, *("right" if is_right else "MISREAD" for is_right in row)]
        for page, row in zip(PAGES, results, strict=True)
    ]
    broken = sum(not all(row) for row in results)
    table = render_table(["declared as", "sentence", *WAYS], rows)
    print(table, f"\n{len(PAGES)} pages, {broken} broken")
    if options.save:
        summary = f"{len(PAGES)} pages, {broken} broken (`python -m evals.encodings --save`)."
        TABLE.write_text(f"# Charsets\n\n{summary}\n\n{table}\n", encoding="utf-8")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
