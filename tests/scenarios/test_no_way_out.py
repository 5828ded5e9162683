"""A page that makes the model write an image with private text gets it into no answer, at no strictness and no door."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from mcp import Client

from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.answers.safe_markdown import find_exits
from nexi.app import Nexi
from nexi.app.intake import DocumentIndexing
from nexi.app.stored_runs import write_bundle
from nexi.config import Config
from nexi.errors import VerificationError
from nexi.events import Warned
from nexi.exports import export_run
from nexi.mcp import create_server
from nexi.runs.directory import RunDirectory
from nexi.testing import FakeWeb, ScriptedLLM, answering, calling, reading, searching
from nexi.types import Reply, Usage
from rig import miniweb, scripted_llm
from tests.children import CHILD_PATH
from tests.scenarios.test_over_loopback import PAGES, QUESTION
from tests.scenarios.world import MOON, World
from tests.test_safe_markdown import EVIL
from tests.web.world import GatedWeb, serving

Make = Callable[..., Config]
SAID = "The Moon is 384,400 km from Earth on average [1]."
TOLD = [
    f"![x](//{EVIL})",
    f"![x](http&#58;//{EVIL})",
    f"```a`b\n![x](http://{EVIL})",
    f"\\` ![x](http://{EVIL}) \\`",
    f"~~~\n```\n~~~\n![x](http://{EVIL})",
    f"` | ![x](http://{EVIL}) `\n---|---\n",
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("told", TOLD)
async def test_an_answer_carries_no_image_to_a_stranger(make_config: Make, told: str, strict: bool) -> None:
    config = make_config(strict=strict, verify_judge=False)
    world = World(config, searching("moon"), reading(MOON, get_full=True), answering(f"{SAID} {told} {SAID}"))
    try:
        answer = (await world.ask()).answer
    except VerificationError:
        assert strict  # nothing of it could stand
        return
    assert SAID.removesuffix(".") in answer.text
    assert find_exits(answer.text, lambda url: 0 if "evil" not in url else None) == set()


@pytest.mark.skipif(not (shutil.which("rg") or shutil.which("grep")), reason="neither rg nor grep is installed")
async def test_code_carries_no_private_text_to_a_stranger_and_the_warning_names_the_host_alone(
    make_config: Make, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "limits.md").write_text("A request is retried at most 7 times. The vault code is CANARY.\n")
    said = "A request is retried at most 7 times [1]."
    llm = ScriptedLLM(
        searching("retried"),
        reading("file:///limits.md#L1", get_full=True),
        answering(f"{said}\n\n```html\n<script>fetch('http://{EVIL}')</script>\n```\n\nRun `curl http://{EVIL}` [1]."),
    )
    config = make_config(search_backend="ripgrep", grep_root=str(notes), verify_judge=False)
    async with Nexi(config, llms=dict.fromkeys(("answer", "extract", "judge"), llm), fetchers=[FakeWeb({})]) as nexi:
        result = await nexi.answer("How often is a request retried?")
    warnings = [fact.message for fact in result.facts if isinstance(fact, Warned) and fact.code == "unknown_address"]
    assert "```html\n<script>fetch('[address removed]')</script>\n```" in result.answer.text
    assert "CANARY" not in result.answer.text
    assert warnings == ["the model wrote an address at evil.example that is on no page that was read; removed"]


OBEYS = (searching("moon"), reading(MOON, get_full=True), answering(f"{SAID} {TOLD[0]} {SAID}"))
CHAT = {"model": "nexi-m", "messages": [{"role": "user", "content": QUESTION}]}
HTTP: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": {"model": "nexi-m", "input": QUESTION},
    "/v1/completions": {"model": "nexi-m", "prompt": QUESTION},
    "/tavily/search": {"query": QUESTION, "include_answer": True},
}


async def test_no_door_and_no_export_shows_it_and_the_record_of_the_run_has_it(tmp_path: Path) -> None:
    model = ScriptedLLM(*OBEYS * 6)
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    llms = {"answer": model, "extract": model}
    async with serving(tmp_path, config=config, llms=llms) as served:
        run_id = await served.ask()
        events = await served.events(run_id)
        replies = {path: (await served.client.post(path, json=body)).text for path, body in HTTP.items()}
        for path in (f"/v1/runs/{run_id}/result", f"/page/runs/{run_id}"):
            replies[path] = (await served.client.get(path)).text
        for name in set(EXPORT_FORMATS) - {"pdf", "docx"}:
            replies[name] = (await served.client.get(f"/page/runs/{run_id}/export", params={"format": name})).text
    web = GatedWeb()
    async with Nexi(config, llms=llms, backends=(web,), fetchers=(web,)) as nexi, Client(create_server(nexi)) as client:
        replies["mcp"] = str(await client.call_tool("nexi_search", {"query": QUESTION}))
    assert {door: "CANARY" in text for door, text in replies.items()} == dict.fromkeys(replies, False)
    assert [door for door in (*HTTP, "mcp", "md", "html", f"/page/runs/{run_id}") if "384,400" not in replies[door]] == []
    assert {event["kind"] for _, event in events if "CANARY" in json.dumps(event)} == {"model_replied"}


def test_the_command_prints_and_saves_nothing_of_it(tmp_path: Path) -> None:
    class Obedient(scripted_llm.Script):
        def agent(self, messages: list[dict[str, Any]], question: str) -> tuple[str | None, list[tuple[str, dict[str, Any]]]]:
            text, calls = super().agent(messages, question)
            if calls[0][0] == "final_answer":
                calls = [("final_answer", {"answer": f"{calls[0][1]['answer']}. {TOLD[0]} {TOLD[1]}"})]
            return text, calls

    with miniweb.serve(miniweb.Corpus(PAGES)) as web, scripted_llm.serve(Obedient(2)) as model:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": CHILD_PATH,
            "NEXI_HOME": str(tmp_path / "home"),
            "SEARXNG_URL": web,
            "NEXI_ALLOW_PRIVATE": urlsplit(web).netloc,
            "MODEL_CHOICE": "extractive",  # no judge
            "OPENAI_BASE_URL": f"{model}/v1",
            "NEXI_MODEL": "scripted",
        }
        for arguments in ([], ["--json"], ["-o", str(tmp_path / "answer.md")]):
            command = [sys.executable, "-m", "nexi", *arguments, QUESTION]
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
            )
            shown = f"{done.stdout}{done.stderr}"
            assert (done.returncode, "384,400 km" in done.stdout, "CANARY" in shown) == (0, "-o" not in arguments, False)
    saved = (tmp_path / "answer.md").read_text("utf-8")
    assert ("384,400 km" in saved, "CANARY" in saved) == (True, False)


async def test_a_reply_without_a_search_and_an_answer_in_json_carry_no_image(tmp_path: Path) -> None:
    exit_ = f"![x](http://{EVIL})"
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    title = Reply(json.dumps({"title": f"Moon {exit_}"}), (), Usage(1, 1))
    model = ScriptedLLM(title, *OBEYS, Reply(json.dumps({exit_: f"far {exit_}"}), (), Usage(1, 1)))
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    task = '### Task:\nGenerate a title.\n<chat_history>\nUSER: The Moon\n</chat_history>\n{ "title": "x" }'
    async with serving(tmp_path, config=config, llms={"answer": model, "extract": model}) as served:
        for sent in ({**CHAT, "messages": [{"role": "user", "content": task}]}, {**CHAT, "response_format": form}):
            reply = await served.client.post("/v1/chat/completions", json=sent)
            assert (reply.status_code, "CANARY" in reply.text, "![" in reply.text) == (200, False, False)


async def test_a_model_a_record_and_an_export_have_passages_of_a_file_and_never_its_path(
    make_config: Make, tmp_path: Path
) -> None:
    folder = tmp_path / "cabinet-of-anna" / "notes"
    folder.mkdir(parents=True)
    (folder / "garden.md").write_text("# Garden\n\nThe shed key hangs behind the blue door of the garden house.\n")
    world = World(
        make_config(verify_judge=False),
        calling("local_search", queries=["shed key"]),
        answering("The shed key hangs behind the blue door of the garden house [1]."),
    )
    async with world.nexi() as nexi:
        await DocumentIndexing(nexi, nexi.knowledge(), embeds=False).take(str(folder / "garden.md"))
    run_id = (await world.ask("Where does the shed key hang?")).id
    runs = RunDirectory(world.config.runs_dir, world.config.pages_dir, clock=world.clock)
    write_bundle(runs, run_id, tmp_path / "bundle.tar.gz", [])
    with tarfile.open(tmp_path / "bundle.tar.gz") as bundle:
        parts = [part.read() for member in bundle if (part := bundle.extractfile(member))]
    forms = [await export_run(runs, runs.pages, run_id, form) for form in set(EXPORT_FORMATS) - {"pdf", "docx"}]
    log = (world.config.runs_dir / run_id / "log.jsonl").read_bytes()
    for text in (str(world.llm.requests).encode(), b"".join(parts), b"".join(forms), log):
        assert (b"behind the blue door" in text, b"cabinet-of-anna" in text) == (True, False)


async def test_a_stored_page_that_gives_orders_opens_no_address_and_shows_no_image(make_config: Make) -> None:
    config, made_up = make_config(verify_judge=False), f"https://{EVIL}"
    await World(config, searching("moon"), reading(MOON, get_full=True), answering(SAID)).ask()
    later = World(config, calling("local_search", queries=["moon"]), reading(made_up), answering(f"{SAID} {TOLD[0]}"))
    answer = (await later.ask("How far away is the Moon?")).answer
    assert (later.web.fetched, "CANARY" in answer.text, "384,400 km" in answer.text) == ([], False, True)
