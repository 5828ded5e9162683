"""A stub of nexi's HTTP contracts, and the real server beside it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

ITEMS = [
    {
        "id": f"web:sha256:{n}",
        "type": "web_result",
        "title": f"Title {n}",
        "url": f"https://example.com/{n}",
        "snippet": f"Snippet {n}",
        "engine": "searxng",
        "score": {"rank": n + 1},
    }
    for n in range(5)
]
Route = Callable[[dict[str, Any]], tuple[int, Any]]


def pack_of(items: list[dict[str, Any]], query: str) -> str:
    listed = "\n".join(f"{n}. Title: {x['title']}\n   URL: {x['url']}" for n, x in enumerate(items, 1))
    rules = "Rules:\n- Use this context strictly as evidence.\n[/CONTEXT_PACK]"
    return f'[CONTEXT_PACK ucp-1]\nrequest:\n  query="{query}"\n\n{listed}\n\n{rules}'


class Stub:
    """A server that answers as nexi does, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any], str]] = []
        self.replies: dict[str, Route] = {
            "/v1/search": self._search,
            "/v1/snippet_rank": lambda body: (200, {"pick": [3, 1], "urls": [], "fallback_used": False}),
            "/openwebui/load": lambda body: (200, [{"page_content": "The page.", "metadata": {"source": body["urls"][0]}}]),
            "/v1/chat/completions": self._chat,
            "/v1/models": lambda _: (200, {"object": "list", "data": [{"id": "nexi-m"}, {"id": "nexi-deep"}]}),
        }

    def _search(self, body: dict[str, Any]) -> tuple[int, Any]:
        constraints = body.get("constraints") or {}
        items = constraints.get("seed_items") or ITEMS[: (body.get("budget") or {}).get("max_results", 10)]
        picks = constraints.get("pick_ids")
        kept = items if picks is None else [items[i] for i in picks]
        reply = {"schema": "ucp-1", "items": kept}
        if (body.get("want") or {}).get("rendered_text") is not False:
            reply["rendered_text"] = pack_of(kept, body["query"]["text"])
        return 200, reply

    def _chat(self, body: dict[str, Any]) -> tuple[int, Any]:
        mark = {"type": "url_citation", "url_citation": {"url": "https://example.com/0", "title": "Title 0"}}
        if not body.get("stream"):
            message = {"role": "assistant", "content": "It is so [1].", "annotations": [mark]}
            return 200, {"choices": [{"message": message}], "citations": ["https://example.com/0"]}
        chunks = [
            {"choices": [{"delta": {"role": "assistant"}}]},
            {"choices": [{"delta": {"content": "It is "}}]},
            {"choices": [{"delta": {"content": "so [1]."}}]},
            {"choices": [{"delta": {"annotations": [mark]}, "finish_reason": "stop"}], "citations": ["https://example.com/0"]},
        ]
        return 200, b"".join(b"data: %s\n\n" % json.dumps(c).encode() for c in chunks) + b"data: [DONE]\n\n"

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for asked, body, _ in self.asked if asked == path]


@pytest.fixture
def stub() -> Iterator[tuple[str, Stub]]:
    """The address of a stub, and the stub."""
    told = Stub()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

        def answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            told.asked.append((self.path, body, self.headers.get("authorization", "")))
            status, value = told.replies.get(self.path, lambda _: (404, {"error": {"message": "there is nothing here"}}))(body)
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = answer  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", told
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
