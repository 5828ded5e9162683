"""How much of a page survives as Markdown, beside other extractors, in one run.

    python -m evals.extraction [--sample 60] [--peers] [--save] [--data FOLDER]

Prints word F1 over annotated pages, by type, and CPU time as a multiple of resiliparse's plain text, the two in turn page by
page; the structure kept of documentation pages; and on how many questions of the mini-webs the answer is still in its pages.
Ends with exit code 1 where nexi is below `floors.json`; a sample is allowed the chance of its size. Where the data is not there
it says so in one line.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from evals.extraction import corpus, peers, scoring
from nexi.extract.text import to_markdown

FLOORS = Path(__file__).with_name("floors.json")
RESULTS = Path(__file__).resolve().parent.parent / "extraction.md"
DEVIATIONS = 2.33  # one in a hundred samples of pages that hold their floor falls further than this
SAMPLE_COST = 1.25  # of the allowed CPU time: a few pages on a machine that does other work cost up to a fifth more
TYPES = ("article", "collection", "documentation", "forum", "listing", "product", "service")


@dataclass(frozen=True)
class Row:
    """One extractor's figures."""

    name: str
    words: scoring.Words
    structure: scoring.Structure
    survival: Mapping[str, scoring.Survival]
    times: float


@dataclass(frozen=True)
class Material:
    """What every extractor is given."""

    pages: Sequence[corpus.Page]
    probes: Mapping[str, str]
    webs: Mapping[str, tuple[list[corpus.Question], dict[str, str]]]


def material(data: Path, size: int) -> Material:
    webs = {name: corpus.web(data, name) for name in corpus.WEBS}
    asked = {name: (corpus.sample(questions, size), pages) for name, (questions, pages) in webs.items()}
    return Material(corpus.sample(corpus.annotated(data), size), corpus.probes(data), asked)


def measure(extractors: Mapping[str, scoring.Extractor], given: Material) -> list[Row]:
    """One row for each extractor; CPU is a multiple of what the first one took."""
    words = scoring.words_in_turn(list(extractors.values()), given.pages)
    return [
        Row(
            name,
            own,
            scoring.structure(extractor, given.probes),
            {web: scoring.survival(extractor, *asked) for web, asked in given.webs.items()},
            own.cpu / words[0].cpu,
        )
        for (name, extractor), own in zip(extractors.items(), words, strict=True)
    ]


def table(rows: Sequence[Row]) -> str:
    """The three measures as Markdown tables."""
    first = ["| | F1 | P | R | " + " | ".join(TYPES) + " | CPU |", "|---" * (5 + len(TYPES)) + "|"]
    for row in rows:
        figures = [*(row.words.mean(column=c) for c in (2, 0, 1)), *map(row.words.mean, TYPES)]
        first.append(f"| {row.name} | " + " | ".join(f"{figure:.3f}" for figure in figures) + f" | {row.times:.1f}x |")
    second = ["| documentation | " + " | ".join(scoring.KINDS) + " | word F1 |", "|---" * (2 + len(scoring.KINDS)) + "|"]
    for row in rows:
        kept = [f"{row.structure.kept[kind]}/{row.structure.asked[kind]}" for kind in scoring.KINDS]
        second.append(f"| {row.name} | " + " | ".join(kept) + f" | {row.structure.words:.3f} |")
    third = ["| answers kept, tokens a page | " + " | ".join(corpus.WEBS) + " |", "|---" * (1 + len(corpus.WEBS)) + "|"]
    for row in rows:
        cells = [f"{s.kept}/{s.asked}, {s.tokens:,.0f}" for s in row.survival.values()]
        third.append(f"| {row.name} | " + " | ".join(cells) + " |")
    return "\n\n".join("\n".join(part) for part in (first, second, third))


def below(row: Row, floors: Mapping[str, float], *, whole: bool) -> list[str]:
    """What fell under its floor, or cost more than it may. Types of page are judged over all pages only."""
    found = []
    for kind in ("all", *TYPES) if whole else ("all",):
        mean = row.words.mean(kind)
        allowed = floors[kind] - (0 if whole else DEVIATIONS * _error([score[2] for score in row.words.rows[kind]]))
        if mean < allowed:
            found.append(f"{kind} {mean:.3f} < {allowed:.3f}")
    shares = {kind: row.structure.share(kind) for kind in scoring.KINDS} | {"word F1": row.structure.words}
    found += [f"{kind} of documentation {share:.3f} < {floors[kind]}" for kind, share in shares.items() if share < floors[kind]]
    for web, survival in row.survival.items():
        if survival.kept < math.floor(floors["answers"] * survival.asked):
            found.append(f"answers of {web} {survival.kept}/{survival.asked} < {floors['answers']}")
    most = floors["cpu"] * (1 if whole else SAMPLE_COST)
    return found + ([f"CPU {row.times:.1f}x > {most:.1f}x"] if row.times > most else [])


def _error(values: Sequence[float]) -> float:
    """The standard error of a mean."""
    mean = sum(values) / max(1, len(values))
    return math.sqrt(sum((value - mean) ** 2 for value in values)) / max(1, len(values))


def save(text: str, file: Path = RESULTS, mark: str = "table") -> None:
    """Put the table between its two marks."""
    old = file.read_text(encoding="utf-8")
    new = re.sub(rf"(<!-- {mark} -->\n).*?(\n<!-- end -->)", lambda found: found[1] + text + found[2], old, flags=re.DOTALL)
    file.write_text(new, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=corpus.DATA)
    parser.add_argument("--sample", type=int, default=0, help="so many pages and questions of each kind")
    parser.add_argument("--peers", action="store_true", help="also trafilatura and readability-lxml, in .venv-extractors")
    parser.add_argument("--save", action="store_true", help="write the table into evals/extraction.md")
    options = parser.parse_args()
    if (missing := corpus.missing(options.data)) or which("zstd") is None:
        print(f"extraction: skipped, {' and '.join(missing) or 'the program zstd'} is not there")
        return 0
    given = material(options.data, options.sample)
    others = peers.installed() if options.peers else {}
    to_markdown(given.pages[0].html, "")  # what is read once is not the cost of a page
    rows = measure({"resiliparse": peers.resiliparse_text, "nexi": to_markdown, **others}, given)
    print(table(rows))
    if options.save:
        save(table(rows))
    failures = below(rows[1], json.loads(FLOORS.read_text(encoding="utf-8")), whole=not options.sample)
    for failure in failures:
        print(f"below the floor: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
