"""Packages whose inner classes nexi builds on: what it uses of them is there, and they have an upper bound.

An upgrade that breaks one of these names fails here by name, and not somewhere in a connection.
"""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
# What is used beyond a documented interface, and by which module.
USED = {
    "nexi/web/server.py": {
        "uvicorn.protocols.http.h11_impl:H11Protocol": (
            "connection_made data_received connection_lost pause_writing resume_writing"
        ),
        "uvicorn.supervisors.multiprocess:Process": "server start",
        "uvicorn.supervisors.multiprocess:Multiprocess": "init_processes",
        "uvicorn:Server": "shutdown",
    },
    "nexi/fetchers/transport.py": {
        "httpcore2._async.http2:AsyncHTTP2Connection": "_write_outgoing_data",
    },
    "nexi/fetchers/guard.py": {
        "httpcore2:AsyncNetworkBackend": "connect_tcp connect_unix_socket sleep",
        "httpcore2:AsyncNetworkStream": "read write aclose start_tls get_extra_info",
    },
    "nexi/mcp/server.py": {
        "mcp.server.mcpserver:MCPServer": "list_tools call_tool read_resource get_prompt list_resources add_tool",
    },
}


@pytest.mark.parametrize(
    ("user", "place", "name"),
    [(user, place, name) for user, used in USED.items() for place, names in used.items() for name in names.split()],
)
def test_what_is_used_of_inner_classes_is_there(user: str, place: str, name: str) -> None:
    module, _, kind = place.partition(":")
    assert hasattr(getattr(import_module(module), kind), name), f"{place} has no {name} any more; {user} uses it"


@pytest.mark.parametrize("package", ["h2", "httpcore2", "httpx2", "mcp", "starlette", "uvicorn"])
def test_a_package_whose_inner_classes_are_used_has_an_upper_bound_everywhere(package: str) -> None:
    groups = [*PROJECT["project"]["optional-dependencies"].values(), *PROJECT["dependency-groups"].values()]
    lines = [line for group in (PROJECT["project"]["dependencies"], *groups) for line in group]
    bounds = [line for line in lines if re.fullmatch(rf"{package}[<>=].*", line)]
    assert bounds
    assert [line for line in bounds if "<" not in line] == []
