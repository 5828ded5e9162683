"""Scores answers against a mini-web's questions.jsonl (standard library only).

  python -m rig.score questions.jsonl answers.jsonl

answers.jsonl lines: {"id", "answer", "citations": [url, ...], "fetched": [url, ...], "seconds", "llm_calls", "tokens"}
(all but id and answer optional; loopback URLs http://127.0.0.1:PORT/<host>/<path> are mapped back to http://<host>/<path>).

exact      normalised answer equals a gold answer          contains   a gold answer occurs as whole words in the answer
f1         best token F1 with a gold answer                cited      share of questions with every needed gold page cited
precise    share of citations that are gold (or also_) pages   read    share with every needed gold page among the fetched
supported  contains AND every needed gold page cited, in at most 60 words and with at most one page cited beyond those needed
           (the number to compare systems by; pouring whole pages out scores nothing)
words      words of the answer without its sources             citations   pages cited
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import urlsplit


def normalise(text: str) -> str:
    text = re.sub(r"\b(a|an|the)\b", " ", text.lower())
    return " ".join(re.sub(r"[^\w\s]", " ", text).split())


def f1(answer: str, gold: str) -> float:
    a, g = answer.split(), gold.split()
    same = sum((Counter(a) & Counter(g)).values())
    return 2 * same / (len(a) + len(g)) if same else 0.0


def canonical(url: str) -> str:
    parts = urlsplit(url)
    if parts.hostname in ("127.0.0.1", "localhost"):
        host, _, rest = parts.path.lstrip("/").partition("/")
        return f"http://{host}/{rest}" + ("?" + parts.query if parts.query else "")
    return "http://" + parts.netloc + parts.path + ("?" + parts.query if parts.query else "")


def score(question: dict, reply: dict) -> dict:
    answer = re.sub(r"\[\d+\]", " ", reply.get("answer") or "")
    answer = re.split(r"(?im)^\s*(?:sources|references|citations)\s*:", answer)[0]
    text, golds = normalise(answer), [normalise(a) for a in question["answers"] if normalise(a)]
    need, also = set(question["gold_urls"]), set(question.get("also_urls") or ())
    cited = {canonical(u) for u in reply.get("citations") or ()}
    read = {canonical(u) for u in reply.get("fetched") or ()}
    single = question.get("kind") not in ("hotpot", "2wiki")
    ok = (lambda have: bool(have & (need | also))) if single else (lambda have: need <= have)
    contains = any(re.search(rf"\b{re.escape(g)}\b", text) for g in golds)
    length, spare = len(answer.split()), len(cited) - (1 if single else len(need))
    return {
        "exact": text in golds,
        "contains": contains,
        "f1": max((f1(text, g) for g in golds), default=0.0),
        "cited": ok(cited),
        "read": ok(read),
        "supported": contains and ok(cited) and length <= 60 and spare <= 1,
        "precise": len(cited & (need | also)) / len(cited) if cited else 0.0,
        "words": length / 100,
        "citations": len(cited) / 100,
    }


def table(questions: list[dict], replies: dict[str, dict]) -> dict:
    """Means in per cent over all questions and by kind; a question without a reply counts as wrong."""
    groups: dict[str, list[dict]] = defaultdict(list)
    for question in questions:
        row = score(question, replies.get(question["id"], {}))
        for name in ("all", question.get("kind", "")):
            groups[name].append(row)
    out: dict = {}
    for name, rows in groups.items():
        out[name] = {"n": len(rows), **{k: round(100 * sum(r[k] for r in rows) / len(rows), 1) for k in rows[0]}}
    for key in ("seconds", "llm_calls", "tokens"):
        values = sorted(r[key] for r in replies.values() if isinstance(r.get(key), int | float))
        if values:
            out[key] = {"mean": round(sum(values) / len(values), 2), "median": values[len(values) // 2], "max": values[-1]}
    out["answered"] = sum(q["id"] in replies for q in questions)
    return out


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("questions", type=Path)
    ap.add_argument("answers", type=Path)
    args = ap.parse_args()
    replies = {r["id"]: r for r in read_lines(args.answers)}
    print(json.dumps(table(read_lines(args.questions), replies), indent=1))


if __name__ == "__main__":
    main()
