"""The wording of errors, once: every message in a catalogue, and one error of each class as each door shows it.

Other tests compare codes, exit codes and data, so a better sentence changes one golden file and no test.
"""

from __future__ import annotations

import json

import pytest

from nexi.apis import openwebui, searxng, tavily
from nexi.apis.openai.shapes import openai_error
from nexi.errors import NexiError
from nexi.mcp.server import _error_result
from nexi.output import print_failure
from nexi.web.payload import own_shape, problem_of
from tests.golden_files import compare_golden
from tests.messages import ERRORS, Entry, find_entries, list_messages
from tests.wording import ROOT

SOURCES = sorted((ROOT / "nexi").rglob("*.py"))
SHAPES = {
    "http": own_shape,
    "chat completions": openai_error,
    "tavily": tavily.tavily_error,
    "searxng": searxng.searxng_error,
    "open webui": openwebui.openwebui_error,
}


def test_every_message_is_as_recorded() -> None:
    compare_golden("messages.txt", "\n".join(map(str, list_messages(SOURCES))) + "\n")


def test_every_class_of_error_is_shown_as_recorded_at_every_door(capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for name in sorted(ERRORS):
        error = ERRORS[name]("the thing failed", cause="its reason", fix="do this")
        lines += [f"# {name}, exit code {error.exit_code}", *render_at_doors(error, capsys), ""]
    compare_golden("doors.txt", "\n".join(lines))


def render_at_doors(error: NexiError, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_failure(error)
    terminal = capsys.readouterr().err.splitlines()
    print_failure(error, as_json=True)
    as_json = capsys.readouterr().out.strip()
    problem = problem_of(error)
    told = {name: shape(problem) for name, shape in SHAPES.items()}
    shapes = [
        f"{name}: {problem.status} {json.dumps({key: part for key, part in body.items() if key != 'notices'})}"
        for name, body in told.items()
    ]
    result = _error_result(error).model_dump(mode="json", by_alias=True)
    mcp = [f"mcp: {json.dumps(result['content'][0]['text'])}", f"mcp data: {json.dumps(result['_meta'])}"]
    return [*(f"terminal: {line}" for line in terminal), f"json: {as_json}", *shapes, *mcp]


SOURCE = """
FIX = "set it"
def check(name):
    raise ConfigError(f"no {name}", cause="a" if name else "b", fix=FIX)
    raise FetchError("gone", reason="blocked", fix=other())
    raise build_refusal(404, "not_found", "nothing " + "there", fix="look" or name)
    raise ValueError("not one of ours")
    context.warn("slow", f"{name}")
def read(name):
    cause, fix = "none", "add one"
    if name:
        cause = f"{name} is odd"
    raise StoreError("not read", cause=cause, fix=fix)
"""


def test_messages_are_read_with_their_codes_causes_and_fixes() -> None:
    assert sorted(find_entries(SOURCE)) == [
        Entry("ConfigError", "config", "no {}", "a / b", "set it"),
        Entry("FetchError", "blocked", "gone", "", "{}"),
        Entry("StoreError", "store", "not read", "none / {} is odd", "add one"),
        Entry("build_refusal", "not_found", "nothing there", "", "look / {}"),
        Entry("warn", "slow", "{}", "", ""),
    ]
