"""SECURITY.md and docs/safety.md say nothing that a test does not show; `safety_claims.txt` is the table of both.

A phrase that no test can show has its reason there: it is advice, an introduction, or about another system.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("SECURITY.md", "docs/safety.md")
HEADING = re.compile(r"^#.*$", re.MULTILINE)
BLOCK_END = re.compile(r"\n\s*\n|\n(?=- )")
SENTENCE_END = re.compile(r"(?<=[.:;]) ")
NUMBER = re.compile(r"\d[\d.,]*")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_phrase_stands_in_its_document_and_has_a_test_or_a_reason(document: str) -> None:
    text = read_document(document)
    assert [phrase for phrase, shown in read_claims(document).items() if phrase not in text or not shown] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_test_of_the_table_exists(document: str) -> None:
    names = {name for shown in read_claims(document).values() for name in shown if not name.startswith("- ")}
    assert len(names) > 20
    assert sorted(name for name in names if name not in find_functions(name.partition("::")[0])) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_sentence_has_a_phrase_of_the_table(document: str) -> None:
    phrases = read_claims(document)
    assert [part for part in find_sentences(document) if not any(phrase in part or part in phrase for phrase in phrases)] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_number_stands_in_a_phrase_of_the_table(document: str) -> None:
    text = read_document(document)
    places = ((text.find(phrase), len(phrase)) for phrase in read_claims(document))
    covered = {place for start, size in places for place in range(start, start + size)}
    assert [number[0] for number in NUMBER.finditer(text) if number.start() not in covered] == []


@cache
def read_claims(document: str) -> dict[str, list[str]]:
    """By phrase of a document, the tests that show it, or its reason behind a dash."""
    table = (ROOT / "tests" / "safety_claims.txt").read_text("utf-8")
    claims: dict[str, list[str]] = {}
    phrase = ""
    for line in table.partition(f"\n# {document}\n")[2].partition("\n# ")[0].splitlines():
        if line.startswith("    "):
            claims[phrase].append(line.strip())
        elif line:
            phrase = line
            claims[phrase] = []
    return claims


@cache
def read_document(document: str) -> str:
    """The text of a document without headings, each block of it on one line."""
    text = HEADING.sub("", (ROOT / document).read_text("utf-8"))
    return "\n".join(" ".join(block.split()).removeprefix("- ") for block in BLOCK_END.split(text))


def find_sentences(document: str) -> Iterator[str]:
    """Sentences, and their parts before a semicolon or a colon: each states something of its own."""
    for block in read_document(document).splitlines():
        yield from (part for part in SENTENCE_END.split(block) if part)


@cache
def find_functions(path: str) -> frozenset[str]:
    """The functions of a file as pytest names them, found without running it."""
    names: list[str] = []
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        place = f"{path}::{node.name}" if isinstance(node, ast.ClassDef) else path
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        names += [f"{place}::{one.name}" for one in inner if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return frozenset(names)
