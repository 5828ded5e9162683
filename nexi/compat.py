"""The functions of the first version, importable from `nexi.tools` and `nexi.search`. Each calls the code of today."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from nexi.ports import LLM
from nexi.tools.specs import FINAL_ANSWER, TOOLS, WEB_GET, WEB_SEARCH, parse_arguments
from nexi.tools.toolbox import ExtractLimits, render_searches, summarise, to_json
from nexi.types import Message, ToolCall


@runtime_checkable
class SearchBackend(Protocol):
    """The seeds' plug-in for search; `nexi.app` puts it behind the port."""

    async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:  # noqa: ASYNC109 - the seeds' signature
        ...


@runtime_checkable
class ContentFetcher(Protocol):
    """The seeds' plug-in for reading pages; `nexi.app` puts it behind the port."""

    async def fetch(self, urls: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:  # noqa: ASYNC109 - the seeds' signature
        ...


async def web_search(queries: list[str], config: Any, verbose: bool = False) -> dict[str, Any]:
    """Search 1 to 5 queries in parallel and return the seeds' JSON."""
    return await execute_tool(WEB_SEARCH.name, {"queries": queries}, config, verbose)


async def web_get(
    urls: list[str],
    config: Any,
    query: str = "",
    instructions: str = "",
    get_full: bool = False,
    use_chunks: bool = False,
    verbose: bool = False,
) -> dict[str, Any]:
    """Read 1 to 8 pages the caller vouches for and return the seeds' JSON."""
    arguments = {"urls": urls, "instructions": instructions, "get_full": get_full, "use_chunks": use_chunks}
    return await execute_tool(WEB_GET.name, arguments, config, verbose, query=query)


async def execute_tool(
    name: str, arguments: Mapping[str, Any], config: Any, verbose: bool = False, *, query: str = ""
) -> dict[str, Any]:
    """Run one tool outside a search; an unknown tool or a bad argument comes back as {"error": …}."""
    if name == FINAL_ANSWER.name:
        _, problem = parse_arguments(ToolCall("", name, to_json(arguments)), FINAL_ANSWER)
        return {"error": problem} if problem else {"answer": arguments["answer"]}
    from nexi.app import Nexi

    async with Nexi(config) as nexi:
        result = await nexi.run_tool(ToolCall("direct", name, to_json(arguments)), question=query)
    value: dict[str, Any] = json.loads(result.text)
    return value


async def _extract_with_llm(content: str, query: str, instructions: str, llm: LLM) -> str:
    """What a page says about the query, by the extract model; `content[:2000]` when it fails."""
    return await summarise(llm, content, query, instructions, ExtractLimits())


class JinaSearchBackend:
    async def search(self, queries: list[str], api_key: str, timeout: float = 30, verbose: bool = False) -> dict[str, Any]:  # noqa: ASYNC109 - the seeds' signature
        from nexi.app.plugins import search_as_plugin

        return render_searches(await search_as_plugin("jina", queries, api_key, timeout))


class JinaContentFetcher:
    async def fetch(self, urls: list[str], api_key: str, timeout: float = 40, verbose: bool = False) -> dict[str, Any]:  # noqa: ASYNC109 - the seeds' signature
        from nexi.app.plugins import fetch_as_plugin

        views = await fetch_as_plugin("jina", urls, api_key, timeout)
        return {"pages": [{"url": v.url, "content": v.text, **({"error": v.error} if v.error else {})} for v in views]}


def _get_tool_schemas() -> list[dict[str, Any]]:
    return [dict(t) for t in TOOLS]


async def _force_answer(messages: Sequence[Mapping[str, Any]], config: Any, reason: str = "a limit was reached") -> str:
    """One last call without tools: an answer from the conversation as it stands."""
    from nexi.agent import flatten_tool_messages
    from nexi.app import Nexi
    from nexi.prompts import render

    conversation = flatten_tool_messages([Message.from_dict(m) for m in messages])
    prompt = render("force_answer", folder=config.prompts_dir, reason=reason)
    async with Nexi(config) as nexi:
        llm = nexi.gate().open_llm("answer")
        reply = await llm.complete([*conversation, Message("user", prompt)], max_tokens=config.max_output_tokens)
    return reply.text
