"""What the check costs: calls, tokens and the time to the first sentence, for answers in which all is true.

    python -m evals.check_cost [--sample N] [--save]

A model on loopback opens the pages of an answer, streams the answer of a good writer at the speed of a fast service, and as a
judge supports every sentence (`../shared/data/proof/fluent-docs.jsonl`). Each answer is asked for with the judge and without.
The model's own time is what passes until the end of its first sentence has left the server; a reader's time, until the same
sentence is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from evals.fluent import SET, Row, load_pages
from evals.tables import render_table
from nexi.app import Nexi, RunRequest
from nexi.app.pair_models import grade_book, judge_key
from nexi.checking.quiz import Grade, packaged_quiz
from nexi.config import Config
from nexi.events import TextDelta
from nexi.testing import FakeWeb
from rig.held_model import Handler, HeldModel, Server
from rig.scripted_llm import Script, content_text
from rig.serving import serve_in_thread

TABLE = Path(__file__).with_name("check_cost.md")
CHARS_PER_TOKEN = 4
PIECE_CHARS, PIECE_S, LATENCY_S = 24, 0.025, 0.3  # about 240 tokens a second
MAX_CALLS, MAX_TOKENS_RATIO, MAX_TIME_RATIO = 1, 1.5, 1.05
_SENTENCE = re.compile(r"^Sentence (\d+): ", re.MULTILINE)
_FIRST = re.compile(r"\A.*?[.:!?](?= |\n|\Z)", re.DOTALL)


class Cost(Struct, frozen=True):
    """One answer: calls of the model, tokens in and out, and seconds to the first sentence, sent and shown."""

    calls: int
    tokens: int
    sent_s: float
    shown_s: float


class Writer(Script):
    """Reads the pages of one answer, writes it, and supports what it is asked about."""

    def __init__(self, row: Row) -> None:
        super().__init__(read=0)
        self._row = row
        self.replies: list[str] = []

    def reply(self, req: dict[str, Any]) -> tuple[str | None, list[tuple[str, dict[str, Any]]]]:
        text, calls = self._choose(req)
        self.replies.append((text or "") + json.dumps([given for _, given in calls]))
        return text, calls

    def _choose(self, req: dict[str, Any]) -> tuple[str | None, list[tuple[str, dict[str, Any]]]]:
        task = content_text(req["messages"][-1])
        if numbers := _SENTENCE.findall(task):
            items = [{"n": int(n), "passages": [1], "differs": "", "verdict": "supported"} for n in numbers]
            return json.dumps({"items": items}), []
        if not req.get("tools"):
            return f"{task[:600]}", []  # the summary of a page
        if any(message["role"] == "tool" for message in req["messages"]):
            return None, [("final_answer", {"answer": self._row["answer"].strip()})]
        return None, [("web_get", {"urls": [page["url"] for page in self._row["pages"]]})]


class TimedModel(HeldModel):
    """Writes at a steady pace and notes when the first sentence of the answer has left it."""

    def __init__(self, script: Writer, answer: str) -> None:
        super().__init__(script, piece=PIECE_CHARS, latency_s=LATENCY_S)
        self.first_sentence, self.sent_at = first_sentence(answer), 0.0
        self._arguments = ""

    def note(self, delta: Mapping[str, Any]) -> None:
        calls = delta.get("tool_calls") or [{}]
        self._arguments += calls[0].get("function", {}).get("arguments", "")
        if not self.sent_at and json.dumps(self.first_sentence)[1:-1] in self._arguments:
            self.sent_at = time.perf_counter()


class TimedHandler(Handler):
    model: TimedModel

    def _delta(self, delta: dict[str, Any], finish: str | None = None, **more: object) -> None:
        time.sleep(PIECE_S)
        super()._delta(delta, finish, **more)
        self.model.note(delta)


def first_sentence(text: str) -> str:
    match = _FIRST.match(text)
    return match[0] if match else text


async def measure(row: Row, texts: Mapping[str, str], *, judged: bool) -> Cost:
    answer = row["answer"].strip()
    writer = Writer(row)
    model = TimedModel(writer, answer)
    server = Server(("127.0.0.1", 0), type("BoundHandler", (TimedHandler,), {"model": model}))
    web = FakeWeb({page["url"]: texts[page["url"]] for page in row["pages"]})
    question = f"{row['question']} {' '.join(page['url'] for page in row['pages'])}"
    with tempfile.TemporaryDirectory() as home, serve_in_thread(server) as root:
        config = Config(
            home=Path(home), base_url=f"{root}/v1", model="writer", max_context=128_000, knowledge=False, verify_judge=judged
        )
        grade_book(config).put(judge_key(config, packaged_quiz()), Grade(0.95, 0.95, 0.05, 0.5, pairs=24))
        shown, shown_at = "", 0.0
        async with Nexi(config, backends=[web], fetchers=[web]) as nexi:
            started = time.perf_counter()
            async with nexi.run(RunRequest(question)) as run:
                async for event in run:
                    if isinstance(event, TextDelta):
                        shown += event.text
                        if not shown_at and len(shown) >= len(model.first_sentence):
                            shown_at = time.perf_counter()
                run.result()
    messages = sum(len(content_text(m)) for request in model.requests for m in request["messages"])
    tools = sum(len(json.dumps(request.get("tools") or "")) for request in model.requests)
    tokens = (messages + tools + sum(map(len, writer.replies))) // CHARS_PER_TOKEN
    return Cost(len(model.requests), tokens, model.sent_at - started, shown_at - started)


async def measure_all(rows: Sequence[Row], texts: Mapping[str, str]) -> list[tuple[Cost, Cost]]:
    return [(await measure(row, texts, judged=False), await measure(row, texts, judged=True)) for row in rows]


def summarise(costs: Sequence[tuple[Cost, Cost]]) -> dict[str, float]:
    return {
        "calls": max(judged.calls - plain.calls for plain, judged in costs),
        "mean ratio": statistics.mean(judged.tokens / plain.tokens for plain, judged in costs),
        "most ratio": max(judged.tokens / plain.tokens for plain, judged in costs),
        "time": statistics.median(judged.shown_s / judged.sent_s for _, judged in costs),
        "most time": max(judged.shown_s / judged.sent_s for _, judged in costs),
    }


def render(figures: Mapping[str, float], answers: int) -> str:
    rows = [
        ("calls of the model for the check, at most", f"{figures['calls']:.0f}", f"{MAX_CALLS}"),
        ("tokens with the check, mean", f"{figures['mean ratio']:.2f}x", f"{MAX_TOKENS_RATIO}x"),
        ("tokens with the check, most", f"{figures['most ratio']:.2f}x", ""),
        ("time to the first sentence, median, of the model's own", f"{figures['time']:.3f}x", f"{MAX_TIME_RATIO}x"),
        ("time to the first sentence, most", f"{figures['most time']:.3f}x", ""),
    ]
    return (
        "# What the check costs\n\n"
        f"Written by `python -m evals.check_cost --save`: {answers} true answers over the docs mini-web, streamed by a\n"
        "model on loopback that reads their pages first. Tokens are characters by four; the test of a judge, once for a\n"
        "model, is left out.\n\n"
        f"{render_table(('measure', 'figure', 'goal'), rows)}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=0, help="only the first N answers")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    rows = [json.loads(line) for line in SET.read_text(encoding="utf-8").splitlines()][: options.sample or None]
    figures = summarise(asyncio.run(measure_all(rows, load_pages(rows))))
    table = render(figures, len(rows))
    print(table)
    if options.save:
        TABLE.write_text(table, encoding="utf-8")
    goals = {"calls": MAX_CALLS, "mean ratio": MAX_TOKENS_RATIO, "time": MAX_TIME_RATIO}
    missed = [name for name, goal in goals.items() if figures[name] > goal]
    sys.exit(f"above the goal: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
