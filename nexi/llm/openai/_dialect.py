"""How one endpoint wants to be asked, what to try when it refuses, and the tool calls that a model wrote as text.

The ladder for tools is native calls, then a JSON schema, then a description in the prompt. Of written calls fenced, tagged and
bare JSON are understood; only tools that were offered count, and only arguments that fit the tool's schema, so that prose which
merely contains JSON stays prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import ContextOverflowError, LLMError
from nexi.structured import json_reader, schema_check
from nexi.types import Message, ToolCall, ToolSpec

MIN_OUTPUT_TOKENS = 256

Rung = Literal["native", "schema", "text"]
Form = Literal["json_schema", "json_object", "text"]


class Ask(Struct, frozen=True):
    """One question to the model, in no dialect yet."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    max_tokens: int
    temperature: float | None = None
    schema: Mapping[str, Any] | None = None


class Dialect(Struct, frozen=True):
    """What a server is known to take. `room` is for one request only: what its prompt leaves of the window."""

    rung: Rung = "native"
    form: Form = "json_schema"
    stream: bool = True
    stream_options: bool = True
    temperature: bool = True
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    max_output: int | None = None
    room: int | None = None


def request_body(ask: Ask, model: str, dialect: Dialect) -> dict[str, Any]:
    limit = min(limit for limit in (ask.max_tokens, dialect.max_output, dialect.room) if limit is not None)
    body: dict[str, Any] = {"model": model, "messages": _messages_to_dicts(ask, dialect), dialect.limit_name: limit}
    if ask.temperature is not None and dialect.temperature:
        body["temperature"] = ask.temperature
    if ask.tools and dialect.rung == "native":
        body["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in ask.tools
        ]
    elif ask.tools and dialect.rung == "schema":
        forms = [spec.parameters for spec in ask.tools]
        tool = {"type": "string", "enum": [spec.name for spec in ask.tools]}
        arguments = forms[0] if len(forms) == 1 else {"anyOf": forms}
        call = schema_check.object_schema({"tool": tool, "arguments": arguments}, is_closed=True)
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "tool_call", "schema": call}}
    elif not ask.tools and ask.schema is not None and dialect.form != "text":
        schema = {"type": "json_schema", "json_schema": {"name": "reply", "schema": ask.schema}}
        body["response_format"] = schema if dialect.form == "json_schema" else {"type": "json_object"}
    if dialect.stream:
        body["stream"] = True
        if dialect.stream_options:
            body["stream_options"] = {"include_usage": True}
    return body


# --- messages


def _messages_to_dicts(ask: Ask, dialect: Dialect) -> list[dict[str, Any]]:
    if dialect.rung != "native":
        plain = _plain_messages(ask.messages)
        if not ask.tools:
            return [m.to_dict() for m in _with_schema(plain, ask, dialect)]
        descriptions = "\n".join(f"- {t.name}: {t.description}\n  arguments: {_dump_json(t.parameters)}" for t in ask.tools)
        example = '{"tool": "' + ask.tools[0].name + '", "arguments": {...}}'
        how = f"To call a tool, answer with only a JSON object in a fenced block:\n```json\n{example}\n```"
        if dialect.rung == "schema":
            how = f"Answer with one JSON object, {example}, that calls one tool."
        instructions = f"You have these tools:\n{descriptions}\n\n{how} You will then be given its result."
        return [m.to_dict() for m in _with_instructions(plain, instructions)]
    messages = []
    for message in _with_schema(ask.messages, ask, dialect):
        # servers fail on a conversation in which an earlier call has broken arguments
        calls = tuple(replace(call, arguments=_valid_arguments(call.arguments)) for call in message.tool_calls)
        messages.append(replace(message, tool_calls=calls).to_dict())
    return messages


def _with_schema(messages: Sequence[Message], ask: Ask, dialect: Dialect) -> Sequence[Message]:
    if ask.tools or ask.schema is None or dialect.form == "json_schema":
        return messages
    form = _dump_json(ask.schema)
    return _with_instructions(messages, f"Answer with one JSON object that fits this JSON schema, and nothing else:\n{form}")


def _with_instructions(messages: Sequence[Message], instructions: str) -> list[Message]:
    """The conversation with more in its system message."""
    if messages and messages[0].role == "system":
        return [replace(messages[0], content=f"{messages[0].content}\n\n{instructions}"), *messages[1:]]
    return [Message("system", instructions), *messages]


def _plain_messages(messages: Sequence[Message]) -> list[Message]:
    """The same conversation in words only, for servers that know no tool calls and want roles to take turns."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    plain: list[Message] = []
    for message in messages:
        if message.role == "tool":
            turn = Message("user", f"Result of {names.get(message.tool_call_id, 'the tool')}:\n{message.content}")
        else:
            texts = [message.content]
            for call in message.tool_calls:
                arguments = json_reader.parse_json(_valid_arguments(call.arguments))
                texts.append(f"```json\n{_dump_json({'tool': call.name, 'arguments': arguments})}\n```")
            turn = Message(message.role, "\n\n".join(filter(None, texts)))
        if plain and plain[-1].role == turn.role:
            turn = Message(turn.role, f"{plain.pop().content}\n\n{turn.content}")
        plain.append(turn)
    return plain


def _valid_arguments(arguments: str) -> str:
    with suppress(ValueError):
        if isinstance(json_reader.parse_json(arguments), dict):
            return arguments
    return _dump_json({"unreadable": arguments[:1000]})


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=dict)


# --- learning from refusals


_REFUSALS = (400, 404, 405, 415, 422, 500, 501, 503)
# What servers say of the things that they do not take, by alternatives of a pattern.
_WORDS = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, list[str]])


def adapt_dialect(dialect: Dialect, body: Mapping[str, Any], fault: LLMError) -> Dialect | None:
    """The dialect to try after a refusal of `body`, None where the refusal is about something else."""
    # Every step leaves something out for good, so that a chain of steps ends.
    words = fault.cause
    if isinstance(fault, ContextOverflowError):
        # the prompt may fit where only the room asked for the answer does not
        size = _find_number("prompt_size", words)
        if size is None or fault.window is None:
            return None
        room = fault.window - size - 16
        return replace(dialect, room=room) if MIN_OUTPUT_TOKENS <= room < body[dialect.limit_name] else None
    if fault.status not in _REFUSALS:
        return None
    most = _find_number("output_limit", words)
    if most and most < body[dialect.limit_name]:
        return replace(dialect, max_output=most)
    if "max_completion_tokens" in words and dialect.limit_name == "max_tokens":
        return replace(dialect, limit_name="max_completion_tokens")
    if "stream_options" in body and ("stream_options" in words or "include_usage" in words):
        return replace(dialect, stream_options=False)
    if "temperature" in body and "temperature" in words.lower():
        return replace(dialect, temperature=False)
    refuses = _find("not_taken", words) or _find("unknown_field", words)
    if "tools" in body and _find("tools", words) and refuses:
        return replace(dialect, rung="schema")
    if "response_format" in body and (fault.status in (400, 422) or _find("format", words)):
        if dialect.rung == "schema" and body["response_format"].get("json_schema", {}).get("name") == "tool_call":
            return replace(dialect, rung="text")
        return replace(dialect, form="json_object" if dialect.form == "json_schema" else "text")
    if "stream" in body and re.search(r"(?i)\bstream(?:ing)?\b", words) and refuses:
        return replace(dialect, stream=False)
    if "stream_options" in body and fault.status in (400, 422) and _find("unknown_field", words):
        return replace(dialect, stream_options=False)
    return None


def _find(name: str, words: str) -> re.Match[str] | None:
    return re.search("|".join(_WORDS[name]), words, re.IGNORECASE)


def _find_number(name: str, words: str) -> int | None:
    match = _find(name, words)
    return int(next(filter(None, match.groups()))) if match else None


# --- calls written as text


MAX_ELEMENTS = 100
MAX_ELEMENT_CHARS = 200_000

_NAME_KEYS = ("tool", "name", "tool_name", "function", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "action_input", "tool_input")
_LIST_KEYS = ("tool_calls", "calls", "tools")

_NAMED = re.compile(r"(?:<function=|\[TOOL_CALLS\]\s*|<tool_call>\s*)([\w.-]{1,100})\s*>?\s*(?:\[ARGS\])?\s*$")
_ELEMENT = re.compile(r"<function=([\w.-]{1,100})>")
_PARAMETER = re.compile(r"<parameter=([\w.-]{1,100})>")
_SHELL = re.compile(
    r"```[ \t]{0,20}\w{0,20}\s{0,20}```|</?tool_call>|<\|?/?tool_calls?\|?>|\[/?TOOL_CALLS\]|<\|python_tag\|>"
    r"|<function=[\w.-]{1,100}>(?=\s{0,20}(?:$|<|\[))|</function>|\[ARGS\]"
)
_MARK = re.compile(r"<tool_call|<function=|\[TOOL_CALLS\]|<\|tool_call|<\|python_tag\|>")
_SPACE = re.compile(r"\n(?:[ \t\r]{0,20}\n)+\s*")


class _Written(Struct, frozen=True):
    """A stretch of text that says it is a call, before anybody checked."""

    start: int
    end: int
    name: str
    arguments: object
    explicit: bool = True  # a tag or an arguments field says that a call was meant, whatever the name


def calls_from_text(text: str, tools: Sequence[ToolSpec]) -> tuple[str, tuple[ToolCall, ...]]:
    """The text that is left, and the calls in it that name an offered tool and fit its schema."""
    fitting, calls = [], []
    for call in _written_calls(text):
        arguments = _parse_arguments(call.arguments)
        if (spec := _find_spec(call, tools)) and not schema_check.check_schema(arguments, spec.parameters):
            fitting.append(call)
            calls.append(ToolCall(f"call{len(fitting):05d}", spec.name, json.dumps(arguments, ensure_ascii=False)))
    if not fitting:
        return text, ()
    parts, position = [], 0
    for call in sorted(fitting, key=lambda item: item.start):
        parts.append(text[position : max(position, call.start)])
        position = max(position, call.end)
    rest = _SHELL.sub("", "".join((*parts, text[position:])))
    return _SPACE.sub("\n\n", rest).strip(), tuple(calls)


def find_problems(text: str, tools: Sequence[ToolSpec]) -> list[str]:
    """What is wrong with the calls a text attempts; empty when it attempts none that fail."""
    if not tools:
        return []
    calls = list(_written_calls(text))
    problems = []
    for call in calls:
        if spec := _find_spec(call, tools):
            wrong = schema_check.check_schema(_parse_arguments(call.arguments), spec.parameters)
            problems += [f"{spec.name}: {problem}" for problem in wrong]
        elif call.explicit:
            names = ", ".join(tool.name for tool in tools)
            problems.append(f"there is no tool {call.name[:100]!r}; the tools are {names}")
    if not calls and _MARK.search(text):
        return ["the call is not a JSON object with a tool's name and its arguments"]
    return list(dict.fromkeys(problems))[: schema_check.MAX_PROBLEMS]


def offered_name(name: str, tools: Sequence[ToolSpec]) -> str:
    """The offered tool a model means; namespaces and stray markers around the name are forgiven."""
    names = {tool.name for tool in tools}
    if name in names:
        return name
    bare = re.split(r"<\||\s", name.strip())[0].rsplit(".", 1)[-1].rsplit(":", 1)[-1]
    return bare if bare in names else name


def _written_calls(text: str) -> Iterator[_Written]:
    elements = list(_tagged_calls(text))
    yield from elements
    with suppress(ValueError):
        for fragment in json_reader.find_values(text):
            start, end = fragment.start, fragment.end
            if any(e.start <= start < e.end for e in elements):
                continue
            name_match = _NAMED.search(text, max(0, start - 150), start)
            if name_match and isinstance(fragment.value, Mapping):
                yield _Written(name_match.start(), end, name_match.group(1), fragment.value)
                continue
            for item in _call_objects(fragment.value):
                key = next((key for key in _NAME_KEYS if isinstance(item.get(key), str)), None)
                if key:
                    arguments_key = next((name for name in _ARGUMENT_KEYS if name in item), None)
                    others = {k: v for k, v in item.items() if k not in (key, "id", "type")}
                    arguments = item[arguments_key] if arguments_key else others
                    yield _Written(start, end, str(item[key]), arguments, arguments_key is not None)


def _call_objects(value: object) -> Iterator[Mapping[str, object]]:
    """The objects that may each be one call, out of the lists and envelopes models put around them."""
    if isinstance(value, list):
        for item in value:
            yield from _call_objects(item)
    elif isinstance(value, Mapping):
        inner = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), value.get("function"))
        if isinstance(inner, list | Mapping):
            yield from _call_objects(inner)
        else:
            yield value


def _tagged_calls(text: str) -> Iterator[_Written]:
    """`<function=name><parameter=key>value</parameter></function>`, as some models are trained to write."""
    for opening in islice(_ELEMENT.finditer(text), MAX_ELEMENTS):
        closing = text.find("</function>", opening.end(), opening.end() + MAX_ELEMENT_CHARS)
        end = closing if closing >= 0 else min(len(text), opening.end() + MAX_ELEMENT_CHARS)
        body = text[opening.end() : end]
        if _PARAMETER.match(body.lstrip()):
            parameters = list(_PARAMETER.finditer(body))
            ends = [following.start() for following in parameters[1:]] + [len(body)]
            arguments: dict[str, object] = {}
            for parameter, parameter_end in zip(parameters, ends, strict=True):
                value = body[parameter.end() : parameter_end].split("</parameter>")[0].strip()
                try:
                    arguments[parameter.group(1)] = json_reader.parse_json(value)
                except ValueError:
                    arguments[parameter.group(1)] = value
            yield _Written(opening.start(), end, opening.group(1), arguments)
        if closing < 0:
            return


def _find_spec(call: _Written, tools: Sequence[ToolSpec]) -> ToolSpec | None:
    name = offered_name(call.name, tools)
    return next((tool for tool in tools if tool.name == name), None)


def _parse_arguments(arguments: object) -> object:
    """Arguments are an object, or one written into a string."""
    if arguments is None:
        return {}
    with suppress(ValueError):
        return json_reader.parse_lenient(arguments) if isinstance(arguments, str) else arguments
    return arguments
