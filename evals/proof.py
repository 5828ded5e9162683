"""How well sentences are checked: planted errors caught, true sentences passed, each with its interval.

    python -m evals.proof [--data FOLDER] [--each N] [--part held-out|development] [--sample] [--save] [--show CLASS]

Claims are made by `evals.planted` from the three mini-webs; pages are split by their address into a development and a held-out
part, and the held-out part is what is reported. Fails below the floors in `proof-floors.json`. Without the data it says so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import sys
import tarfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from evals.planted import Case, Page, cases, read_page
from nexi.citations import drop_unknown
from nexi.extract import to_markdown
from nexi.proof import Snapshot, check_answer, prepare
from nexi.types import Claim, Verdict

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "miniweb"
FLOORS = Path(__file__).with_name("proof-floors.json")
TABLE = Path(__file__).with_name("proof.md")
SETS = ("dev", "multi", "docs")
FACTS = ("swapped number", "swapped date", "number (lie)", "date (lie)")
Z = 1.96


def pages_of(archive: Path, part: str, most: int) -> Iterator[Page]:
    """Pages of one mini-web as nexi stores them, only those of a part, at most so many."""
    with tarfile.open(archive) as packed:
        member = next(m for m in packed if m.name.endswith("pages.jsonl"))
        file = packed.extractfile(member)
        records = [json.loads(line) for line in file] if file else []
    chosen = [r for r in records if (_hash(r["url"]) % 2 == 0) == (part == "development")]
    chosen.sort(key=lambda r: _hash(r["url"] + "order"))
    for record in chosen[:most]:
        yield read_page(record["url"], record["title"], to_markdown(record["html"], record["url"]))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def interval(hits: int, n: int) -> tuple[float, float]:
    """Wilson's interval at 95 %."""
    if not n:
        return 0.0, 1.0
    share, z = hits / n, Z * Z
    middle = (share + z / (2 * n)) / (1 + z / n)
    half = Z * math.sqrt(share * (1 - share) / n + z / (4 * n * n)) / (1 + z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


class Shelf:
    """Prepared pages, each read once."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._texts = {p.url: p.text for p in pages}
        self._ready: dict[str, Snapshot] = {}

    def snapshot(self, url: str) -> Snapshot:
        if url not in self._ready:
            self._ready[url] = prepare(self._texts[url], url)
        return self._ready[url]


def check(case: Case, shelf: Shelf) -> tuple[bool, list[Claim]]:
    """Whether every sentence of a case passes, and what was found; markers that name no page are dropped first."""
    text, _ = drop_unknown(case.text, set(case.pages))
    claims = list(check_answer(text, {n: shelf.snapshot(u) for n, u in case.pages.items()}).checked)
    return bool(claims) and all(c.verdict is Verdict.SUPPORTED for c in claims), claims


def run(part: str, each: int, most: int, data: Path, show: str = "") -> dict[str, tuple[bool, int, int]]:
    """For each class: whether it is true, how many cases, how many right."""
    rows: dict[str, tuple[bool, int, int]] = defaultdict(lambda: (True, 0, 0))
    for name in SETS:
        pages = list(pages_of(data / f"{name}.tar.gz", part, most))
        shelf = Shelf(pages)
        for case in cases(pages, random.Random(_hash(name + part)), each):
            passed, claims = check(case, shelf)
            right = passed == case.true
            _, n, hits = rows[case.kind]
            rows[case.kind] = (case.true, n + 1, hits + right)
            if show and not right and show in case.kind:
                _explain(case, claims)
    return dict(rows)


def _explain(case: Case, claims: list[Claim]) -> None:
    print(f"--- {case.kind}\n  case:   {case.text}\n  source: {case.made_from}  {list(case.pages.values())}")
    for claim in claims:
        for e in claim.evidence:
            print(f"  [{e.number}] {e.verdict} {e.presence} {e.reason}\n      {e.span[:300]!r}")


def figures(rows: dict[str, tuple[bool, int, int]]) -> dict[str, tuple[int, int]]:
    """The four figures with floors, as (hits, n)."""
    true_n = sum(n for true, n, _ in rows.values() if true)
    true_hits = sum(hits for true, _, hits in rows.values() if true)
    passed_wrong = sum(n - hits for true, n, hits in rows.values() if not true)
    facts = [row for kind, row in rows.items() if kind.startswith(FACTS)]
    invented = rows.get("invented source", (False, 0, 0))
    return {
        "precision of supported": (true_hits, true_hits + passed_wrong),
        "recall of true sentences": (true_hits, true_n),
        "swapped numbers and dates caught": (sum(h for _, _, h in facts), sum(n for _, n, _ in facts)),
        "invented sources removed": (invented[2], invented[1]),
    }


def table(rows: dict[str, tuple[bool, int, int]]) -> Iterator[str]:
    yield "| class | truth | n | right | 95 % interval |\n|---|---|---:|---:|---|"
    for kind, (true, n, hits) in rows.items():
        yield f"| {kind} | {'true' if true else 'planted'} | {n} | {_share(hits, n)} | {_range(hits, n)} |"
    yield "\n| figure | n | value | 95 % interval |\n|---|---:|---:|---|"
    for name, (hits, n) in figures(rows).items():
        yield f"| {name} | {n} | {_share(hits, n)} | {_range(hits, n)} |"


def _share(hits: int, n: int) -> str:
    return f"{100 * hits / n:.1f} %" if n else "-"


def _range(hits: int, n: int) -> str:
    low, high = interval(hits, n)
    return f"{100 * low:.1f} to {100 * high:.1f}"


def below(rows: dict[str, tuple[bool, int, int]], floors: dict[str, float]) -> list[str]:
    made = figures(rows)
    return [
        f"{name}: {_share(*made[name])} < {least} %"
        for name, least in floors.items()
        if made[name][1] and 100 * made[name][0] / made[name][1] < least
    ]


def by_hand(data: Path) -> Iterator[str]:
    """The tables of the sentences written by hand, each half on its own."""
    from evals.redteam import judge
    from evals.redteam.__main__ import rows as judged

    yield "\n## Sentences written by hand\n"
    yield "`python -m evals.redteam`: 550 sentences about 14 pages of our own and others of the mini-webs, made before the"
    yield "checker was read, many harder than what a script plants: roles exchanged, doubts left out, causes put in. What went"
    yield "wrong in the development half was looked at and mended; the held-out half was not looked at, and shows how little of"
    yield "that carries. The targets (98, 92 and 97 %) are reached on planted errors and not yet here: read them together."
    for part in ("held-out", "development"):
        yield f"\n### {part}\n"
        yield from table(judged(judge(data, part)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--each", type=int, default=100, help="cases of a class from each mini-web")
    parser.add_argument("--pages", type=int, default=600, help="pages of each mini-web")
    parser.add_argument("--part", choices=("held-out", "development"), default="held-out")
    parser.add_argument("--sample", action="store_true", help="fewer cases and pages: under a minute")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    parser.add_argument("--show", default="", help="print what went wrong in classes with this in their name")
    options = parser.parse_args()
    if not all((options.data / f"{name}.tar.gz").exists() for name in SETS):
        print(f"proof: skipped, no mini-webs in {options.data.name}")
        return 0
    each, most = (20, 150) if options.sample else (options.each, options.pages)
    start = time.process_time()
    rows = run(options.part, each, most, options.data, options.show)
    lines = list(table(rows))
    print("\n".join(lines))
    print(f"\n{sum(n for _, n, _ in rows.values())} cases, {options.part} part, {time.process_time() - start:.0f} s CPU")
    if options.save:
        head = f"# Checking sentences\n\n`python -m evals.proof --each {each} --pages {most} --save`: {options.part} part.\n\n"
        TABLE.write_text(head + "\n".join([*lines, *by_hand(options.data)]) + "\n", encoding="utf-8")
    failures = below(rows, json.loads(FLOORS.read_text(encoding="utf-8")))
    for failure in failures:
        print(f"below the floor: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
