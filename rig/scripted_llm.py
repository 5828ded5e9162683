"""scripted_llm - a deterministic OpenAI-compatible server on loopback (standard library only).

It answers POST /v1/chat/completions (plain, streamed, tool calls), POST /v1/embeddings (hashed bag of words)
and GET /v1/models, and counts everything: GET /stats, POST /reset. It has no knowledge of its own:

* with tools web_search / web_get / final_answer offered, it searches once with the question, reads the first
  N result pages and answers with the sentences of the pages that overlap most with the question, citing [n];
* as a coordinator of research it makes the question and the names in it the agenda, as a researcher (search, scrape,
  final_answer) it reports the best sentence of every page, and as the lead it puts those together;
* a prompt that asks for a JSON list of queries gets ["<question>"]; for a JSON object, a small fixed object;
* anything else gets the best-overlapping sentences of the prompt itself.

  python -m rig.scripted_llm --port 8891 [--latency-ms 300] [--read 3] [--log calls.jsonl]

In tests: `with serve(latency_ms=300) as root`, on a free port; the API's base URL is root + "/v1".
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rig.serving import serve_in_thread

WORD = re.compile(r"[A-Za-z0-9]+")
STOP = frozenset(
    re.split(
        " ",
        "the a an of in on to and or is was were are did do does what which who whom "
        "when where why how for by with from that this it as at be",
    )
)


def words(text: str) -> list[str]:
    return [w for w in (m.group().lower() for m in WORD.finditer(text)) if w not in STOP]


def best_sentences(question: str, text: str, n: int = 2) -> str:
    want = set(words(question))
    scored = []
    for pos, sent in enumerate(re.split(r"(?<=[.!?])\s+|\n+", text)):
        have = words(sent)
        if 4 <= len(have) <= 80:
            scored.append((-len(want & set(have)) / (1 + 0.02 * len(have)), pos, sent.strip()))
    scored.sort()
    return " ".join(s for _, _, s in scored[:n]) or "No information found."


def content_text(message: dict) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "\n".join(p.get("text", "") for p in content if isinstance(p, dict))
    return content


class Script:
    def __init__(self, read: int):
        self.read = read

    def reply(self, req: dict) -> tuple[str | None, list[tuple[str, dict]]]:
        """(text, [(tool name, arguments)])"""
        messages = req.get("messages") or []
        users = [content_text(m) for m in messages if m.get("role") == "user"]
        question = users[0] if users else ""
        tools = {t["function"]["name"] for t in req.get("tools") or [] if t.get("function")}
        if {"web_search", "final_answer"} <= tools:
            return self.agent(messages, question)
        if {"search", "scrape", "final_answer"} <= tools:
            return self.researcher(messages)
        rules = content_text(messages[0]) if messages else ""
        if rules.startswith("You coordinate a piece of web research"):
            return self.plan(users[-1]), []
        if rules.startswith("You lead a piece of web research"):
            return self.synthesis(rules, users[-1]), []
        prompt = "\n".join(content_text(m) for m in messages)
        asked = self.question_of(prompt)
        low = prompt.lower()
        if re.search(r"list of strings|list of (the )?(search )?queries|json (array|list)|\[\"query 1\"|\[\"search query", low):
            return json.dumps([asked]), []
        if "agent_role_prompt" in low:
            return json.dumps({"server": "Research Agent", "agent_role_prompt": "You are a careful researcher."}), []
        if re.search(r"\bQ: ", prompt) or "follow-up questions" in low or "one question per line" in low:
            return "Q: " + asked, []
        if "comma-separated" in low and "chunk" in low:
            return "1, 2, 3", []
        return best_sentences(asked, prompt, 3), []

    @staticmethod
    def question_of(prompt: str) -> str:
        for pattern in (
            r'(?:task|query|question|topic)\s*(?:is)?\s*:\s*"?([^"\n]{8,300}?\?)',
            r'"([^"\n]{8,300}\?)"',
            r"([A-Z][^\n.?!]{8,250}\?)",
        ):
            match = re.search(pattern, prompt, re.I)
            if match:
                return match.group(1).strip()
        return prompt.strip().split("\n")[0][:200]

    def agent(self, messages: list[dict], question: str) -> tuple[str | None, list[tuple[str, dict]]]:
        results = [content_text(m) for m in messages if m.get("role") == "tool"]
        if not results:
            return None, [("web_search", {"queries": [question[:300]]})]
        if len(results) == 1:
            urls = list(dict.fromkeys(re.findall(r'https?://[^\s"\\<>\])]+', results[0])))
            if urls:
                return None, [("web_get", {"urls": urls[: self.read], "get_full": True})]
        answer = best_sentences(question, results[-1].replace("\\n", "\n"))
        return None, [("final_answer", {"answer": answer + " [1]"})]

    # research

    @staticmethod
    def plan(asked: str) -> str:
        question = asked.rsplit("Question: ", 1)[-1].strip()
        names = re.findall(r"(?:[A-Z][\w'.-]+ )+[A-Z][\w'.-]+", question)
        tasks = [question, *(f"What is known about {name}?" for name in dict.fromkeys(names))]
        return json.dumps({"complexity": 1 if len(tasks) < 3 else 2, "tasks": tasks[:3]})

    def researcher(self, messages: list[dict]) -> tuple[str | None, list[tuple[str, dict]]]:
        """Search once, shake hands, read, and report the best sentence of every page with its number."""
        asked = [content_text(m) for m in messages if m.get("role") == "user"]
        task = next((text for text in asked if not text.startswith("Researcher ")), "")
        results = [content_text(m) for m in messages if m.get("role") == "tool"]
        if not results:
            return None, [("search", {"queries": [task[:300]]})]
        urls = list(dict.fromkeys(re.findall(r'https?://[^\s"\\<>\])]+', results[0])))
        if len(results) < 3 and urls:
            return None, [("scrape", {"urls": urls[: self.read]})]
        return None, [("final_answer", {"answer": self.report(task, results[-1])})]

    @staticmethod
    def report(task: str, pages: str) -> str:
        found = re.split(r"\[(\d+)\] https?://\S+?\\n---\\n", pages)
        lines = []
        for number, text in zip(found[1::2], found[2::2], strict=True):
            sentence = best_sentences(task, text.split('"}')[0].replace("\\n", "\n").replace('\\"', '"'), 1)
            if set(words(task)) & set(words(sentence)):
                lines.append(f"- {sentence.rstrip('.')} [{number}].")
        return "\n".join(lines) or "Nothing was found."

    @staticmethod
    def synthesis(rules: str, reports: str) -> str:
        """What the reports say of the question, best first, each line once."""
        question = re.search(r"The question: (.+)", rules)
        asked = question.group(1).strip() if question else "Report"
        found = list(dict.fromkeys(re.findall(r"^- (.+ \[\d+\])\.$", reports, re.M)))
        found.sort(key=lambda line: -len(set(words(asked)) & set(words(line))))
        return f"# {asked}\n\n" + "\n".join(f"- {line}." for line in found[:6])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: dict

    def log_message(self, *rest: object) -> None:
        pass

    def send(self, obj: object, code: int = 200) -> None:
        body = json.dumps(obj).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path.startswith("/stats"):
            with self.state["lock"]:
                return self.send(dict(self.state["stats"]))
        if self.path.rstrip("/").endswith("/models"):
            return self.send({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "local"}]})
        self.send({"ok": True})
        return None

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/reset":
            with self.state["lock"]:
                self.state["stats"].clear()
            return self.send({"ok": True})
        req = json.loads(raw or b"{}")
        time.sleep(self.state["args"].latency_ms / 1000)
        stats = self.state["stats"]
        if self.path.rstrip("/").endswith("/embeddings"):
            inputs = req.get("input")
            inputs = inputs if isinstance(inputs, list) else [inputs]
            with self.state["lock"]:
                stats["embedding_calls"] += 1
                stats["embedding_inputs"] += len(inputs)
            data = [{"object": "embedding", "index": i, "embedding": self.embed(x)} for i, x in enumerate(inputs)]
            return self.send(
                {"object": "list", "data": data, "model": req.get("model"), "usage": {"prompt_tokens": 1, "total_tokens": 1}}
            )
        if not self.path.rstrip("/").endswith("/chat/completions"):
            return self.send({"error": {"message": "unknown path " + self.path}}, 404)
        text, calls = self.state["script"].reply(req)
        prompt_chars = sum(len(content_text(m)) for m in req.get("messages") or [])
        with self.state["lock"]:
            stats["chat_calls"] += 1
            stats["prompt_chars"] += prompt_chars
            stats["completion_chars"] += len(text or "") + sum(len(json.dumps(a)) for _, a in calls)
            stats["streamed"] += bool(req.get("stream"))
            number = stats["chat_calls"]
            if self.state["args"].log:
                with Path(self.state["args"].log).open("a", encoding="utf-8") as f:
                    f.write(
                        json.dumps(
                            {
                                "n": number,
                                "t": time.time(),
                                "prompt_chars": prompt_chars,
                                "reply": text or calls,
                                "last": content_text((req.get("messages") or [{}])[-1])[:400],
                            }
                        )
                        + "\n"
                    )
        usage = {
            "prompt_tokens": prompt_chars // 4,
            "completion_tokens": len(text or "") // 4,
            "total_tokens": (prompt_chars + len(text or "")) // 4,
        }
        tool_calls = [
            {
                "index": i,
                "id": f"call_{number}_{i}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(args)},
            }
            for i, (name, args) in enumerate(calls)
        ]
        base = {"id": f"cmpl-{number}", "created": int(time.time()), "model": req.get("model", "scripted")}
        finish = "tool_calls" if tool_calls else "stop"
        if not req.get("stream"):
            message = {"role": "assistant", "content": text, **({"tool_calls": tool_calls} if tool_calls else {})}
            return self.send(
                {
                    **base,
                    "object": "chat.completion",
                    "usage": usage,
                    "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                }
            )
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        pieces: list[dict[str, Any]] = [{"role": "assistant"}]
        pieces += [{"content": (text or "")[i : i + 40]} for i in range(0, len(text or ""), 40)]
        pieces += [{"tool_calls": [c]} for c in tool_calls]
        for delta in pieces:
            self.event(
                {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            )
        self.event(
            {
                **base,
                "object": "chat.completion.chunk",
                "usage": usage,
                "choices": [{"index": 0, "delta": {}, "finish_reason": finish}],
            }
        )
        self.wfile.write(b"data: [DONE]\n\n")
        return None

    def event(self, obj: dict) -> None:
        self.wfile.write(b"data: " + json.dumps(obj).encode() + b"\n\n")

    @staticmethod
    def embed(value: Any, size: int = 256) -> list[float]:
        counts = Counter(words(value) if isinstance(value, str) else map(str, value or []))
        vector = [0.0] * size
        for word, n in counts.items():
            digest = hashlib.md5(word.encode()).digest()
            vector[digest[0]] += n if digest[1] & 1 else -n
        norm = sum(x * x for x in vector) ** 0.5 or 1.0
        return [x / norm for x in vector]


@dataclass(frozen=True)
class Settings:
    host: str = "127.0.0.1"
    port: int = 0
    latency_ms: float = 0
    read: int = 3
    log: str = ""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def make_server(settings: Settings, script: Script | None = None) -> Server:
    state = {"args": settings, "lock": threading.Lock(), "stats": Counter(), "script": script or Script(settings.read)}
    return Server((settings.host, settings.port), type("BoundHandler", (Handler,), {"state": state}))


@contextmanager
def serve(script: Script | None = None, **settings: Any) -> Iterator[str]:
    """Serve on a free loopback port while the block runs; gives the root URL."""
    with serve_in_thread(make_server(Settings(**settings), script)) as root:
        yield root


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--host", default="127.0.0.1")
    ap.add_argument("--port", type=int, default=8891)
    ap.add_argument("--latency-ms", type=float, default=0)
    ap.add_argument("--read", type=int, default=3, help="pages the scripted agent reads")
    ap.add_argument("--log", default="")
    args = ap.parse_args()
    make_server(Settings(args.host, args.port, args.latency_ms, args.read, args.log)).serve_forever()


if __name__ == "__main__":
    main()
