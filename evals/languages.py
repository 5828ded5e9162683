"""How well sentences are checked in twelve languages other than English: true ones, and ones with a planted error.

    python -m evals.languages [--save] [--keep NAME] [--show]

`languages.jsonl` has a short text for each language, five sentences that it says in its own or nearly its own words, and five
in which a number, a date, a name or a negation was changed, written by hand. The figures of a run that was kept under a name
stand beside today's, so that no language falls behind what it had.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from nexi.checking.pages import prepare
from nexi.checking.rules import check_answer

HERE = Path(__file__).parent
SENTENCES, KEPT_RUNS, TABLE = HERE / "languages.jsonl", HERE / "languages-runs.json", HERE / "languages.md"
KEPT = ("found", "supported")
Figures = dict[str, tuple[int, int, int]]  # by language: true sentences kept, planted ones that passed, of so many each


def is_kept(sentence: str, page: str, show: bool = False) -> bool:
    """Whether every part of a sentence is found in a page."""
    cited = f"{sentence.rstrip('.。')} [1]{sentence[-1]}"
    claims = check_answer(cited, {1: prepare(page, "http://page.test/")}).checked
    if show:
        print(f"{[claim.verdict.value for claim in claims]} {cited} {[claim.reason for claim in claims]}")
    return bool(claims) and all(claim.verdict.value in KEPT for claim in claims)


def measure(show: bool = False) -> Figures:
    """Every sentence of every language."""
    figures: Figures = {}
    for line in SENTENCES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        kept = sum(is_kept(sentence, row["page"], show) for sentence in row["true"])
        passed = sum(is_kept(sentence, row["page"], show) for sentence in row["planted"])
        figures[row["language"]] = (kept, passed, len(row["true"]))
    return figures


def render(runs: dict[str, Figures]) -> list[str]:
    """A row for each language and one for all; a pair of columns for each run."""
    lines = [
        "| language | " + " | ".join(f"{name}: true kept | {name}: planted passed" for name in runs) + " |",
        "|---|" + "---:|---:|" * len(runs),
    ]
    for language in [*next(iter(runs.values())), "all"]:
        cells = [_add_up(figures) if language == "all" else figures[language] for figures in runs.values()]
        lines.append(f"| {language} | " + " | ".join(f"{kept} of {n} | {passed} of {n}" for kept, passed, n in cells) + " |")
    return lines


def _add_up(figures: Figures) -> tuple[int, int, int]:
    kept, passed, number = (sum(column) for column in zip(*figures.values(), strict=True))
    return kept, passed, number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    parser.add_argument("--keep", default="", metavar="NAME", help="keep the figures under a name beside later ones")
    parser.add_argument("--show", action="store_true", help="print every sentence with its verdict")
    options = parser.parse_args()
    kept: dict[str, Figures] = json.loads(KEPT_RUNS.read_text(encoding="utf-8")) if KEPT_RUNS.exists() else {}
    figures = measure(options.show)
    if options.keep:
        kept[options.keep] = figures
        KEPT_RUNS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    lines = render({**kept, "now": figures})
    print("\n".join(lines))
    if options.save:
        TABLE.write_text(
            '# Other languages\n\n`python -m evals.languages --save`; "before" is the checker of commit b4e072a.\n\n'
            + "\n".join(lines)
            + "\n",
            encoding="utf-8",
        )
    if "before" in kept:
        (true, passed, _), (true_before, passed_before, _) = _add_up(figures), _add_up(kept["before"])
        return int(true < true_before or passed > passed_before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
