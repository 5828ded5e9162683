"""Checking an answer: CPU and memory for 30 sentences against 20 pages of 3,000 words.

    python -m bench.proof [--save]

The pages are made from nexi's own handbook, sentence by sentence, with a seed; a third of the answer's sentences are as they
stand, a third have a number changed, a third are reworded. CPU is also given as a multiple of two passes of the standard
library in the same run: `re` finding the words of the same pages, and `difflib` comparing the 30 sentences with one page.
Bad input is measured beside it: a page of 10 MB and one line of 100,000 characters.
"""

from __future__ import annotations

import argparse
import platform
import random
import re
import sys
import time
import tracemalloc
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path

from nexi.checking.pages import prepare
from nexi.checking.rules import check_answer
from nexi.types import Proof

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "proof.md"
PAGES, WORDS, SENTENCES, ROUNDS = 20, 3_000, 30, 5
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_WORD = re.compile(r"\w+")


def sentences() -> list[str]:
    """Whole sentences of the handbook."""
    files = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    lines = (line.strip() for line in text.split("\n") if line[:1].isalpha())
    return [s for line in lines for s in _SENTENCE.split(line) if 6 <= len(s.split()) <= 40]


def make_pages(pool: list[str], chance: random.Random) -> list[str]:
    pages = []
    for number in range(PAGES):
        lines, words = [f"# Page {number}"], 0
        while words < WORDS:
            paragraph = [chance.choice(pool) for _ in range(5)]
            paragraph.append(
                f"In {chance.randint(1900, 2020)} it had {chance.randint(2, 900)} readers in {chance.choice(pool).split()[0]}."
            )
            lines.append(" ".join(paragraph))
            words += sum(len(s.split()) for s in paragraph)
        pages.append("\n\n".join(lines))
    return pages


def make_answer(pages: list[str], chance: random.Random, cited: Callable[[int], str]) -> str:
    out = []
    for number in range(SENTENCES):
        page = number % PAGES
        pool = [s for line in pages[page].split("\n") for s in _SENTENCE.split(line) if 6 <= len(s.split()) <= 40]
        text = chance.choice(pool).rstrip(".")
        if number % 3 == 1:
            text = re.sub(r"\d+", lambda m: str(int(m[0]) + 1), text)
        elif number % 3 == 2:
            words = text.split()
            text = " ".join([*words[len(words) // 2 :], *words[: len(words) // 2]])
        out.append(f"{text} {cited(page + 1)}.")
    return "\n\n".join(out)


def cpu(work: Callable[[], object]) -> float:
    """The least CPU of a few rounds, in milliseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return 1000 * best


def peak(work: Callable[[], object]) -> float:
    """How far memory rose, in MB."""
    tracemalloc.start()
    work()
    high = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return high / 1e6


def check(pages: list[str], answer: str) -> Proof:
    return check_answer(answer, {number: prepare(page) for number, page in enumerate(pages, start=1)})


def rows() -> list[tuple[str, str]]:
    chance = random.Random(5)
    pages = make_pages(sentences(), chance)
    answer = make_answer(pages, chance, lambda n: f"[{n}]")
    crowded = make_answer(pages, chance, lambda _: "".join(f"[{n}]" for n in range(1, PAGES + 1)))
    start = time.process_time()
    check(pages, answer)
    cold = 1000 * (time.process_time() - start)
    warm, every = cpu(lambda: check(pages, answer)), cpu(lambda: check(pages, crowded))
    words = cpu(lambda: [_WORD.findall(page) for page in pages])
    lines = answer.split("\n\n")
    diffs = cpu(lambda: [SequenceMatcher(None, line.split(), pages[0].split()).ratio() for line in lines])
    huge, line = "The house has 12 rooms and 7 doors in it. " * 240_000, "word " * 20_000
    return [
        ("30 sentences, 20 pages, first time in a process", f"{cold:.0f} ms CPU"),
        ("the same, again", f"{warm:.0f} ms CPU"),
        ("each of the 30 sentences citing all 20 pages", f"{every:.0f} ms CPU"),
        ("as a multiple of `re` finding the words of the pages", f"{warm / words:.1f}x ({words:.1f} ms)"),
        ("as a multiple of `difflib` over one of the pages", f"{warm / diffs:.2f}x ({diffs:.0f} ms)"),
        ("memory", f"{peak(lambda: check(pages, answer)):.1f} MB"),
        ("a page of 10 MB, one sentence", f"{cpu(lambda: check([huge], 'The house has 13 rooms [1].')):.0f} ms CPU"),
        (
            "a page of one 100,000-character line, one sentence",
            f"{cpu(lambda: check([line], 'A word stands here [1].')):.0f} ms CPU",
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    lines = ["| what | measured |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows())]
    print("\n".join(lines))
    if options.save:
        made_by = f"`python -m bench.proof --save`, Python {platform.python_version()}"
        head = f"# Checking an answer\n\n{made_by}, targets: 400 ms of CPU and 50 MB.\n\n"
        RESULTS.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
