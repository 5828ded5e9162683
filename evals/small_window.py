"""Research with a small context window on the multi-hop mini-web: does it end in a report with citations?

    python -m evals.small_window [--window 8000] [--sample 10] [--save] [--data DIR]

Two scripted models research the same questions. The plain one searches once and reads one batch. The eager one makes all four
gathering calls and then scrapes with the same list of URLs again and again, as weak models do. A report counts when the run
ends without an error and the report cites at least one page. Fewer than 9 in 10 end with exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.answers import DATA, ROOT, SEED, find_source, keep
from evals.research import WEB, report_on_all
from evals.tables import render_table
from rig import miniweb, scripted_llm
from rig.scripted_llm import Script, content_text

RESULTS = ROOT / "evals" / "small_window.md"
MIN_CITED_SHARE = 0.9
HEADS = ("model", "window", "asked", "cited reports", "pages", "verified %", "seconds", "failed")


class EagerScript(Script):
    """Uses every gathering call, and repeats one list of URLs for the handshake and all three batches."""

    def researcher(self, messages: list[dict]) -> tuple[str | None, list[tuple[str, dict]]]:
        users = [content_text(m) for m in messages if m.get("role") == "user"]
        task = next((text for text in users if not text.startswith("Researcher ")), "")
        results = [content_text(m) for m in messages if m.get("role") == "tool"]
        words = [w for w in re.findall(r"\w+", task) if len(w) > 3]
        queries = [task[:300], *(" ".join(words[n::3]) or task[:300] for n in range(3))]
        calls = [c["function"]["name"] for m in messages for c in m.get("tool_calls") or []]
        if calls.count("search") < len(queries) and "scrape" not in calls:
            return None, [("search", {"queries": [queries[calls.count("search")]]})]
        urls = list(dict.fromkeys(re.findall(r'"url": "(https?://[^"]+)"', "\n".join(results[: len(queries)]))))
        if urls and calls.count("scrape") < 4:
            return None, [("scrape", {"urls": urls[:8]})]
        pages = "\n".join(text for text in results if '"pages"' in text)
        return None, [("final_answer", {"answer": self.report(task, pages)})]


@dataclass(frozen=True)
class Row:
    """One model's figures; pages and seconds are means for one question."""

    model: str
    window: int
    asked: int
    cited: int
    pages: float
    verified: float
    seconds: float
    failed: int


def summary(model: str, window: int, replies: Sequence[Mapping[str, Any]]) -> Row:
    def mean(values: Sequence[float]) -> float:
        return sum(values) / max(1, len(values))

    return Row(
        model,
        window,
        len(replies),
        sum(bool(r.get("citations")) for r in replies),
        mean([len(r.get("fetched", ())) for r in replies]),
        100 * sum(r.get("verified", 0) for r in replies) / max(1, sum(r.get("checked", 0) for r in replies)),
        mean([r["seconds"] for r in replies]),
        sum("error" in r for r in replies),
    )


def table(rows: Sequence[Row]) -> str:
    return render_table(HEADS, (vars(row).values() for row in rows))


def save(rows: Sequence[Row]) -> None:
    RESULTS.write_text(
        "# Research with a small context window\n\n"
        f"Made by `python -m evals.small_window --window {rows[0].window} --sample {rows[0].asked} --save` on the multi-hop\n"
        "mini-web. The plain model searches once and reads one batch; the eager one uses all four gathering calls and repeats\n"
        "one list of URLs for the handshake and all three batches. Pages and seconds are means for one question.\n\n"
        + table(rows)
        + "\n",
        encoding="utf-8",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Research with a small context window.")
    parser.add_argument("--window", type=int, default=8000, help="max_context of the scripted model")
    parser.add_argument("--sample", type=int, default=10, help="research this many questions, always the same ones")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the web as a folder or a .tar.gz file")
    parser.add_argument("--save", action="store_true", help="write evals/small_window.md")
    args = parser.parse_args()
    source = find_source(args.data, WEB)
    if source is None:
        print(f"evals: the mini-web {WEB} is not in {args.data}; give its folder with --data")
        return 0
    questions = miniweb.read_jsonl(source, "questions.jsonl")
    questions = random.Random(SEED).sample(questions, min(args.sample, len(questions)))
    rows = []
    for name, script in (("plain", Script(3)), ("eager", EagerScript(3))):
        with miniweb.serve(source) as base_url, scripted_llm.serve(script) as root, tempfile.TemporaryDirectory() as home:
            model = {"model": "scripted", "base_url": f"{root}/v1", "max_context": args.window}
            replies = asyncio.run(report_on_all(base_url, Path(home), questions, "research", model))
        keep(f"small-window-{name}", replies)
        rows.append(summary(name, args.window, list(replies.values())))
        print(table(rows) if len(rows) == 1 else table(rows).splitlines()[-1], flush=True)
        for reply in replies.values():
            if "error" in reply:
                print(f"  {reply['id']}: {reply['error']}", file=sys.stderr)
    if args.save:
        save(rows)
    return 0 if all(row.cited >= MIN_CITED_SHARE * row.asked for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
