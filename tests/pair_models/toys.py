"""A quiz in small, and a judge that knows its answers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nexi.checking.quiz import Quiz
from nexi.types import Message, Reply, Usage

LABELS = ["supported", "not_supported", "supported", "contradicted"] * 5
TOY_QUIZ = Quiz.parse(
    json.dumps(
        {
            "version": 1,
            "pairs": [
                {
                    "id": f"q{n}",
                    "kind": "order",
                    "premise": f"The bridge was opened in {1800 + n}.",
                    "hypothesis": f"The bridge was opened in {1800 + n + 50 * (label != 'supported')}.",
                    "label": label,
                }
                for n, label in enumerate(LABELS)
            ],
        }
    )
)


def judge_years(messages: Sequence[Message], wrong: int = 0) -> Reply:
    """What a judge replies that compares years, and mistakes the first `wrong` items of a request."""
    entries = []
    for n, item in enumerate(messages[1].content.split("\n\n"), 1):
        *passages, claim = [json.loads(line.partition(": ")[2]) for line in item.splitlines()[1:]]
        supported = any(claim == passage for passage in passages) is (n > wrong)
        entries.append({"n": n, "differs": "", "verdict": "supported" if supported else "not_supported", "sure": 90})
    return Reply(json.dumps({"items": entries}), (), Usage(800, 200, cost=0.0001), "stop")
