"""The eval of a model of your own: rows are made, kept and merged, and a server that answers is measured end to end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from evals import local_model
from evals.local_model import Outcome, Pair
from nexi.config import Config
from tests.stub import serving

GOOD = Outcome(True, True, 10, 400, 1, 2.0)
BAD = Outcome(False, True, 57, 0, 0, 1.0, is_replaced=True, is_malformed=True)


def test_a_row_shows_a_model_beside_the_built_in_one() -> None:
    rows = local_model.rows("m", [Pair("dev", "a", GOOD, BAD), Pair("dev", "b", BAD, GOOD), Pair("multi", "c", GOOD, GOOD)])
    assert rows == [
        "| m | dev | 2 | 50.0 | 50.0 | 100.0 | 100.0 | 33.5 | 33.5 | 200.0 | 400 | 0.5 | 1.5 | 1 | 1 |",
        "| m | multi | 1 | 100.0 | 100.0 | 100.0 | 100.0 | 10.0 | 10.0 | 400.0 | 400 | 1.0 | 2.0 | 0 | 0 |",
    ]


def test_new_rows_replace_those_of_the_same_model_and_web() -> None:
    saved = local_model.table(["| a | dev | 1 |", "| b | dev | 2 |"])
    assert local_model.merge_rows(saved, ["| a | dev | 3 |"]) == ["| b | dev | 2 |", "| a | dev | 3 |"]


def test_a_model_behind_a_server_is_measured_once_and_kept(tmp_path: Path) -> None:
    url, asked = "http://birds.test/owl", list[dict[str, Any]]()
    html = "<title>Owl</title><h1>Owl</h1><p>The owl hunts voles by night.</p><p>Owls are birds of many forests.</p>"
    question = {"id": "q", "question": "When does the owl hunt voles?", "answers": ["by night"], "gold_urls": [url]}
    (tmp_path / "pages.jsonl").write_text(json.dumps({"url": url, "title": "Owl", "html": html}) + "\n", encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text(json.dumps({**question, "kind": "single"}) + "\n", encoding="utf-8")

    def complete(body: dict[str, Any]) -> tuple[int, Any]:
        asked.append(body)
        message = {"role": "assistant", "content": "The owl hunts voles by night [1]."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        return 200, {"id": "1", "object": "chat.completion", "model": "owl-1b", "choices": [choice], "usage": usage}

    kept = tmp_path / "kept.jsonl"
    with serving({"POST /v1/chat/completions": complete}) as port:
        config = Config(base_url=f"http://127.0.0.1:{port}/v1", model="owl-1b", stream=False, page_cache=False, knowledge=False)
        for _ in range(2):
            (pair,) = asyncio.run(local_model.measure(config, {"dev": tmp_path}, {"dev": 1}, kept))
    assert len(asked) == 1
    assert (pair.model.right, pair.model.tokens, pair.model.calls, pair.model.text) == (
        True,
        110,
        1,
        "The owl hunts voles by night [1].",
    )
    assert (pair.built_in.right, pair.built_in.tokens) == (True, 0)
    assert local_model.read_kept(kept) == [pair]
