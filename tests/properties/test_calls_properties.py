"""What must hold for any text a model may write."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nexi.llm.openai._dialect import calls_from_text, find_problems
from nexi.llm.openai._stream import BodyReader, CallIds, Listener, ReplyBuffer
from nexi.structured import json_reader, schema_check
from nexi.types import ToolCall, ToolSpec

ECHO = ToolSpec(
    "echo",
    "",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": False},
)
TOOLS = (ECHO,)

scalars = (
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(st.text(), values, max_size=4)
jsonish = st.text(alphabet="{}[]\"':,\\ntruefalsNone0123456789.eE+- \n`<>_/=ab", max_size=200)


@given(jsonish | st.text(max_size=200))
def test_readers_raise_nothing_but_value_errors(text: str) -> None:
    for reader in (json_reader.parse_json, json_reader.parse_lenient):
        try:
            value = reader(text)
        except ValueError:
            continue
        json.dumps(value, allow_nan=False).encode()


@given(values)
def test_what_is_written_as_json_is_read_back(value: object) -> None:
    text = json.dumps(value)
    assert json_reader.parse_json(text) == json_reader._fix_value(value) == json_reader.parse_lenient(text)


@given(objects, st.sampled_from(["{}", "Here:\n```json\n{}\n```\nDone", "  {}\n", "<a>{}</a>"]))
def test_an_object_is_found_within_prose(value: dict[str, Any], prose: str) -> None:
    assert json_reader.parse_lenient(prose.replace("{}", json.dumps(value))) == json_reader._fix_value(value)


@given(objects, st.data())
def test_an_object_cut_anywhere_is_read_without_its_end(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text)))]
    found = json_reader.parse_lenient(cut)
    assert isinstance(found, dict)
    assert list(found)[:-1] == list(json_reader._fix_value(value))[: max(0, len(found) - 1)]


@given(
    values,
    st.sampled_from(
        [ECHO.parameters, {}, {"type": ["array", "null"], "items": {"minimum": 3}}, {"oneOf": [{"minLength": 2}, {}]}]
    ),
)
def test_checking_any_value_gives_sentences(value: object, wanted: dict[str, Any]) -> None:
    assert all(isinstance(problem, str) and problem for problem in schema_check.check_schema(value, wanted))


@given(jsonish | st.text(max_size=200))
def test_any_text_gives_only_offered_calls_that_fit(text: str) -> None:
    rest, calls = calls_from_text(text, TOOLS)
    assert calls or rest == text
    assert all(
        call.name == "echo" and schema_check.check_schema(json.loads(call.arguments), ECHO.parameters) == [] for call in calls
    )
    assert all(find_problems(text, TOOLS))


@given(st.text(max_size=50), st.sampled_from(["<tool_call>{}</tool_call>", "```json\n{}\n```", "[TOOL_CALLS] [{}]", "{}"]))
def test_a_written_call_is_found_whatever_its_argument_says(text: str, wrap: str) -> None:
    written = json.dumps({"name": "echo", "arguments": {"text": text}})
    rest, calls = calls_from_text(wrap.replace("{}", written), TOOLS)
    assert (rest, [json.loads(call.arguments) for call in calls]) == ("", [{"text": json_reader.fix_surrogates(text)}])


@settings(max_examples=60)
@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 60))
def test_a_stream_reads_the_same_however_it_is_cut(said: str, asked: str, pieces: list[int], size: int) -> None:
    arguments = json.dumps({"text": asked})
    text = said.replace("<", "").replace("`", "").lstrip()
    events = [{"choices": [{"delta": {"content": piece}}]} for piece in _split(text, pieces)]
    functions = [{"name": None if number else "echo", "arguments": p} for number, p in enumerate(_split(arguments, pieces))]
    events += [{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": f}]}}]} for f in functions]
    body = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events).encode() + b"data: [DONE]\n\n"
    heard: list[str] = []
    told: list[ToolCall] = []
    draft = ReplyBuffer(Listener(heard.append, told.append), TOOLS, CallIds(()), "nothing")
    reader = BodyReader(draft)
    for start in range(0, len(body), size):
        reader.feed(body[start : start + size])
    reader.end()
    draft.end()
    assert reader.closed
    assert draft.text == "".join(heard) == json_reader.fix_surrogates(text)
    assert draft.calls == tuple(told) == (ToolCall("a", "echo", arguments),)


@given(st.binary(max_size=300) | jsonish.map(lambda text: b"data: " + text.encode() + b"\n\n"))
def test_any_bytes_can_be_fed_to_a_reader(body: bytes) -> None:
    draft = ReplyBuffer(Listener(), TOOLS, CallIds(()), "calls")
    reader = BodyReader(draft)
    reader.feed(body)
    reader.end()
    draft.end()
    draft.text.encode()


def _split(text: str, pieces: list[int]) -> list[str]:
    parts = []
    for size in pieces:
        parts.append(text[:size])
        text = text[size:]
    return [*parts, text]
