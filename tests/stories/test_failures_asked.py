"""The commonest causes of a failure, brought about in a running world and met by asking a question at every door.

Each cause is asked about in the terminal, at the prompt, over HTTP, over MCP and on the page, and what a person reads there
is written down in `tests/golden/asked`, a file for each cause. Beside the whole text, every door is held to two rules: the
cause is said once, and nothing of a library's dump is shown.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import pytest

from rig.served import Server
from rig.terminal import ENTER, Picture, Terminal
from tests.golden_files import compare_golden
from tests.stories.visit import SCREEN, Visitor, browser, printed_link
from tests.stories.world import LINK, PATIENCE_S, QUESTION, World, free_port, make_world

__all__ = ["browser"]

PROMPT = "nexi>"
DUMPS = re.compile(r"Errno|Exception|Traceback|0x[0-9a-f]{4}|object at|_ssl\.c|\bNone\b|httpx|httpcore|SQLITE_")
ASKS_MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def break_search(trouble: str) -> Callable[[World], None]:
    def bring_about(world: World) -> None:
        world.web.trouble = trouble

    return bring_about


def break_model(trouble: str) -> Callable[[World], None]:
    return lambda world: world.use_broken_model(trouble)


def set_environment(**env: str) -> Callable[[World], None]:
    return lambda world: world.env.update(env)


def stop_search(world: World) -> None:
    world.env["SEARXNG_URL"] = f"http://127.0.0.1:{free_port()}"


def stop_model(world: World) -> None:
    world.env |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1", "NEXI_MODEL": "scripted"}


def forbid_private_pages(world: World) -> None:
    del world.env["NEXI_ALLOW_PRIVATE"]


def damage_store(world: World) -> None:
    (world.home / "knowledge.db").write_bytes(b"no database at all " * 500)


def stop_proxy(world: World) -> None:
    world.env |= {"HTTP_PROXY": f"http://127.0.0.1:{free_port()}", "SEARXNG_URL": "http://searx.test:8080"}


def refuse_by_proxy(status: int, **env: str) -> Callable[[World], None]:
    def bring_about(world: World) -> None:
        world.env |= {"HTTP_PROXY": world.start_refusal(status, "<html><body>Proxy</body></html>"), **env}

    return bring_about


def limit_calls(world: World) -> None:
    world.use_model()
    world.set(max_model_calls=1)


def set_config(**settings: Any) -> Callable[[World], None]:
    return lambda world: world.set(**settings)


def fill_disk(world: World) -> None:
    """The home was used before, so that there is a token and a history, and now its disk is full."""
    world.move_to_small_disk()
    world.run("token")
    world.run(QUESTION)
    world.fill_disk()


def forbid_writing(world: World) -> None:
    """The same home on a disk that can only be read."""
    world.move_to_small_disk()
    world.run("token")
    world.run(QUESTION)
    world.forbid_writing()


CAUSES: Mapping[str, Callable[[World], None]] = {
    "SearXNG is not running": stop_search,
    "SearXNG has its JSON format switched off": break_search("json off"),
    "another site stands at the address of SearXNG": break_search("html"),
    "SearXNG limits requests": break_search("limiter"),
    "SearXNG has a fault": break_search("fault"),
    "no engine of SearXNG answers": break_search("no engines"),
    "SearXNG finds nothing": break_search("nothing"),
    "the host of SearXNG has no address": set_environment(SEARXNG_URL="http://searx.invalid:8080"),
    "the pages stand at a private address": forbid_private_pages,
    "robots.txt forbids every page": break_search("robots"),
    "every page is for subscribers": break_search("paywall"),
    "every page is gone": break_search("gone"),
    "the model server is not running": stop_model,
    "the key of the model is wrong": break_model("wrong key"),
    "the account of the model has no credit": break_model("no credit"),
    "the model server does not have the model": break_model("wrong name"),
    "the model server limits requests": break_model("too many"),
    "the window of the model is too small": break_model("small window"),
    "the model cannot use tools": break_model("no tools"),
    "a web page stands at the address of the model": break_model("page"),
    "a search service has no key": set_config(search_backend="brave"),
    "a search service is misspelt": set_config(search_backend="gooogle"),
    "the knowledge base is damaged": damage_store,
    "the proxy is not running": stop_proxy,
    "the proxy requires a login": refuse_by_proxy(407, SEARXNG_URL="http://searx.test:8080"),
    "the proxy before the model requires a login": refuse_by_proxy(
        407, OPENAI_BASE_URL="http://model.test/v1", NEXI_MODEL="scripted", NO_PROXY="127.0.0.1"
    ),
    "a limit on calls leaves no room for an answer": limit_calls,
    "the disk is full": fill_disk,
    "the home can only be read": forbid_writing,
}


def ask_in_pipe(world: World) -> str:
    done = world.run(QUESTION)
    told = "\n".join(line for line in done.err.splitlines() if not line.startswith("Read "))  # pages come in any order
    return f"exit code {done.code}\n{told}" + (f"\nstdout: {done.out}" if done.out else "")


def ask_at_prompt(world: World) -> str:
    """What stands between the question and the next prompt, as the screen has it."""
    with world.terminal(columns=400) as screen:  # no line wraps, however long the path of the home is
        screen.expect(PROMPT)
        screen.type(QUESTION + ENTER)
        while sum(line.startswith(PROMPT) for line in look_at(screen)) < 2:  # the line that is typed into is drawn many times
            screen.expect(PROMPT)
        lines = look_at(screen)
        screen.type(f"exit{ENTER}")
        screen.ending()
    first, last = [at for at, line in enumerate(lines) if line.startswith(PROMPT)][:2]
    return world.normalise("\n".join(lines[first + 1 : last]))


def look_at(screen: Terminal) -> list[str]:
    return Picture(LINK.sub("", screen.raw)).text.splitlines()


def ask_over_http(server: Server, world: World) -> str:
    with httpx2.Client(base_url=server.base, headers=server.headers, timeout=PATIENCE_S) as client:
        reply = client.post("/v1/runs", json={"question": QUESTION})
        run = reply.json()
        ends = time.monotonic() + PATIENCE_S
        while run.get("state") == "running" and time.monotonic() < ends:
            time.sleep(0.05)
            run = client.get(f"/v1/runs/{run['id']}").json()
    told = {name: run[name] for name in ("state", "error", "warnings") if run.get(name)}
    return world.normalise(f"{reply.status_code} {json.dumps(told, ensure_ascii=False)}")


def ask_over_mcp(server: Server, world: World) -> str:
    return world.normalise(call_tool(server, "nexi_search", query=QUESTION)["content"][0]["text"].strip())


def call_tool(server: Server, name: str, **arguments: Any) -> dict[str, Any]:
    """What a tool gives back, as a client over HTTP gets it."""

    def call(number: int, method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "story", "version": "1"}}
    with httpx2.Client(base_url=server.base, headers={**ASKS_MCP, **server.headers}, timeout=PATIENCE_S) as client:
        hello = client.post("/mcp", json=call(1, "initialize", **about))
        session = {"mcp-session-id": hello.headers["mcp-session-id"]} if "mcp-session-id" in hello.headers else {}
        client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
        asked = call(2, "tools/call", name=name, arguments=arguments)
        reply = client.post("/mcp", json=asked, headers=session)
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith(("data: ", "{"))]
    return next(dict(message["result"]) for message in map(json.loads, lines) if message.get("id") == 2)


def ask_on_page(world: World, browser: Any) -> str:
    profile = browser.new_context(**SCREEN)
    try:
        person = Visitor(profile.new_page(), printed_link(world), world)
        person.ask(QUESTION)
        person.finished()
        person.page.wait_for_load_state("networkidle")
        shown = [person.text(where) for where in ("#status", "#notes", "#answer")]
        return "\n".join(part for part in shown if part)
    finally:
        profile.close()


def count_cause(told: str, text: str) -> int:
    """How often a text says the cause that the run's own error has; wrapped or with a capital, it is the same."""
    said = json.loads(told.partition(" ")[2]).get("error", {}).get("cause", "")
    return " ".join(text.split()).count(" ".join(said.split())[1:]) if said else 0


@pytest.mark.parametrize("cause", CAUSES)
def test_every_door_names_the_cause_once_with_its_fix(cause: str, tmp_path: Any, browser: Any) -> None:
    with make_world(tmp_path) as world:
        CAUSES[cause](world)
        shown = {"terminal": ask_in_pipe(world), "prompt": ask_at_prompt(world)}
        server = world.serve()
        shown |= {"http": ask_over_http(server, world), "mcp": ask_over_mcp(server, world), "page": ask_on_page(world, browser)}
    assert {door: text for door, text in shown.items() if DUMPS.search(text)} == {}
    assert {door: text for door, text in shown.items() if count_cause(shown["http"], text) > 1} == {}
    lines = [f"# {cause}", *(f"[{door}] {text}" for door, text in shown.items())]
    compare_golden(f"asked/{re.sub('[^a-z]+', '-', cause.lower())}.txt", "\n".join(lines) + "\n")
