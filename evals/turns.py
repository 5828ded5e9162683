"""Turns of conversations that people labelled: unanswerable ones withheld, underspecified ones asked back, the rest answered.

    python -m evals.turns [--half 1] [--sample 40] [--show]

The passages of a turn are the only documents, beside a note about nothing; the earlier turns are the conversation. What
`answered` says is compared with the label. Rules were written with the first half of the conversations (`--half 0`) in view;
the floors hold for the second.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from typing import Any

from evals.answers import DATA
from evals.labelled import read_rows
from evals.own_documents import ask_documents
from nexi.types import Answer

NOTE = "# Note\n\nThis folder was opened on a Tuesday.\n"
WITHHELD = ("no", "")  # "" where there is only an error
FLOORS = {"UNANSWERABLE": 0.8, "UNDERSPECIFIED": 0.2, "ANSWERABLE": 0.0}


def read_turns(half: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = list(read_rows(DATA.parent / "turns" / "turns.jsonl.zst"))
    conversations = sorted({row["conversation_id"] for row in rows})[half::2]
    return [row for row in rows if row["conversation_id"] in set(conversations)]


def rate_turn(row: dict[str, Any]) -> str:
    """What `answered` says of the last turn."""
    texts = {f"passage-{n}.md": passage["text"] for n, passage in enumerate(row["contexts"], 1)}
    *earlier, last = [(turn["speaker"], turn["text"]) for turn in row["input"]]
    answer = ask_documents({"note.md": NOTE, **texts}, last[1], earlier)
    return answer.answered if isinstance(answer, Answer) else ""


def is_right(label: str, answered: str) -> bool:
    if label == "UNANSWERABLE":
        return answered in WITHHELD
    return answered == "depends" if label == "UNDERSPECIFIED" else answered in ("yes", "likely")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", type=int, choices=(0, 1), default=1)
    parser.add_argument("--sample", type=int, default=0, help="only so many turns, always the same ones")
    parser.add_argument("--show", action="store_true", help="print what is wrong")
    options = parser.parse_args()
    if not (DATA.parent / "turns").exists():
        print("the labelled turns are not there")
        return 0
    rows = read_turns(options.half)
    random.Random(7).shuffle(rows)
    counts: dict[str, Counter[str]] = {}
    for row in rows[: options.sample or None]:
        label = row["answerability"][0] if isinstance(row["answerability"], list) else row["answerability"]
        answered = rate_turn(row)
        counts.setdefault(label, Counter())[answered] += 1
        if options.show and not is_right(label, answered):
            print(f"{label} is {answered or 'an error'}: {row['input'][-1]['text'][:150]}", file=sys.stderr)
    print("| label | n | yes | likely | no | depends | error | right % |", "|---|---|---|---|---|---|---|---|", sep="\n")
    shares = {}
    for label, count in sorted(counts.items()):
        shares[label] = sum(n for answered, n in count.items() if is_right(label, answered)) / count.total()
        cells = [count[name] for name in ("yes", "likely", "no", "depends", "")]
        print(f"| {label} | {count.total()} | {' | '.join(map(str, cells))} | {100 * shares[label]:.1f} |")
    return int(any(shares[label] < floor for label, floor in FLOORS.items() if label in shares and not options.sample))


if __name__ == "__main__":
    sys.exit(main())
