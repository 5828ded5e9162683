"""An answer at a terminal: what stands around it, how lines wrap, and what can be done with it next."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rig.terminal import CTRL_D, ENTER, Picture, Terminal, terminal
from tests.faults.command import ANSWER, QUESTION, answering, endpoint, reading, searching

pytestmark = pytest.mark.long

LIE = "The Moon is made of 900 kg of cheese [1]."
PROMPT = "nexi>"


@contextmanager
def asking(env: dict[str, str], web: str, *arguments: str, answer: str = ANSWER, columns: int = 80) -> Iterator[Terminal]:
    with endpoint([searching(), reading(web), answering(answer)]) as server:
        models = {"OPENAI_BASE_URL": server.url, "NEXI_MODEL": "scripted"}
        with terminal([*arguments, QUESTION], {**env, **models}, columns=columns) as screen:
            yield screen


def run_nexi(env: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "nexi", *arguments],
        env={"PATH": os.environ["PATH"], **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return done.stdout


def run_id_of(env: dict[str, str]) -> str:
    (folder,) = (Path(env["NEXI_HOME"]) / "runs").iterdir()
    return folder.name


def without_links(raw: str) -> str:
    return re.sub(r"\x1b?\]8;[^;]*;[^\\\x07]*[\\\x07]", "", Picture(raw).text)


def test_a_verdict_stands_once_and_no_warning_stands_inside_the_answer(env: dict[str, str], web: str) -> None:
    with asking(env, web, answer=f"## What is said\n\n{LIE}\n\n{ANSWER}") as screen:
        assert screen.ending() == 0
    shown = without_links(screen.raw)
    verdict = "○ Checked: 1 of 2 sentences found in the cited pages · 1 source."
    assert f"cheese [1].\n\n{ANSWER}\n\nSources\n" in shown
    assert shown.count("1 of 2 sentences") == 2  # of the answer, and of the source
    assert [line for line in shown.splitlines() if "Checked" in line] == [verdict], shown
    assert "could not be verified" not in shown


def test_a_warning_that_comes_with_the_text_follows_the_sources(env: dict[str, str], web: str) -> None:
    with asking(env, web, answer=f"{ANSWER} It is far [7].") as screen:
        assert screen.ending() == 0
    shown = without_links(screen.raw)
    assert shown.index("Sources\n") < shown.index("Warning: ") < shown.index(" iterations, ")


def test_the_last_line_names_the_run_and_what_can_be_done_next(env: dict[str, str], web: str) -> None:
    with asking(env, web) as screen:
        assert screen.ending() == 0
    run = run_id_of(env)
    assert without_links(screen.raw).splitlines()[-2:] == [
        f'Run {run} · nexi evidence 1 · nexi open 1 · nexi -c "follow-up"',
        f"  nexi export {run} --format html",
    ]


def test_every_line_wraps_at_words(env: dict[str, str], web: str) -> None:
    for number, flags in enumerate(([], ["--plain"], ["-v"])):
        home = {"NEXI_HOME": f"{env['NEXI_HOME']}{number}"}
        with asking({**env, **home}, web, *flags, answer=f"{LIE} {ANSWER} It is far [7].", columns=40) as screen:
            assert screen.ending() == 0
        shown = without_links(screen.raw)
        too_long = [line for line in shown.splitlines() if len(line) > 40 and " " in line.strip()]
        assert too_long == [], flags
        for words in ("sentences found in the cited pages", "nexi export", "The Moon is 384,400 km away on average [1]."):
            assert words in " ".join(shown.split()), flags


def test_evidence_shows_the_passage_in_its_page(env: dict[str, str], web: str) -> None:
    with asking(env, web, answer=f"{ANSWER} {LIE}") as screen:
        assert screen.ending() == 0
    with terminal(["evidence", "1"], env, columns=90) as screen:
        assert screen.ending() == 0
    shown = Picture(screen.raw).text
    assert shown.startswith(f"[1] Moon facts\n    {web}/moon.test/facts\n\n○ found: {ANSWER}")
    marked = " ".join(re.findall(r"\x1b\[30;43m([^\x1b]*)", screen.raw))
    assert marked == "The Moon is 384,400 km away on average."
    assert "· not confirmed: The Moon is made of 900 kg of cheese [1]." in shown
    plain = run_nexi(env, "evidence")
    assert "“The Moon is 384,400 km away on average.” It has" in " ".join(plain.split())
    (found,) = map(json.loads, run_nexi(env, "evidence", "1", "--run", run_id_of(env), "--json").splitlines())
    assert (found["schema"], found["run"], found["source"]["n"]) == ("nexi-evidence-1", run_id_of(env), 1)
    assert [(s["verdict"], [e["n"] for e in s["evidence"]]) for s in found["sentences"]] == [
        ("found", [1]),
        ("not_confirmed", [1]),
    ]


def test_evidence_of_a_source_that_is_not_cited_says_which_are(env: dict[str, str], web: str) -> None:
    with asking(env, web) as screen:
        assert screen.ending() == 0
    with terminal(["evidence", "3"], env) as screen:
        screen.expect("Error: the answer has no source 3: it cites 1")
        assert screen.ending() == 1


def test_tab_completes_the_ids_of_runs(env: dict[str, str], web: str) -> None:
    with asking(env, web) as screen:
        assert screen.ending() == 0
    for command in ("resume", "stop", "export", "replay", "evidence --run", "history show"):
        words = f"nexi {command} "
        asked = {"_NEXI_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()))}
        completed = run_nexi({**env, **asked})
        assert completed == f"plain,{run_id_of(env)}\n", command


def test_the_prompt_has_a_status_bar_and_words_for_the_last_answer(env: dict[str, str], web: str, tmp_path: Path) -> None:
    notes, saved = tmp_path / "notes.md", tmp_path / "moon.html"
    notes.write_text("The Moon is 384,400 km from Earth on average.")
    with endpoint([searching(), reading(web), answering()]) as server:
        models = {"OPENAI_BASE_URL": server.url, "NEXI_MODEL": "scripted", "BROWSER": "true"}
        with terminal([], {**env, **models}, columns=120) as screen:
            screen.expect(PROMPT)
            screen.expect("scripted · searxng · effort ")
            screen.type(QUESTION + ENTER)
            screen.expect("· /evidence 1 · /open 1 · /export html")
            screen.expect("cost unknown")  # in the status bar
            for typed, shown in (
                ("/evidence 1", "○ found: "),
                ("/evidence 4", "the answer has no source 4"),
                ("/evidence x", "'x' is not a number"),
                ("/open 1", PROMPT),
                ("/open", "missing number"),
                ("/copy", "\x07"),
                (f"/export html {saved}", "Saved the run to"),
                ("/export docs", "format 'docs' is unknown"),
                ("/history 1", "[1] "),
                ("/cost", "1 answer, "),
                ("/focus papers", "Focus: papers"),
                ("/focus tea", "focus 'tea' is unknown"),
                (f"/file {notes}", "Files: "),
                ("/file /no/such/file", "does not exist"),
                ("/file none", "Files: none"),
                ("/new", "New conversation."),
                ("/sources", "no answer yet"),
            ):
                screen.type(typed + ENTER)
                if shown == "\x07":
                    screen.expect("/copy")
                else:
                    screen.expect(shown)
                screen.expect(PROMPT)
            screen.type(CTRL_D)
            assert screen.ending() == 0
    assert saved.read_text().startswith("<!doctype html>")
    assert "\x1b]52;c;" in screen.raw  # the answer went to the clipboard
    assert "focus papers" in screen.text
