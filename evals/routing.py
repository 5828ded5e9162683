"""Which services are asked: 120 questions of 12 kinds, written before the router was, and 48 that were written after it.

    python -m evals.routing [--show] [--save]

A question counts when one of its right services is among the first two that are asked, and no more than four are asked. The
words that the router looks for were chosen with the 120 in view; the 48 show what it does with others, and nothing may be
added to the router for their sake. Ends with exit code 1 below the floors.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nexi.routing.route import MAX_SERVICES, Route, rate_kinds, route_query
from nexi.routing.table import SERVICES
from nexi.stores.embedders import E5Encoder
from nexi.types import Query

QUESTIONS = Path(__file__).with_name("routing_questions.jsonl")
TABLE = Path(__file__).with_name("routing.md")
WEIGHTS = Path(__file__).parents[1] / "nexi" / "routing" / "weights.json"
RIDGE = 0.3
FLOORS = {"before": 90.0, "after": 90.0, "last": 40.0}  # per cent


def route_of(question: str, meaning: Mapping[str, float]) -> Route:
    return route_query(
        Query(question),
        [name for name, service in SERVICES.items() if not (service.needs_url or service.needs_contact)],
        meaning,
    )


def read_meaning(questions: list[str]) -> list[Mapping[str, float]]:
    """The kinds by meaning, where the reading model is installed; nothing where it is not."""
    encoder = E5Encoder()
    return [rate_kinds(vector) for vector in encoder.encode(questions, query=True)]


def train(rows: list[dict[str, Any]]) -> None:
    """Fit a ridge regression on the questions that may be looked at, and write it where the router reads it."""
    seen = [row for row in rows if row["set"] != "last"]
    vectors = np.array(E5Encoder().encode([row["question"] for row in seen], query=True), dtype=float)
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    targets = np.eye(len(kinds))[[kinds.index(row["kind"]) for row in seen]] - 1 / len(kinds)
    mean = vectors.mean(0)
    centred = vectors - mean
    weights = np.linalg.solve(centred.T @ centred + RIDGE * np.eye(centred.shape[1]), centred.T @ targets)
    numbers = np.vstack([mean, weights.T])
    scale = float(np.abs(numbers).max() / 32_000)
    body = base64.b64encode((numbers / scale).round().astype("<i2").tobytes()).decode()
    data = {"kinds": kinds, "size": int(numbers.shape[1]), "scale": scale, "numbers": body}
    WEIGHTS.write_text(json.dumps(data) + "\n", encoding="utf-8")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--show", action="store_true", help="print the questions that go astray")
    options.add_argument("--save", action="store_true", help="write the table")
    options.add_argument("--train", action="store_true", help="make the weights anew first")
    options.add_argument("--words", action="store_true", help="by words alone, as without the reading model")
    given = options.parse_args()
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    right: dict[tuple[str, str], list[bool]] = {}
    most = 0
    if given.train:
        train(rows)
    questions = [row["question"] for row in rows]
    meanings = [{} for _ in rows] if given.words else read_meaning(questions)
    for row, meaning in zip(rows, meanings, strict=True):
        names = [choice.service for choice in route_of(row["question"], meaning).first]
        is_right = bool(set(names[:2]) & set(row["services"])) and len(names) <= MAX_SERVICES
        most = max(most, len(names))
        right.setdefault((row["kind"], row["set"]), []).append(is_right)
        if given.show and not is_right:
            print(f"{row['set']}, {row['kind']}: {row['question']}\n    {', '.join(names)}")
    kinds = dict.fromkeys(kind for kind, _ in right)
    every = {part: [mark for (_, where), marks in right.items() if where == part for mark in marks] for part in FLOORS}
    lines = ["| kind | before | after | last |", "|---|---|---|---|"]
    lines += [f"| {kind} | " + " | ".join(count(right[kind, part]) for part in FLOORS) + " |" for kind in kinds]
    lines += ["| all | " + " | ".join(f"{count(every[part])} ({share(every[part]):.1f} %)" for part in FLOORS) + " |"]
    lines += ["", f"At most {most} services were asked."]
    print("\n".join(lines))
    if given.save:
        head = "# Routing\n\nWhich services are asked (`python -m evals.routing`): a right one among the first two.\n\n"
        TABLE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return int(any(share(every[part]) < floor for part, floor in FLOORS.items()))


def count(marks: list[bool]) -> str:
    return f"{sum(marks)} of {len(marks)}"


def share(marks: list[bool]) -> float:
    return 100 * sum(marks) / max(1, len(marks))


if __name__ == "__main__":
    sys.exit(main())
