"""A loopback server of a few fixed routes: the documented answers of local model servers, and chat completions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Route = Any | Callable[[dict[str, Any]], tuple[int, Any]]


@contextmanager
def serving(routes: Mapping[str, Route], date: str = "") -> Iterator[int]:
    """Answer `GET /path` and `POST /path` with JSON while the block runs; gives the port. `date` replaces the Date header."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

        def date_time_string(self, timestamp: float | None = None) -> str:
            return date or super().date_time_string(timestamp)

        def answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            route = routes.get(f"{self.command} {self.path}", lambda _: (404, {"error": "not found"}))
            status, value = route(json.loads(raw or b"{}")) if callable(route) else (200, route)
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_POST = do_HEAD = answer  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


SHOWN = {
    "qwen2.5:7b": {
        "parameters": 'num_ctx                        16384\nstop                           "<|im_end|>"',
        "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 32768},
    },
    "llama3.2:latest": {"model_info": {"general.architecture": "llama", "llama.context_length": 131072}},
}
OLLAMA_ROUTES: dict[str, Route] = {
    "GET /api/tags": {"models": [{"name": "qwen2.5:7b", "model": "qwen2.5:7b"}, {"name": "llama3.2:latest"}]},
    "GET /api/ps": {"models": []},
    "POST /api/show": lambda body: (200, SHOWN[body["model"]]),
    "GET /v1/models": {"object": "list", "data": [{"id": "qwen2.5:7b"}, {"id": "llama3.2:latest"}]},
}
LM_STUDIO_ROUTES: dict[str, Route] = {
    "GET /api/v0/models": {
        "object": "list",
        "data": [
            {"id": "gemma-3-4b", "type": "llm", "state": "loaded", "max_context_length": 131072, "loaded_context_length": 4096},
            {"id": "phi-4", "type": "llm", "state": "not-loaded", "max_context_length": 16384},
            {"id": "nomic-embed", "type": "embeddings", "state": "not-loaded", "max_context_length": 2048},
        ],
    },
}
LLAMA_CPP_ROUTES: dict[str, Route] = {
    "GET /props": {"default_generation_settings": {"n_ctx": 8192, "params": {}}, "total_slots": 1},
    "GET /v1/models": {"object": "list", "data": [{"id": "qwen.gguf", "meta": {"n_ctx_train": 32768}}]},
}


def completion(calls: bool = True) -> Callable[[dict[str, Any]], tuple[int, Any]]:
    """A chat endpoint that calls the one tool it is given, or only talks."""
    call = {"id": "c1", "type": "function", "function": {"name": "report", "arguments": '{"ready": true}'}}
    message = (
        {"role": "assistant", "content": None, "tool_calls": [call]} if calls else {"role": "assistant", "content": "Ready."}
    )
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {}}
    return lambda _: (200, reply)
