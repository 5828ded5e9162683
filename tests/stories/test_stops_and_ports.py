"""What a person does or meets beside the question, at every door: a stop, which is no failure, and a port that is taken.

As in `test_failures_asked`, what is read at each door is written down in `tests/golden/asked`.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from typing import Any

import httpx2

from rig.served import Server
from rig.terminal import CTRL_C, ENTER
from tests.golden_files import compare_golden
from tests.stories.test_failures_asked import PROMPT, call_tool, look_at
from tests.stories.visit import SCREEN, Visitor, browser, printed_link
from tests.stories.world import PATIENCE_S, QUESTION, World

__all__ = ["browser"]


def wait_for_search(world: World) -> None:
    assert world.web.searched.wait(PATIENCE_S)
    world.web.searched.clear()


def stop_in_pipe(world: World) -> str:
    process = subprocess.Popen(
        [sys.executable, "-m", "nexi", QUESTION],
        env=world.env,
        cwd=world.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_search(world)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    told = [line for line in err.splitlines() if not line.startswith("Searched ")]  # the stop may come before the results
    return world.normalise("\n".join([f"exit code {process.returncode}", *told, out]))


def stop_at_prompt(world: World) -> str:
    with world.terminal(columns=200) as screen:
        screen.expect(PROMPT)
        screen.type(QUESTION + ENTER)
        wait_for_search(world)
        screen.type(CTRL_C)
        while sum(line.startswith(PROMPT) for line in look_at(screen)) < 2:
            screen.expect(PROMPT)
        lines = look_at(screen)
        screen.type(f"exit{ENTER}")
        screen.ending()
    first, last = [at for at, line in enumerate(lines) if line.startswith(PROMPT)][:2]
    return world.normalise("\n".join(lines[first + 1 : last]))


def stop_over_http(server: Server, world: World) -> str:
    with httpx2.Client(base_url=server.base, headers=server.headers, timeout=PATIENCE_S) as client:
        run = client.post("/v1/runs", json={"question": QUESTION}).json()
        wait_for_search(world)
        client.post(f"/v1/runs/{run['id']}/stop")
        ends = time.monotonic() + PATIENCE_S
        while run["state"] == "running" and time.monotonic() < ends:
            time.sleep(0.05)
            run = client.get(f"/v1/runs/{run['id']}").json()
    told = {name: run[name] for name in ("state", "stop", "error", "warnings") if run.get(name)}
    return world.normalise(json.dumps(told, ensure_ascii=False))


def stop_over_mcp(server: Server, world: World) -> str:
    """A question ends with its call, so research is stopped, which has a tool for it."""
    started = call_tool(server, "nexi_research", question=QUESTION)
    run_id = started["structuredContent"]["id"]
    wait_for_search(world)
    stopped = call_tool(server, "nexi_research_cancel", run_id=run_id)
    shown = call_tool(server, "nexi_research_status", run_id=run_id)
    told = "\n".join(reply["content"][0]["text"].strip().split("\n")[0] for reply in (stopped, shown))
    return world.normalise(re.sub(r"[\d,]+ tokens", "N tokens", told))  # it may come before or after the plan is paid


def stop_on_page(world: World, browser: Any) -> str:
    profile = browser.new_context(**SCREEN)
    try:
        person = Visitor(profile.new_page(), printed_link(world), world)
        person.ask(QUESTION)
        wait_for_search(world)
        person.page.click("#stop")
        person.sees("Stopped", "#status")
        shown = [person.text(where) for where in ("#status", "#notes", "#answer")]
        person.open_history()
        rows = person.page.locator("#runs-list .state span").all_inner_texts()
        states = [row for row in rows if row]  # repeats are folded
        return "\n".join([*(part for part in shown if part), f"history: {', '.join(sorted(set(states)))}"])
    finally:
        profile.close()


def test_what_a_person_stops_is_stopped_at_every_door_and_no_error(world: World, browser: Any) -> None:
    world.web.is_open.clear()
    shown = {"terminal": stop_in_pipe(world), "prompt": stop_at_prompt(world)}
    server = world.serve()
    shown |= {"http": stop_over_http(server, world), "mcp": stop_over_mcp(server, world), "page": stop_on_page(world, browser)}
    states = {run["state"] for run in json.loads(world.run("runs", "--json").out)["runs"]}
    lines = ["# stopped by a person", *(f"[{door}] {text}" for door, text in shown.items())]
    compare_golden("asked/stopped-by-a-person.txt", "\n".join(lines) + "\n")
    assert states == {"stopped"}
    assert [door for door, text in shown.items() if "Error" in text or "failed" in text] == []


def test_a_port_in_use_is_said_by_every_server_that_listens(world: World) -> None:
    port = world.serve().base.rpartition(":")[2]
    shown = {
        command: world.run(*command.split(), port if command.startswith("mcp") else f"--port={port}")
        for command in ("serve", "mcp http 127.0.0.1")
    }
    lines = [
        "# the port is in use",
        *(f"[nexi {command}] exit code {done.code}\n{done.err}" for command, done in shown.items()),
    ]
    compare_golden("asked/the-port-is-in-use.txt", "\n".join(lines).replace(port, "PORT") + "\n")
