"""Sentences written by hand about pages of many kinds, true ones and lies, to try the checker with.

    python -m evals.redteam [--part held-out|development|both] [--show CLASS] [--data FOLDER]

`own.txt` is about the pages in `pages/`, which were written for it; `webs.txt` is about pages of the mini-webs, which are found
by address when the eval runs. They were written before the checker was read. Pages are split by name: what went wrong is only
looked at in the development half, and the held-out half says how far a mend carries.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evals.checkers import read_claims
from nexi.checking.pages import prepare
from nexi.checking.rules import check_answer
from nexi.extract.text import to_markdown
from nexi.types import Proof

HERE = Path(__file__).parent
WEBS = ("dev", "multi", "docs")


@dataclass(frozen=True)
class Statement:
    """One sentence about one page, and whether the page says it."""

    page: str
    kind: str
    true: bool
    text: str

    @property
    def half(self) -> str:
        return "held-out" if self.held_out else "development"

    @property
    def held_out(self) -> bool:
        return hashlib.sha256(f"half {self.page}".encode()).digest()[0] % 2 == 1


def statements(data: Path | None) -> list[Statement]:
    """All of them; without the mini-webs, those about our own pages."""
    return list(_read(HERE / "own.txt")) + (list(_read(HERE / "webs.txt")) if data else [])


def _read(file: Path) -> Iterator[Statement]:
    page = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("@ "):
            page = line[2:]
        elif line.startswith(("= ", "! ")):
            kind, text = line[2:].split(" | ", 1)
            yield Statement(page, kind, line[0] == "=", text)


def texts(data: Path | None) -> dict[str, str]:
    """The stored text of every page that is spoken of."""
    found = {file.stem: file.read_text(encoding="utf-8") for file in (HERE / "pages").glob("*.md")}
    wanted = {s.page for s in statements(data)} - set(found)
    for web in WEBS:
        urls = {page.split(" ", 1)[1] for page in wanted if page.startswith(web + " ")}
        found |= _of_web(data / f"{web}.tar.gz", web, urls) if data and urls else {}
    return found


def _of_web(archive: Path, web: str, urls: set[str]) -> dict[str, str]:
    with tarfile.open(archive) as packed:
        member = next(m for m in packed if m.name.endswith("pages.jsonl"))
        records = [json.loads(line) for line in packed.extractfile(member) or ()]
    return {f"{web} {r['url']}": to_markdown(r["html"], r["url"]) for r in records if r["url"] in urls}


def judge(data: Path | None, part: str) -> Iterator[tuple[Statement, bool, Proof]]:
    """Each statement of a part, whether it was taken for supported, and why."""
    pages: Mapping[str, str] = texts(data)
    ready = {name: prepare(text, name) for name, text in pages.items()}
    for statement in statements(data):
        if part != "both" and statement.held_out != (part == "held-out"):
            continue
        proof = check_answer(add_marker(statement.text), {1: ready[statement.page]})
        yield statement, read_claims(proof.checked).kept, proof


def add_marker(text: str) -> str:
    return f"{text[:-1]} [1]{text[-1]}" if text[-1] in ".。" else f"{text} [1]"
