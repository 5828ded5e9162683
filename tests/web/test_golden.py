"""How the HTTP door words its refusals: requests that cannot be served, with the status and the body of each answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nexi.web.guard import GuardRules
from tests.golden_files import compare_golden
from tests.web.world import serving

JSON = {"content-type": "application/json"}
REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/nowhere", None),
    ("DELETE", "/v1/runs", None),
    ("GET", "/v1/runs/ffffff", None),
    ("GET", "/v1/runs/not-an-id", None),
    ("GET", "/v1/runs?limit=x", None),
    ("GET", "/v1/runs?state=sideways", None),
    ("POST", "/v1/runs", b"{"),
    ("POST", "/v1/runs", b"\xff"),
    ("POST", "/v1/runs", {}),
    ("POST", "/v1/runs", {"question": ""}),
    ("POST", "/v1/runs", {"question": 5}),
    ("POST", "/v1/runs", {"question": "why", "mode": "dream"}),
    ("POST", "/v1/runs", {"question": "why", "nonsense": 1}),
    ("POST", "/v1/runs", {"question": "why", "options": {"effort": "x"}}),
    ("POST", "/v1/runs/ffffff/stop", None),
    ("POST", "/v1/chat/completions", {}),
    ("POST", "/v1/chat/completions", {"model": "nexi", "messages": []}),
    ("POST", "/v1/chat/completions", {"model": "other", "messages": [{"role": "user", "content": "why"}]}),
    ("POST", "/v1/search", {}),
    ("POST", "/tavily/search", {}),
    ("POST", "/openwebui/search", {}),
    ("GET", "/searxng/search?format=json", None),
    ("GET", "/searxng/search?q=x&format=json&pageno=x", None),
]


async def test_refusals_are_worded_as_recorded(tmp_path: Path) -> None:
    lines = []
    async with serving(tmp_path) as served:
        for method, path, body in REQUESTS:
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            answer = await served.client.request(method, path, content=data, headers=JSON if body is not None else {})
            sent = "" if body is None else f" {data!r}"[:120]
            lines += [f"{method} {path}{sent}", f"  {answer.status_code} {answer.text.strip()}"]
    compare_golden("http.txt", "\n".join(lines) + "\n")


async def test_a_missing_token_is_worded_as_recorded(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token="a-long-random-token")) as served:
        answers = [await served.client.get(path) for path in ("/v1/runs", "/v1/models", "/searxng/search?q=x&format=json")]
    lines = [f"{answer.request.url.path}: {answer.status_code} {answer.text.strip()}" for answer in answers]
    compare_golden("http-token.txt", "\n".join(lines) + "\n")
