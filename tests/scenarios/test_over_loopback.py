"""Whole searches with real parts: the command, real HTTP on loopback, real files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rig import miniweb, scripted_llm
from tests.children import CHILD_PATH

pytestmark = pytest.mark.long

PAGES = [
    {
        "url": "http://moon.test/facts",
        "title": "Moon facts",
        "html": "<html><head><title>Moon facts</title></head><body><nav><a href='/'>Home</a></nav><main><h1>Moon</h1>"
        "<p>The Moon is 384,400 km from Earth on average. It has almost no air and many craters.</p></main></body></html>",
    },
    {
        "url": "http://mars.test/facts",
        "title": "Mars facts",
        "html": "<html><head><title>Mars facts</title></head><body><main><h1>Mars</h1>"
        "<p>Mars has two small moons that are called Phobos and Deimos.</p></main></body></html>",
    },
]
QUESTION = "How far is the Moon from Earth on average?"
PROGRESS = f'Searched "{QUESTION}": 2 results from searxng\nRead Moon facts (127.0.0.1)\nRead Mars facts (127.0.0.1)\n'
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def web() -> Iterator[str]:
    with miniweb.serve(miniweb.Corpus(PAGES)) as base:
        yield base


@pytest.fixture
def model() -> Iterator[str]:
    with scripted_llm.serve() as base:
        yield f"{base}/v1"


@pytest.fixture
def nexi(web: str, tmp_path: Path) -> Run:
    """The `nexi` command with a home of its own, searching the loopback web."""

    def run(*args: str, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        base = {
            "PATH": os.environ["PATH"],
            "NEXI_HOME": str(tmp_path / "nexi"),
            "SEARXNG_URL": web,
            "NEXI_ALLOW_PRIVATE": urlsplit(web).netloc,
            "PYTHONPATH": CHILD_PATH,
            "PYTHONWARNINGS": "error",
            "MODEL_CHOICE": "extractive",  # no judge
        }
        return subprocess.run(
            [sys.executable, "-m", "nexi", *args],
            env={**base, **env},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def test_a_model_answers_over_loopback_and_history_keeps_it(nexi: Run, web: str, model: str) -> None:
    done = nexi("--plain", QUESTION, OPENAI_BASE_URL=model, NEXI_MODEL="scripted")
    assert (done.returncode, done.stderr) == (0, PROGRESS)
    answer, _, sources = done.stdout.partition("\n\nSources:\n")
    assert "384,400 km" in answer
    assert sources == f"[1] Moon facts - {web}/moon.test/facts\n"
    shown = nexi("--prev")
    assert QUESTION in shown.stdout
    assert "384,400 km" in shown.stdout


def test_without_a_model_passages_answer_and_it_is_said(nexi: Run, web: str) -> None:
    done = nexi("--plain", QUESTION)
    assert done.returncode == 0
    assert "384,400 km" in done.stdout
    assert f"[1] Moon facts - {web}/moon.test/facts" in done.stdout
    assert "extractive" in done.stderr.splitlines()[0]


def test_json_is_one_versioned_object(nexi: Run, web: str) -> None:
    done = nexi("--json", QUESTION)
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert (answer["schema"], answer["question"], answer["stop"]) == ("nexi-answer-1", QUESTION, "final_answer")
    assert [(s["n"], s["url"], s["title"]) for s in answer["sources"]] == [(1, f"{web}/moon.test/facts", "Moon facts")]
    assert (answer["proof"]["figures"], answer["proof"]["dropped"]) == ("1 of 1 sentence found in the cited pages", [])
    assert answer["cost"] == 0.0


def test_a_question_may_come_from_stdin(nexi: Run) -> None:
    assert "384,400 km" in nexi("--plain", stdin=QUESTION).stdout


@pytest.mark.parametrize("question", ["", "   \n", "\x00\x01"])
def test_an_empty_question_on_stdin_is_a_usage_error(nexi: Run, question: str) -> None:
    done = nexi("--plain", stdin=question)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the question is empty" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_question_of_a_megabyte_on_stdin_is_a_usage_error(nexi: Run) -> None:
    done = nexi("--plain", stdin="why " * 250_000)
    assert (done.returncode, done.stdout) == (2, "")
    assert "characters" in done.stderr


def test_nothing_found_is_exit_five_with_the_reason(nexi: Run) -> None:
    done = nexi("--plain", "xyzzy plugh")
    assert (done.returncode, done.stdout) == (5, "")
    assert "SearXNG found nothing for this question" in done.stderr


def test_a_search_service_that_is_down_is_named_with_a_fix(nexi: Run) -> None:
    done = nexi("--plain", QUESTION, SEARXNG_URL="http://127.0.0.1:9")
    assert done.returncode == 5
    assert "SearXNG refused the connection: nothing listens at" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_that_is_down_is_an_error_with_a_fix(nexi: Run) -> None:
    done = nexi("--json", QUESTION, OPENAI_BASE_URL="http://127.0.0.1:9/v1", NEXI_MODEL="m")
    failure = json.loads(done.stdout)
    assert done.returncode == 1
    assert set(failure) == {"error", "code", "fix"}
    assert failure["code"] == "connect"
    assert failure["fix"]


@pytest.mark.parametrize("text", ["{", "[]", '{"max_context": -1}', "\xff"])
def test_a_broken_config_is_a_usage_error_that_names_the_file(nexi: Run, tmp_path: Path, text: str) -> None:
    home = tmp_path / "nexi"
    home.mkdir()
    (home / "config.json").write_bytes(text.encode("latin-1"))
    done = nexi("--plain", QUESTION)
    assert (done.returncode, done.stdout) == (2, "")
    assert "config" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_home_that_cannot_be_written_still_gets_its_answer(nexi: Run, tmp_path: Path) -> None:
    home = tmp_path / "nexi"
    (home / "history.jsonl").mkdir(parents=True)
    for name in ("runs", "pages"):
        (home / name).write_text("not a folder", encoding="utf-8")
    done = nexi("--plain", QUESTION)
    assert done.returncode == 0
    assert "384,400 km" in done.stdout
    assert "not kept" in done.stderr


def test_the_demo_answers_with_no_key_and_no_network() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nexi", "demo", "--plain"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0
    assert "metadata addresses" in done.stdout
    assert "Sources:\n[" in done.stdout
    assert "the demo uses a temporary folder" in done.stderr
