"""The tools of the agent loop, as `specs.json` describes them, and the check of a call's arguments.

Beside the web, some tools search one source: vulnerabilities, Stack Exchange, the code of a project, what the user adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import check_schema, object_schema
from nexi.types import Query, ToolCall, ToolSpec

_ROWS = msgspec.json.decode(Path(__file__).with_name("specs.json").read_bytes(), type=tuple[ToolSpec, ...])
WEB_SEARCH, WEB_GET, FINAL_ANSWER, LOCAL_SEARCH, *_OTHERS = _ROWS
SPECS = (WEB_SEARCH, WEB_GET, FINAL_ANSWER)
EXTRA_SPECS = {spec.name: spec for spec in _OTHERS}
BACKENDS_OF_TOOLS = {"security_search": "security", "stackexchange": "stackexchange", "grep": "ripgrep"}
QUERY: Mapping[str, Any] = WEB_SEARCH.parameters["properties"]["queries"]["items"]
URL: Mapping[str, Any] = WEB_GET.parameters["properties"]["urls"]["items"]
OWN_DOMAINS = {"mathoverflow": "mathoverflow.net"} | {
    name: f"{name}.com" for name in ("stackoverflow", "superuser", "serverfault", "askubuntu", "stackapps")
}
# in the format of OpenAI
TOOLS: tuple[dict[str, Any], ...] = tuple(
    {"type": "function", "function": {"name": s.name, "description": s.description, "parameters": dict(s.parameters)}}
    for s in SPECS
)


def parse_arguments(call: ToolCall, spec: ToolSpec) -> tuple[dict[str, Any], str]:
    """Parse and check the arguments of a call; the second value tells the model what is wrong with them."""
    try:
        value = parse_lenient(call.arguments or "{}")
    except ValueError as error:
        return {}, f"the arguments are not JSON: {error}"
    if isinstance(value, dict):  # weak models often write a single string where a list is wanted
        properties = spec.parameters["properties"]
        lists = {k: [v] for k, v in value.items() if isinstance(v, str) and properties.get(k, {}).get("type") == "array"}
        value = {**value, **lists}
    problems = check_schema(value, spec.parameters)
    if problems or not isinstance(value, dict):
        return {}, "; ".join(problems) or "the arguments must be an object"
    return value, ""


def build_spec(name: str, description: str) -> ToolSpec:
    """A tool that takes a query."""
    return ToolSpec(name, description, object_schema({"query": QUERY}))


def build_query(template: Query, arguments: Mapping[str, Any]) -> Query:
    """The query of one call. A site that the model names does not widen the sites that the user allows."""
    site = str(arguments.get("site") or "")
    if not site or template.sites:
        return template
    name = site.lower().removeprefix("www.")  # `unix` is unix.stackexchange.com
    host = name if name.endswith((".com", ".net")) else OWN_DOMAINS.get(name, f"{name}.stackexchange.com")
    return replace(template, sites=(host,))
