"""How well sentences are checked: on pairs labelled by people, on sentences written by hand, and on planted errors.

    python -m evals.proof [--only labelled|hand|planted] [--sample N] [--sealed] [--save] [--keep NAME] [--show CLASS]

People's labels come first, because only they tell whether a mark can be trusted: the public sets of `evals.labelled`, each by
itself, and `evals.redteam`. The same table has the word share of `evals.checkers`, ten lines that count shared words, and every
run that was kept under a name. Planted errors are made by `evals.planted` from the three mini-webs, of which the held-out pages
are reported; a script makes them, so they show that hard facts are compared, and say nothing about meaning.

Fails below the floors in `proof-floors.json`; a sample only shows that everything still works. Without the data it says so.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from evals import labelled, redteam
from evals.checkers import CHECKERS, Outcome, check_word_share, read_claims
from evals.mark_figures import save_mark_figures
from evals.planted import Case, Page, cases, read_page
from evals.redteam.pairs import HALVES, HERE, KINDS, read_pairs
from evals.scores import Judged, Score, below_floors, render_scores, score
from nexi.answers.citations import drop_unknown
from nexi.checking.pages import Snapshot, prepare
from nexi.checking.rules import check_answer
from nexi.extract.text import to_markdown
from nexi.types import Claim

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "miniweb"
FLOORS = Path(__file__).with_name("proof-floors.json")
KEPT_RUNS = Path(__file__).with_name("proof-runs.json")
TABLE = Path(__file__).with_name("proof.md")
SETS = ("dev", "multi", "docs")
SECTIONS = ("labelled", "hand", "planted")
FACTS = ("swapped number", "swapped date", "number (lie)", "date (lie)")
Z = 1.96
Rows = dict[tuple[str, str], Score]
Classes = dict[str, tuple[bool, int, int]]
T = TypeVar("T")


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


class SnapshotCache:
    """Pages, each prepared once."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._texts = {p.url: p.text for p in pages}
        self._ready: dict[str, Snapshot] = {}

    def text(self, url: str) -> str:
        return self._texts[url]

    def snapshot(self, url: str) -> Snapshot:
        if url not in self._ready:
            self._ready[url] = prepare(self._texts[url], url)
        return self._ready[url]


def check(case: Case, cache: SnapshotCache) -> tuple[bool, list[Claim]]:
    """Whether every sentence of a case is kept, and its claims; markers that name no page are dropped first."""
    text, _ = drop_unknown(case.text, set(case.pages))
    claims = list(check_answer(text, {n: cache.snapshot(u) for n, u in case.pages.items()}).checked)
    return read_claims(claims).kept, claims


def check_case_by_words(case: Case, cache: SnapshotCache) -> Outcome:
    """The word share of a case over the pages that it cites and that exist."""
    text, _ = drop_unknown(case.text, set(case.pages))
    cited = [cache.text(url) for number, url in case.pages.items() if f"[{number}]" in text]
    for number in case.pages:
        text = text.replace(f"[{number}]", "")
    return check_word_share(text, "\n\n".join(cited))


def run_planted(part: str, each: int, most: int, data: Path, show: str = "") -> tuple[Classes, Rows]:
    """For each class whether it is true, how many cases and how many right; and both checkers over all of them."""
    classes: Classes = defaultdict(lambda: (True, 0, 0))
    judged: dict[str, list[Judged]] = {name: [] for name in CHECKERS}
    cpu_s = dict.fromkeys(CHECKERS, 0.0)
    for name in SETS:
        pages = list(pages_of(data / f"{name}.tar.gz", part, most))
        cache = SnapshotCache(pages)
        for case in cases(pages, random.Random(_hash(name + part)), each):
            (kept, claims), taken = _time(partial(check, case, cache))
            judged["nexi"].append((case.true, read_claims(claims)))
            outcome, taken_by_words = _time(partial(check_case_by_words, case, cache))
            judged["word share"].append((case.true, outcome))
            cpu_s["nexi"] += taken
            cpu_s["word share"] += taken_by_words
            _, n, hits = classes[case.kind]
            classes[case.kind] = (case.true, n + 1, hits + (kept == case.true))
            if show and kept != case.true and show in case.kind:
                _explain(case, claims)
    return dict(classes), {("planted errors", name): score(judged[name], cpu_s[name]) for name in CHECKERS}


def run_labelled(data: Path, sample: int) -> Rows:
    """Every checker over every set of labelled pairs."""
    rows: Rows = {}
    for name, pairs in labelled.read_sets(data, sample).items():
        for checker, check_pair in CHECKERS.items():
            judged, cpu_s = _time(partial(judge_pairs, pairs, check_pair))
            rows[name, checker] = score(judged, cpu_s)
    return rows


def judge_pairs(pairs: Iterable[labelled.LabelledPair], check_pair: Callable[[str, str], Outcome]) -> list[Judged]:
    return [(pair.is_true, check_pair(pair.claim, pair.evidence)) for pair in pairs]


def judge_by_words(sentences: Iterable[Any], texts: Mapping[str, str]) -> list[Judged]:
    return [(sentence.true, check_word_share(sentence.text, texts[sentence.page])) for sentence in sentences]


def judge_by_hand(data: Path | None, part: str) -> list[Any]:
    return list(redteam.judge(data, part))


def run_by_hand(data: Path | None) -> Rows:
    """Both checkers over the sentences about whole pages, each half by itself."""
    rows: Rows = {}
    texts = redteam.texts(data)
    for part in ("held-out", "development"):
        proofs, cpu_s = _time(partial(judge_by_hand, data, part))
        rows[f"redteam {part}", "nexi"] = score([(s.true, read_claims(proof.checked)) for s, _, proof in proofs], cpu_s)
        by_words, cpu_s = _time(partial(judge_by_words, [s for s, _, _ in proofs], texts))
        rows[f"redteam {part}", "word share"] = score(by_words, cpu_s)
    return rows


def check_passages(pairs: Iterable[Any], check_pair: Callable[[str, str], Outcome]) -> list[Outcome]:
    return [check_pair(pair.claim, pair.passage) for pair in pairs]


def run_pairs(sealed: bool, folder: Path = HERE) -> Rows:
    """Every checker over the pairs about short passages; the kinds of the sealed half stay unread, so only its sum is shown."""
    rows: Rows = {}
    for half in HALVES if sealed else HALVES[:1]:
        pairs = read_pairs(half, folder)
        for checker, check_pair in CHECKERS.items():
            outcomes, cpu_s = _time(partial(check_passages, pairs, check_pair))
            rows[f"pairs {half}", checker] = score([(p.label, o) for p, o in zip(pairs, outcomes, strict=True)], cpu_s)
            for kind in KINDS if half == "open" else ():
                judged = [(p.label, o) for p, o in zip(pairs, outcomes, strict=True) if p.kind == kind]
                rows[f"pairs {half}, {kind}", checker] = score(judged, cpu_s * len(judged) / len(pairs))
    return rows


def _time(work: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    return work(), time.process_time() - start


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


def below(rows: Classes, floors: dict[str, float]) -> list[str]:
    made = figures(rows)
    return [
        f"{name}: {_share(*made[name])} < {least} %"
        for name, least in floors.items()
        if made[name][1] and 100 * made[name][0] / made[name][1] < least
    ]


def join_kept_runs(rows: Rows, file: Path = KEPT_RUNS) -> Rows:
    """The rows with those of kept runs of the same set and size before them."""
    joined: Rows = {}
    for (name, checker), current in rows.items():
        for run, kept in _read_kept_runs(file).items() if checker == "nexi" else ():
            if name in kept and kept[name]["pairs"] == current.pairs:
                joined[name, run] = Score(**cast("dict[str, Any]", kept[name]))
        joined[name, checker] = current
    return joined


def keep_run(rows: Rows, name: str, file: Path = KEPT_RUNS) -> None:
    """Keep nexi's rows under a name; rows of other sections of the same run stay."""
    runs = _read_kept_runs(file)
    runs.setdefault(name, {}).update({source: asdict(s) for (source, checker), s in rows.items() if checker == "nexi"})
    file.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")


def _read_kept_runs(file: Path) -> dict[str, dict[str, dict[str, float]]]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


LABELLED_TEXT = """
`attrib` (AttributionBench) and `begin` (BEGIN) are only ever measured; of the sets that may be trained on, the part is measured
that `evals/labelled.py` holds out. People labelled all but `conjnli`, whose claims were made by machine; "supported in part"
counts as not supported. Kept means that the mark says the text carries the claim. "Precision of contradicted" is the share of
the accused that people did not call supported, "true accused" the share of supported claims called contradicted. The word share
is ten lines of counting (`evals/checkers.py`). CPU is for one claim, its text prepared anew.
"""
HAND_TEXT = """
`redteam` is 550 sentences about whole pages, written before the checker was read (`python -m evals.redteam` lists the classes).
What went wrong in its development half was looked at and repaired; the held-out half was not looked at. `pairs` is 300 claims
about short passages, half of them lies of the kinds that rules of words let pass (`evals/redteam/pairs.py`).
"""
PLANTED_TEXT = """
Errors made by a script over held-out pages of the mini-webs.
"""


def render(scores: Rows, classes: Classes, heading: str) -> Iterator[str]:
    """The saved table: the figures of every section, then the classes of the planted errors."""
    yield heading
    for title, text, belongs in (
        ("Labelled pairs", LABELLED_TEXT, lambda name: name in labelled.SETS),
        ("Written by hand", HAND_TEXT, lambda name: name.startswith(("redteam", "pairs"))),
        ("Planted errors", PLANTED_TEXT, lambda name: name.startswith("planted")),
    ):
        part = {key: s for key, s in scores.items() if belongs(key[0])}
        if part:
            yield f"\n## {title}\n{text}"
            yield from render_scores(part)
    if classes:
        yield ""
        yield from table(classes)


def main() -> int:
    options = _parse_options()
    has_webs = all((options.data / f"{name}.tar.gz").exists() for name in SETS)
    has_pairs = (options.pairs / "measure.jsonl.zst").exists()
    for present, what in ((has_webs, "mini-webs"), (has_pairs, "labelled pairs")):
        if not present:
            print(f"proof: no {what} beside the project, their part is skipped")
    start = time.process_time()
    classes: dict[Any, Any] = {}
    rows: dict[Any, Score] = {}
    if has_pairs and "labelled" in options.only:
        rows |= run_labelled(options.pairs, options.sample)
    if "hand" in options.only:
        rows |= run_by_hand(options.data if has_webs else None)
        rows |= run_pairs(options.sealed)
    if has_webs and "planted" in options.only:
        each, most = (20, 150) if options.sample else (options.each, options.pages)
        classes, planted = run_planted(options.part, each, most, options.data, options.show)
        rows |= planted
    if options.keep:
        keep_run(rows, options.keep)
    lines = list(render(join_kept_runs(rows), classes, "# Checking sentences\n\n`python -m evals.proof --save`"))
    print("\n".join(lines[1:]))
    taken = time.process_time() - start
    checked = sum(s.pairs for (name, checker), s in rows.items() if checker == "nexi" and ", " not in name)
    print(f"\n{checked} claims, {taken:.0f} s CPU, {checked / max(taken, 0.001):.0f} claims a second")
    if options.save_figures or (options.save and not options.sample):
        save_mark_figures(rows)
    if options.save:
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return _report_failures(rows, classes, whole=not options.sample)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the mini-webs")
    parser.add_argument("--pairs", type=Path, default=labelled.DATA, help="folder of the labelled pairs")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="run this section; may be given again")
    parser.add_argument("--each", type=int, default=60, help="planted cases of a class from each mini-web")
    parser.add_argument("--pages", type=int, default=300, help="pages of each mini-web to plant errors in")
    parser.add_argument("--part", choices=("held-out", "development"), default="held-out")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N pairs of each set, and few planted errors")
    parser.add_argument("--sealed", action="store_true", help="also the half of the hand-written pairs that is not looked at")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}, and the figures that nexi shows")
    parser.add_argument("--save-figures", action="store_true", help="write the figures that nexi shows alone")
    parser.add_argument(
        "--keep", default="", metavar="NAME", help="keep the figures of this run under a name beside later ones"
    )
    parser.add_argument("--show", default="", help="print what went wrong in planted classes with this in their name")
    options = parser.parse_args()
    options.only = options.only or list(SECTIONS)
    return options


def _report_failures(rows: Rows, classes: Classes, whole: bool) -> int:
    floors = json.loads(FLOORS.read_text(encoding="utf-8"))
    failures = below(classes, floors["planted"]) if classes else []
    failures += below_floors(rows, floors["least"], floors["most"]) if whole else []
    for failure in failures:
        print(f"below the floor: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
