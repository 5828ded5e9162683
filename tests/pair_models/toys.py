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
    """What a judge replies that compares years, and mistakes the first `wrong` sentences of a request."""
    lines = [line.partition(": ") for line in messages[1].content.splitlines()]
    passages = [json.loads(text) for head, _, text in lines if head.startswith("Passage ")]
    sentences = [json.loads(text) for head, _, text in lines if head.startswith("Sentence ")]
    entries = []
    for n, sentence in enumerate(sentences, 1):
        supported = (sentence in passages) is (n > wrong)
        entries.append({"n": n, "passages": [1], "differs": "", "verdict": "supported" if supported else "not_supported"})
    return Reply(json.dumps({"items": entries}), (), Usage(800, 200, cost=0.0001), "stop")
