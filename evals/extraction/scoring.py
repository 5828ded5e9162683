"""Three measures of an extractor: words of annotated pages, structure of documentation, and answers that survive.

Above sits the command; below, resiliparse's tree as the reference for documentation. An extractor is a function of HTML and
URL that returns Markdown; who wrote it is not known here.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evals.extraction.corpus import Page, Question

Extractor = Callable[[str, str], str]
Score = tuple[float, float, float]

CHARS_A_TOKEN = 4
_NO_ANSWERS = ("", "yes", "no")
KINDS = ("fences", "rows", "items", "links", "headings")
_WORD = re.compile(r"\w+")
_TARGET = re.compile(r"\]\([^)]*\)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s+")
_HEADING = re.compile(r"\s*#{1,6}\s")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~&:])")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")
_MARKS = re.compile(r"[*`]|(?<!\w)_|_(?!\w)")  # an underscore inside a word is a letter of it
_NOISE = "a.headerlink, script, style, .navheader, .navfooter, svg, .menu, #toc, [role=navigation]"
# Where each site of the documentation pages has its main part.
_MAIN = {
    "py_": "div[role=main]",
    "requests": "div.body",
    "django": "#bd",
    "pg_": "div.sect1, div.refentry",
    "git_": "#content",
    "node_": "#apicontent",
    "sqlite": "body",
}


@dataclass
class Words:
    """Precision, recall and F1 by type of page, and the CPU seconds they took."""

    cpu: float = 0.0
    rows: dict[str, list[Score]] = field(default_factory=lambda: defaultdict(list))

    def mean(self, kind: str = "all", column: int = 2) -> float:
        return sum(row[column] for row in self.rows[kind]) / max(1, len(self.rows[kind]))


@dataclass(frozen=True)
class Structure:
    """How much of documentation is kept: parts by kind, and the word F1."""

    kept: Mapping[str, int]
    asked: Mapping[str, int]
    words: float

    def share(self, kind: str) -> float:
        return self.kept[kind] / max(1, self.asked[kind])


@dataclass(frozen=True)
class Survival:
    """On how many questions the answer is still in the text of its pages, and how long these are."""

    kept: int
    asked: int
    tokens: float


def counted(text: str) -> Counter[str]:
    """The words of a text; targets of links are no words."""
    return Counter(_WORD.findall(_TARGET.sub("]", text).lower()))


def compared(got: Counter[str], want: Counter[str]) -> Score:
    """Precision, recall and F1 of words."""
    if not got or not want:
        return (1.0, 1.0, 1.0) if got == want else (0.0, 0.0, 0.0)
    same = (got & want).total()
    precision, recall = same / got.total(), same / want.total()
    return precision, recall, 2 * precision * recall / (precision + recall) if same else 0.0


def words(extractor: Extractor, over: Sequence[Page]) -> Words:
    return words_in_turn([extractor], over)[0]


def words_in_turn(extractors: Sequence[Extractor], over: Sequence[Page]) -> list[Words]:
    """Every extractor over every page, in turn and each first as often: what else the machine does slows all of them alike."""
    found = [Words() for _ in extractors]
    for number, page in enumerate(over):
        want = counted(page.text)
        for place in range(len(extractors)):
            at = (number + place) % len(extractors)
            start = time.process_time()
            text = extractors[at](page.html, page.url)
            found[at].cpu += time.process_time() - start
            score = compared(counted(text), want)
            found[at].rows["all"].append(score)
            found[at].rows[page.kind].append(score)
    return found


def structure(extractor: Extractor, pages: Mapping[str, str]) -> Structure:
    kept: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    scores = []
    for name, html in pages.items():
        main = _reference(name, html)
        text = extractor(html, f"https://docs.test/{name}.html")
        for kind, survives in _survivals(main, text):
            asked[kind] += 1
            kept[kind] += survives
        scores.append(compared(counted(text), counted(" ".join(_texts(main))))[2])
    return Structure(kept, asked, sum(scores) / max(1, len(scores)))


def survival(extractor: Extractor, questions: Sequence[Question], pages: Mapping[str, str]) -> Survival:
    """Questions whose answer is not in the source of their pages are not asked, nor those of yes and no."""
    urls = {url for question in questions for url in question.urls if url in pages}
    texts = {url: extractor(pages[url], url) for url in sorted(urls)}
    kept = asked = 0
    for question in questions:
        source = _flat(" ".join(re.sub(r"<[^>]+>", " ", pages[url]) for url in question.urls if url in pages))
        answers = [answer for answer in map(_flat, question.answers) if answer in source and answer not in _NO_ANSWERS]
        text = _flat(" ".join(texts.get(url, "") for url in question.urls))
        asked += bool(answers)
        kept += any(answer in text for answer in answers)
    return Survival(kept, asked, sum(map(len, texts.values())) / CHARS_A_TOKEN / max(1, len(texts)))


def _reference(name: str, html: str) -> Any:
    from resiliparse.parse.html import HTMLTree

    selector = next(selector for start, selector in _MAIN.items() if name.startswith(start))
    main = HTMLTree.parse(html).document.query_selector(selector)
    for node in main.query_selector_all(_NOISE):
        if node.parent is not None:
            node.decompose()
    return main


def _survivals(main: Any, text: str) -> list[tuple[str, bool]]:
    """Each part of the reference, by kind, and whether the text has it."""
    lines = text.split("\n")
    code, rows = _code_lines(lines), {_plain(line.replace("|", " ")) for line in lines if line.count("|") >= 2}
    items = [_plain(_ITEM.sub("", line, count=1)) for line in lines if _ITEM.match(line)]
    headings = [_plain(line) for line in lines if _HEADING.match(line)]
    found = []
    for pre in main.query_selector_all("pre"):
        if wanted := [" ".join(line.split()) for line in pre.text.split("\n") if line.strip()]:
            found.append(("fences", sum(line in code for line in wanted) >= 0.9 * len(wanted)))
    for row in main.query_selector_all("tr"):
        cells = [" ".join(cell.text.split()) for cell in row.query_selector_all("td")]
        if len(cells) >= 2 and row.query_selector("pre") is None and all(len(cell) < 200 for cell in cells):
            found.append(("rows", _flat(" ".join(cells)) in rows))
    for item in main.query_selector_all("li"):
        start = _flat(item.text).split()[:5]
        if len(start) >= 3 and item.query_selector("li") is None:
            found.append(("items", any(line.startswith(" ".join(start)) for line in items)))
    for link in main.query_selector_all("a[href]"):
        href = link.getattr("href")
        if href and not href.startswith("#"):
            found.append(("links", f"({href}" in text or f"<{href}" in text or href.rsplit("/", 1)[-1] in text))
    for heading in main.query_selector_all("h1, h2, h3, h4"):
        found.append(("headings", any(line.startswith(_flat(heading.text)) for line in headings)))
    return found


def _code_lines(lines: Sequence[str]) -> set[str]:
    found, inside = set(), False
    for line in lines:
        if _FENCE.match(line):
            inside = not inside
        elif inside:
            found.add(" ".join(line.split()))
    return found


def _texts(node: Any) -> list[str]:
    return [part.value for part in node if part.tag == "#text" and part.value]


def _flat(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _plain(line: str) -> str:
    """The words of a line of Markdown without its marks."""
    return _flat(_MARKS.sub("", _LINK.sub(r"\1", _ESCAPED.sub(r"\1", line))))
