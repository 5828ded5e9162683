"""Every number of a document reaches its text and its quotations: none is changed, joined with another, lost or doubled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from nexi.extract import to_text
from nexi.llm.extractive.passages import read_sentences
from nexi.text.blocks import list_cells, parse_blocks
from tests.extract import number_documents as documents

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
