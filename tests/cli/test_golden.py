"""What the commands and the prompt print, whole; the golden files of this door."""

from __future__ import annotations

import json
import re
import shlex
import sys

import pytest

from tests.cli.command import QUESTION, Command, Outcome, Terminal
from tests.golden_files import GOLDEN, compare_golden

DEEP = "how far is the moon from earth on average"
TEXTS = {
    "ask": ["--plain", QUESTION],
    "ask-usage": ["--format", "md", "-u", "-e", "s", QUESTION],
    "ask-nothing": ["--plain", "xyzzy plugh"],
    "find": ["find", "moon distance"],
    "find-nothing": ["find", "xyzzy plugh"],
    "fetch": ["fetch", "WEB/moon.test/facts"],
    "fetch-missing": ["fetch", "WEB/moon.test/nowhere"],
    "fetch-private": ["fetch", "http://10.0.0.1/"],
    "history": ["history"],
    "history-search": ["history", "search", "MOON"],
    "history-show": ["--show", "ID"],
    "history-rm": ["history", "rm", "ID"],
    "open": ["open", "1"],
    "research": ["research", "--plain", DEEP],
    "research-deep": ["--deep", "--plain", "--yes", "-o", "-", DEEP],
    "research-nothing": ["research", "--plain", "xyzzy plugh"],
    "research-usage": ["research"],
    "no-runs": ["runs"],
    "runs": ["runs"],
    "runs-rm": ["runs", "rm", "ID"],
    "resume-complete": ["resume", "ID"],
    "resume-missing": ["resume", "ffffff"],
    "replay": ["replay", "ID"],
    "stop": ["stop", "ID"],
    "export": ["export", "ID", "--bundle", "-o", "run.tar.gz"],
}
OBJECTS = {
    "ask": ["--json", QUESTION],
    "ask-nothing": ["--format", "json", "xyzzy plugh"],
    "find": ["find", "moon distance", "-n", "1", "--json"],
    "find-nothing": ["find", "--json", "xyzzy plugh"],
    "fetch": ["fetch", "--json", "WEB/moon.test/facts"],
    "fetch-private": ["fetch", "--json", "http://10.0.0.1/"],
    "history": ["history", "--json"],
    "history-show": ["history", "show", "--json", "ID"],
    "history-missing": ["--json", "--show", "zzzzzz"],
    "research": ["research", "--json", DEEP],
    "runs": ["runs", "--json"],
    "replay": ["replay", "--json", "ID"],
    "resume-complete": ["resume", "--json", "ID"],
}
ELSEWHERE = {
    "admin.txt",
    "asked",  # by tests/stories
    "failures.txt",
    "agentic.json",
    "messages.txt",
    "doors.txt",
    "mcp.txt",
    "http.txt",
    "http-token.txt",
}  # compared by other tests
PROMPT_LINES = [
    "/help", "/model", "/effort", "/effort x", "/sources", "/retry", "/save", "/deep", "/sorces", "/nonsense", QUESTION,
    "/sources", "/effort s", "/save answer.md", "/save answer.md", "quit",
]  # fmt: skip
AFTER_AN_ANSWER = ("history", "open", "runs", "resume", "replay", "stop", "export")


@pytest.mark.parametrize("name", TEXTS)
def test_text_outputs_are_as_recorded(name: str, online: Command, web: str) -> None:
    known = answered(online) if name.startswith(AFTER_AN_ANSWER) else ""
    done = online(*(a.replace("WEB", web).replace("ID", known) for a in TEXTS[name]))
    text = f"$ nexi {shlex.join(TEXTS[name])}\n{done.out}[stderr]\n{done.err}[exit code {done.code}]\n"
    text = text.replace(known, "3fa9c1") if known else text
    compare_golden(f"{name}.txt", normalised(text, online, web))


@pytest.mark.parametrize("name", OBJECTS)
def test_json_outputs_are_as_recorded(name: str, online: Command, web: str) -> None:
    known = answered(online) if name.startswith(AFTER_AN_ANSWER) else ""
    done = online(*(a.replace("WEB", web).replace("ID", known) for a in OBJECTS[name]))
    text = json.dumps(json.loads(done.out), indent=2, ensure_ascii=False) + "\n"
    compare_golden(f"{name}.json", normalised(text, online, web))


def test_the_prompt_says_what_is_recorded(online: Command, web: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lines:
        def __init__(self) -> None:
            self.left = list(PROMPT_LINES)

        async def read(self) -> str:
            line = self.left.pop(0)
            print(f"nexi> {line}", file=sys.stderr)
            return line

    monkeypatch.setattr("nexi.cli.repl.open_prompt", lambda *_, **__: Lines())
    monkeypatch.setattr("nexi.cli.delivery.is_tty", lambda _: True)
    done = online("--plain", stdin=Terminal())
    compare_golden("repl.txt", normalised(f"{done.err}[stdout]\n{done.out}[exit code {done.code}]\n", online, web))


def answered(nexi: Command) -> str:
    """One answer in the history; its id."""
    done: Outcome = nexi("--json", QUESTION)
    return str(json.loads(done.out)["id"])


def normalised(text: str, nexi: Command, web: str) -> str:
    """The text without what differs from run to run: ids, times, the port, the home."""
    for folder in (nexi.home / "runs").glob("*"):
        text = text.replace(folder.name, "3fa9c1")
    text = text.replace(web, "http://127.0.0.1:8080").replace(str(nexi.home), "~/.local/share/nexi")
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|\+00:00)", "2026-01-02T03:04:05+00:00", text)
    text = text.replace(str(nexi.home.parent / "desk"), "~/desk")
    text = re.sub(r"-[a-z]\d\.md", "-a3.md", text)  # drawn by lot
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "2026-01-02 03:04", text)
    text = re.sub(r'("query": .*,\s+"bytes": )\d+', r"\g<1>1000", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "5ha256", text)  # a page holds the port
    text = re.sub(r'("(?:seconds|duration_s)": )[\d.]+', r"\g<1>0.5", text)
    return re.sub(r"\b\d+(?:\.\d+)?( ?s(?: ago)?\b)", r"0\1", text)


def test_every_golden_file_is_compared() -> None:
    expected = {f"{name}.txt" for name in TEXTS} | {f"{name}.json" for name in OBJECTS} | {"repl.txt"}
    assert {path.name for path in GOLDEN.iterdir()} == expected | ELSEWHERE
