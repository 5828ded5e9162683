"""What Open WebUI's own code makes of a nexi server: a program for an environment that has Open WebUI and not nexi.

    python openwebui_host.py BASE TOKEN QUESTION PAGE PLUG-INS

Its search engines and its web loader are called as its retrieval router calls them; the plug-ins are stored in its database,
loaded, given their valves and run by its own functions. It prints one JSON value on the last line.
"""
# mypy: disable-error-code="import-not-found"
# Open WebUI is in that environment alone.

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

BASE, TOKEN, QUESTION, PAGE, PLUGINS = sys.argv[1:]
os.environ |= {
    "DATA_DIR": tempfile.mkdtemp(prefix="open-webui-"),
    "FROM_INIT_PY": "true",
    "WEBUI_SECRET_KEY": "for-this-test-only",
    "TAVILY_API_BASE_URL": f"{BASE}/tavily",
    "OFFLINE_MODE": "true",
    "GLOBAL_LOG_LEVEL": "ERROR",
}
VALVES = {"base_url": BASE, "token": TOKEN}


def source(name: str) -> str:
    return (Path(PLUGINS) / f"nexi_{name}.py").read_text(encoding="utf-8")


def request() -> Any:
    return SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace()), state=SimpleNamespace(), cookies={}, headers={})


def user() -> Any:
    from open_webui.models.users import UserModel

    now = int(time.time())
    return UserModel(id="u1", email="a@b.test", role="admin", name="A", last_active_at=now, updated_at=now, created_at=now)


class Screen:
    """What a plug-in shows in the chat."""

    def __init__(self) -> None:
        self.cited: list[str] = []

    async def __call__(self, event: dict[str, Any]) -> None:
        if event["type"] == "citation":
            self.cited.append(event["data"]["source"]["url"])


async def engines() -> dict[str, Any]:
    from open_webui.retrieval.loaders.external_web import ExternalWebLoader
    from open_webui.retrieval.web.external import search_external
    from open_webui.retrieval.web.searxng import search_searxng
    from open_webui.retrieval.web.tavily import search_tavily
    from open_webui.utils.session_pool import close_session

    def external(key: str, count: int = 1, only: list[str] | None = None) -> Any:
        return search_external(request(), f"{BASE}/openwebui/search", key, "moon distance", count, only, user=user())

    def pages(key: str, *urls: str) -> Any:
        return ExternalWebLoader(list(urls), f"{BASE}/openwebui/load", key).load()

    signed_in = BASE.replace("://", f"://any:{TOKEN}@")
    found = {
        "external": await asyncio.to_thread(external, TOKEN),
        "only other sites": await asyncio.to_thread(external, TOKEN, 5, ["mars.example"]),
        "external with a wrong key": await asyncio.to_thread(external, "wrong"),
        "searxng": await search_searxng(f"{signed_in}/searxng/search?q=<query>", "moon distance", 1, language="en"),
        "tavily": await asyncio.to_thread(search_tavily, TOKEN, "moon distance", 1),
    }
    loaded = {
        "loader": await asyncio.to_thread(pages, TOKEN, PAGE, f"{PAGE}/nothing"),
        "loader with a wrong key": await asyncio.to_thread(pages, "wrong", PAGE),
    }
    await close_session()
    told = {name: [hit.model_dump() for hit in hits] for name, hits in found.items()}
    return told | {
        name: [page.model_dump(include={"page_content", "metadata"}) for page in some] for name, some in loaded.items()
    }


async def stored(kind: str) -> Any:
    """The plug-in as an administrator adds it: stored, switched on, its valves set."""
    from open_webui.models.functions import FunctionForm, FunctionMeta, Functions
    from open_webui.utils.plugin import load_function_module_by_id

    name, content = f"nexi_{kind}", source(kind)
    _, loaded_as, about, _ = await load_function_module_by_id(name, content=content)
    form = FunctionForm(id=name, name=about["title"], content=content, meta=FunctionMeta(manifest=about))
    await Functions.insert_new_function("u1", loaded_as, form)
    await Functions.update_function_by_id(name, {"is_active": True})
    await Functions.update_function_valves_by_id(name, VALVES)
    return await Functions.get_function_by_id(name)


async def pipe() -> dict[str, Any]:
    from open_webui.functions import generate_function_chat_completion, get_function_models

    asked = request()
    kept = await stored("pipe")
    models = await get_function_models(asked)
    body = {"model": "nexi_pipe.nexi-s", "messages": [{"role": "user", "content": QUESTION}]}
    whole = await generate_function_chat_completion(asked, {**body}, user())
    reply = await generate_function_chat_completion(asked, {**body, "stream": True}, user())
    lines = [line async for line in reply.body_iterator]
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return {
        "type": kept.type,
        "models": [model["id"] for model in models],
        "answer": whole["choices"][0]["message"]["content"],
        "streamed": "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks),
        "ends": [chunks[-1]["choices"][0]["finish_reason"], lines[-1]],
    }


async def inlet() -> dict[str, Any]:
    from open_webui.utils.filter import FilterContext, process_filter_functions

    kept, screen = await stored("filter"), Screen()
    more = {"__event_emitter__": screen, "__user__": {"id": "u1"}, "__metadata__": {}}

    async def passed(text: str) -> str:
        body = {"model": "any", "messages": [{"role": "user", "content": text}]}
        out, _ = await process_filter_functions(request(), FilterContext(), [kept], "inlet", body, dict(more))
        return str(out["messages"][-1]["content"])

    return {
        "type": kept.type,
        "plain": await passed("moon"),
        "marked": await passed("??? moon distance"),
        "cited": screen.cited,
    }


async def tool() -> dict[str, Any]:
    from open_webui.models.tools import ToolForm, ToolMeta, Tools
    from open_webui.utils.plugin import load_tool_module_by_id
    from open_webui.utils.tools import get_tool_specs, get_tools

    module, about, _ = await load_tool_module_by_id("nexi_tool", content=source("tool"))
    form = ToolForm(id="nexi_tool", name=about["title"], content=source("tool"), meta=ToolMeta(manifest=about))
    await Tools.insert_new_tool("u1", form, get_tool_specs(module))
    await Tools.update_tool_valves_by_id("nexi_tool", VALVES)
    screen = Screen()
    tools = await get_tools(request(), ["nexi_tool"], user(), {"__user__": {"id": "u1"}, "__event_emitter__": screen})
    return {
        "parameters": {name: sorted(one["spec"]["parameters"]["properties"]) for name, one in sorted(tools.items())},
        "described": all(one["spec"]["description"].strip() for one in tools.values()),
        "answer": await tools["ask_the_web"]["callable"](question=QUESTION),
        "search": await tools["search_the_web"]["callable"](query="moon distance"),
        "page": await tools["read_web_page"]["callable"](url=PAGE),
        "cited": screen.cited,
    }


async def main() -> None:
    told = {"engines": await engines(), "pipe": await pipe(), "filter": await inlet(), "tool": await tool()}
    print("\n" + json.dumps(told), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
