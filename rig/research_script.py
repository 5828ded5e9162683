"""research_script - the scripted model taught to plan, research and judge, by rules that look at nothing but the request.

It has no knowledge of its own: tasks are the parts of the question, findings are sentences of the pages it was shown. Asked
the same it says the same, so what a run asks twice can be counted at its side.

  python -m rig.research_script --port 8892 [--latency-ms 300]

In tests: `with scripted_llm.serve(ResearchScript()) as root`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Sequence

from rig.scripted_llm import Script, Settings, best_sentences, content_text, make_server

Reply = tuple[str | None, list[tuple[str, dict]]]

_FINDING = re.compile(r"^- (.+ \[\d+\])\.?$", re.MULTILINE)


class ResearchScript(Script):
    """`rounds` of research; `batches` pages are scraped in as many calls; `asked` counts requests by their content."""

    def __init__(self, rounds: int = 2, complexity: int = 2, read: int = 3, batches: int = 1) -> None:
        super().__init__(read)
        self.rounds = rounds
        self.complexity = complexity
        self.batches = batches
        self.asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def reply(self, req: dict) -> Reply:
        messages = req.get("messages") or []
        with self._lock:
            self.asked[hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()] += 1
        rules = content_text(messages[0]) if messages else ""
        tools = {t["function"]["name"] for t in req.get("tools") or [] if t.get("function")}
        if rules.startswith("You coordinate"):
            asked = [content_text(m) for m in messages if "Question: " in content_text(m)]
            return self.planned(asked[-1] if asked else content_text(messages[-1])), []
        if rules.startswith("You lead"):
            return self.judged(rules, content_text(messages[-1])), []
        if "scrape" in tools:
            return self.researched(messages)
        if "scrape" in rules:
            return self.write_report(messages), []
        return super().reply(req)

    def planned(self, question: str) -> str:
        question = question.partition("Question: ")[2] or question
        parts = [p.strip(" ?.") for p in re.split(r",? and |[?;]", question) if len(p.strip()) > 3]
        wanted = {1: 2, 2: 3, 3: 5}[self.complexity]
        tasks = [f"{part}?" for part in (parts * wanted)[:wanted]]
        asides = ("", " (in figures)", " (in years)", " (in names)", " (in places)")
        return json.dumps({"complexity": self.complexity, "tasks": [t + a for t, a in zip(tasks, asides, strict=False)]})

    def judged(self, rules: str, reports: str) -> str:
        ended = int(re.findall(r"Round (\d+)", rules)[0])
        question = re.findall(r"The question: (.+)", rules)[0]
        if ended < self.rounds and '"delegate"' in rules:
            return json.dumps({"action": "delegate", "queries": [f"{question} (once more, round {ended})"]})
        found = list(dict.fromkeys(_FINDING.findall(reports)))
        return "\n".join([f"# {question.strip(' ?')}", "", *(f"- {line}." for line in found)])

    def researched(self, messages: Sequence[dict]) -> Reply:
        calls = [c["function"]["name"] for m in messages for c in m.get("tool_calls") or []]
        task = next(content_text(m) for m in reversed(messages) if m.get("role") == "user" and _is_task(m))
        if "search" not in calls:
            return None, [("search", {"queries": [re.sub(r"\(.*\)", "", task).strip()[:300]]})]
        results = [content_text(m) for m in messages if m.get("role") == "tool"]
        urls = list(dict.fromkeys(re.findall(r'"url": "(https?://[^"]+)"', results[0])))
        batch = calls.count("scrape")
        if urls and batch <= self.batches:
            start = max(0, batch - 1) * self.read
            return None, [("scrape", {"urls": urls[start : start + self.read] or urls[: self.read]})]
        return None, [("final_answer", {"answer": self.write_report(messages)})]

    def write_report(self, messages: Sequence[dict]) -> str:
        told = "\n".join(content_text(m) for m in messages if m.get("role") in ("tool", "user"))
        task = next((content_text(m) for m in reversed(messages) if m.get("role") == "user" and _is_task(m)), "")
        pages = re.findall(r'"\[(\d+)\] https?://\S+?\\n---\\n(.*?)"[,}]', told, re.DOTALL)
        lines = [(number, best_sentences(task, text.replace("\\n", "\n"), 1).strip(" .")) for number, text in pages]
        return "\n".join(["Summary of what was found.", "", *(f"- {line} [{number}]." for number, line in lines)])


class SectionScript(Script):
    """The scripted model that plans its reports: an outline of the parts of the question, then one section after the other."""

    def reply(self, req: dict) -> Reply:
        messages = req.get("messages") or []
        rules = content_text(messages[0]) if messages else ""
        asked = re.search(r"The question: (.+)", rules)
        question, last = asked.group(1).strip() if asked else "", content_text(messages[-1]) if messages else ""
        if '"action": "outline"' in rules:
            return self.outlined(question, last), []
        if rules.startswith("You write a report on a question, one section"):
            return self.section(last), []
        if rules.startswith("You write the introduction"):
            sentences = [re.sub(r"^[^\w]*", "", line) for line in re.findall(r"^(?!#)(.+? \[\d+\])", last, re.MULTILINE)]
            return " ".join(f"In short: {line}." for line in sentences[:2]), []
        return super().reply(req)

    @staticmethod
    def outlined(question: str, reports: str) -> str:
        """A section for each part, with every source that the reports cite."""
        parts = re.split(
            r"(?:,\s+|\s+)(?:and\s+)?(?=(?:how|what|why|who|where|when)\b)", question.rstrip("?"), flags=re.IGNORECASE
        )
        numbers = sorted({int(n) for n in re.findall(r"\[(\d+)\]", reports)})
        named = [part.strip(" ,") for part in parts if len(part.split()) > 1]
        sections = [{"heading": part[:1].upper() + part[1:], "covers": part, "sources": numbers} for part in named]
        return json.dumps({"action": "outline", "sections": sections})

    @staticmethod
    def section(request: str) -> str:
        """The three best sentences of the evidence, each with the number of its source."""
        evidence, _, task = request.rpartition("\n\nNow write the section")
        sources = re.split(r"Source \[(\d+)\], .*:\n", evidence.split("\n\nNotes of the researchers:")[0])
        found = [
            (sentence, number)
            for number, text in zip(sources[1::2], sources[2::2], strict=True)
            for sentence in re.split(r"(?<=[.!?])\s+", best_sentences(task, text, 3))
        ]
        return " ".join(f"{sentence.rstrip('.')} [{number}]." for sentence, number in found[:3])


def _is_task(message: dict) -> bool:
    return not content_text(message).startswith(("Researcher ", "Tool result", "{"))


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--host", default="127.0.0.1")
    ap.add_argument("--port", type=int, default=8892)
    ap.add_argument("--latency-ms", type=float, default=0)
    ap.add_argument("--read", type=int, default=3)
    args = ap.parse_args()
    script = ResearchScript(read=args.read)
    make_server(Settings(args.host, args.port, args.latency_ms, args.read), script).serve_forever()


if __name__ == "__main__":
    main()
