"""What a tool tells a model that uses it badly."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from nexi.app import Nexi
from nexi.config import Config
from nexi.testing import FakeWeb
from nexi.types import ToolCall

Make = Callable[..., Config]


@pytest.mark.parametrize("queries", [["  "], [" ", "\t\n"], " "])
async def test_blank_queries_are_said_to_be_blank(make_config: Make, queries: object) -> None:
    web = FakeWeb({})
    async with Nexi(make_config(), backends=[web], fetchers=[web]) as nexi:
        result = await nexi.run_tool(ToolCall("1", "web_search", json.dumps({"queries": queries})))
    assert (result.ok, json.loads(result.text)) == (False, {"error": "the queries are blank: write what to search for"})
    assert web.queries == []
