"""Documents that conflict, are ambiguous or wrong: every right answer and no wrong one, and disagreement where there is one.

    python -m evals.ramdocs [--half 1] [--sample 40] [--show]

Each document of a question is a file without a title. A right answer counts where the text has it, case and space ignored; a
wrong one where it stands outside the lines that report a disagreement, because those say that a value is disputed. Rules were
written with the first half of the rows (`--half 0`) in view.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from typing import Any

from evals.answers import DATA
from evals.labelled import read_rows
from evals.own_documents import ask_documents
from nexi.types import Answer

FILE = DATA.parent / "conflicts" / "ramdocs.jsonl.zst"
_DISPUTE = re.compile(r"^(?:- .*?: )?(?:Sources disagree|Older sources differ)\b.*$", re.MULTILINE)


def flatten(text: str) -> str:
    return " ".join(text.casefold().split())


def score_row(row: dict[str, Any], answer: Answer | None) -> dict[str, bool]:
    whole = answer.text if answer else ""
    own = flatten(_DISPUTE.sub("", whole))
    has_all = all(flatten(gold) in flatten(whole) for gold in row["gold_answers"])
    has_wrong = any(flatten(wrong) in own for wrong in row["wrong_answers"])
    has_misinformation = any(document["type"] == "misinfo" for document in row["documents"])
    shown = bool(answer and any(not conflict.is_settled for conflict in answer.conflicts))
    return {
        "all right ones": has_all,
        "a wrong one": has_wrong,
        "all right, none wrong": has_all and not has_wrong,
        "depends": bool(answer and answer.answered == "depends"),
        f"disagreement shown, {'with' if has_misinformation else 'without'} misinformation": shown,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", type=int, choices=(0, 1), default=1)
    parser.add_argument("--sample", type=int, default=0, help="only so many rows, always the same ones")
    parser.add_argument("--show", action="store_true", help="print the answers that are not right")
    options = parser.parse_args()
    if not FILE.exists():
        print("the documents that conflict are not there")
        return 0
    rows: list[dict[str, Any]] = list(read_rows(FILE))[options.half :: 2]
    random.Random(7).shuffle(rows)
    hits: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for row in rows[: options.sample or None]:
        files = {f"document-{n}.txt": document["text"] for n, document in enumerate(row["documents"], 1)}
        answer = ask_documents(files, row["question"])
        scores = score_row(row, answer if isinstance(answer, Answer) else None)
        hits.update(name for name, is_so in scores.items() if is_so)
        totals.update(scores.keys())
        if options.show and not scores["all right, none wrong"]:
            text = answer.text if isinstance(answer, Answer) else str(answer)
            print(f"{row['question']} {row['gold_answers']} not {row['wrong_answers']}: {text}\n", file=sys.stderr)
    print("| what | rows | of | % |", "|---|---|---|---|", sep="\n")
    for name, total in totals.items():
        print(f"| {name} | {hits[name]} | {total} | {100 * hits[name] / total:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
