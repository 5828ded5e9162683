"""Documents that conflict, are ambiguous or wrong: every right answer and no wrong one, and disagreement where there is one.

    python -m evals.ramdocs [--half 1] [--sample 40] [--show] [--save]

Each document of a question is a file without a title. A right answer counts where the text has it, case and space ignored; a
wrong one where it stands outside the lines that report a disagreement, because those say that a value is disputed. What stands
after "Other pages differ, or speak of other things" is part of the answer, and no disagreement that counts as shown. Rules were
written with the first half of the rows (`--half 0`) in view; totals of the second, and what was shown there without reason,
were seen when one of several rules was chosen, so that neither half is held out. Beside nexi stands the plainest method: of
each document the sentence that is nearest to the question by the reading model. Fails where a share falls below its floor; a
sample has none.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evals.answers import DATA
from evals.labelled import read_rows
from evals.own_documents import ask_documents
from nexi.app.factory import compare_texts
from nexi.llm.extractive.passages import read_sentences
from nexi.types import Answer

RESULTS = Path(__file__).resolve().parent / "ramdocs.md"
# The least and the most per cent of each half.
FLOORS = {
    "all right, none wrong": (43.0, 100.0),
    "disagreement shown, with misinformation": (37.0, 100.0),
    "disagreement shown, without misinformation": (0.0, 8.0),
}
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


def quote_nearest(row: dict[str, Any]) -> Answer:
    """Of each document the sentence that is nearest to the question."""
    quotes = []
    for document in row["documents"]:
        sentences = [sentence.text for sentence in read_sentences(document["text"])]
        nearness = compare_texts(row["question"], sentences) or [0.0] * len(sentences)
        quotes += [max(zip(nearness, sentences, strict=True))[1]] if sentences else []
    return Answer("\n".join(quotes))


def count_scores(scores: Iterable[dict[str, bool]]) -> dict[str, tuple[int, int]]:
    """For each figure, in how many rows it holds and how many have it."""
    hits: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for score in scores:
        hits.update(name for name, is_so in score.items() if is_so)
        totals.update(score.keys())
    return {name: (hits[name], total) for name, total in totals.items()}


def measure_half(half: int, options: argparse.Namespace) -> list[tuple[str, int, int]]:
    """The figures of one half of the rows, with those of the plainest method."""
    rows: list[dict[str, Any]] = list(read_rows(FILE))[half::2]
    random.Random(7).shuffle(rows)
    rows = rows[: options.sample or None]
    scores = []
    for row in rows:
        files = {f"document-{n}.txt": document["text"] for n, document in enumerate(row["documents"], 1)}
        answer = ask_documents(files, row["question"])
        scores.append(score_row(row, answer if isinstance(answer, Answer) else None))
        if options.show and not scores[-1]["all right, none wrong"]:
            text = answer.text if isinstance(answer, Answer) else str(answer)
            print(f"{row['question']} {row['gold_answers']} not {row['wrong_answers']}: {text}\n", file=sys.stderr)
    plain = count_scores(score_row(row, quote_nearest(row)) for row in rows)
    figures = [(name, *counts) for name, counts in count_scores(scores).items()]
    return [*figures, *((f"{name}: a sentence of each document", *plain[name]) for name in list(plain)[:3])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", type=int, choices=(0, 1), action="append", help="the second where not given")
    parser.add_argument("--sample", type=int, default=0, help="only so many rows, always the same ones")
    parser.add_argument("--show", action="store_true", help="print the answers that are not right")
    parser.add_argument("--save", action="store_true", help="write evals/ramdocs.md")
    options = parser.parse_args()
    if not FILE.exists():
        print("the documents that conflict are not there")
        return 0
    lines, low = ["| half | what | rows | of | % |", "|---|---|---|---|---|"], []
    for half in (0, 1) if options.save else options.half or (1,):
        for name, hits, total in measure_half(half, options):
            percent = 100 * hits / total
            lines.append(f"| {half} | {name} | {hits} | {total} | {percent:.1f} |")
            least, most = FLOORS.get(name, (0.0, 100.0))
            low += [] if options.sample or least <= percent <= most else [f"half {half}, {name}: {percent:.1f} %"]
    print("\n".join(lines), *low, sep="\n")
    if options.save:
        head = "# Documents that conflict\n\nMade by `python -m evals.ramdocs --save`; the file has the recipe.\n\n"
        RESULTS.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
