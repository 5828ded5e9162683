"""Tool calls that a model wrote as text.

Fenced, tagged and bare JSON are understood; only tools that were offered count, and only arguments that fit the tool's schema,
so that prose which merely contains JSON stays prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from msgspec import Struct

from nexi.structured import json_reader, schema_check
from nexi.types import ToolCall, ToolSpec

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
