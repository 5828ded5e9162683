"""`nexi agentic`: passages on stdout, what it took on stderr, and the whole response as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from nexi.app import Nexi
from nexi.cli import main

RESPONSE: dict[str, Any] = {
    "success": True,
    "query": "how far is the Moon",
    "iterations": 1,
    "completeness": 0.9,
    "results": [
        {"content": "The Moon is\n384,400 km away.", "url": "https://moon.example/", "similarity_score": 0.8, "chunk_index": 0}
    ],
    "search_history": [],
    "status": "complete",
    "usage": {"model_calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "searches": 1, "pages_read": 2},
}


def run(monkeypatch: pytest.MonkeyPatch, response: dict[str, Any], *args: str) -> tuple[int, str, str, dict[str, Any]]:
    asked: dict[str, Any] = {}

    async def agentic_search(self: Nexi, query: str, **settings: Any) -> dict[str, Any]:
        asked.update(settings, query=query)
        return response

    monkeypatch.setattr(Nexi, "agentic_search", agentic_search)
    result = CliRunner().invoke(main, ["agentic", *args])
    return result.exit_code, result.stdout, result.stderr, asked


def test_passages_are_printed_and_what_they_took_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err, asked = run(monkeypatch, RESPONSE, "--max-iter", "2", "--threshold", "0.5", "how far", "is the Moon")
    assert (code, out) == (0, "1. https://moon.example/ (0.80)\n   The Moon is 384,400 km away.\n")
    assert "complete: 90% complete after 1 round; 1 searches, 2 pages read, 0 model calls" in err
    assert asked == {"query": "how far is the Moon", "max_iterations": 2, "completeness_threshold": 0.5}


def test_json_is_the_response_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _, _ = run(monkeypatch, RESPONSE, "--json", "how far is the Moon")
    assert (code, json.loads(out)) == (0, RESPONSE)


def test_without_passages_it_ends_with_5(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err, _ = run(monkeypatch, {**RESPONSE, "results": [], "status": "error"}, "how far is the Moon")
    assert (code, out, "there are no passages" in err) == (5, "", True)
