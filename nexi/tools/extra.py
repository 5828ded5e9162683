"""Tools that search one source besides the web: vulnerabilities, Stack Exchange, the code of a project, what the user adds.

Each asks one backend through a searcher of its own; research offers them as gathering tools, an ordinary search beside
`web_search`. Below are the specs of the loop's other tools; which of these can be used is known to the assembly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from nexi.types import Query, ToolSpec

__all__ = ["BACKENDS_OF_TOOLS", "EXTRA_SPECS", "build_query", "build_spec"]


OWN_DOMAINS = {"mathoverflow": "mathoverflow.net"} | {
    name: f"{name}.com" for name in ("stackoverflow", "superuser", "serverfault", "askubuntu", "stackapps")
}
_QUERY = {"type": "string", "minLength": 1, "maxLength": 1000}
_SITE = {
    "type": "string",
    "minLength": 2,
    "maxLength": 60,
    "pattern": r"^[A-Za-z0-9.-]+$",
    "description": "a site of the network such as superuser, askubuntu, unix or math; Stack Overflow where it is left out",
}


def build_spec(name: str, description: str, **more: Mapping[str, Any]) -> ToolSpec:
    """A tool that takes a query."""
    return ToolSpec(name, description, {"type": "object", "properties": {"query": _QUERY, **more}, "required": ["query"]})


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
