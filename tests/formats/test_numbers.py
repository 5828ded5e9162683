"""Every number of a document reaches its text and its quotations: none is changed, joined with another, lost or doubled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from html import unescape

import pytest

from evals.extraction import corpus
from nexi.extract.text import to_markdown
from nexi.formats import to_text
from nexi.llm.extractive.passages import read_sentences
from nexi.text.blocks import list_cells, parse_blocks
from tests.formats import number_documents as documents

TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.IGNORECASE | re.DOTALL)
PROSE: dict[str, Callable[[Sequence[str]], bytes]] = {
    "html": documents.html,
    "epub": documents.epub,
    "docx": documents.word,
    "pptx": documents.slides,
    "odt": documents.odt,
    "rtf": documents.rtf,
    "tex": documents.tex,
    "md": documents.plain,
    "txt": documents.plain,
    "pdf": documents.pdf,
}
TABLES: dict[str, Callable[[int], tuple[bytes, list[list[str]]]]] = {
    "xlsx": documents.workbook,
    "csv": lambda seed: documents.delimited(seed, ","),
    "tsv": lambda seed: documents.delimited(seed, "\t"),
    "pdf": documents.pdf_table,
}


def numbers(text: str) -> Counter[str]:
    return Counter(re.findall(r"\d+", text))


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", PROSE)
def test_no_number_of_a_sentence_changes(kind: str, seed: int) -> None:
    lines = documents.make_lines(seed)
    if kind == "tex":
        lines = [line for line in lines if "<" not in line and "$" not in line]
    if kind == "pdf":
        lines = [line.replace("−", "-").encode("cp1252", "ignore").decode("cp1252") for line in lines]
    text = to_text(PROSE[kind](lines), name=f"numbers.{kind}").text
    quoted = squeezed(" ".join(sentence.text for sentence in read_sentences(text) if sentence.kind != "label"))
    wanted = [documents.expected(line) for line in lines]
    assert [line for line in wanted if line not in quoted] == []
    assert numbers(quoted) == numbers(" ".join(wanted))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", TABLES)
def test_no_number_of_a_table_changes(kind: str, seed: int) -> None:
    data, rows = TABLES[kind](seed)
    text = to_text(data, name=f"numbers.{kind}").text
    cells = [[*list_cells(text[b.start : b.end])] for b in parse_blocks(text) if b.kind in ("head", "row")]
    assert cells == rows


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<span>Nov 7, 2025</span><span>11 min read</span>", "Nov 7, 2025 11 min read"),
        ("<span><b>6,796</b></span><span><i>8 gold badges</i></span>", "**6,796** *8 gold badges*"),
        ("The year 20<b>25</b>.", "The year 20**25**."),
        ("<i>2</i><i>0</i><i>2</i><i>5</i>", "*2025*"),
        ("1,000<wbr>,000", "1,000,000"),
        ("Tell us!<a href='https://a.test/'>Survey of 2021</a>", "Tell us! [Survey of 2021](https://a.test/)"),
    ],
)
def test_numbers_that_only_a_style_keeps_apart_stay_two(html: str, text: str) -> None:
    assert to_markdown(f"<body><p>{html}</p></body>", "") == text


@pytest.mark.skipif(bool(corpus.missing(corpus.DATA)), reason="the annotated pages are not beside this checkout")
def test_every_number_that_is_quoted_of_thirty_real_pages_stands_in_their_source() -> None:
    strange: dict[str, list[str]] = {}
    count = 0
    for page in corpus.sample(corpus.annotated(corpus.DATA), 30):
        source = numbers(unescape(TAG.sub(" ", page.html))) + numbers(unescape(TAG.sub("", page.html)))
        quoted = numbers(" ".join(sentence.text for sentence in read_sentences(to_markdown(page.html, page.url))))
        count += quoted.total()
        if changed := [number for number in quoted if number not in source]:
            strange[page.url] = changed
    assert strange == {}
    assert count > 1_000
