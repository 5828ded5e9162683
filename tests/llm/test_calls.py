"""Tool calls that models write as text."""

from __future__ import annotations

import pytest

from nexi.llm.openai._dialect import calls_from_text, find_problems, offered_name
from nexi.types import ToolCall, ToolSpec

SEARCH = ToolSpec(
    "web_search",
    "",
    {
        "type": "object",
        "properties": {"queries": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 5}},
        "required": ["queries"],
    },
)
FINISH = ToolSpec("final_answer", "", {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]})
TOOLS = (SEARCH, FINISH)
CALL = ToolCall("call00001", "web_search", '{"queries": ["a"]}')


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('{"name": "web_search", "arguments": {"queries": ["a"]}}', ""),
        ('{"name": "web_search", "parameters": {"queries": ["a"]}}', ""),
        ('{"tool": "web_search", "queries": ["a"]}', ""),
        ('{"tool": "web_search", "arguments": {"queries": ["a"]}}', ""),
        ('{"action": "web_search", "action_input": "{\\"queries\\": [\\"a\\"]}"}', ""),
        ('[{"name": "web_search", "arguments": {"queries": ["a"]}}]', ""),
        ('{"tool_calls": [{"function": {"name": "web_search", "arguments": "{\'queries\': [\'a\']}"}}]}', ""),
        ('I look.\n```json\n{"name": "web_search", "arguments": {"queries": ["a"]}}\n```\nWait.', "I look.\n\nWait."),
        ('<tool_call>\n{"name": "web_search", "arguments": {"queries": ["a"]}}\n</tool_call>', ""),
        ('<tool_call>{"name": "web_search", "arguments": {"queries": ["a"', ""),
        ('<tool_call>web_search\n{"queries": ["a"]}</tool_call>', ""),
        ('<function=web_search>{"queries": ["a"]}</function>', ""),
        ("<tool_call>\n<function=web_search>\n<parameter=queries>\n[\"a\"]\n</parameter>\n</function>\n</tool_call>", ""),
        ('Ok [TOOL_CALLS] [{"name": "web_search", "arguments": {"queries": ["a"]}}]', "Ok"),
        ('[TOOL_CALLS]web_search[ARGS]{"queries": ["a"]}', ""),
        ('<|python_tag|>{"name": "functions.web_search", "parameters": {"queries": ["a"]}}', ""),
    ],
)  # fmt: skip
def test_a_call_is_found_in_each_way_of_writing_it(text: str, rest: str) -> None:
    assert calls_from_text(text, TOOLS) == (rest, (CALL,))
    assert find_problems(text, TOOLS) == []


def test_several_calls_keep_their_order() -> None:
    text = '<tool_call>{"name": "web_search", "arguments": {"queries": ["a"]}}</tool_call>\n' * 2
    text += '[{"name": "final_answer", "arguments": {"answer": "b"}}, {"tool": "web_search", "queries": ["c"]}]'
    _, calls = calls_from_text(text, TOOLS)
    assert calls == (
        CALL,
        ToolCall("call00002", "web_search", '{"queries": ["a"]}'),
        ToolCall("call00003", "final_answer", '{"answer": "b"}'),
        ToolCall("call00004", "web_search", '{"queries": ["c"]}'),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No JSON here.",
        'People are {"name": "Alice", "age": 3}.',
        '{"queries": ["a"]}',
        "The set {1, 2} and [3].",
        'An object: ```json\n{"a": {"b": [1]}}\n```',
        "The function web_search is a function.",
    ],
)
def test_prose_that_merely_contains_json_is_left_alone(text: str) -> None:
    assert calls_from_text(text, TOOLS) == (text, ())
    assert find_problems(text, TOOLS) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('{"name": "web_search", "arguments": {"queries": []}}', ["web_search: queries: expected 1 to 5 items, got 0"]),
        ('{"tool": "web_search", "arguments": "what?"}', ["web_search: expected an object, got a string"]),
        ('{"tool": "web_search"}', ["web_search: queries: required, but missing"]),
        ('{"name": "rm", "arguments": {}}', ["there is no tool 'rm'; the tools are web_search, final_answer"]),
        ("<tool_call>web search</tool_call>", ["the call is not a JSON object with a tool's name and its arguments"]),
    ],
)
def test_an_attempt_that_does_not_fit_stays_text_and_says_what_is_wrong(text: str, wrong: list[str]) -> None:
    assert calls_from_text(text, TOOLS) == (text, ())
    assert find_problems(text, TOOLS) == wrong


def test_without_tools_nothing_is_a_call() -> None:
    text = '<tool_call>{"name": "web_search", "arguments": {}}</tool_call>'
    assert calls_from_text(text, ()) == (text, ())
    assert find_problems(text, ()) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("web_search", "web_search"),
        ("functions.web_search", "web_search"),
        ("default_api:web_search", "web_search"),
        ("web_search<|channel|>json", "web_search"),
        (" web_search ", "web_search"),
        ("search", "search"),
        ("", ""),
    ],
)
def test_a_name_with_something_around_it_means_the_tool(name: str, meant: str) -> None:
    assert offered_name(name, TOOLS) == meant
