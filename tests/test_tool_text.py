"""A call of a tool that a model wrote out as text is no answer."""

from __future__ import annotations

import pytest

from nexi.agent.fallbacks import _is_tool_call


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "web_search", "queries": ["moon"]}',
        '```json\n{"tool": "web_search", "queries": ["moon"]}\n```',
        '[{"function": "web_get", "arguments": {"urls": []}}]',
        '<tool_call>{"name": "web_search"}</tool_call>',
        "<tools>\n\n</tools>",
    ],
)
def test_a_written_call_is_recognised(text: str) -> None:
    assert _is_tool_call(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The Moon is 384,400 km away [1].",
        '{"name": "Moon", "distance_km": 384400}',
        'Use `{"tool": 1}` as the body of the request [1].',
        "[]",
    ],
)
def test_an_answer_is_not(text: str) -> None:
    assert not _is_tool_call(text)
