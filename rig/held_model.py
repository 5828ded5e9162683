"""held_model - a model on loopback that writes piece by piece and can be held at named places.

What it says comes from a `Script`; how it says it is decided here: the text and the arguments of its calls go out in small
pieces, and before each reply it passes the gate of that name ("search", "read", "answer", "plan", "judge", "talk", and
"scrape" of a researcher). The character HELD inside a text is a gate as well, "middle", and is never sent.

In tests: `with held_model.serve(HeldModel(script)) as root`; `model.hold("middle")`, `model.wait_for("middle")`,
`model.release("middle")`. A gate that nobody holds is open.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rig.scripted_llm import Script, content_text
from rig.serving import serve_in_thread

HELD = "\x1f"
PATIENCE_S = 180.0
GATES = {"web_search": "search", "search": "search", "web_get": "read", "scrape": "scrape", "final_answer": "answer"}


class HeldModel:
    """A script behind gates."""

    def __init__(self, script: Script, *, piece: int = 24, latency_s: float = 0.0) -> None:
        self.script, self.piece, self.latency_s = script, piece, latency_s
        self.reached: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self._closed: set[str] = set()
        self._changed = threading.Condition()

    def hold(self, *gates: str) -> None:
        with self._changed:
            self._closed |= set(gates)

    def release(self, *gates: str) -> None:
        """These gates, or all of them."""
        with self._changed:
            self._closed -= set(gates) or set(self._closed)
            self._changed.notify_all()

    def wait_for(self, gate: str, times: int = 1) -> None:
        """Until a request has come to the gate so many times."""
        with self._changed:
            came = self._changed.wait_for(lambda: self.reached[gate] >= times, PATIENCE_S)
        assert came, f"the model was not asked up to {gate!r}; it came to {dict(self.reached)}"

    def passed(self, gate: str) -> None:
        with self._changed:
            self.reached[gate] += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: gate not in self._closed, PATIENCE_S)


def gate_of(request: dict[str, Any], calls: list[tuple[str, dict[str, Any]]]) -> str:
    if calls:
        return GATES.get(calls[0][0], "talk")
    rules = content_text((request.get("messages") or [{}])[0])
    return "plan" if rules.startswith("You coordinate") else "judge" if rules.startswith("You lead") else "talk"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: HeldModel

    def log_message(self, *rest: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        known = self.path.endswith("/models")
        told = {"object": "list", "data": [{"id": "scripted", "object": "model"}, {"id": "scripted-2", "object": "model"}]}
        self._whole(told if known else {"error": "not found"}, 200 if known else 404)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if not self.path.endswith("/chat/completions"):
            return self._whole({"error": {"message": "only chat is here"}}, 404)
        self.model.requests.append(request)
        text, calls = self.model.script.reply(request)
        time.sleep(self.model.latency_s)
        self.model.passed(gate_of(request, calls))
        with suppress(ConnectionError):  # a server that was killed reads no more
            self._told(request, text, calls)
        return None

    def _told(self, request: dict[str, Any], text: str | None, calls: list[tuple[str, dict[str, Any]]]) -> None:
        used = sum(len(content_text(m)) for m in request.get("messages") or []) // 4
        usage = {"prompt_tokens": used, "completion_tokens": 40, "total_tokens": used + 40}
        if request.get("stream"):
            return self._streamed(text, calls, usage)
        made = [_call(i, name, json.dumps(given).replace("\\u001f", "")) for i, (name, given) in enumerate(calls)]
        message = {"role": "assistant", "content": (text or "").replace(HELD, "") or None, "tool_calls": made}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return self._whole({"object": "chat.completion", "choices": [choice], "usage": usage})

    def _whole(self, value: object, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _streamed(self, text: str | None, calls: list[tuple[str, dict[str, Any]]], usage: dict[str, int]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        for piece in self._pieces(text or "", HELD):
            self._delta({"content": piece})
        for i, (name, given) in enumerate(calls):
            self._delta({"tool_calls": [_call(i, name, "")]})
            for piece in self._pieces(json.dumps(given), "\\u001f"):
                self._delta({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
        self._delta({}, finish="tool_calls" if calls else "stop", usage=usage)
        self.wfile.write(b"data: [DONE]\n\n")

    def _pieces(self, text: str, held: str) -> Iterator[str]:
        """Small pieces, with a pause at the gate wherever the text is held."""
        for number, part in enumerate(text.split(held)):
            if number:
                self.model.passed("middle")
            yield from (part[i : i + self.model.piece] for i in range(0, len(part), self.model.piece))

    def _delta(self, delta: dict[str, Any], finish: str | None = None, **more: object) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self.wfile.write(b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": [choice], **more}).encode())
        self.wfile.write(b"\n\n")
        self.wfile.flush()


def _call(index: int, name: str, arguments: str) -> dict[str, Any]:
    return {"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": arguments}}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


@contextmanager
def serve(model: HeldModel) -> Iterator[str]:
    """Serve on a free loopback port while the block runs; gives the root URL. Every gate opens at the end."""
    server = Server(("127.0.0.1", 0), type("BoundHandler", (Handler,), {"model": model}))
    with serve_in_thread(server) as root:
        try:
            yield root
        finally:
            model.release()
