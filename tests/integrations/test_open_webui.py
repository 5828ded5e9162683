"""The Open WebUI tool, filter and pipe as their host loads them: from source, by class name, with valves."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("pydantic")

from tests.integrations.conftest import ITEMS, Stub, pack_of

FOLDER = Path(__file__).resolve().parents[2] / "integrations" / "open_webui"
CANARY = "token-canary-88bb"


def loaded(name: str) -> Any:
    """As the host does it: the source is executed in a new module, and the class is made without arguments."""
    module = ModuleType(f"function_{name}")
    exec((FOLDER / f"nexi_{name}.py").read_text(encoding="utf-8"), module.__dict__)  # noqa: S102 - our own file
    kind = {"tool": "Tools", "filter": "Filter", "pipe": "Pipe"}[name]
    return getattr(module, kind)()


def set_up(name: str, url: str, **valves: Any) -> Any:
    made = loaded(name)
    made.valves = made.Valves(**{"base_url": url, "token": CANARY, **valves})
    return made


class Screen:
    """What a plug-in shows."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    async def __call__(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    @property
    def cited(self) -> list[str]:
        return [e["data"]["source"]["url"] for e in self.events if e["type"] == "citation"]

    @property
    def last_status(self) -> dict[str, Any]:
        return [e["data"] for e in self.events if e["type"] == "status"][-1]


@pytest.mark.parametrize("name", ["tool", "filter", "pipe"])
def test_each_file_begins_with_what_the_host_reads_and_has_documented_valves(name: str) -> None:
    head = (FOLDER / f"nexi_{name}.py").read_text(encoding="utf-8").split('"""')[1]
    about = dict(line.split(": ", 1) for line in head.strip().splitlines())
    assert list(about) == ["title", "author", "description", "version", "license"]
    schema = loaded(name).Valves.model_json_schema()["properties"]
    assert {"base_url", "token", "timeout_s"} <= set(schema)
    assert all(field["description"] for field in schema.values())


# tool


def test_the_functions_of_the_tool_are_described_for_a_model() -> None:
    tool = loaded("tool")
    public = [n for n, f in inspect.getmembers(tool, inspect.iscoroutinefunction) if not n.startswith("_")]
    assert public == ["ask_the_web", "read_web_page", "search_the_web"]
    for name in public:
        function = getattr(tool, name)
        own = [p for p in inspect.signature(function).parameters if not p.startswith("__")]
        assert all(f":param {p}: " in (inspect.getdoc(function) or "") for p in own)


async def test_the_tool_answers_with_its_sources_cited(stub: tuple[str, Stub]) -> None:
    url, told = stub
    screen = Screen()
    answer = await set_up("tool", url, effort="s").ask_the_web("is it so?", __event_emitter__=screen)
    assert answer == "It is so [1].\n\nSources:\n[1] Title 0: https://example.com/0"
    assert screen.cited == ["https://example.com/0"]
    assert screen.last_status["done"] is True
    assert told.asked[0][1] == {"model": "nexi-s", "messages": [{"role": "user", "content": "is it so?"}]}
    assert told.asked[0][2] == f"Bearer {CANARY}"


async def test_the_tool_searches_and_reads(stub: tuple[str, Stub]) -> None:
    url, _ = stub
    screen, tool = Screen(), set_up("tool", url, max_results=2)
    assert await tool.search_the_web("moon", __event_emitter__=screen) == pack_of(ITEMS[:2], "moon")
    assert await tool.read_web_page("https://example.com/0") == "The page."
    assert screen.cited == ["https://example.com/0", "https://example.com/1"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/search", "/openwebui/load"])
@pytest.mark.parametrize(
    ("status", "reply"), [(401, {}), (503, {"detail": "busy"}), (200, b"<html>"), (200, 5), (200, {"choices": []})]
)
async def test_the_tool_tells_the_model_what_went_wrong(stub: tuple[str, Stub], path: str, status: int, reply: Any) -> None:
    url, told = stub
    told.replies[path] = lambda _: (status, reply)
    tool, screen = set_up("tool", url), Screen()
    call = {"/v1/chat/completions": tool.ask_the_web, "/v1/search": tool.search_the_web, "/openwebui/load": tool.read_web_page}
    said = await call[path]("https://example.com/0", __event_emitter__=screen)
    assert said.startswith("The web could not be used: ") or said == "Nothing was found."
    assert CANARY not in said
    assert screen.last_status["done"] is True


# filter


async def test_the_filter_puts_evidence_in_front_of_a_marked_message(stub: tuple[str, Stub]) -> None:
    url, told = stub
    screen = Screen()
    body = {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "??? moon"}], "model": "x"}
    user = {"id": "1", "valves": {"inject_date": False, "full": True}}
    out = await set_up("filter", url, max_results=2).inlet(body, __event_emitter__=screen, __user__=user)
    assert out["messages"][-1]["content"] == f"{pack_of(ITEMS[:2], 'moon')}\n\nmoon"
    assert out["messages"][0] == {"role": "system", "content": "s"}
    assert told.bodies("/v1/search")[0]["constraints"] == {"search_mode": "full"}
    assert screen.cited == ["https://example.com/0", "https://example.com/1"]


async def test_the_filter_leaves_other_messages_alone(stub: tuple[str, Stub]) -> None:
    url, told = stub
    made = set_up("filter", url)
    for messages in (
        [],
        [{"role": "user", "content": "moon"}],
        [{"role": "assistant", "content": "??? moon"}],
        [{"role": "user"}],
    ):
        assert await made.inlet({"messages": messages}) == {"messages": messages}
    assert told.asked == []


async def test_the_filter_ranks_first_where_it_should_and_keeps_images(stub: tuple[str, Stub]) -> None:
    url, told = stub
    made = set_up("filter", url)
    parts = [{"type": "image_url", "image_url": {"url": "data:"}}, {"type": "text", "text": "??? moon"}]
    user = {"valves": made.UserValves(snippet_rank=True)}
    out = await made.inlet({"messages": [{"role": "user", "content": parts}]}, __user__=user)
    image, text = out["messages"][0]["content"]
    assert image["type"] == "image_url"
    assert "https://example.com/3" in text["text"]
    assert "https://example.com/0" not in text["text"]
    assert told.bodies("/v1/search")[-1]["constraints"]["pick_ids"] == [3, 1]


@pytest.mark.parametrize(("status", "reply"), [(500, {}), (200, b"x"), (200, {}), (200, [])])
async def test_the_filter_shows_its_failure_and_lets_the_message_through(
    stub: tuple[str, Stub], status: int, reply: Any
) -> None:
    url, told = stub
    told.replies["/v1/search"] = lambda _: (status, reply)
    screen = Screen()
    body = {"messages": [{"role": "user", "content": "??? moon"}]}
    out = await set_up("filter", url).inlet(body, __event_emitter__=screen)
    assert out["messages"][0]["content"] == "moon"
    assert screen.last_status["description"].startswith("nexi")


# pipe


def test_the_pipe_offers_the_models_of_the_server(stub: tuple[str, Stub]) -> None:
    url, _ = stub
    assert set_up("pipe", url, name_prefix="web/").pipes() == [
        {"id": "nexi-m", "name": "web/nexi-m"},
        {"id": "nexi-deep", "name": "web/nexi-deep"},
    ]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "ftp://x", "http://127.0.0.1:9/\x00"])
async def test_a_server_that_is_not_there_is_shown_as_a_model_and_as_an_answer(url: str) -> None:
    pipe = set_up("pipe", url)
    (only,) = pipe.pipes()
    body = {"model": "nexi.nexi-m", "messages": [{"role": "user", "content": "x"}]}
    assert (only["id"], only["name"].startswith("nexi: ")) == ("error", True)
    assert (await pipe.pipe(body)).startswith("nexi: ")
    (part,) = [part async for part in await pipe.pipe({**body, "stream": True})]
    assert part.startswith("nexi: ")


@pytest.mark.parametrize("stream", [True, False])
async def test_the_pipe_answers_whole_or_streamed_with_sources(stub: tuple[str, Stub], stream: bool) -> None:
    url, told = stub
    screen = Screen()
    body = {"model": "nexi_pipe.nexi-m", "messages": [{"role": "user", "content": "so?"}], "stream": stream}
    reply = await set_up("pipe", url).pipe(body, __event_emitter__=screen)
    text = "".join([part async for part in reply]) if stream else reply
    assert text == "It is so [1]."
    assert screen.cited == ["https://example.com/0"]
    assert told.bodies("/v1/chat/completions")[0]["model"] == "nexi-m"


async def test_an_error_in_the_stream_is_shown(stub: tuple[str, Stub]) -> None:
    url, told = stub
    told.replies["/v1/chat/completions"] = lambda _: (
        200,
        b'data: {"error": {"message": "no evidence"}}\n\n: ping\n\ndata: [DONE]\n\n',
    )
    reply = await set_up("pipe", url).pipe({"model": "nexi-m", "messages": [], "stream": True})
    assert "".join([part async for part in reply]) == "\n\nnexi: no evidence"


async def test_a_task_of_the_host_goes_to_the_plain_model_and_is_not_streamed(stub: tuple[str, Stub]) -> None:
    url, told = stub
    body = {"model": "nexi_pipe.nexi-deep", "messages": [{"role": "user", "content": "Name this chat."}], "stream": True}
    assert await set_up("pipe", url).pipe(body, __task__="title_generation") == "It is so [1]."
    (asked,) = told.bodies("/v1/chat/completions")
    assert (asked["search"], asked["stream"]) == (False, False)


async def test_a_task_that_fails_leaves_no_error_in_its_place() -> None:
    body = {"model": "nexi_pipe.nexi-m", "messages": [{"role": "user", "content": "Name this chat."}]}
    assert await set_up("pipe", "http://127.0.0.1:9").pipe(body, __task__="title_generation") == ""


async def test_the_progress_of_research_is_shown_until_the_report_begins(stub: tuple[str, Stub]) -> None:
    url, told = stub
    lines = [{"reasoning_content": "planning\n"}, {"reasoning_content": "Searched: moon\n"}, {"content": "It is so."}]
    frames = [b"data: %s\n\n" % json.dumps({"choices": [{"delta": delta}]}).encode() for delta in lines]
    told.replies["/v1/chat/completions"] = lambda _: (200, b"".join(frames) + b"data: [DONE]\n\n")
    screen = Screen()
    reply = await set_up("pipe", url).pipe({"model": "nexi-deep", "messages": [], "stream": True}, __event_emitter__=screen)
    assert "".join([part async for part in reply]) == "It is so."
    shown = [event["data"] for event in screen.events if event["type"] == "status"]
    assert [(data["description"], data["done"]) for data in shown] == [
        ("planning", False),
        ("Searched: moon", False),
        ("", True),
    ]


@pytest.mark.parametrize("name", ["tool", "filter", "pipe"])
async def test_a_token_that_cannot_be_sent_is_not_repeated(name: str, stub: tuple[str, Stub]) -> None:
    url, _ = stub
    made, screen = set_up(name, url, token=f"{CANARY}\nx"), Screen()
    if name == "tool":
        said = await made.ask_the_web("x", __event_emitter__=screen)
    elif name == "filter":
        said = str(await made.inlet({"messages": [{"role": "user", "content": "??? x"}]}, __event_emitter__=screen))
    else:
        said = await made.pipe({"model": "nexi-m", "messages": []}) + str(made.pipes())
    assert CANARY not in said + str(screen.events)
