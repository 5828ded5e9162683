"""The tools of the agent loop: their names, descriptions and schemas, and the check of a call's arguments.

Beside the web, some tools search one source through a searcher of its own: vulnerabilities, Stack Exchange, the code of a
project, what the user adds. Research offers them as gathering tools; which can be used is known to the assembly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import check_schema, object_schema
from nexi.types import Query, ToolCall, ToolSpec

QUERY = {"type": "string", "minLength": 1, "maxLength": 1000}
URL = {"type": "string", "minLength": 1, "maxLength": 8192}
QUERIES = {"type": "array", "items": QUERY, "minItems": 1, "maxItems": 5, "description": "1 to 5 search queries"}
WEB_SEARCH = ToolSpec(
    "web_search",
    "Search the web. Give 1 to 5 different queries; they run in parallel. Returns titles, URLs and snippets.",
    object_schema({"queries": QUERIES}),
)
_GET_FULL = "return the text instead of a summary; of a long page, its best passages with part numbers"
WEB_GET = ToolSpec(
    "web_get",
    "Read 1 to 8 pages whose URLs came from search results, from pages already read, or from the user. "
    "Each page gets its citation number. By default a page is summarised for the question.",
    object_schema(
        {
            "urls": {"type": "array", "items": URL, "minItems": 1, "maxItems": 8, "description": "1 to 8 URLs, verbatim"},
            "instructions": {"type": "string", "description": "what to look for in these pages"},
            "get_full": {"type": "boolean", "description": _GET_FULL},
            "part": {"type": "integer", "minimum": 1, "description": "with get_full: read a long page on from this part"},
            "use_chunks": {"type": "boolean", "description": "return the passages that matter, word for word"},
        },
        required=["urls"],
    ),
)
FINAL_ANSWER = ToolSpec(
    "final_answer",
    "Give the final answer in Markdown, citing pages as [n]. This ends the search.",
    object_schema({"answer": {"type": "string", "minLength": 1, "description": "the complete answer"}}),
)
LOCAL_SEARCH = ToolSpec(
    "local_search",
    "Search what nexi already knows: pages read before and the user's own files. Ask here first, and search the web only for "
    "what is missing. Returns passages, each page with its citation number, and how much of the question they cover.",
    object_schema(
        {
            "queries": QUERIES,
            "get_full": {"type": "boolean", "description": "return whole pages instead of passages"},
        },
        required=["queries"],
    ),
)
SPECS = (WEB_SEARCH, WEB_GET, FINAL_ANSWER)


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


# tools for one source

OWN_DOMAINS = {"mathoverflow": "mathoverflow.net"} | {
    name: f"{name}.com" for name in ("stackoverflow", "superuser", "serverfault", "askubuntu", "stackapps")
}
_SITE = {
    "type": "string",
    "minLength": 2,
    "maxLength": 60,
    "pattern": r"^[A-Za-z0-9.-]+$",
    "description": "a site of the network such as superuser, askubuntu, unix or math; Stack Overflow where it is left out",
}


def build_spec(name: str, description: str, **more: Mapping[str, Any]) -> ToolSpec:
    """A tool that takes a query."""
    return ToolSpec(name, description, object_schema({"query": QUERY, **more}, required=["query"]))


EXTRA_SPECS = {
    spec.name: spec
    for spec in (
        build_spec("security_search", "Search NVD, CISA KEV, GitHub Advisories and OSV for vulnerabilities."),
        build_spec(
            "stackexchange",
            "Search questions of a Stack Exchange site. Returns each question with the text of its accepted answer.",
            site=_SITE,
        ),
        build_spec(
            "grep",
            "Search the code of the user's project with a regular expression, as ripgrep does. Returns files with matching "
            "lines; read a file by its URL to cite it.",
        ),
    )
}
BACKENDS_OF_TOOLS = {"security_search": "security", "stackexchange": "stackexchange", "grep": "ripgrep"}


def build_query(template: Query, arguments: Mapping[str, Any]) -> Query:
    """The query of one call. A site that the model names does not widen the sites that the user allows."""
    site = str(arguments.get("site") or "")
    if not site or template.sites:
        return template
    name = site.lower().removeprefix("www.")  # `unix` is unix.stackexchange.com
    host = name if name.endswith((".com", ".net")) else OWN_DOMAINS.get(name, f"{name}.stackexchange.com")
    return replace(template, sites=(host,))
